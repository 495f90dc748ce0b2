"""Fixtures and hooks of all tests."""

from __future__ import annotations

import gc
import importlib
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import torch

from bridge import interpreting
from bridge.conformance.adapters import interpreter

# How long an example takes to make and to run depends on the machine's other work.
hypothesis.settings.register_profile(
    "project", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("project")


def pytest_configure(config: pytest.Config) -> None:
    """Triton interprets its kernels, except where only the tests of tests/gpu are asked for, and
    where TRITON_INTERPRET=0 says that it does not.

    Triton settles this when a kernel is defined, so it is set before anything is imported.
    """
    # A command that was put into the background ignores Ctrl-C, and so would all that tests start
    # and mean to interrupt.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("TRITON_INTERPRET") != "0" and (
        not all("gpu" in Path(argument.split("::")[0]).parts for argument in config.args)
    ):
        interpreting.settle(True)
        interpreter.install()
    # It imports the kernels, for which all that has to be settled.
    summary = importlib.import_module("forward_launches").Summary
    config.pluginmanager.register(summary(), "forward launches")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Tensors here are tiny: more threads only wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """A test draws the same numbers from torch in each run, whatever tests ran before it."""
    # `torch.manual_seed` keeps a stack trace for each kind of device that is not in use.
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(0)


@pytest.fixture(autouse=True, scope="session")
def launches_of_the_forward_kernel() -> Iterator[None]:
    """Each is looked at: do the hypotheses of the theorems about it hold?"""
    with importlib.import_module("forward_launches").looked_at():
        yield


def pytest_collection_finish() -> None:
    """What there is before the first test stays: no search for garbage looks through it."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before those that are thorough are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests whose fixtures prepare Lean are marked, and of a sampled test's cases all but each n-th
    as thorough. Those that need compiled kernels are skipped where Triton interprets them. Files of
    few tests that take a minute or more begin first, so that no worker waits for one at the end."""
    cases: Counter[str] = Counter()
    interpreted = importlib.import_module("pyimpl.backends.kernels.parts.numerics").INTERPRETED
    elsewhere = pytest.mark.skip(reason="Triton interprets here; `make test-all` compiles, too")
    for item in items:
        if interpreted.value and item.get_closest_marker("compiled"):
            item.add_marker(elsewhere)
        if sampled := item.get_closest_marker("sampled"):
            test = item.nodeid.partition("[")[0]
            if cases[test] % sampled.args[0]:
                item.add_marker(pytest.mark.thorough)
            cases[test] += 1
        if "prepared" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.lean)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
