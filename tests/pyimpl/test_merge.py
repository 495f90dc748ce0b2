"""Merging the results of parts of the keys."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from attention_checks import inputs, judge, tiled_rounding
from hypothesis import given, settings
from hypothesis import strategies as st

from pyimpl import attention, merge_states

ROUNDING = tiled_rounding(torch.float32)


def parts_of(query, key, value, mask, cuts: list[int], **options):
    """attention over each part of the keys, stacked."""
    ends = [0, *sorted(cuts), key.shape[2]]
    results = [
        attention(
            query, key[:, :, a:b], value[:, :, a:b], attn_mask=mask[..., a:b], return_lse=True,
            **options,
        )
        for a, b in pairwise(ends)
    ]  # fmt: skip
    return tuple(torch.stack(x) for x in zip(*results, strict=True))


@settings(max_examples=80, deadline=None)
@given(
    st.tuples(*[st.integers(1, 2)] * 2, *[st.integers(1, 30)] * 2, *[st.integers(1, 6)] * 2),
    st.lists(st.integers(0, 30), max_size=5),
    st.randoms(use_true_random=False),
)
def test_any_splits_in_any_order_are_the_whole(shape, cuts, random) -> None:
    query, key, value, mask = inputs(shape, torch.float32, masked=True)
    outs, lses = parts_of(query, key, value, mask, [min(c, shape[3]) for c in cuts])
    order = list(range(len(outs)))
    random.shuffle(order)
    result = merge_states(outs[order], lses[order])
    judge(result, query, key, value, mask=mask, rounding=ROUNDING)


def test_a_sink_is_a_part_of_its_own() -> None:
    query, key, value, mask = inputs((2, 3, 5, 9, 4, 4), torch.float32, masked=True)
    sinks = torch.tensor([0.5, -1.0, 2.0])
    outs, lses = parts_of(query, key, value, mask, [4])
    outs = torch.cat((outs, torch.zeros_like(outs[:1])))
    lses = torch.cat((lses, sinks.view(1, 1, 3, 1).expand_as(lses[:1])))
    judge(merge_states(outs, lses), query, key, value, mask=mask, sinks=sinks, rounding=ROUNDING)


def test_empty_parts_have_no_influence_whatever_they_hold() -> None:
    query, key, value, mask = inputs((1, 2, 4, 6, 4, 4), torch.float32, masked=True)
    outs, lses = parts_of(query, key, value, mask, [3])
    expected = merge_states(outs, lses)
    outs = torch.cat((outs, torch.full_like(outs[:1], torch.nan)))
    lses = torch.cat((lses, torch.full_like(lses[:1], -torch.inf)))
    result = merge_states(outs, lses)
    assert all(torch.equal(x, y) for x, y in zip(result, expected, strict=True))
    out, lse = merge_states(outs[2:], lses[2:])
    assert torch.equal(out, torch.zeros(1, 2, 4, 4))
    assert torch.equal(lse, torch.full((1, 2, 4), -torch.inf))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    out, lse = merge_states(torch.ones(3, 2, 4, dtype=dtype), torch.zeros(3, 2, dtype=wide))
    assert (out.dtype, lse.dtype) == (dtype, wide)
    assert out.unique().tolist() == [1.0]


def test_large_log_sum_exps_do_not_overflow() -> None:
    outs = torch.tensor([[[1.0]], [[3.0]]])
    for shift in (-3e4, 3e4):
        out, lse = merge_states(outs, torch.full((2, 1), shift))
        assert out.item() == 2.0
        assert abs(lse.item() - shift) < 1.0


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(*[st.integers(1, 2)] * 2, *[st.integers(1, 12)] * 2, *[st.integers(1, 4)] * 2),
    st.lists(st.integers(0, 12), max_size=3),
)
def test_the_gradients_of_any_splits_are_those_of_the_whole(shape, cuts) -> None:
    *given, mask = inputs(shape, torch.float64, masked=True)
    leaves = [x.requires_grad_() for x in given]
    whole = attention(*leaves, attn_mask=mask, return_lse=True)
    merged = merge_states(*parts_of(*leaves, mask, [min(c, shape[3]) for c in cuts]))
    generator = torch.Generator().manual_seed(1)
    grads = [torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in whole]
    expected, found = (torch.autograd.grad(x, leaves, grads) for x in (whole, merged))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_gradients_of_every_order_and_mode() -> None:
    outs = torch.randn(3, 2, 4, dtype=torch.float64, requires_grad=True)
    lses = torch.tensor([[1.0, 2.0], [0.5, -torch.inf], [1.0, 30.0]], dtype=torch.float64)
    seen = torch.isfinite(lses)

    def merge(outs, numbers):
        return merge_states(outs, torch.where(seen, numbers, -torch.inf))

    numbers = torch.where(seen, lses, 0.0).requires_grad_()
    assert torch.autograd.gradcheck(merge, (outs, numbers), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(merge, (outs, numbers))


def test_an_empty_part_gets_no_gradient_whatever_it_holds() -> None:
    outs = torch.tensor([[[1.0], [2.0]], [[torch.nan], [torch.nan]]], requires_grad=True)
    lses = torch.tensor([[0.5, -torch.inf], [-torch.inf, -torch.inf]], requires_grad=True)
    out, lse = merge_states(outs, lses)
    by_outs, by_lses = torch.autograd.grad((out.sum(), lse[0]), (outs, lses))
    assert by_outs.flatten().tolist() == [1.0, 0.0, 0.0, 0.0]
    assert by_lses.flatten().tolist() == [1.0, 0.0, 0.0, 0.0]


O, L = torch.zeros(2, 5, 4), torch.zeros(2, 5)
REFUSALS = [
    ({"outs": [O]}, TypeError, "outs must be a torch.Tensor, not list"),
    ({"lses": 1.0}, TypeError, "lses must be a torch.Tensor, not float"),
    ({"lses": L.to_sparse()}, TypeError, "lses must be a dense tensor, neither sparse nor nested"),
    ({"outs": O.int()}, TypeError, "outs must be float64, .* not torch.int32"),
    ({"lses": L.half()}, TypeError, "lses must be torch.float32 for outs of torch.float32, not"),
    ({"outs": O[0, 0], "lses": L[0, 0]}, ValueError, r"outs must be \[parts, .* shape \[4\]"),
    ({"outs": O[:0], "lses": L[:0]}, ValueError, r"at least 1 part, not of shape \[0, 5, 4\]"),
    ({"lses": L[:, :2]}, ValueError, r"without its last dimension, \[2, 5\], not \[2, 2\]"),
    ({"lses": L.to("meta")}, ValueError, "lses must be on the device of outs, cpu, not meta"),
]


@pytest.mark.parametrize(("change", "error", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_refusals(change: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        merge_states(**{"outs": O, "lses": L, **change})
    assert "\n" not in str(caught.value)
