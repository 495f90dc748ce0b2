"""`Attention.Spec.flashBackward` on its vectors, through `pyimpl.attention`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import (
    dropped,
    dtypes,
    judge_gradients,
    scale_of,
    tensor,
    vector_of,
    vectors,
    visible,
)

import pyimpl


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)
    q, k, v = (
        torch.stack([tensor(rows, dtype) for rows in matrices])[None].requires_grad_()
        for matrices in (vector.q, vector.k, vector.v)
    )
    bias = torch.zeros(1, vector.num_heads, vector.q_len, vector.kv_len, dtype=dtype)
    bias.requires_grad_()
    out, lse = pyimpl.attention(
        q,
        k,
        v,
        scale=scale_of(vector),
        attn_mask=visible(vector),
        bias=bias,
        enable_gqa=True,
        return_lse=True,
        backend="tiled",
        **dropped(vector),
    )
    by_out = torch.stack([tensor(rows, dtype) for rows in vector.grad_output])[None]
    by_lse = tensor(vector.grad_log_sum_exp, dtype)[None]
    gradients = torch.autograd.grad((out, lse), (q, k, v, bias), (by_out, by_lse))
    judge_gradients(vector, dtype, gradients)


@vectors("gradient-tiles", 14)
@dtypes
def test_gradient_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, tile sizes of at least 1, masks, score transformations and sound schedules,
    FlashAttention-2's backward pass (P again from the saved log-sum-exp, D first, dK and dV over
    tiles of queries, dQ over tiles of keys) computes the gradients.

    Theorem flash-backward. FlashAttention-2's backward pass: P again from the saved log-sum-exp, dK
    and dV over tiles of queries, dQ over tiles of keys; a ragged tile, or one that is left out,
    shows.
    """
    check(vector_id, dtype)
