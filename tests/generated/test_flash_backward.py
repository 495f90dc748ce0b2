"""`Attention.Spec.flashBackward` on its vectors, through `pyimpl.attention`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge_gradients, vector_of, vectors

import pyimpl
from bridge.conformance.adapters.gradient_inputs import inputs_of


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)
    given = inputs_of(vector, dtype, requires_grad=True)
    outputs = pyimpl.attention(
        given.query,
        given.key,
        given.value,
        **given.keywords(),
        return_lse=True,
        backend="tiled",
    )
    by = given.by()
    found = torch.autograd.grad(outputs, list(by.values()), (given.grad_out, given.grad_lse))
    judge_gradients(vector, dtype, dict(zip(by, found, strict=True)))


@vectors("gradient-dropout-tiles", 12)
@dtypes
def test_gradient_dropout_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """With factors Z that are a function of query and key, FlashAttention-2's backward pass in
    tiles (any sizes of tiles, any sound schedules, D from the output with dropout, z·v for each
    value in dP, z·p for each weight in dV) computes the gradients of attention with dropout.

    Theorem flash-backward-dropout. The backward pass tile by tile with dropout: factors drawn by
    the place in a tile, or otherwise for dQ than for dK and dV, and D from the output without
    dropout show.
    """
    check(vector_id, dtype)


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
