"""`Attention.Spec.groupedQueryVjp` on its vectors, through `pyimpl.attention`.

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


@vectors("gradient", 21)
@dtypes
def test_gradient(vector_id: str, dtype: torch.dtype) -> None:
    """Where the log-sum-exp is given out too, the gradient by it is added to dP − D in its row, and
    the backward pass is the adjoint of the derivative of both outputs.

    Theorem vjp-adjoint-lse. The gradients by queries, keys, values and a bias: without D, with the
    scale twice or not at all, with dK and dV exchanged, or with a term for a masked pair they show.
    """
    check(vector_id, dtype)


@vectors("gradient-drawn", 108)
@dtypes
def test_gradient_drawn(vector_id: str, dtype: torch.dtype) -> None:
    """In grouped-query attention the gradients of a shared head of keys and values are summed over
    the query heads of its group: that is the adjoint of its derivative.

    Theorem gqa-backward. Gradients for sizes, heads, scale and mask drawn at random, every kind of
    mask in turn.
    """
    check(vector_id, dtype)


@vectors("gradient-grouped", 12)
@dtypes
def test_gradient_grouped(vector_id: str, dtype: torch.dtype) -> None:
    """In grouped-query attention the gradients of a shared head of keys and values are summed over
    the query heads of its group: that is the adjoint of its derivative.

    Theorem gqa-backward. Heads of keys and values that several query heads share: their gradients
    are summed over the group, and over no other heads.
    """
    check(vector_id, dtype)
