"""Attention over parts of the keys, forward and backward: unrounded, and with the log-sum-exp and
the row numbers of the whole, as where a sequence is in shards."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from attention_checks import inputs, judge_options, tiled_rounding
from backward_checks import judge_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from option_cases import options_of
from torch import Tensor

from pyimpl.backends.dispatch import Backend, backward, forward
from pyimpl.internal.arguments import compute_dtype
from pyimpl.internal.dropout import Dropout
from pyimpl.internal.gradients import Gradients, Wanted, row_gradient
from pyimpl.internal.scores import ScoreOptions
from pyimpl.merge import combine

NOTHING = Wanted()
# The options that a part of the keys adjusts by one number, the shift.
NAMES = ["nothing", "causal", "causal bottom-right", "window", "softcap", "alibi bottom-right"]
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def parts(key: Tensor, value: Tensor, options: ScoreOptions, cuts: list[int]):
    """The keys and values between the cuts, and the options of these."""
    ends = sorted({0, key.shape[2], *(min(c, key.shape[2]) for c in cuts)})
    for a, b in pairwise(ends):
        one = replace(options, shift=options.shift - a)
        yield key[:, :, a:b], value[:, :, a:b], one


def whole_by_parts(query, key, value, options, cuts, backend: Backend) -> tuple[Tensor, Tensor]:
    found = [
        forward(query, k, v, one, backend, wide=True)
        for k, v, one in parts(key, value, options, cuts)
    ]
    wide = compute_dtype(query.dtype)
    assert {x.dtype for pair in found for x in pair} == {wide}
    outs, lses = (torch.stack(x) for x in zip(*found, strict=True))
    out, lse = combine(outs, lses)
    return out.to(query.dtype), lse


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(*[st.integers(1, 2)] * 2, *[st.integers(1, 20)] * 2, *[st.integers(1, 6)] * 2),
    st.sampled_from(NAMES),
    st.sampled_from(DTYPES),
    st.lists(st.integers(1, 20), max_size=4),
    st.sampled_from(["tiled", "reference"]),
)
def test_parts_are_combined_unrounded(shape, name, dtype, cuts, backend) -> None:
    query, key, value, _ = inputs(shape, dtype)
    options = options_of(name, query, key)
    result = whole_by_parts(query, key, value, options, cuts, backend)
    judge_options(result, query, key, value, options, tiled_rounding(dtype, 1))


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(*[st.integers(1, 2)] * 2, *[st.integers(1, 20)] * 2, *[st.integers(1, 6)] * 2),
    st.sampled_from(NAMES),
    st.sampled_from(DTYPES),
    st.lists(st.integers(1, 20), max_size=4),
    st.sampled_from(["tiled", "reference"]),
)
def test_gradients_by_parts_are_those_of_the_whole(shape, name, dtype, cuts, backend) -> None:
    query, key, value, _ = inputs(shape, dtype)
    options = options_of(name, query, key)
    wide = compute_dtype(dtype)
    out, lse = forward(query, key, value, options, backend)
    generator = torch.Generator().manual_seed(1)
    grad_out, grad_lse = (torch.randn(x.shape, generator=generator).to(x.dtype) for x in (out, lse))
    delta = row_gradient(out.to(wide), grad_out.to(wide), grad_lse)
    unread = torch.full_like(out, torch.nan)
    found = [
        backward(
            query, k, v, unread, lse, grad_out, None, one, NOTHING, backend, delta=delta, wide=True
        )
        for k, v, one in parts(key, value, options, cuts)
    ]  # fmt: skip
    assert all(x.dtype in (wide, torch.float64) for one in found for x in one[:3])
    q = sum(one.query for one in found)
    k, v = (torch.cat([one[i] for one in found], 2) for i in (1, 2))
    rounded = Gradients(q, k, v).round_to_inputs(query, key, value, options)
    by_name = dict(zip(("query", "key", "value"), rounded[:3], strict=True))
    judge_gradients(
        by_name, query, key, value, options, grad_out, grad_lse, computed=wide
    )  # fmt: skip


@pytest.mark.parametrize("backend", ["triton", "tiled"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_wide_results_and_known_row_numbers_change_nothing_else(backend, dtype) -> None:
    """One rounding, to the dtype of query, is all that `wide` leaves out; the row numbers given are
    those that are computed otherwise, but for the order of their sums."""
    query, key, value, _ = inputs((1, 2, 20, 33, 16, 16), dtype)
    options = options_of("causal bottom-right", query, key)
    out, lse = forward(query, key, value, options, backend)
    wide_out, wide_lse = forward(query, key, value, options, backend, wide=True)
    assert wide_out.dtype == torch.float32
    assert torch.equal(wide_out.to(dtype), out)
    assert torch.equal(wide_lse, lse)
    # Sums of powers of two in any order are exact.
    grad_out = torch.zeros_like(out)
    grad_out[..., 3] = 0.5
    given = (query, key, value, out, lse, grad_out, None, options, NOTHING, backend)
    delta = row_gradient(out.float(), grad_out.float(), None)
    found = backward(*given)
    wide = backward(*given, delta=delta, wide=True)
    assert {x.dtype for x in wide[:3]} == {torch.float32}
    for one, other in zip(found[:3], wide[:3], strict=True):
        assert torch.equal(one.to(dtype), other.to(dtype))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=9), st.lists(st.integers(0, 40), max_size=9))
def test_dropout_of_any_queries_and_keys_is_that_of_the_whole(rows, columns) -> None:
    dropout = Dropout(0.4, torch.tensor(0x1234567890ABCDEF))
    whole = dropout.kept_weights(2, 3, range(41), range(41))
    i, j = (torch.tensor(x, dtype=torch.int64) for x in (rows, columns))
    some = dropout.at(i, j)
    assert torch.equal(
        some.kept_weights(2, 3, range(len(i)), range(len(j))), whole[:, :, i][..., j]
    )
    assert torch.equal(
        some.kept_weights(2, 3, range(len(i))[1:], range(len(j))[2:]),
        whole[:, :, i[1:]][..., j[2:]],
    )


def test_kernels_refuse_dropout_of_places_that_do_not_follow_one_another() -> None:
    query, key, value, _ = inputs((1, 1, 16, 16, 16, 16), torch.float32)
    options = options_of("dropout", query, key)
    assert options.dropout is not None
    other = options.dropout.at(torch.arange(16), torch.arange(16))
    with pytest.raises(NotImplementedError, match="numbers queries and keys one after another"):
        forward(query, key, value, replace(options, dropout=other), "triton")
