"""Packed sequences: each has the same result as `attention` of it alone."""

from __future__ import annotations

import pytest
import torch
from attention_checks import judge, tiled_rounding
from hypothesis import given, settings
from hypothesis import strategies as st

from pyimpl import attention_varlen

BACKENDS = ["tiled", "reference"]
lengths = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=5)


def packed_inputs(lens: list[tuple[int, int]], dtype: torch.dtype = torch.float32, group: int = 2):
    """query, key, value of 2 key heads, and both prefix sums."""
    generator = torch.Generator().manual_seed(0)
    totals = [sum(n) for n in zip(*lens, strict=True)] or [0, 0]
    query = torch.randn(totals[0], 2 * group, 4, generator=generator).to(dtype)
    key = torch.randn(totals[1], 2, 4, generator=generator).to(dtype)
    value = torch.randn(totals[1], 2, 6, generator=generator).to(dtype)
    sums = [torch.tensor([0, *n]).cumsum(0).int() for n in zip(*lens, strict=True)]
    return query, key, value, *(sums or [torch.zeros(1, dtype=torch.int32)] * 2)


@settings(max_examples=60, deadline=None)
@given(
    lengths, st.sampled_from(["top-left", "bottom-right"]), st.booleans(),
    st.sampled_from(BACKENDS), st.sampled_from([torch.float32, torch.bfloat16]),
)  # fmt: skip
def test_each_sequence_alone(lens, alignment, is_causal, backend, dtype) -> None:
    query, key, value, cu_q, cu_k = packed_inputs(lens, dtype)
    slopes, sinks = torch.rand(len(lens), 4), torch.linspace(-1, 1, 4)
    out, lse = attention_varlen(
        query, key, value, cu_q, cu_k, is_causal=is_causal, causal_alignment=alignment,
        window=(4, 3), alibi_slopes=slopes, sinks=sinks, softcap=3.0, scale=0.7,
        enable_gqa=True, return_lse=True, backend=backend,
    )  # fmt: skip
    assert out.shape == (query.shape[0], 4, 6)
    for b, (q_len, kv_len) in enumerate(lens):
        rows, cols = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
        one = (x.transpose(0, 1)[None] for x in (query[rows], key[cols], value[cols]))
        judge(
            (out[rows].transpose(0, 1)[None], lse[None, :, rows]), *one,
            rounding=tiled_rounding(dtype), left=4, right=0 if is_causal else 3,
            shift=kv_len - q_len if alignment == "bottom-right" else 0,
            alibi_slopes=slopes[b : b + 1], sinks=sinks, softcap=3.0, scale=0.7,
        )  # fmt: skip


def test_one_row_of_slopes_for_all_sequences() -> None:
    tensors = packed_inputs([(3, 4), (2, 5)])
    slopes = torch.rand(4)
    one = attention_varlen(*tensors, enable_gqa=True, alibi_slopes=slopes)
    each = attention_varlen(*tensors, enable_gqa=True, alibi_slopes=slopes.expand(2, 4))
    assert torch.equal(one, each)


Q, K, V, CU_Q, CU_K = packed_inputs([(2, 3), (3, 1)], group=1)
LONG = torch.arange(12)
REFUSALS = [
    ({"query": Q[None]}, ValueError, r"query must be \[tokens, heads, head_dim\], not of"),
    ({"value": V[:3]}, ValueError, "value must have the length of key, 4, not 3"),
    ({"cu_seqlens_q": [0, 5]}, TypeError, "cu_seqlens_q must be a torch.Tensor of int32 .* not li"),
    ({"cu_seqlens_q": CU_Q.float()}, TypeError, "cu_seqlens_q must be .* int64, not torch.float32"),
    ({"cu_seqlens_q": CU_Q.to_sparse()}, TypeError, "cu_seqlens_q must be a dense tensor, neither"),
    (
        {"cu_seqlens_q": CU_Q.to("meta")},
        ValueError,
        "cu_seqlens_q must .* its numbers, not on meta",
    ),
    ({"cu_seqlens_q": CU_Q[None]}, ValueError, r"must be \[sequences \+ 1\], not of shape \[1, 3"),
    ({"cu_seqlens_q": CU_Q + 1}, ValueError, r"cu_seqlens_q must rise from 0 to .* query, 5, not"),
    ({"cu_seqlens_k": CU_K[[0, 1, 1]]}, ValueError, r"tokens of key, 4, not \[0, 3, 3\]"),
    ({"cu_seqlens_k": torch.tensor([0, 9, 4])}, ValueError, r"must rise .* not \[0, 9, 4\]"),
    ({"cu_seqlens_k": CU_K[[0, 2]]}, ValueError, "the number of sequences of .*_q, 2, not 1"),
    (
        {"cu_seqlens_q": LONG, "cu_seqlens_k": LONG},
        ValueError,
        r"not \[0, 1, 2, 3, …, 9, 10, 11\]",
    ),
    ({"return_lse": 0}, TypeError, "return_lse must be True or False, not 0"),
    ({"causal_alignment": 1}, ValueError, "causal_alignment must be one of 'top-left', .* not 1"),
    ({"alibi_slopes": torch.ones(3, 2)}, ValueError, r"of shape \[2\] or \[2, 2\], not \[3, 2\]"),
    ({"backend": ""}, ValueError, "backend must be one of 'auto', .* not ''"),
]


@pytest.mark.parametrize(("change", "error", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_refusals(change: dict[str, object], error: type[Exception], message: str) -> None:
    whole = {"query": Q, "key": K, "value": V, "cu_seqlens_q": CU_Q, "cu_seqlens_k": CU_K}
    with pytest.raises(error, match=message) as caught:
        attention_varlen(**{**whole, **change})
    assert "\n" not in str(caught.value)
