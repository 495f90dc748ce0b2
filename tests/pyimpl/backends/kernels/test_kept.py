"""Launches that are kept are those that Triton would make, and nothing waits for a GPU unasked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("kept_launches.py")
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def found() -> Any:
    """The script's findings, in a process that does not interpret."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, SCRIPT], cwd=ROOT, env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.thorough
def test_a_kept_launch_is_the_one_that_triton_makes(found: Any) -> None:
    assert found[0]["nothing"] == []


@pytest.mark.parametrize(
    ("part", "calls"),
    [
        ("numbers", {"causal", "window", "window-of-8", "scale", "softcap", "other-dropout",
                     "decode-in-one", "decode-causal", "varlen-bounded", "varlen-causal",
                     "gluon", "gluon-causal", "gluon-window", "gluon-scale",
                     "choice-window", "backward-causal", "backward-wide", "backward-blocks",
                     "backward-delta", "backward-gluon", "backward-auto-unseen-keys"}),
        ("shapes", {"fewer-keys", "gluon-fewer-keys", "choice-fewer-queries"}),
        ("dtypes", {"float32", "gluon-float16"}),
        ("strides", {"strides", "gluon-strides", "choice-strides", "backward-strides"}),
        ("alignment", {"address-of-10", "one-address-of-10", "choice-address-of-10"}),
        ("negation", {"negated", "gluon-negated"}),
        ("descriptors", {"gluon", "gluon-strides", "gluon-grouped"}),
    ],
)  # fmt: skip
def test_it_is_another_without_a_part_of_its_key(found: Any, part: str, calls: set[str]) -> None:
    assert calls <= {name.partition(",")[0] for name in found[0][part]}


def test_the_hooks_of_triton_are_told_of_a_kept_launch(found: Any) -> None:
    grid = [8, 1, 1]
    assert found[4] == [[None, False, False], [grid, True, True], [grid, True, True]]


def test_no_number_of_a_tensor_is_read_unless_it_is_to_be_checked(found: Any) -> None:
    _, per_head, checked, unchecked, _, blind_spots = found
    assert blind_spots == []
    assert unchecked == []
    # Those that have numbers to look at; the others have none.
    wanted = {"mask", "bias", "varlen", "varlen-slopes", "lens", "paged", *per_head}
    assert set(checked) == wanted
