"""What the tests of the backward pass share: the gradients by autograd of the materialised formula
in float64, and by how much a correct backward pass may miss them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import torch
from attention_checks import NAMES
from torch import Tensor

from bridge.conformance.profile import FORMATS
from pyimpl import reference
from pyimpl._backends import Backend
from pyimpl._scores import ScoreOptions

TENSORS = ("alibi_slopes", "bias", "sinks")


def by_autograd(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: ScoreOptions,
    grad_out: Tensor,
    grad_lse: Tensor | None = None,
) -> dict[str, Tensor]:
    """The gradients of ⟨grad_out, O⟩ + ⟨grad_lse, L⟩ by everything that has one, by name, in
    float64: PyTorch's own derivatives of a softmax over the matrix of scores."""
    given = {"query": query, "key": key, "value": value}
    given |= {n: getattr(options, n) for n in TENSORS if getattr(options, n) is not None}
    leaves = {n: x.detach().double().requires_grad_() for n, x in given.items()}
    options = replace(options, **{n: leaves[n] for n in TENSORS if n in leaves})
    group = query.shape[1] // max(key.shape[1], 1)
    s = reference.scores(leaves["query"], leaves["key"], options)
    if options.sinks is not None:
        sinks = leaves["sinks"].view(1, -1, 1, 1).expand(*s.shape[:3], 1)
        s = torch.cat((torch.where(torch.isneginf(sinks), -torch.inf, sinks), s), -1)
    # A row of −∞ alone would have NaN for derivatives.
    dead = torch.isneginf(s).all(-1, keepdim=True)
    s = torch.where(dead, 0.0, s)
    p = torch.where(dead, 0.0, torch.softmax(s, -1))[..., int(options.sinks is not None) :]
    p = reference.dropped(p, options)
    total = (grad_out.double() * (p @ leaves["value"].repeat_interleave(group, 1))).sum()
    if grad_lse is not None:
        lse = torch.where(dead.squeeze(-1), 0.0, torch.logsumexp(s, -1))
        total = total + (torch.where(dead.squeeze(-1), 0.0, grad_lse.double()) * lse).sum()
    found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    return {
        n: torch.zeros_like(x) if g is None else g
        for (n, x), g in zip(leaves.items(), found, strict=True)
    }


def sizes(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: ScoreOptions,
    grad_out: Tensor,
    grad_lse: Tensor | None = None,
) -> tuple[dict[str, Tensor], Tensor]:
    """(the same with every term of every sum positive: what rounding errors are relative to; the
    largest size of what is exponentiated, a number)."""
    group = query.shape[1] // max(key.shape[1], 1)
    out, lse = reference.attention(query, key, value, options)
    s = reference.scores(query, key, options)
    k, v = (x.double().abs().repeat_interleave(group, 1) for x in (key, value))
    p = torch.where(
        torch.isneginf(s), 0.0, torch.exp(s - torch.nan_to_num(lse, neginf=0.0)[..., None])
    )
    d_o = grad_out.double().abs()
    dropped = reference.dropped(p, options)
    weighted = dropped @ v
    delta = (d_o * weighted).sum(-1) + (d_o * out.abs()).sum(-1)
    if grad_lse is not None:
        delta = delta + grad_lse.double().abs()
    grad_s = p * (reference.dropped(d_o @ v.mT, options) + delta[..., None])

    def heads(x: Tensor) -> Tensor:
        return x.unflatten(1, (key.shape[1], group)).sum(2)

    scale = abs(options.scale)
    found = {
        "query": scale * (grad_s @ k),
        "key": heads(scale * (grad_s.mT @ query.double().abs())),
        "value": heads(dropped.mT @ d_o),
    }
    if options.bias is not None:
        found["bias"] = grad_s
    if options.alibi_slopes is not None:
        place = torch.arange(s.shape[2])[:, None] + options.shift
        distance = (place - torch.arange(s.shape[3])).abs()
        found["alibi_slopes"] = (distance * grad_s).sum((-2, -1))
    if options.sinks is not None:
        weight = torch.exp(
            options.sinks.double()[None, :, None] - torch.nan_to_num(lse, neginf=0.0)
        )
        found["sinks"] = (weight * delta).sum((0, 2))
    for name in ("bias", "alibi_slopes"):
        if name in found:
            found[name] = _summed(found[name], getattr(options, name))
    products = scale * (query.double().abs() @ k.mT)
    spread = [torch.nan_to_num(x, neginf=0.0).abs().max() for x in (products, lse) if x.numel()]
    added = [x for x in (options.bias, options.sinks) if x is not None and x.numel()]
    spread += [torch.nan_to_num(x.double(), neginf=0.0).abs().max() for x in added]
    if options.alibi_slopes is not None and s.numel():
        spread.append(options.alibi_slopes.double().abs().max() * distance.max())
    return found, sum(spread, torch.zeros((), dtype=torch.float64))


def _summed(gradient: Tensor, like: Tensor) -> Tensor:
    """Summed over the dimensions that `like` was broadcast over."""
    leaf = torch.zeros(like.shape, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(leaf.expand_as(gradient), leaf, gradient)
    return found


def judge_gradients(
    found: dict[str, Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: ScoreOptions,
    grad_out: Tensor,
    grad_lse: Tensor | None = None,
    *,
    computed: torch.dtype,
    weights: torch.dtype | None = None,
) -> None:
    """Fail unless every gradient has the dtype and shape of its tensor and is within a small
    multiple of what rounding may do.

    computed: what sums are in; weights: what P and dS are rounded to before they are multiplied.
    The output, which D is computed from, is rounded to the dtype of query. Errors of first order:
    (length of the sums + size of the exponents) units of `computed`, a few units of the others.
    """
    given = (query, key, value, options, grad_out, grad_lse)
    expected = by_autograd(*given)
    size, spread = sizes(*given)
    unit = FORMATS[NAMES[computed]].unit
    length = sum(query.shape[-2:]) + sum(value.shape[-2:]) + query.shape[0] * query.shape[1]
    allowed = (4 * length + 8 * spread + 32) * unit
    allowed = allowed + 4 * FORMATS[NAMES[query.dtype]].unit
    if weights is not None:
        allowed = allowed + 4 * FORMATS[NAMES[weights]].unit
    tensors: dict[str, Any] = {"query": query, "key": key, "value": value}
    tensors |= {f.name: getattr(options, f.name) for f in fields(options) if f.name in TENSORS}
    for name, gradient in found.items():
        like = tensors[name]
        assert gradient.dtype == like.dtype, name
        assert gradient.shape == like.shape, name
        stored = FORMATS[NAMES[gradient.dtype]]
        bound = allowed * size[name] + 2 * stored.unit * expected[name].abs() + 1e-7
        error = (gradient.double() - expected[name]).abs()
        assert bool((error <= bound).all()), (
            f"{name}: {float((error / bound).max()):.3g} times what is allowed"
        )


def public_gradients(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: ScoreOptions,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    backend: Backend,
) -> dict[str, Tensor]:
    """The gradients by name through `pyimpl`'s operator and autograd."""
    given = {"query": query, "key": key, "value": value}
    given |= {n: getattr(options, n) for n in TENSORS if getattr(options, n) is not None}
    leaves = {n: x.detach().requires_grad_() for n, x in given.items()}
    q, k, v, *_ = leaves.values()
    options = replace(options, **{n: leaves[n] for n in TENSORS if n in leaves})
    outputs = torch.ops.pyimpl.attention(q, k, v, backend, *options.flat())
    if grad_lse is None:
        found = torch.autograd.grad(outputs[0], list(leaves.values()), grad_out)
    else:
        found = torch.autograd.grad(outputs, list(leaves.values()), (grad_out, grad_lse))
    return dict(zip(leaves, found, strict=True))
