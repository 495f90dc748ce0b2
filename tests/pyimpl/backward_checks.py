"""Helpers of the tests of the backward pass: the gradients by autograd of the materialised formula
in float64, and by how much a correct backward pass may miss them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import torch
from attention_checks import NAMES
from torch import Tensor

from bridge.conformance.tolerances.gradient_tolerance import of_options
from bridge.conformance.tolerances.rounding_model import FORMATS, RoundingModel
from pyimpl.backends import reference
from pyimpl.backends.dispatch import Backend
from pyimpl.internal.scores import ScoreOptions

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
    p = reference.drop(p, options)
    total = (grad_out.double() * (p @ leaves["value"].repeat_interleave(group, 1))).sum()
    if grad_lse is not None:
        lse = torch.where(dead.squeeze(-1), 0.0, torch.logsumexp(s, -1))
        total = total + (torch.where(dead.squeeze(-1), 0.0, grad_lse.double()) * lse).sum()
    found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    return {
        n: torch.zeros_like(x) if g is None else g
        for (n, x), g in zip(leaves.items(), found, strict=True)
    }


# Of the fields of options, by the names of the bounds.
SHORT = {"query": "q", "key": "k", "value": "v", "alibi_slopes": "slopes"}


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
    truncating: bool = False,
) -> None:
    """Fail unless every gradient has the dtype and shape of its tensor and is within the error that
    rounding may make (`bridge.conformance.tolerances.gradient_tolerance`).

    computed: the dtype of sums; weights: the dtype to which P and dS are rounded before a matrix
    unit multiplies them, truncating or not.
    """
    given = (query, key, value, options, grad_out, grad_lse)
    expected = by_autograd(*given)
    dtype = NAMES[query.dtype]
    rounding = RoundingModel.widened(dtype, accumulator=NAMES[computed])
    if weights is not None:
        rounding = RoundingModel.flash(NAMES[weights], truncating=truncating)
    bounds = of_options(query, key, value, grad_out, grad_lse, options, rounding)
    tensors: dict[str, Any] = {"query": query, "key": key, "value": value}
    tensors |= {f.name: getattr(options, f.name) for f in fields(options) if f.name in TENSORS}
    for name, gradient in found.items():
        like = tensors[name]
        assert gradient.dtype == like.dtype, name
        assert gradient.shape == like.shape, name
        # The expected gradients have errors of float64 of their own.
        bound = (
            bounds[SHORT.get(name, name)].tolerance(FORMATS[NAMES[like.dtype]]).reshape(like.shape)
        )
        bound = bound * (2 if computed == torch.float64 else 1)
        error = (gradient.double() - expected[name]).abs()
        assert bool((error <= bound).all()), (
            f"{name}: {float((error / bound).max()):.3g} times the tolerance"
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
