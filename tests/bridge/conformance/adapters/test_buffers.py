"""Calls whose inputs lie in larger buffers: a function that ignores strides or reads past its rows
fails, and one that refuses them does not."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import committed
import pytest
import strided_functions as functions
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bridge import check
from bridge.conformance.adapters.callables import CallableAdapter
from bridge.conformance.functions.features import probe
from bridge.conformance.inside.buffers import pad
from bridge.conformance.judging.run import IN_BUFFERS, Buffers, Result, run
from bridge.conformance.requests.request import Misuse, Request
from bridge.conformance.tolerances.rounding_model import generous

FAMILIES = ("small-random", "gradient")
FILE = Path(functions.__file__)


def judge_here(call: Callable[..., Tensor], buffers: Buffers) -> Result:
    adapter = CallableAdapter("f:x", call, probe(call, "cpu", ("float32",)), generous)
    families = committed.families(*FAMILIES)
    return run(adapter, families, "float32", order=random.Random(1), buffers=buffers)


@given(st.tuples(*[st.integers(1, 4)] * 4))
def test_the_numbers_are_the_same_and_nan_is_around_them(shape: tuple[int, ...]) -> None:
    x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    found = pad(x)
    assert torch.equal(found, x)
    assert found.stride(-1) == 1
    # One row alone has no strides that could be others.
    assert found.is_contiguous() == (shape[:3] == (1, 1, 1))
    whole = torch.as_strided(found, (found.untyped_storage().nbytes() // 4,), (1,), 0)
    assert whole.isnan().sum() == whole.numel() - x.numel()
    assert whole[-1].isnan()


@pytest.mark.parametrize("call", [functions.ignores_strides, functions.reads_past_the_rows])
@pytest.mark.parametrize("buffers", ["some", "all"])
def test_what_goes_by_contiguous_memory_fails(
    call: Callable[..., Tensor], buffers: Buffers
) -> None:
    assert not judge_here(call, "none").failures
    failures = judge_here(call, buffers).failures
    assert failures
    for vector in failures:
        assert vector.reason.startswith(f"{IN_BUFFERS}: ")


@pytest.mark.parametrize("call", [functions.right, functions.refuses_strides])
def test_what_is_right_or_refuses_them_passes(call: Callable[..., Tensor]) -> None:
    with_all, with_none = judge_here(call, "all"), judge_here(call, "none")
    assert not with_all.failures
    assert [v.status for v in with_all.vectors] == [v.status for v in with_none.vectors]


def test_in_the_functions_own_process() -> None:
    """There the buffers are made anew."""
    for name, fails in (("ignores_strides", True), ("right", False)):
        verdict = check(
            f"{FILE}:{name}", dtypes=["float32"], families=["small-random"], buffers="all"
        )
        assert (IN_BUFFERS in str(verdict)) == fails
        assert verdict.ok == (not fails)


def test_another_choice_is_refused() -> None:
    other: Any = "most"
    with pytest.raises(Misuse, match=r"buffers: 'most' is not a choice of calls; some, all, none"):
        Request((f"{FILE}:right",), buffers=other)
