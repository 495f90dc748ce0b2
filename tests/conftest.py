"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest
import torch

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("project", deadline=None)
hypothesis.settings.load_profile("project")


def pytest_configure(config: pytest.Config) -> None:
    """Triton interprets its kernels, except where only the tests of tests/gpu are asked for.

    Triton settles this when a kernel is defined, so it is set before anything is imported.
    """
    if not all("gpu" in Path(argument.split("::")[0]).parts for argument in config.args):
        os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Tensors here are tiny: more threads only wait for each other."""
    torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in copies of the checkout take one worker for minutes: they begin first, so that none
    waits at the end."""
    long = ("test_chain", "test_add_a_feature")
    items.sort(key=lambda item: not any(name in item.nodeid for name in long))
