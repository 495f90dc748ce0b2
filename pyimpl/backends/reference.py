"""Attention in float64 with the whole score matrix in memory: `Attention.Spec.Softmax`,
`.ScoreMods`, `.Masks`, `.Heads`, `.Sink` and `.Attention`, line by line.

Slow and plain on purpose: the other implementations are read against it. Masked scores are −∞, the
floating-point stand-in for the Spec's `none`; a row without an unmasked key has weights 0,
output 0 and log-sum-exp −∞.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyimpl.internal.arguments import mask_as_4d
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import ScoreOptions, folds_into_query


@implements("Attention.Spec.softmax")
def softmax(scores: Tensor) -> Tensor:
    """exp(s) / Σ exp(s) over the last dimension; 0 where the score is −∞, and a row of −∞ alone is
    all 0.

    `scores`: `[..., n]`, floating point. Overflows where exp(s) does; `safe_softmax` does not.
    """
    weights = torch.exp(scores)
    total = weights.sum(dim=-1, keepdim=True)
    return torch.where(total == 0, 0.0, weights / total)


@implements("Attention.Spec.safeSoftmax")
def safe_softmax(scores: Tensor) -> Tensor:
    """The same with the row's maximum m subtracted first, exp(s − m) / Σ exp(s − m), so that
    nothing overflows.

    `scores`: `[..., n]`, floating point, n ≥ 1.
    """
    m = scores.amax(dim=-1, keepdim=True)
    weights = torch.exp(scores - torch.where(torch.isneginf(m), 0.0, m))
    total = weights.sum(dim=-1, keepdim=True)
    return torch.where(total == 0, 0.0, weights / total)


@implements("Attention.Spec.Mask.window")
@implements("Attention.Spec.Mask.causal")
def window(options: ScoreOptions, q_len: int, kv_len: int, device: torch.device) -> Tensor:
    """Which key the window lets each query attend to, `[q_len, kv_len]` boolean: query i the keys
    from i + shift − left to i + shift + right. Causal is right = 0."""
    place = torch.arange(q_len, device=device).unsqueeze(-1) + options.shift
    keys = torch.arange(kv_len, device=device)
    visible = torch.ones(q_len, kv_len, dtype=torch.bool, device=device)
    if options.left is not None:
        visible = visible & (place - options.left <= keys)
    if options.right is not None:
        visible = visible & (keys <= place + options.right)
    return visible


@implements("Attention.Spec.ScoreMod.softcap")
def softcap(scores: Tensor, cap: float) -> Tensor:
    """cap · tanh(s / cap)."""
    return cap * torch.tanh(scores / cap)


@implements("Attention.Spec.ScoreMod.alibi")
def alibi(scores: Tensor, slopes: Tensor, shift: int) -> Tensor:
    """s − slope · |i + shift − j|; `scores` `[batch, heads, q_len, kv_len]`, `slopes` `[batch|1,
    heads]`."""
    place = torch.arange(scores.shape[-2], device=scores.device).unsqueeze(-1) + shift
    distance = (place - torch.arange(scores.shape[-1], device=scores.device)).abs()
    return scores - slopes.double()[..., None, None] * distance


def products(query: Tensor, key: Tensor) -> Tensor:
    """⟨qᵢ, kⱼ⟩ for every query head, `[batch, heads, q_len, kv_len]`, float64.

    `query` `[batch, heads, q_len, head_dim]`, `key` `[batch, kv_heads, kv_len, head_dim]`.
    """
    batch, heads, q_len, head_dim = query.shape
    kv_heads, kv_len = key.shape[1:3]
    # Query head h uses key head h // group: the queries of a group are rows of one product.
    packed = query.double().reshape(batch, kv_heads, heads // max(kv_heads, 1) * q_len, head_dim)
    return (packed @ key.double().transpose(-1, -2)).view(batch, heads, q_len, kv_len)


@implements("Attention.Spec.score")
def scores(query: Tensor, key: Tensor, options: ScoreOptions) -> Tensor:
    """The scores after every change that `options` asks for, −∞ where masked: `[batch, heads,
    q_len, kv_len]`, float64.

    Arguments as for `attention`.
    """
    q_len, kv_len = query.shape[2], key.shape[2]
    s = options.scale * products(query, key)
    if options.softcap is not None:
        s = softcap(s, options.softcap)
    if options.alibi_slopes is not None:
        s = alibi(s, options.alibi_slopes, options.shift)
    visible = window(options, q_len, kv_len, query.device)
    if options.bias is not None:
        bias = mask_as_4d(options.bias.double(), q_len, kv_len)
        s = s + bias
        visible = visible & ~torch.isneginf(bias)
    if options.mask is not None:
        visible = visible & mask_as_4d(options.mask, q_len, kv_len)
    return torch.where(visible, s, -torch.inf)


@implements("Attention.Spec.WeightFactor.dropout")
def drop(weights: Tensor, options: ScoreOptions) -> Tensor:
    """M ∘ W / (1 − p) of weights, or of their gradients, `[batch, heads, q_len, kv_len]`, where M
    is 1 for those that dropout keeps and 0 for the others; W without dropout."""
    if options.dropout is None:
        return weights
    batch, heads, q_len, kv_len = weights.shape
    kept = options.dropout.kept_weights(batch, heads, range(q_len), range(kv_len))
    return torch.where(kept, weights * options.dropout.scale, 0.0)


@folds_into_query
@implements("Attention.Spec.multiHead")
@implements("Attention.Spec.groupedQuery")
@implements("Attention.Spec.attentionSink")
@implements("Attention.Spec.attentionDropout")
@implements("Attention.Spec.ScoreChanges.attentionDropout")
@implements("Attention.Spec.attention")
def attention(
    query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions
) -> tuple[Tensor, Tensor]:
    """Output and natural log-sum-exp, both float64.

    `query` `[batch, heads, q_len, head_dim]`, `key` `[batch, kv_heads, kv_len, head_dim]`, `value`
    `[batch, kv_heads, kv_len, value_dim]`, any floating dtype, heads a multiple of kv_heads: query
    head h uses head h // (heads / kv_heads) of keys and values. Arguments are not checked here:
    `pyimpl.attention` does. Returns `[batch, heads, q_len, value_dim]` and `[batch, heads, q_len]`.

    A key that no query may attend to has no influence, whatever its key and value rows hold, NaN
    included. The value row of a key that some query may attend to must be finite: its product with
    the weight 0 of another query would be NaN.
    """
    batch, heads, q_len, _ = query.shape
    kv_heads, kv_len, value_dim = value.shape[1:]
    group = heads // max(kv_heads, 1)
    s = scores(query, key, options)
    seen = ~torch.isneginf(s).reshape(batch, kv_heads, group * q_len, kv_len).all(dim=-2)
    v = torch.where(seen.unsqueeze(-1), value.double(), 0.0)
    # The sink is one more key, with value 0; without one, its score is −∞.
    sink = s.new_full((batch, heads, q_len, 1), -torch.inf)
    if options.sinks is not None:
        sink = options.sinks.double().view(1, -1, 1, 1).expand_as(sink)
    s = torch.cat((sink, s), dim=-1)
    p = drop(safe_softmax(s)[..., 1:], options)
    p = p.reshape(batch, kv_heads, group * q_len, kv_len)
    return (p @ v).view(batch, heads, q_len, value_dim), torch.logsumexp(s, dim=-1)
