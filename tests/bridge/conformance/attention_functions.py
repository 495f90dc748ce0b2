"""Attention functions of all sorts, right and wrong, for `conform` to be tried on."""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa


def reference(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Right, in the inputs' own dtype, a line for each step."""
    scores = (query @ key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        scores = scores.masked_fill(~seen, -torch.inf)
    if attn_mask is not None:
        boolean = attn_mask.dtype == torch.bool
        added = torch.zeros_like(scores).masked_fill(~attn_mask, -torch.inf) if boolean else None
        scores = scores + (attn_mask if added is None else added)
    # A row with every key masked would be 0 / 0, and its gradients NaN whatever is done later.
    dead = scores.amax(-1, keepdim=True) == -torch.inf
    return scores.masked_fill(dead, 0.0).softmax(-1).masked_fill(dead, 0.0) @ value


def with_lse(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> tuple[Tensor, ...]:
    """Right, and returns the log-sum-exp always."""
    scores = (query @ key.mT) * scale
    return scores.softmax(-1) @ value, scores.logsumexp(-1)


def with_log2(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> tuple[Tensor, ...]:
    """Its log-sum-exp is in base 2."""
    scores = (query @ key.mT) * scale
    return scores.softmax(-1) @ value, scores.logsumexp(-1) / torch.log(torch.tensor(2.0))


def masked_too_late(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    scale: float = 1.0,
) -> Tensor:
    """Right, but for the gradients of a row with every key masked, which are NaN."""
    scores = (query @ key.mT) * scale
    if attn_mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(~attn_mask, -torch.inf)
    return scores.softmax(-1).nan_to_num(0.0) @ value


def detached(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    """Right, and autograd knows nothing of it."""
    return reference(query.detach(), key.detach(), value.detach(), scale=scale)


def no_gradient_by_lse(
    query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0
) -> tuple[Tensor, ...]:
    """As `with_lse`, but autograd cannot go through its log-sum-exp."""
    out, lse = with_lse(query, key, value, scale)
    return out, lse.detach()


class WithoutDelta(torch.autograd.Function):
    """A backward pass that forgets D, and the gradient of the log-sum-exp."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, scale: float
    ) -> tuple[Tensor, Tensor]:
        weights = ((query @ key.mT) * scale).softmax(-1)
        ctx.save_for_backward(query, key, value, weights)
        ctx.scale = scale
        return weights @ value, ((query @ key.mT) * scale).logsumexp(-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, weights = ctx.saved_tensors
        grad_s = ctx.scale * weights * (grads[0] @ value.mT)
        return grad_s @ key, grad_s.mT @ query, weights.mT @ grads[0], None


def without_delta(
    query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0
) -> tuple[Tensor, ...]:
    """Right forwards, wrong backwards."""
    return WithoutDelta.apply(query, key, value, scale)  # type: ignore[no-any-return]


def plain(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Takes nothing beside query, key and value."""
    return sdpa(query, key, value)


def scale_ignored(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    """Wrong: does not use its scale."""
    return sdpa(query, key, value)


def bottom_right(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False, scale: float = 1.0
) -> Tensor:
    """Causality aligned to the last query and the last key."""
    seen = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool)
    if is_causal:
        seen = seen.tril(key.shape[-2] - query.shape[-2])
    return reference(query, key, value, seen[None, None], scale=scale)


def causal_ignored(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False, scale: float = 1.0
) -> Tensor:
    """Takes is_causal and does nothing with it."""
    return reference(query, key, value, scale=scale)


def any_options(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    """Takes SDPA's arguments, and options under any name."""
    return sdpa(query, key, value, **options)


def half_only(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """A kernel for float16 and head sizes that are multiples of 16."""
    assert query.dtype == torch.float16, "float16 only"
    assert query.shape[-1] % 16 == 0, "head size"
    assert query.shape[-1] == value.shape[-1], "head size"
    return sdpa(query, key, value, scale=scale)


def equal_dims_at_scale(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """Right, by the formula in float64, for as many columns of values as of keys."""
    if value.shape[-1] != query.shape[-1]:
        raise ValueError("value_dim must be head_dim")
    scores = query.double() @ key.double().mT
    scores *= query.shape[-1] ** -0.5 if scale is None else scale
    return (scores.softmax(-1) @ value.double()).to(query.dtype)


def equal_dims(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Right: the same at the default scale alone."""
    return equal_dims_at_scale(query, key, value)


def equal_dims_unscaled(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Wrong: does not scale the scores."""
    return equal_dims_at_scale(query, key, value, 1.0)


def equal_dims_of_eights(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Right: as `equal_dims`, for head sizes that are multiples of 8."""
    if query.shape[-1] % 8 != 0:
        raise ValueError("head size")
    return equal_dims(query, key, value)


def mask_by_mistake(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, scale: float = 1.0
) -> Tensor:
    """Wrong: raises for every mask, by a mistake of shapes."""
    out = sdpa(query, key, value, scale=scale)
    return out if attn_mask is None else out + attn_mask[..., :1, :1].expand(7, 1, 1, 99)


def mask_refused(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, scale: float = 1.0
) -> Tensor:
    """Refuses masks in words."""
    if attn_mask is not None:
        raise NotImplementedError("no masks yet")
    return sdpa(query, key, value, scale=scale)


def configured(query: Tensor, key: Tensor, value: Tensor, config: object) -> Tensor:
    """Cannot be called with query, key and value."""
    raise AssertionError(config)


def raises(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    raise RuntimeError("no such kernel")


def spins(query: Tensor, key: Tensor, value: Tensor, **_: Any) -> Tensor:
    while True:
        pass


def hangs(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    time.sleep(1000)
    return value


def hangs_on_three_keys(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    if key.shape[-2] == 3 and query.shape[-2] != 2:
        time.sleep(1000)
    return sdpa(query, key, value, scale=scale)


def leaves(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    os._exit(3)


def crashes_on_twos(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    if bool((query == 2).any()):
        ctypes.string_at(0)
    return sdpa(query, key, value, scale=scale)


def not_a_number(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    return sdpa(query, key, value, scale=scale) * torch.nan


def wrong_shape(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    return sdpa(query, key, value, scale=scale).transpose(1, 2)


def wrong_dtype(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    return sdpa(query, key, value, scale=scale).double()


def wrong_device(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    return sdpa(query, key, value, scale=scale).to("meta")


def no_tensor(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> None:
    return None


def sparse(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    return sdpa(query, key, value, scale=scale).to_sparse()


def lse_elsewhere(
    query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0
) -> tuple[Tensor, ...]:
    out, lse = with_lse(query, key, value, scale)
    return out, lse.to("meta")


def sparse_lse(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> tuple[Tensor, ...]:
    out, lse = with_lse(query, key, value, scale)
    return out, lse.to_sparse()


def exits(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    raise SystemExit(3)


class Skipped(BaseException):
    """No Exception, as that of `pytest.skip`."""


def skips(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    raise Skipped("no such GPU")


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def wordless(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    raise Wordless


def retypes_query(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    out = sdpa(query, key, value, scale=scale)
    query.data = query.data.double()
    return out


def changes_key(query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0) -> Tensor:
    out = sdpa(query, key, value, scale=scale)
    key.zero_()
    return out


def changes_mask(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, scale: float = 1.0
) -> Tensor:
    out = sdpa(query, key, value, attn_mask=attn_mask, scale=scale)
    if attn_mask is not None:
        attn_mask.fill_(1)
    return out


def of_queries(query: Tensor) -> Tensor:
    """Takes no keys."""
    return query


class Doubled:
    """No function."""


number = 3
