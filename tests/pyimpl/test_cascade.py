"""Requests with a shared prefix; the vectors are in `tests/generated`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from attention_checks import inputs, judge, tiled_rounding
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyimpl import attention_cascade


def parts(
    shape: tuple[int, int, int, int, int, int, int],
    dtype: torch.dtype = torch.float32,
    group: int = 1,
) -> dict[str, Tensor]:
    """`shape`: batch, kv_heads, q_len, prefix_len, max_len, head_dim, value_dim."""
    batch, kv_heads, q_len, prefix_len, max_len, head_dim, value_dim = shape
    rest = (head_dim, value_dim)
    query, k, v, _ = inputs((batch, kv_heads, q_len, max_len, *rest), dtype, group=group)
    _, prefix_k, prefix_v, _ = inputs((1, kv_heads, 1, prefix_len, *rest), dtype, seed=1)
    return {
        "query": query, "prefix_key": prefix_k[0], "prefix_value": prefix_v[0],
        "suffix_key": k, "suffix_value": v,
    }  # fmt: skip


def whole(given: dict[str, Tensor], b: int, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """query, key and value of one request, prefix and suffix in one."""
    k, v = (
        torch.cat((given[f"prefix_{x}"], given[f"suffix_{x}"][b, :, :length]), 1)[None]
        for x in ("key", "value")
    )
    return given["query"][b : b + 1], k, v


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(*[st.integers(1, 3)] * 3, *[st.integers(0, 20)] * 2, *[st.integers(1, 6)] * 2),
    st.integers(1, 3),
    st.lists(st.integers(0, 20), min_size=3, max_size=3),
    st.booleans(),
)
def test_it_is_attention_over_prefix_and_suffix(shape, group, lens, causal) -> None:
    batch, _, q_len, prefix_len, max_len = shape[:5]
    causal = causal and q_len <= max_len
    given = parts(shape, group=group)
    lengths = [min(max(n, q_len if causal else 0), max_len) for n in lens[:batch]]
    for b, n in enumerate(lengths):
        given["suffix_key"][b, :, n:] = torch.nan
        given["suffix_value"][b, :, n:] = torch.nan
    out, lse = attention_cascade(
        **given, suffix_lens=torch.tensor(lengths), is_causal=causal, enable_gqa=True,
        return_lse=True,
    )  # fmt: skip
    for b, n in enumerate(lengths):
        if prefix_len + n == 0:
            assert torch.equal(out[b], torch.zeros_like(out[b]))
            assert bool(torch.isneginf(lse[b]).all())
            continue
        judge(
            (out[b : b + 1], lse[b : b + 1]), *whole(given, b, n),
            rounding=tiled_rounding(torch.float32), is_causal=causal, shift=prefix_len + n - q_len,
        )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_the_output_is_rounded_once(dtype: torch.dtype) -> None:
    given = parts((2, 2, 3, 33, 17, 8, 4), dtype)
    out, lse = attention_cascade(**given, return_lse=True)
    assert out.dtype == dtype
    for b in range(2):
        judge(
            (out[b : b + 1], lse[b : b + 1]), *whole(given, b, 17), rounding=tiled_rounding(dtype)
        )


def test_options_hold_for_both_parts() -> None:
    given = parts((1, 1, 2, 9, 5, 4, 4))
    out, lse = attention_cascade(**given, softcap=0.5, scale=2.0, return_lse=True)
    judge((out, lse), *whole(given, 0, 5), softcap=0.5, scale=2.0,
          rounding=tiled_rounding(torch.float32))  # fmt: skip
    assert torch.equal(out, attention_cascade(**given, softcap=0.5, scale=2.0))


def test_autocast_rounds_the_inputs_alone() -> None:
    given = parts((2, 1, 1, 9, 5, 4, 4))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = attention_cascade(**given)
    rounded = {name: tensor.bfloat16() for name, tensor in given.items()}
    assert torch.equal(out, attention_cascade(**rounded))


@pytest.mark.parametrize(
    "name", ["query", "prefix_key", "prefix_value", "suffix_key", "suffix_value"]
)
def test_derivatives_are_refused_by_the_name_of_the_argument(name: str) -> None:
    with pytest.raises(
        NotImplementedError, match=rf"^{name} requires a gradient, and attention_cascade has no"
    ):
        attention_cascade(**{**G, name: G[name].clone().requires_grad_()})
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(G[name], torch.ones_like(G[name]))
        with pytest.raises(NotImplementedError, match=f"^{name} carries a tangent"):
            attention_cascade(**{**G, name: dual})


G = parts((2, 2, 3, 4, 5, 8, 6))
REFUSALS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"prefix_key": 1.0}, TypeError, "prefix_key must be a torch.Tensor, not float"),
    ({"prefix_key": G["suffix_key"]}, ValueError, r"prefix_key must be \[kv_heads, prefix_len"),
    (
        {x: G[x].double() for x in ("prefix_key", "prefix_value")},
        TypeError,
        "prefix_key must have the dtype of suffix_key, torch.float32, not torch.float64",
    ),
    (
        {x: G[x].to("meta") for x in ("prefix_key", "prefix_value")},
        ValueError,
        "prefix_key must be on the device of suffix_key, cpu, not on meta",
    ),
    (
        {"prefix_key": G["prefix_key"][:1]},
        ValueError,
        "prefix_key must have the heads of suffix_key, 2, not 1",
    ),
    (
        {"prefix_value": G["prefix_value"][..., :3]},
        ValueError,
        "prefix_value must have the last dimension of suffix_value, 6, not 3",
    ),
    (
        {"prefix_value": G["prefix_value"][:, :3]},
        ValueError,
        "prefix_value must have the length of prefix_key, 4, not 3",
    ),
    ({"suffix_key": G["suffix_key"][:1]}, ValueError, "suffix_key must have the batch of query"),
    ({"suffix_lens": [1, 2]}, TypeError, "suffix_lens must be a torch.Tensor of int32 or int64"),
    ({"suffix_lens": torch.tensor([1])}, ValueError, r"suffix_lens must be of shape \[2\]"),
    ({"suffix_lens": torch.tensor([1, 6])}, ValueError, "from 0 to max_len, 5, not 6"),
    ({"suffix_lens": torch.tensor([1, -1])}, ValueError, "from 0 to max_len, 5, not -1"),
    (
        {"suffix_lens": torch.tensor([3, 2]), "is_causal": True},
        ValueError,
        "each suffix must have at least q_len, 3, keys with is_causal, not 2",
    ),
    ({"is_causal": 1}, TypeError, "is_causal must be True or False, not 1"),
    ({"backend": "cuda"}, ValueError, "backend must be one of"),
]


@pytest.mark.parametrize(("change", "error", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_refusals(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        attention_cascade(**{**G, **change})
    assert "\n" not in str(caught.value)
