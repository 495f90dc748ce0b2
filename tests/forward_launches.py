"""Every launch of the forward kernel that a test makes: does it meet the hypotheses of the theorems
about the kernel (`bridge.ttir.given`), and is its text one that they speak of?"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

from bridge.ttir.classes import classes, features, text_of
from bridge.ttir.given import Unmet, unmet_conditions
from pyimpl.backends.kernels import forward

# Launches, by the facts that were found of them.
FOUND: Counter[str] = Counter()


def facts_of(found: Any, tensors: tuple[Any, ...]) -> str:
    """The facts about a launch. Fails if the launcher does not meet a hypothesis."""
    off: list[Unmet] = unmet_conditions(found, *tensors)
    own = [str(one) for one in off if not one.of_tensors]
    assert not own, f"a launch does not meet the theorems' hypotheses: {'; '.join(own)}"
    text = text_of(found)
    if text is None:
        return f"no theorem: {', '.join(sorted(features(found)))}"
    names = sorted({one.name for one in off})
    return f"{text.name}, but for {', '.join(names)}" if names else f"proved: {text.name}"


@contextmanager
def looked_at() -> Iterator[None]:
    """All launches made meanwhile are looked at."""
    make = forward.launch
    # They are found by launches, which are not looked at.
    classes()

    @functools.wraps(make)
    def launch(*tensors: Any, **options: Any) -> Any:
        found = make(*tensors, **options)
        # To look at numbers on a GPU waits for it, which some tests forbid.
        if not tensors[0].is_cuda:
            FOUND[facts_of(found, tensors)] += 1
        return found

    with mock.patch.object(forward, "launch", launch):
        yield


class Summary:
    """The launches of all workers, at the end of a run."""

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        worker = getattr(session.config, "workeroutput", None)
        if worker is not None:
            worker["forward_launches"] = dict(FOUND)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        FOUND.update(getattr(node, "workeroutput", {}).get("forward_launches", {}))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not FOUND:
            return
        proved = sum(n for what, n in FOUND.items() if what.startswith("proved"))
        terminalreporter.write_line(
            f"{FOUND.total()} launches of the forward kernel; {proved} run a proved text within "
            "its theorems' hypotheses"
        )
        if terminalreporter.config.option.verbose > 0:
            for what, n in FOUND.most_common():
                terminalreporter.write_line(f"{n:>8} {what}")
