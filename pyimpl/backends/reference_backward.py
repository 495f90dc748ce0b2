"""The gradients of attention in float64 with the matrices of scores and weights in memory, line by
line as they are written: Dao et al. 2022, "FlashAttention", appendix B.2.

Slow and plain on purpose, as `backends.reference` is: the other implementations are read against
it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyimpl.backends import reference
from pyimpl.internal.gradients import Gradients, Wanted, row_gradient, sink_gradient, sum_to
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import ScoreOptions, folds_into_query


@implements("Attention.Spec.probabilityAgain")
def weights(scores: Tensor, lse: Tensor) -> Tensor:
    """P = exp(S − L) from the scores (−∞: masked) and the log-sum-exp of their rows; 0 where a
    score is masked, so in all of a row whose L is −∞.

    `scores` `[..., q_len, kv_len]`, `lse` `[..., q_len]`.
    """
    masked = torch.isneginf(scores)
    return torch.exp(scores - torch.where(masked, 0.0, lse.unsqueeze(-1)))


@implements("Attention.Spec.scoreGradient")
def score_gradient(p: Tensor, grad_p: Tensor, delta: Tensor) -> Tensor:
    """dS = P ∘ (dP − (D − dL)), 0 where P is.

    `p`, `grad_p` `[..., q_len, kv_len]`, `delta` (`row_gradient`) `[..., q_len]`.
    """
    return torch.where(p == 0, 0.0, p * (grad_p - delta.unsqueeze(-1)))


@implements("Attention.Spec.ScoreSlope.softcap")
def softcap_gradient(grad_s: Tensor, scores: Tensor, cap: float) -> Tensor:
    """The gradient by the scores before `reference.softcap`: dS ∘ (1 − tanh²(s / cap))."""
    return grad_s * (1 - torch.tanh(scores / cap) ** 2)


@implements("Attention.Spec.slopeGradient")
def alibi_gradient(grad_s: Tensor, slopes: Tensor, shift: int) -> Tensor:
    """The gradient of ALiBi's slopes `[batch|1, heads]`: −|i + shift − j| · dS, summed."""
    place = torch.arange(grad_s.shape[-2], device=grad_s.device).unsqueeze(-1) + shift
    distance = (place - torch.arange(grad_s.shape[-1], device=grad_s.device)).abs()
    summed = -(distance * grad_s).sum(dim=(-2, -1))
    return summed if slopes.shape[0] == grad_s.shape[0] else summed.sum(dim=0, keepdim=True)


@folds_into_query
@implements("Attention.Spec.vjpDropout")
@implements("Attention.Spec.groupedQueryVjp")
def attention_backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    options: ScoreOptions,
    wanted: Wanted,
    *,
    delta: Tensor | None = None,
) -> Gradients:
    """dQ, dK, dV and the other wanted gradients, all float64.

    `query`, `key`, `value` and `options` as for `reference.attention`, `out` and `lse` its results,
    `grad_out` and `grad_lse` their gradients, of the same shapes; `grad_lse` None: 0.
    delta: `row_gradient` of these, where it is known; `out` and `grad_lse` are not read then.
    A query and a key that may not attend to each other have no influence on each other's gradients;
    rows of query, key, value and grad_out of which this does not hold must be finite.
    """
    batch, heads, q_len, head_dim = query.shape
    kv_heads, kv_len, value_dim = value.shape[1:]
    group = heads // max(kv_heads, 1)
    rows = (batch, kv_heads, group * q_len)
    s = reference.scores(query, key, options)
    seen_q = ~torch.isneginf(s).all(dim=-1, keepdim=True)
    seen_k = ~torch.isneginf(s).reshape(*rows, kv_len).all(dim=-2).unsqueeze(-1)
    # The queries of the heads that share a key head are rows of one matrix.
    q = torch.where(seen_q, query.double(), 0.0).reshape(*rows, head_dim)
    k = torch.where(seen_k, key.double(), 0.0)
    v = torch.where(seen_k, value.double(), 0.0)
    d_o = torch.where(seen_q, grad_out.double(), 0.0).reshape(*rows, value_dim)
    d_lse = None if grad_lse is None else grad_lse.double()
    if delta is None:
        delta = row_gradient(out.double(), grad_out.double(), d_lse)
    delta = delta.double()

    p = weights(s, lse.double())
    grad_v = reference.drop(p, options).reshape(*rows, kv_len).mT @ d_o
    grad_p = reference.drop((d_o @ v.mT).view_as(p), options)
    grad_s = score_gradient(p, grad_p, delta)
    # By the scores before ALiBi and bias, and before softcap: by scale · QKᵀ.
    grad_x = grad_s
    if options.softcap is not None:
        x = options.scale * reference.products(query, key)
        grad_x = torch.where(p == 0, 0.0, softcap_gradient(grad_s, x, options.softcap))
    grad_x = grad_x.reshape(*rows, kv_len)
    grad_q = options.scale * (grad_x @ k)
    grad_k = options.scale * (grad_x.mT @ q)

    grad_slopes = grad_bias = grad_sinks = None
    if wanted.slopes and options.alibi_slopes is not None:
        grad_slopes = alibi_gradient(grad_s, options.alibi_slopes, options.shift)
    if wanted.bias and options.bias is not None:
        grad_bias = sum_to(grad_s, options.bias.shape)
    if wanted.sinks and options.sinks is not None:
        grad_sinks = sink_gradient(options.sinks, lse.double(), delta)
    grad_q = grad_q.view(batch, heads, q_len, head_dim)
    return Gradients(grad_q, grad_k, grad_v, grad_slopes, grad_bias, grad_sinks)
