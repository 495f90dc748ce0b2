"""Attention by its definition in PyTorch's own operations, where the operators have no formula:
for `torch.func`'s transforms (grad, vjp, vmap, jvp, jacrev, jacfwd, hessian), forward-mode
derivatives, and gradients of gradients.

It computes as the backend "reference" does, float64 inside, and holds the matrix of scores; all
derivatives are PyTorch's, of every option. It is entered under such a transform or with a tangent,
and in a backward pass with `create_graph=True`; a plain call asks a few questions more and nothing
else changes for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from pyimpl.backends import reference
from pyimpl.backends.dispatch import Backend, backend_of_backward, choose_backend
from pyimpl.internal.arguments import checked_range, compute_dtype, largest_added
from pyimpl.internal.scores import CHANGES, ScoreOptions, folds_into_query


def is_transformed(tensors: Iterable[Tensor | None]) -> bool:
    """Whether a transform of `torch.func` follows one of the tensors, or it carries a tangent.

    Dynamo cannot follow the question. Whether it compiles must be asked in the frame of the caller:
    it may compile this function alone.
    """
    return any(_is_wrapped(x) or _has_tangent(x) for x in tensors if isinstance(x, Tensor))


def _has_tangent(tensor: Tensor) -> bool:
    # PyTorch does not annotate unpack_dual.
    return forward_ad.unpack_dual(tensor).tangent is not None  # type: ignore[no-untyped-call]


def _is_wrapped(tensor: Tensor) -> bool:
    # PyTorch has no public function that tells.
    functorch = torch._C._functorch
    return functorch.is_gradtrackingtensor(tensor) or functorch.is_batchedtensor(tensor)


def _plain(tensor: Tensor) -> Tensor:
    """All the numbers that a tensor stands for: of a `vmap`, those of the whole batch."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return tensor.detach()


def warn_of_kernels(backend: Backend, query: Tensor, value: Tensor) -> None:
    """Warn, once for a line of the caller's, that the kernels do not run."""
    if choose_backend(backend_of_backward(backend), query, value) == "triton":
        warnings.warn(
            "under torch.func's transforms, with tangents and with create_graph=True attention is "
            "computed by PyTorch, not by Triton's kernels, and holds the matrix of scores",
            stacklevel=3,
        )


def checked_transformed(options: ScoreOptions, dtype: torch.dtype) -> ScoreOptions:
    """`checked_numbers` of tensors under a transform: it checks their numbers, and replaces those
    that count as −∞ without looking."""
    finite = {change.name for change in CHANGES if change.finite}

    def check_numbers(name: str, given: Tensor, field: str) -> Tensor:
        checked_range(name, _plain(given), dtype, finite=field in finite)
        if field in finite:
            return given
        return torch.where(given <= -largest_added(dtype), -torch.inf, given)

    found: dict[str, Any] = {n: check_numbers(n, x, n) for n, x in options.tensors().items()}
    if options.mask is not None and options.mask.dtype != torch.bool:
        found |= {"mask": None, "bias": check_numbers("attn_mask", options.mask, "bias")}
    return replace(options, **found)


@folds_into_query
def attention(
    query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions
) -> tuple[Tensor, Tensor]:
    """`Attention.Spec.attention`: output in the dtype of `query` and natural log-sum-exp, as
    `pyimpl.backends.dispatch.forward` has them; arguments as there, the numbers in their tensors
    checked.

    Keys and values that no query sees, and queries that see no key, are 0 here: no number that they
    hold comes into a derivative.
    """
    batch, heads, q_len, _ = query.shape
    kv_heads, kv_len, value_dim = value.shape[1:]
    rows = heads // max(kv_heads, 1) * q_len
    # Of queries and keys that are 0 a score is −∞ where it is masked, and only there.
    nothing = [torch.zeros_like(x[..., :1]) for x in (query, key)]
    visible = ~torch.isneginf(reference.scores(nothing[0], nothing[1], options))
    seen = visible.reshape(batch, kv_heads, rows, kv_len).any(dim=-2).unsqueeze(-1)
    key, value = (torch.where(seen, x, 0.0) for x in (key, value))
    query = torch.where(visible.any(dim=-1, keepdim=True), query, 0.0)
    s = reference.scores(query, key, options)
    sink = s.new_full((1, 1, 1, 1), -torch.inf)
    if options.sinks is not None:
        sink = options.sinks.double().view(1, -1, 1, 1)
    s = torch.cat((sink.expand(batch, heads, q_len, 1), s), dim=-1)
    # −∞ − (−∞) would be NaN in the derivatives, where a weight 0 does not silence it.
    none = torch.isneginf(s).all(dim=-1, keepdim=True)
    s = torch.where(none, 0.0, s)
    lse = torch.logsumexp(s, dim=-1, keepdim=True)
    weights = reference.drop(torch.where(none, 0.0, torch.exp(s - lse))[..., 1:], options)
    weights = weights.reshape(batch, kv_heads, rows, kv_len)
    out = (weights @ value.double()).reshape(batch, heads, q_len, value_dim)
    lse = torch.where(none, -torch.inf, lse).squeeze(-1)
    return out.to(query.dtype), lse.to(compute_dtype(query.dtype))


def differentiable_gradients(
    grads: tuple[Tensor, Tensor | None],
    inputs: Sequence[Any],
    needed: Sequence[bool],
) -> list[Tensor | None]:
    """The gradients by those of `inputs` that are needed, as functions of everything that they are
    computed from: None for the others.

    grads: by output and log-sum-exp. inputs: query, key, value, and the items of
    `ScoreOptions.flat`.
    """
    # The same tensor may be query and key: each becomes one of its own.
    own = [x.view_as(x) if need else x for x, need in zip(inputs, needed, strict=True)]
    query, key, value, *flat = own
    checked = checked_transformed(ScoreOptions.of_flat(*flat), query.dtype)
    outputs = attention(query, key, value, checked)
    given = [pair for pair in zip(outputs, grads, strict=True) if pair[1] is not None]
    found = iter(
        torch.autograd.grad(
            [output for output, _ in given],
            [x for x, need in zip(own, needed, strict=True) if need],
            [grad for _, grad in given],
            create_graph=True,
            allow_unused=True,
        )
    )
    return [next(found) if need else None for need in needed]
