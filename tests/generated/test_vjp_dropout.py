"""`Attention.Spec.vjpDropout` on its vectors, through `pyimpl.attention`.

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


@vectors("gradient-dropout", 12)
@dtypes
def test_gradient_dropout(vector_id: str, dtype: torch.dtype) -> None:
    """For any factors Z, the backward pass of attention with dropout is the adjoint of what dual
    numbers give for it, log-sum-exp included where the row has one over dual numbers. That these
    rates are derivatives is not said.

    Theorem dropout-adjoint. The backward pass draws again what the forward pass has dropped: dV
    without the factors, dP without them, D from the output without dropout, or another mask show.
    """
    check(vector_id, dtype)
