"""The common part of the backward pass's implementations: their results, and the formulas that need
no scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from pyimpl.internal.arguments import compute_dtype, empty_output, is_laid_out
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import DIFFERENTIABLE, ScoreOptions, scale_by_head


class Wanted(NamedTuple):
    """Which gradients are computed beside those of query, key and value: in the order of the
    changes of the scores in their table (`DIFFERENTIABLE`), as in `Gradients`."""

    slopes: bool = False
    bias: bool = False
    sinks: bool = False
    temperature: bool = False


class Gradients(NamedTuple):
    """The gradients, each of the shape of its argument; None: not wanted."""

    query: Tensor
    key: Tensor
    value: Tensor
    slopes: Tensor | None = None
    bias: Tensor | None = None
    sinks: Tensor | None = None
    temperature: Tensor | None = None

    @implements("Attention.Spec.temperatureVjp")
    def unfold(self, query: Tensor, temperature: Tensor, wanted: Wanted) -> Gradients:
        """From gradients by queries that were multiplied by a temperature, those by both (the chain
        rule): dQ = t · dQ', and ⟨dQ', Q⟩ of each head. `query` `[batch, heads, q_len, head_dim]`.
        """
        by_scaled = self.query.to(compute_dtype(self.query.dtype))
        by_temperature = None
        if wanted.temperature:
            # A query that sees no key has a gradient of 0, whatever it holds.
            products = by_scaled * query.to(by_scaled.dtype)
            by_temperature = products.masked_fill(by_scaled == 0, 0.0).sum(dim=(0, 2, 3))
        return self._replace(
            query=scale_by_head(by_scaled, temperature), temperature=by_temperature
        )

    def round_to_inputs(
        self, query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions
    ) -> Gradients:
        """Each in the dtype of its argument, dense; those of query, key and value laid out as
        `empty_output` does."""

        def one(gradient: Tensor, like: Tensor) -> Tensor:
            if gradient.dtype == like.dtype and is_laid_out(gradient, like):
                return gradient
            return empty_output(like, like.shape[-1]).copy_(gradient)

        others = {
            name: gradient.to(like.dtype).contiguous()
            for name, gradient in zip(self._fields[3:], self[3:], strict=True)
            if gradient is not None
            and (like := getattr(options, DIFFERENTIABLE[name].name)) is not None
        }
        return Gradients(
            one(self.query, query), one(self.key, key), one(self.value, value), **others
        )


@implements("Attention.Spec.rowDelta")
def row_gradient(out: Tensor, grad_out: Tensor, grad_lse: Tensor | None) -> Tensor:
    """D − dL, `[batch, heads, q_len]`, where D = rowsum(dO ∘ O): it is subtracted from a row of dP
    in dS = P ∘ (dP − (D − dL)).

    `out`, `grad_out`: `[batch, heads, q_len, value_dim]`; `grad_lse`: `[batch, heads, q_len]` or
    None for 0; all of the dtype of the computation. Source: Dao 2023, algorithm 2, line 4; dL is
    the gradient of the log-sum-exp, whose derivative by a score is its weight.
    """
    delta = (grad_out * out).sum(dim=-1)
    return delta if grad_lse is None else delta - grad_lse


@implements("Attention.Spec.sinkVjp")
@implements("Attention.Spec.sinkGradient")
def sink_gradient(sinks: Tensor, lse: Tensor, delta: Tensor) -> Tensor:
    """The gradient of the sinks `[heads]`: a sink is a key of value 0, so its dP is 0, and its
    dS = −P · (D − dL), summed over queries and batch.

    `lse`, `delta` (`row_gradient`): `[batch, heads, q_len]`.
    """
    none = torch.isneginf(lse)
    # A weight 0 would not silence a NaN.
    lse, delta = lse.masked_fill(none, torch.inf), delta.masked_fill(none, 0.0)
    weights = torch.exp(sinks.to(lse.dtype)[None, :, None] - lse)
    return -(weights * delta).sum(dim=(0, 2))


@implements("Attention.Spec.sumRows")
def sum_to(gradient: Tensor, shape: Sequence[int]) -> Tensor:
    """The gradient of a bias of this shape, of at most four dimensions, from that of its broadcast
    `[batch, heads, q_len, kv_len]`: the sum over the broadcast dimensions."""
    sizes = (1,) * (4 - len(shape)) + tuple(shape)
    over = [i for i, n in enumerate(sizes) if n != gradient.shape[i]]
    if over:
        gradient = gradient.sum(dim=over, keepdim=True)
    return gradient.reshape(tuple(shape))
