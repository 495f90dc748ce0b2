"""`Attention.Spec.flashBackwardOneLoop` on its vectors, through `pyimpl.attention`.

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


@vectors("gradient-one-loop", 12)
@dtypes
def test_gradient_one_loop(vector_id: str, dtype: torch.dtype) -> None:
    """So does the paper's one loop, with or without dropout, which for each tile of keys takes the
    tiles of queries, sums dK and dV and adds to dQ in memory, pairs of tiles that are masked
    entirely left out.

    Theorem flash-backward-one-loop. FlashAttention-2's algorithm 2 as the paper has it: one loop
    over the tiles of keys, which adds to dQ; a tile that is added twice, or written over, shows.
    """
    check(vector_id, dtype)
