"""The options of the public function: the meaning of each, in terms of the others and of PyTorch's
SDPA."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from attention_checks import inputs, judge, judge_options, score_options, tiled_rounding
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.conformance.tolerances.rounding_model import RoundingModel
from pyimpl import attention

BACKENDS = ["tiled", "reference"]
ROUNDING = tiled_rounding(torch.float32)
shapes = st.tuples(*[st.integers(1, 2)] * 2, *[st.integers(1, 30)] * 2, *[st.integers(1, 6)] * 2)
sides = st.none() | st.integers(0, 12)
alignments = st.sampled_from(["top-left", "bottom-right"])


def visible(
    q_len: int, kv_len: int, alignment: str, left: int | None, right: int | None
) -> torch.Tensor:
    """`Attention.Spec.Mask.window` as a boolean mask."""
    shift = kv_len - q_len if alignment == "bottom-right" else 0
    return torch.tensor(
        [
            [
                (left is None or i + shift - left <= j)
                and (right is None or j <= i + shift + right)
                for j in range(kv_len)
            ]
            for i in range(q_len)
        ]
    )


def judge_call(query, key, value, given: dict[str, Any], backend: str, **meaning: Any) -> None:
    """`attention` with the arguments `given` is within the tolerance of the reference with the
    options `meaning`."""
    result = attention(query, key, value, return_lse=True, backend=backend, **given)
    judge(result, query, key, value, rounding=ROUNDING, **meaning)


@settings(max_examples=100, deadline=None)
@given(shapes, alignments, sides, sides, st.booleans(), st.sampled_from(BACKENDS))
def test_windows_are_boolean_masks(shape, alignment, left, right, is_causal, backend) -> None:
    query, key, value, _ = inputs(shape, torch.float32)
    given = {"window": (left, right), "is_causal": is_causal, "causal_alignment": alignment}
    mask = visible(*shape[2:4], alignment, left, 0 if is_causal else right)
    judge_call(query, key, value, given, backend, mask=mask)


@settings(max_examples=50, deadline=None)
@given(shapes, st.booleans(), st.sampled_from(BACKENDS))
def test_masks_causality_and_windows_all_apply(shape, is_causal, backend) -> None:
    query, key, value, mask = inputs(shape, torch.float32, masked=True)
    given = {"attn_mask": mask, "is_causal": is_causal, "window": (5, 2)}
    both = mask & visible(*shape[2:4], "top-left", 5, 0 if is_causal else 2)
    judge_call(query, key, value, given, backend, mask=both)


@settings(max_examples=50, deadline=None)
@given(shapes, st.integers(1, 4), st.booleans(), st.sampled_from(BACKENDS))
def test_grouped_heads_are_repeated_heads(shape, group, is_causal, backend) -> None:
    query, key, value, _ = inputs(shape, torch.float32, group=group)
    sinks = torch.linspace(-1, 1, query.shape[1])
    options = {"is_causal": is_causal, "sinks": sinks}
    result = attention(
        query, key, value, enable_gqa=True, return_lse=True, backend=backend, **options
    )
    key, value = (x.repeat_interleave(group, dim=1) for x in (key, value))
    judge(result, query, key, value, rounding=ROUNDING, **options)


@settings(max_examples=50, deadline=None)
@given(shapes, st.integers(1, 30), st.sampled_from(BACKENDS))
def test_causal_prefix(shape, length, backend) -> None:
    """The first queries do not change when tokens are added: decoding rests on this."""
    n = max(shape[2], 2)
    length = min(length, n - 1)
    query, key, value, _ = inputs((*shape[:2], n, n, *shape[4:]), torch.float32)
    whole = attention(query, key, value, is_causal=True, return_lse=True, backend=backend)
    prefix = [x[:, :, :length] for x in (query, key, value)]
    result = (whole[0][:, :, :length], whole[1][:, :, :length])
    judge(result, *prefix, is_causal=True, rounding=ROUNDING)


@settings(max_examples=50, deadline=None)
@given(shapes, st.integers(0, 2**31), st.sampled_from(BACKENDS))
def test_any_order_of_keys(shape, seed: int, backend) -> None:
    query, key, value, mask = inputs(shape, torch.float32, masked=True)
    order = torch.randperm(shape[3], generator=torch.Generator().manual_seed(seed))
    shuffled = (x[:, :, order] for x in (key, value))
    result = attention(
        query, *shuffled, attn_mask=mask[..., order], return_lse=True, backend=backend
    )
    judge(result, query, key, value, mask=mask, rounding=ROUNDING)


@pytest.mark.parametrize("backend", BACKENDS)
def test_alibi_is_a_bias(backend) -> None:
    query, key, value, _ = inputs((2, 3, 6, 9, 4, 4), torch.float32)
    for slopes in (torch.rand(3), torch.rand(2, 3)):
        for alignment, shift in (("top-left", 0), ("bottom-right", 3)):
            distance = (torch.arange(6)[:, None] + shift - torch.arange(9)).abs()
            given = {"alibi_slopes": slopes, "causal_alignment": alignment}
            bias = -slopes[..., None, None] * distance
            judge_call(query, key, value, given, backend, bias=bias)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sink_is_a_key_with_value_0(backend) -> None:
    query, key, value, _ = inputs((1, 2, 5, 7, 4, 4), torch.float32)
    sinks = torch.tensor([0.3, -0.4])
    result = attention(query, key, value, sinks=sinks, return_lse=True, backend=backend)
    key, value = (torch.cat((x.new_zeros(1, 2, 1, 4), x), 2) for x in (key, value))
    bias = torch.zeros(2, 5, 8)
    bias[..., 0] = sinks[:, None]
    judge(result, query, key, value, bias=bias, rounding=ROUNDING)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_row_with_nothing_but_its_sink(backend) -> None:
    query, key, value, _ = inputs((1, 2, 3, 4, 4, 4), torch.float32)
    mask, sinks = torch.zeros(3, 4, dtype=torch.bool), torch.tensor([0.5, -2.0])
    given = {"attn_mask": mask, "sinks": sinks}
    assert torch.equal(
        attention(query, key, value, backend=backend, **given), torch.zeros_like(query)
    )
    judge_call(query, key, value, given, backend, mask=mask, sinks=sinks)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_floating_mask_is_a_bias(backend) -> None:
    query, key, value, mask = inputs((2, 2, 5, 7, 4, 4), torch.float32, masked=True)
    bias = torch.where(mask, torch.randn(5, 7), -torch.inf)
    by_mask = attention(query, key, value, attn_mask=bias, return_lse=True, backend=backend)
    by_bias = attention(query, key, value, bias=bias, return_lse=True, backend=backend)
    assert all(torch.equal(x, y) for x, y in zip(by_mask, by_bias, strict=True))
    zeros = torch.zeros_like(bias).masked_fill(~mask, -torch.inf)
    result = attention(query, key, value, attn_mask=zeros, return_lse=True, backend=backend)
    judge(result, query, key, value, mask=mask, rounding=ROUNDING)


SEEDED = torch.Generator().manual_seed(0)
SDPA: dict[str, dict[str, Any]] = {
    "nothing": {},
    "causal": {"is_causal": True},
    "boolean": {"attn_mask": torch.rand(9, 13, generator=SEEDED) < 0.7},
    # Of the dtype of the query, as torch asks: of another one its AVX2 kernel reads other numbers.
    "floating": {"attn_mask": torch.randn(1, 2, 9, 13, generator=SEEDED, dtype=torch.float64)},
    "scale": {"scale": 0.3},
    "enable_gqa": {"enable_gqa": True},
    "dropout_p": {"dropout_p": 0.0},
}


@pytest.mark.parametrize("name", SDPA)
def test_the_same_call_as_sdpa(name: str) -> None:
    """SDPA's result of the very same call is within its own tolerance of the reference."""
    group = 2 if name == "enable_gqa" else 1
    query, key, value, _ = inputs((3, 2 // group, 9, 13, 8, 8), torch.float64, group=group)
    call = SDPA[name]
    out = F.scaled_dot_product_attention(query, key, value, **call)
    ours, lse = attention(query, key, value, return_lse=True, **call)
    options = {k: v for k, v in call.items() if k in ("is_causal", "scale")}
    given = call.get("attn_mask")
    if given is not None:
        options["mask" if given.dtype == torch.bool else "bias"] = given
    wanted = score_options(query, **options)
    judge_options((out, lse), query, key, value, wanted, RoundingModel.sdpa_math("float64"))
    judge_options((ours, lse), query, key, value, wanted, RoundingModel.float64())


@pytest.mark.parametrize("backend", BACKENDS)
def test_layouts(backend) -> None:
    query, key, value, mask = inputs((2, 3, 5, 7, 4, 6), torch.float32, masked=True)
    options = {"attn_mask": mask, "return_lse": True, "backend": backend}
    out, lse = attention(query, key, value, **options)
    turned = (x.transpose(1, 2).contiguous() for x in (query, key, value))
    other, other_lse = attention(*turned, layout="bnhd", **options)
    assert other.shape == (2, 5, 3, 6)
    assert torch.equal(other.transpose(1, 2), out)
    assert torch.equal(other_lse, lse)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_window_without_end_hides_nothing(backend) -> None:
    query, key, value, _ = inputs((1, 1, 5, 7, 4, 4), torch.float32)
    expected = attention(query, key, value, backend=backend)
    for window in ((None, None), (10**30, 10**30), [12, 12]):
        assert torch.equal(attention(query, key, value, window=window, backend=backend), expected)
