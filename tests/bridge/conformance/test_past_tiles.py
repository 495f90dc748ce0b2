"""What is wrong only past a tile, or only for what small vectors have not, fails the vectors that
are there for it."""

from __future__ import annotations

import committed
import pytest
from wrong_past_tiles import FAULTS, function

from bridge.conformance.adapters.callables import CallableAdapter
from bridge.conformance.features import Function, probe
from bridge.conformance.rounding_model import generous
from bridge.conformance.run import Result, run

# Of attention functions; packed sequences and pages have theirs below.
FAMILIES = (
    "past-tiles", "past-tiles-options", "gradient-past-tiles", "hidden-scores",
    "gradient-hidden-scores",
)  # fmt: skip


def judged(call: Function, dtype: str, *names: str) -> Result:
    adapter = CallableAdapter("f:x", call, probe(call, "cpu", (dtype,)), generous)
    return run(adapter, committed.families(*names), dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_the_right_function_passes(dtype: str) -> None:
    result = judged(function(""), dtype, *FAMILIES)
    assert [v.id for v in result.failures] == []
    passed = {v.family for v in result.vectors if v.status == "passed"}
    assert passed == set(FAMILIES)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_caught(fault: str) -> None:
    family = FAULTS[fault][1]
    assert judged(function(fault), "float32", family).failures


@pytest.mark.thorough
@pytest.mark.parametrize("fault", FAULTS)
def test_no_other_family_catches_it(fault: str) -> None:
    """So it is what these families are there for."""
    others = [name for name in committed.names() if name not in FAMILIES]
    assert not judged(function(fault), "float32", *others).failures
