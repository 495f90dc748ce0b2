"""The vectors that `pyimpl.attention` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge_gradients, vector_of, vectors

import pyimpl
from bridge.conformance.tensors.gradient_inputs import inputs_of


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
    the backward pass is the adjoint of the rates that dual numbers give for both, if each row that
    gets such a gradient other than 0 has a log-sum-exp over dual numbers. gradient-is-derivative
    says that these rates are derivatives.

    Theorem vjp-adjoint-lse, `Spec.groupedQueryVjp`. The gradients by queries, keys, values and a
    bias: without D, with the scale twice or not at all, with dK and dV exchanged, or with a term
    for a masked pair they show.
    """
    check(vector_id, dtype)


@vectors("gradient-alibi", 14)
@dtypes
def test_gradient_alibi(vector_id: str, dtype: torch.dtype) -> None:
    """The backward pass computed with intervals, over inputs, a scale, score transformations and
    their slopes, and gradients by the outputs that contain the true ones, contains the true
    gradients by queries, keys, values and transformed scores, whatever natural exponential they are
    taken with.

    Theorem gradient-enclosed, `Spec.groupedQueryVjp`. Gradients by ALiBi's slopes: minus the
    distance times the gradient by the score, summed in each head. With the other sign, another
    alignment, or one-sided distances, they show.
    """
    check(vector_id, dtype)


@vectors("gradient-bias", 15)
@dtypes
def test_gradient_bias(vector_id: str, dtype: torch.dtype) -> None:
    """The backward pass computed with intervals, over inputs, a scale, score transformations and
    their slopes, and gradients by the outputs that contain the true ones, contains the true
    gradients by queries, keys, values and transformed scores, whatever natural exponential they are
    taken with.

    Theorem gradient-enclosed, `Spec.groupedQueryVjp`. Gradients by a bias: one that heads or
    queries share gets the sum over them. A sum that is left out, or taken over others, or a number
    where the bias masks, shows.
    """
    check(vector_id, dtype)


@vectors("gradient-drawn", 108)
@dtypes
def test_gradient_drawn(vector_id: str, dtype: torch.dtype) -> None:
    """In grouped-query attention the gradients of a shared head of keys and values are summed over
    the query heads of its group: that is the adjoint of grouped-query attention run over dual
    numbers.

    Theorem gqa-backward, `Spec.groupedQueryVjp`. Gradients for sizes, heads, scale and mask drawn
    at random, every kind of mask in turn.
    """
    check(vector_id, dtype)


@vectors("gradient-dropout", 12)
@dtypes
def test_gradient_dropout(vector_id: str, dtype: torch.dtype) -> None:
    """For any factors Z, the backward pass of attention with dropout is the adjoint of the rates
    that dual numbers give for it, log-sum-exp included, if each row whose log-sum-exp gets a
    gradient other than 0 has one over dual numbers. gradient-is-derivative-dropout says that these
    rates are derivatives.

    Theorem dropout-adjoint, `Spec.vjpDropout`. The backward pass draws again what the forward pass
    has dropped: dV without the factors, dP without them, D from the output without dropout, or
    another mask show.
    """
    check(vector_id, dtype)


@vectors("gradient-dropout-tiles", 12)
@dtypes
def test_gradient_dropout_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """With factors Z that are a function of query and key, FlashAttention-2's backward pass in
    tiles (any sound schedules, D from the output with dropout, z·v for each value in dP, z·p for
    each weight in dV) computes the gradients of attention with dropout, for all tile sizes of at
    least 1, if what is saved for each row is the log-sum-exp of its scores under the mask.

    Theorem flash-backward-dropout, `Spec.flashBackward`. The backward pass tile by tile with
    dropout: factors drawn by the place in a tile, or otherwise for dQ than for dK and dV, and D
    from the output without dropout show.
    """
    check(vector_id, dtype)


@vectors("gradient-grouped", 12)
@dtypes
def test_gradient_grouped(vector_id: str, dtype: torch.dtype) -> None:
    """In grouped-query attention the gradients of a shared head of keys and values are summed over
    the query heads of its group: that is the adjoint of grouped-query attention run over dual
    numbers.

    Theorem gqa-backward, `Spec.groupedQueryVjp`. Heads of keys and values that several query heads
    share: their gradients are summed over the group, and over no other heads.
    """
    check(vector_id, dtype)


@vectors("gradient-hidden-scores", 20)
@dtypes
def test_gradient_hidden_scores(vector_id: str, dtype: torch.dtype) -> None:
    """Where the log-sum-exp is given out too, the gradient by it is added to dP − D in its row, and
    the backward pass is the adjoint of the rates that dual numbers give for both, if each row that
    gets such a gradient other than 0 has a log-sum-exp over dual numbers. gradient-is-derivative
    says that these rates are derivatives.

    Theorem vjp-adjoint-lse, `Spec.groupedQueryVjp`. Gradients where scores that the mask hides are
    111 or 1065 above those that are seen, in base e: a term of theirs, or one of ∞ times 0, shows.
    """
    check(vector_id, dtype)


@vectors("gradient-one-loop", 12)
@dtypes
def test_gradient_one_loop(vector_id: str, dtype: torch.dtype) -> None:
    """So does the paper's one loop, with or without dropout, which for each tile of keys takes the
    tiles of queries, sums dK and dV and adds to dQ in memory, pairs of tiles that are masked
    entirely left out, for all tile sizes of at least 1, if what is saved for each row is the log-
    sum-exp of its scores under the mask.

    Theorem flash-backward-one-loop, `Spec.flashBackwardOneLoop`. FlashAttention-2's algorithm 2 as
    the paper has it: one loop over the tiles of keys, which adds to dQ; a tile that is added twice,
    or written over, shows.
    """
    check(vector_id, dtype)


@vectors("gradient-past-tiles", 11)
@dtypes
def test_gradient_past_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """So does the backward pass of attention with sinks, and it contains the gradients by the
    sinks.

    Theorem gradient-sink-enclosed, `Spec.groupedQueryVjp`. Gradients with several tiles of 64 and
    of 128 queries and of keys, in both directions, with wide heads, heads that share keys, each
    option, and inputs of 24 bits: a tile that is left out of a sum, an option that is left out from
    the second tile on, or columns past 64 show.
    """
    check(vector_id, dtype)


@vectors("gradient-past-tiles-dropout", 5)
@dtypes
def test_gradient_past_tiles_dropout(vector_id: str, dtype: torch.dtype) -> None:
    """The backward pass of attention with dropout computed with intervals, over inputs and factors
    Z that contain the true ones, contains the true gradients.

    Theorem gradient-dropout-enclosed, `Spec.vjpDropout`. Gradients with dropout and several tiles
    of 64 and of 128 queries and of keys: factors of another tile, head or sequence, in dQ or in dK
    and dV alone, show.
    """
    check(vector_id, dtype)


@vectors("gradient-past-tiles-masks", 20)
@dtypes
def test_gradient_past_tiles_masks(vector_id: str, dtype: torch.dtype) -> None:
    """So does the backward pass of attention with sinks, and it contains the gradients by the
    sinks.

    Theorem gradient-sink-enclosed, `Spec.groupedQueryVjp`. Gradients past tiles of 64 and of 128
    with a bias, with windows, masks that differ by head and by sequence, of several sequences in
    one call, heads of 64 to 256 columns, and more than 1,024 keys: a bias or a mask of another
    head, sequence or tile, or a sum over several sequences, shows.
    """
    check(vector_id, dtype)


@vectors("gradient-past-tiles-packed", 5)
@dtypes
def test_gradient_past_tiles_packed(vector_id: str, dtype: torch.dtype) -> None:
    """The backward pass computed with intervals, over inputs, a scale, score transformations and
    their slopes, and gradients by the outputs that contain the true ones, contains the true
    gradients by queries, keys, values and transformed scores, whatever natural exponential they are
    taken with.

    Theorem gradient-enclosed, `Spec.groupedQueryVjp`. Gradients of packed sequences with several
    heads, and heads that share keys, some longer than a tile of 64 or of 128, beside short and
    empty ones: a sum over another sequence's queries, another head's keys, or rows at the strides
    of another number of heads, show.
    """
    check(vector_id, dtype)


@vectors("gradient-past-tiles-temperature", 5)
@dtypes
def test_gradient_past_tiles_temperature(vector_id: str, dtype: torch.dtype) -> None:
    """The backward pass of a head with a temperature computed with intervals, over inputs and a
    temperature that contain the true ones, contains the true gradients, that by the temperature
    too.

    Theorem gradient-temperature-enclosed, `Spec.temperatureVjp`. Gradients with a temperature for
    each query head, and by it, with several tiles of 64 and of 128 queries and of keys: dK of a
    later tile without the temperature, dQ without it, or a sum over the first tile alone shows.
    """
    check(vector_id, dtype)


@vectors("gradient-score-mods", 11)
@dtypes
def test_gradient_score_mods(vector_id: str, dtype: torch.dtype) -> None:
    """So does the backward pass of attention with sinks, and it contains the gradients by the
    sinks.

    Theorem gradient-sink-enclosed, `Spec.sinkVjp`. Gradients with softcap, ALiBi, bias, mask and
    sinks together, in this order, with given scales of both signs: what is right alone and wrong
    together shows.
    """
    check(vector_id, dtype)


@vectors("gradient-sinks", 15)
@dtypes
def test_gradient_sinks(vector_id: str, dtype: torch.dtype) -> None:
    """So does the backward pass of attention with sinks, and it contains the gradients by the
    sinks.

    Theorem gradient-sink-enclosed, `Spec.sinkVjp`. Gradients beside a sink, and by it: minus its
    weight times D, summed over the queries of its head. With the other sign, without the gradient
    of the log-sum-exp, or where a query sees no key but the sink, they show.
    """
    check(vector_id, dtype)


@vectors("gradient-softcap", 14)
@dtypes
def test_gradient_softcap(vector_id: str, dtype: torch.dtype) -> None:
    """The backward pass computed with intervals, over inputs, a scale, score transformations and
    their slopes, and gradients by the outputs that contain the true ones, contains the true
    gradients by queries, keys, values and transformed scores, whatever natural exponential they are
    taken with.

    Theorem gradient-enclosed, `Spec.groupedQueryVjp`. Gradients through softcap: without the factor
    1 - tanh^2, with that of another score, or with it in the gradient by the bias, they show.
    """
    check(vector_id, dtype)


@vectors("gradient-temperature", 13)
@dtypes
def test_gradient_temperature(vector_id: str, dtype: torch.dtype) -> None:
    """With a temperature t the gradients are those at the queries t·Q and the chain rule: dQ =
    t·dQ′, and ⟨dQ′, Q⟩ by t. That is the adjoint of attention with a temperature run over dual
    numbers: ⟨dO, rate of the output along δ⟩ = ⟨dQ, δQ⟩ + ⟨dK, δK⟩ + ⟨dV, δV⟩ + dt·δt + ⟨dBias,
    δB⟩.

    Theorem temperature-gradient, `Spec.temperatureVjp`. A temperature for each query head, by which
    its scores are multiplied: one that is left out, of another head, or taken for its inverse, dQ
    without it, and a gradient by it of the scaled queries or of one query alone show.
    """
    check(vector_id, dtype)


@vectors("gradient-tiles", 14)
@dtypes
def test_gradient_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, tile sizes of at least 1, masks, score transformations and sound schedules,
    FlashAttention-2's backward pass (P again from the saved log-sum-exp, D first, dK and dV over
    tiles of queries, dQ over tiles of keys) computes the gradients, if what is saved for each row
    is the log-sum-exp of its scores under the mask.

    Theorem flash-backward, `Spec.flashBackward`. FlashAttention-2's backward pass: P again from the
    saved log-sum-exp, dK and dV over tiles of queries, dQ over tiles of keys; a ragged tile, or one
    that is left out, shows.
    """
    check(vector_id, dtype)
