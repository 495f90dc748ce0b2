"""`Attention.Spec.groupedQueryVjp` on its vectors, through `pyimpl.attention`.

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


@vectors("gradient", 21)
@dtypes
def test_gradient(vector_id: str, dtype: torch.dtype) -> None:
    """Where the log-sum-exp is given out too, the gradient by it is added to dP − D in its row, and
    the backward pass is the adjoint of what dual numbers give for both, wherever the row has a log-
    sum-exp over dual numbers. That the rate of the log-sum-exp is its derivative is not said.

    Theorem vjp-adjoint-lse. The gradients by queries, keys, values and a bias: without D, with the
    scale twice or not at all, with dK and dV exchanged, or with a term for a masked pair they show.
    """
    check(vector_id, dtype)


@vectors("gradient-alibi", 14)
@dtypes
def test_gradient_alibi(vector_id: str, dtype: torch.dtype) -> None:
    """The backward pass computed with intervals, over inputs, a scale, score transformations and
    their slopes, and gradients by the outputs that contain the true ones, contains the true
    gradients by queries, keys, values and transformed scores, whatever natural exponential they are
    taken with.

    Theorem gradient-enclosed. Gradients by ALiBi's slopes: minus the distance times the gradient by
    the score, summed in each head. With the other sign, another alignment, or one-sided distances,
    they show.
    """
    check(vector_id, dtype)


@vectors("gradient-bias", 15)
@dtypes
def test_gradient_bias(vector_id: str, dtype: torch.dtype) -> None:
    """The backward pass computed with intervals, over inputs, a scale, score transformations and
    their slopes, and gradients by the outputs that contain the true ones, contains the true
    gradients by queries, keys, values and transformed scores, whatever natural exponential they are
    taken with.

    Theorem gradient-enclosed. Gradients by a bias: one that heads or queries share gets the sum
    over them. A sum that is left out, or taken over others, or a number where the bias masks,
    shows.
    """
    check(vector_id, dtype)


@vectors("gradient-drawn", 108)
@dtypes
def test_gradient_drawn(vector_id: str, dtype: torch.dtype) -> None:
    """In grouped-query attention the gradients of a shared head of keys and values are summed over
    the query heads of its group: that is the adjoint of grouped-query attention run over dual
    numbers.

    Theorem gqa-backward. Gradients for sizes, heads, scale and mask drawn at random, every kind of
    mask in turn.
    """
    check(vector_id, dtype)


@vectors("gradient-grouped", 12)
@dtypes
def test_gradient_grouped(vector_id: str, dtype: torch.dtype) -> None:
    """In grouped-query attention the gradients of a shared head of keys and values are summed over
    the query heads of its group: that is the adjoint of grouped-query attention run over dual
    numbers.

    Theorem gqa-backward. Heads of keys and values that several query heads share: their gradients
    are summed over the group, and over no other heads.
    """
    check(vector_id, dtype)


@vectors("gradient-softcap", 14)
@dtypes
def test_gradient_softcap(vector_id: str, dtype: torch.dtype) -> None:
    """The backward pass computed with intervals, over inputs, a scale, score transformations and
    their slopes, and gradients by the outputs that contain the true ones, contains the true
    gradients by queries, keys, values and transformed scores, whatever natural exponential they are
    taken with.

    Theorem gradient-enclosed. Gradients through softcap: without the factor 1 - tanh^2, with that
    of another score, or with it in the gradient by the bias, they show.
    """
    check(vector_id, dtype)
