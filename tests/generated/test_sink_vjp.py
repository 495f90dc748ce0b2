"""`Attention.Spec.sinkVjp` on its vectors, through `pyimpl.attention`.

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


@vectors("gradient-score-mods", 11)
@dtypes
def test_gradient_score_mods(vector_id: str, dtype: torch.dtype) -> None:
    """So does the backward pass of attention with sinks, and it contains the gradients by the
    sinks.

    Theorem gradient-sink-enclosed. Gradients with softcap, ALiBi, bias, mask and sinks together, in
    this order, with given scales of both signs: what is right alone and wrong together shows.
    """
    check(vector_id, dtype)


@vectors("gradient-sinks", 15)
@dtypes
def test_gradient_sinks(vector_id: str, dtype: torch.dtype) -> None:
    """So does the backward pass of attention with sinks, and it contains the gradients by the
    sinks.

    Theorem gradient-sink-enclosed. Gradients beside a sink, and by it: minus its weight times D,
    summed over the queries of its head. With the other sign, without the gradient of the log-sum-
    exp, or where a query sees no key but the sink, they show.
    """
    check(vector_id, dtype)
