"""Of a sampled test's cases `make test` runs each n-th, and `make test-all` every one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# A file of the suite, since it is `tests/conftest.py` that looks at the marks.
PLANTED = "tests/bridge/conformance/test_log_sum_exp_by_spec.py"
TEST = "test_a_wrong_tolerance_of_log_sum_exps_disagrees"


def collect(*arguments: str) -> list[str]:
    """The cases of that test which a run with these arguments has, in their order."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [line for line in done.stdout.splitlines() if f"::{TEST}[" in line]


@pytest.fixture(scope="module")
def every() -> list[str]:
    return collect("-m", "thorough or not thorough", PLANTED)


@pytest.mark.thorough
def test_each_fourth_is_run(every: list[str]) -> None:
    assert len(every) > 4
    assert collect(PLANTED) == every[::4]


@pytest.mark.thorough
def test_a_case_that_is_named_is_run(every: list[str]) -> None:
    assert collect(every[1]) == [every[1]]
