"""Helpers of the kernels' tests: attention in plain float64, and judging a result by it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.conformance.tolerances.tolerance import attention_tolerance, lse_tolerance
from pyimpl.internal.scores import ScoreOptions


def score_options(query: Tensor, *, is_causal: bool = False, **changes: object) -> ScoreOptions:
    """Options with the default scale, unless `changes` say otherwise."""
    if changes.get("scale") is None:
        changes["scale"] = query.shape[-1] ** -0.5
    if is_causal:
        changes["right"] = 0
    return ScoreOptions(**changes)


def plain_scores(query: Tensor, key: Tensor, options: ScoreOptions) -> tuple[Tensor, Tensor]:
    """(scale · ⟨q, k⟩; the same after all changes, −∞ where masked), float64
    `[batch, heads, q_len, kv_len]`."""
    group = query.shape[1] // max(1, key.shape[1])
    key = key.double().repeat_interleave(group, 1)
    products = options.scale * (query.double() @ key.transpose(-1, -2))
    scores = products
    if options.softcap is not None:
        scores = options.softcap * torch.tanh(scores / options.softcap)
    i = torch.arange(query.shape[2])[:, None] + options.shift
    j = torch.arange(key.shape[2])[None]
    if options.alibi_slopes is not None:
        scores = scores - options.alibi_slopes.double()[:, :, None, None] * (i - j).abs()
    if options.bias is not None:
        scores = scores + options.bias.double()
    visible = torch.ones(scores.shape, dtype=torch.bool)
    if options.mask is not None:
        visible = visible & options.mask
    if options.left is not None:
        visible = visible & (j >= i - options.left)
    if options.right is not None:
        visible = visible & (j <= i + options.right)
    return products, scores.masked_fill(~visible, -math.inf)


def with_sinks(scores: Tensor, sinks: Tensor | None) -> Tensor:
    """The scores with that of the sink as one more key, if there are sinks."""
    if sinks is None:
        return scores
    column = sinks.double()[None, :, None, None].expand(*scores.shape[:3], 1)
    return torch.cat([scores, column], -1)


def plain_attention(
    query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions
) -> tuple[Tensor, Tensor]:
    """Output and natural log-sum-exp of `pyimpl.backends.kernels.forward.forward`, in float64."""
    _, scores = plain_scores(query, key, options)
    value = value.double().repeat_interleave(query.shape[1] // max(1, key.shape[1]), 1)
    kv_len = key.shape[2]
    scores = with_sinks(scores, options.sinks)
    if scores.shape[-1] == 0:
        return value.new_zeros(*scores.shape[:3], value.shape[-1]), scores.new_full(
            scores.shape[:3], -math.inf
        )
    m = scores.amax(-1, keepdim=True)
    weights = torch.exp(scores - torch.where(m == -math.inf, 0.0, m))
    total = weights.sum(-1, keepdim=True)
    seen = (scores[..., :kv_len] > -math.inf).any(-2)
    value = torch.where(seen[..., None], value, 0.0)
    out = (weights[..., :kv_len] @ value) / torch.where(total == 0.0, 1.0, total)
    return out, torch.logsumexp(scores, -1)


def judge(
    result: tuple[Tensor, Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: ScoreOptions,
    rounding: RoundingModel,
) -> None:
    """Fail unless output and log-sum-exp are within the tolerance of plain float64.

    A change of a score after its product stands as one more product, with a vector of its own
    for each query, and a sink as one more key of value 0: so the tolerance of plain attention holds
    for it. That of float64 itself is added.
    """
    out, lse = (x.cpu() for x in result)
    query, key, value = (x.cpu().double() for x in (query, key, value))
    options = on_cpu(options)
    expected_out, expected_lse = plain_attention(query, key, value, options)
    assert out.shape == expected_out.shape
    assert lse.shape == expected_lse.shape
    products, scores = plain_scores(query, key, options)
    visible = scores > -math.inf
    added = torch.where(visible, scores - products, 0.0)
    group = query.shape[1] // max(1, key.shape[1])
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    if options.sinks is not None:
        sinks = options.sinks.double()
        visible = with_sinks(scores, sinks) > -math.inf
        added = with_sinks(added, torch.where(sinks == -math.inf, 0.0, sinks))
        key, value = (torch.nn.functional.pad(x, (0, 0, 0, 1)) for x in (key, value))
    each = torch.eye(query.shape[2], dtype=torch.float64).expand(*query.shape[:2], -1, -1)
    q = torch.cat([options.scale * query, each], -1).numpy()
    k = torch.cat([key, added.transpose(-1, -2)], -1).numpy()
    rest = {"scale": 1.0, "mask": visible.numpy()}
    rounding_models = (rounding, RoundingModel.float64())
    allowed = sum(
        torch.from_numpy(attention_tolerance(q, k, value.numpy(), rounding=p, **rest))
        for p in rounding_models
    )
    error = (out.double() - expected_out).abs()
    assert bool((error <= allowed).all()), f"output: {(error - allowed).max()} over the tolerance"
    none = torch.isneginf(expected_lse)
    assert torch.equal(torch.isneginf(lse), none)
    allowed = sum(
        torch.from_numpy(lse_tolerance(q, k, rounding=p, **rest)) for p in rounding_models
    )
    error = torch.where(none, 0.0, lse.double() - torch.where(none, 0.0, expected_lse)).abs()
    assert bool((error <= allowed).all()), f"lse: {(error - allowed).max()} over the tolerance"


def on_cpu(options: ScoreOptions) -> ScoreOptions:
    """The same options with their tensors on the CPU."""
    return ScoreOptions(
        **{n: x.cpu() if isinstance(x, Tensor) else x for n, x in vars(options).items()}
    )
