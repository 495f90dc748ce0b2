"""Packed sequences of different lengths, interpreted, against plain float64 of each alone."""

from __future__ import annotations

import math

import pytest
import torch
from attention_checks import inputs, kernel_rounding
from kernel_checks import judge, score_options
from torch import Tensor

from pyimpl.backends.kernels.forward import forward
from pyimpl.backends.kernels.varlen import varlen

# Queries and keys of each sequence: one without queries, one without keys, one longer than a tile.
Q_LENS, K_LENS = [5, 0, 37, 3, 1], [9, 4, 50, 0, 20]
BLOCKS = {"block_m": 16, "block_n": 16}


def cu_seqlens(lens: list[int]) -> Tensor:
    return torch.tensor([0, *lens]).cumsum(0).int()


def packed_inputs(dtype: torch.dtype = torch.float32, kv_heads: int = 2) -> list[Tensor]:
    """query, key, value `[total, heads, dim]`."""
    query, key, value, _ = inputs((1, 4, sum(Q_LENS), sum(K_LENS), 24, 40), dtype)
    return [x[0].transpose(0, 1) for x in (query, key[:, :kv_heads], value[:, :kv_heads])]


def check(result: tuple[Tensor, Tensor], tensors: list[Tensor], bottom_right: bool, **changes):
    """Judge each sequence as attention of its own."""
    starts_q, starts_k = cu_seqlens(Q_LENS).tolist(), cu_seqlens(K_LENS).tolist()
    for b, (q_len, kv_len) in enumerate(zip(Q_LENS, K_LENS, strict=True)):
        own_q = slice(starts_q[b], starts_q[b] + q_len)
        own_k = slice(starts_k[b], starts_k[b] + kv_len)
        query, key, value = (
            x[own].transpose(0, 1)[None]
            for x, own in zip(tensors, (own_q, own_k, own_k), strict=True)
        )
        shift = kv_len - q_len if bottom_right else 0
        own = {n: x[b : b + 1] if n == "alibi_slopes" else x for n, x in changes.items()}
        options = score_options(query, shift=shift, **own)
        one = (result[0][own_q].transpose(0, 1)[None], result[1][:, own_q][None])
        judge(one, query, key, value, options, kernel_rounding(query.dtype, 16))


@pytest.mark.parametrize("bottom_right", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"right": 0},
        {"left": 12, "right": 3},
        {"softcap": 2.0, "alibi_slopes": torch.rand(5, 4), "sinks": torch.randn(4), "left": 7},
    ],
    ids=lambda c: "+".join(c) or "plain",
)
def test_each_sequence_is_attention_of_its_own(changes, bottom_right: bool) -> None:
    tensors = packed_inputs()
    result = varlen(
        *tensors, cu_seqlens(Q_LENS), cu_seqlens(K_LENS), score_options(tensors[0], **changes),
        bottom_right=bottom_right, **BLOCKS,
    )  # fmt: skip
    check(result, tensors, bottom_right, **changes)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    tensors = packed_inputs(dtype, kv_heads=1)
    result = varlen(
        *tensors, cu_seqlens(Q_LENS), cu_seqlens(K_LENS), score_options(tensors[0], right=0),
        max_q_len=40, bottom_right=True, **BLOCKS,
    )  # fmt: skip
    assert result[0].dtype == dtype
    check(result, tensors, True, right=0)


def test_one_sequence_is_the_forward_kernel() -> None:
    query, key, value, _ = inputs((1, 2, 37, 50, 16, 16), torch.float32)
    options = score_options(query, right=0, shift=5)
    expected = forward(query, key, value, options, **BLOCKS)
    rows = [x[0].transpose(0, 1) for x in (query, key, value)]
    out, lse = varlen(*rows, cu_seqlens([37]), cu_seqlens([50]), options, **BLOCKS)
    assert torch.equal(out.transpose(0, 1), expected[0][0])
    assert torch.equal(lse, expected[1][0])


@pytest.mark.filterwarnings("ignore:All-NaN slice encountered")
def test_other_sequences_have_no_influence() -> None:
    """NaN in their keys and values changes no bit, in the tiles that two sequences share either."""
    tensors = packed_inputs()
    arguments = (cu_seqlens(Q_LENS), cu_seqlens(K_LENS), score_options(tensors[0]))
    expected = varlen(*tensors, *arguments, **BLOCKS)
    query, key, value = (x.clone() for x in tensors)
    key[13:63], value[13:63] = math.nan, math.nan
    out, lse = varlen(query, key, value, *arguments, **BLOCKS)
    others = torch.ones(len(query), dtype=torch.bool)
    others[5:42] = False
    assert torch.equal(out[others], expected[0][others])
    assert torch.equal(lse[:, others], expected[1][:, others])


def test_rows_of_no_sequence() -> None:
    query, key, value = packed_inputs()
    for cu_q, cu_k in (([4, 10], [0, 7]), ([4, 10, 8], [0, 7, 9])):
        arguments = (torch.tensor(cu_q).int(), torch.tensor(cu_k).int(), score_options(query))
        out, lse = varlen(query, key, value, *arguments, **BLOCKS)
        beyond = torch.ones(len(query), dtype=torch.bool)
        beyond[4:10] = False
        assert bool((out[beyond] == 0).all())
        assert bool((lse[:, beyond] == -math.inf).all())
        assert not bool((lse[:, 4:10] == -math.inf).any())
    wild = torch.tensor([-5, 10, 2**31 - 1]).int()
    out, _ = varlen(query, key, value, wild, wild, score_options(query), **BLOCKS)
    assert not bool(out.isnan().any())


def test_no_sequences() -> None:
    query, key, value = packed_inputs()
    none = torch.zeros(1, dtype=torch.int32)
    out, lse = varlen(query, key, value, none, none, score_options(query))
    assert bool((out == 0).all())
    assert bool((lse == -math.inf).all())


def test_refusals() -> None:
    query, key, value = packed_inputs()
    cu_q, cu_k, options = cu_seqlens(Q_LENS), cu_seqlens(K_LENS), score_options(query)
    for change, message in (
        ({"cu_seqlens_q": cu_q.long()}, r"cu_seqlens_q must be torch.int32 \[6\] .* torch.int64"),
        ({"cu_seqlens_k": cu_k[1:]}, r"cu_seqlens_k must be .* \[6\] on cpu, not .* \[5\]"),
        ({"cu_seqlens_q": cu_q[:0]}, r"cu_seqlens_q must be .* \[1\] on cpu, not .* \[0\]"),
        ({"key": key[:, :, :3]}, r"key must be .*\[83, 2, 24\]"),
        ({"value": value[1:]}, r"value must be .*\[83, 2, 40\]"),
        ({"block_n": 8}, "block_n must be a power of two"),
        (
            {"options": score_options(query, mask=torch.ones(1).bool())},
            "mask must be None for packed sequences, not a tensor",
        ),
        ({"options": score_options(query, bias=torch.ones(1))}, "bias must be None for packed"),
    ):
        arguments = {"query": query, "key": key, "value": value, "cu_seqlens_q": cu_q}
        arguments |= {"cu_seqlens_k": cu_k, "options": options, "max_q_len": 40, **change}
        with pytest.raises(ValueError, match=message):
            varlen(**arguments)
