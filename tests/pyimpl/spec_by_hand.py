"""The formulas of `Attention.Spec` for scores, masks, sinks, heads, and dropout, in plain Python,
number by number."""

from __future__ import annotations

import math
from fractions import Fraction

import torch
from torch import Tensor

from pyimpl.internal.scores import ScoreOptions


def _broadcast(tensor: Tensor | None, *at: int) -> float | bool | None:
    """The element of a broadcast tensor at (batch, head, query, key)."""
    if tensor is None:
        return None
    place = at[-tensor.dim() :] if tensor.dim() else ()
    return tensor[
        tuple(0 if n == 1 else p for n, p in zip(tensor.shape, place, strict=True))
    ].item()


def score(
    query: Tensor, key: Tensor, options: ScoreOptions, b: int, h: int, i: int, j: int
) -> float | None:
    """`Attention.Spec.score` after `modify`; None: masked."""
    kv_head = h // (query.shape[1] // key.shape[1])
    pairs = zip(query[b, h, i].tolist(), key[b, kv_head, j].tolist(), strict=True)
    s = options.scale * math.fsum(x * y for x, y in pairs)
    place = i + options.shift
    if options.softcap is not None:
        s = options.softcap * math.tanh(s / options.softcap)
    if options.alibi_slopes is not None:
        s -= _broadcast(options.alibi_slopes, b, h) * abs(place - j)
    bias = _broadcast(options.bias, b, h, i, j)
    if bias is not None:
        s += bias
    visible = bias != -math.inf and _broadcast(options.mask, b, h, i, j) is not False
    if options.left is not None:
        visible = visible and place - options.left <= j
    if options.right is not None:
        visible = visible and j <= place + options.right
    return s if visible else None


def philox(counter: list[int], key: list[int]) -> list[int]:
    """The four words of Philox4x32-10 (Salmon et al. 2011, section 4.3)."""
    for n in range(10):
        if n:
            key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
        high0, low0 = divmod(0xD2511F53 * counter[0], 2**32)
        high1, low1 = divmod(0xCD9E8D57 * counter[2], 2**32)
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0]
    return counter


def factor(options: ScoreOptions, head: int, i: int, j: int) -> float:
    """The factor by which dropout multiplies a weight of head number `head`: 0 or 1 / (1 − p)."""
    if options.dropout is None:
        return 1.0
    p, seed = options.dropout.p, int(options.dropout.seed)
    word = philox([j // 4, i, head, 0], [seed % 2**32, seed // 2**32])[j % 4]
    return 1 / (1 - p) if word < round((1 - Fraction(p)) * 2**32) else 0.0


def attention(
    query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions
) -> tuple[Tensor, Tensor]:
    """`Attention.Spec.attentionSink` and the log-sum-exp, float64."""
    batch, heads, q_len, _ = query.shape
    out = torch.zeros(batch, heads, q_len, value.shape[-1], dtype=torch.float64)
    lse = torch.full((batch, heads, q_len), -math.inf, dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            values = value[b, h // (heads // key.shape[1])].double()
            for i in range(q_len):
                keys = range(key.shape[2])
                row = [
                    (
                        score(query, key, options, b, h, i, j),
                        factor(options, b * heads + h, i, j) * values[j],
                    )
                    for j in keys
                ]
                if options.sinks is not None:
                    row.append((float(options.sinks[h]), torch.zeros_like(out[0, 0, 0])))
                row = [(s, v) for s, v in row if s is not None and s != -math.inf]
                if row:
                    m = max(s for s, _ in row)
                    total = math.fsum(math.exp(s - m) for s, _ in row)
                    out[b, h, i] = sum(math.exp(s - m) / total * v for s, v in row)
                    lse[b, h, i] = m + math.log(total)
    return out, lse
