"""The masks that a module is called with, made into those that `pyimpl.attention` takes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyimpl.backends import reference
from pyimpl.internal import arguments as check
from pyimpl.internal.arguments import Alignment, Window, compute_dtype, mask_as_4d
from pyimpl.internal.scores import NO_BOUND, ScoreOptions, alignment_shift

Sizes = tuple[int, int, int, int]


def checked_attn_mask(given: Tensor, query: Tensor, sizes: Sizes) -> Tensor:
    """An `attn_mask` of 2, 3 or 4 dimensions as `[batch|1, heads|1, q_len, kv_len]`.

    `query` gives dtype and device; `sizes`: batch, heads, q_len, kv_len. Three dimensions are
    `[batch · heads, q_len, kv_len]`, as for `torch.nn.MultiheadAttention`. Raises TypeError or
    ValueError for anything else.
    """
    batch, heads, q_len, kv_len = sizes
    mask = given
    if isinstance(given, Tensor):
        flat = [batch * heads, q_len, kv_len]
        pairs = zip(reversed(given.shape), reversed(sizes), strict=False)
        fits = given.dim() in (2, 4) and all(size in (1, full) for size, full in pairs)
        if not fits and check.shape(given) != flat:
            raise ValueError(
                f"attn_mask must be broadcastable to [q_len, kv_len] = {[q_len, kv_len]} or "
                f"[batch, num_heads, q_len, kv_len] = {list(sizes)}, or be [batch · num_heads, "
                f"q_len, kv_len] = {flat}, not of shape {check.shape(given)}"
            )
        if given.dim() == 3:
            mask = given.reshape(sizes)
    check.check_scores_like("attn_mask", mask, query, sizes, boolean=True)
    return mask_as_4d(mask, q_len, kv_len)


def checked_key_mask(given: Tensor, query: Tensor, sizes: Sizes, *, batched: bool) -> Tensor:
    """A `key_mask` `[batch, kv_len]`, `[kv_len]` unless `batched`, as `[batch, 1, 1, kv_len]`.

    Raises TypeError or ValueError for anything else.
    """
    batch, _, _, kv_len = sizes
    mask = given
    if isinstance(given, Tensor):
        wanted, named = ([batch, kv_len], "[batch, kv_len]") if batched else ([kv_len], "[kv_len]")
        if check.shape(given) != wanted:
            raise ValueError(
                f"key_mask must be {named} = {wanted}, not of shape {check.shape(given)}"
            )
        mask = given.reshape(batch, 1, 1, kv_len)
    return check.check_scores_like("key_mask", mask, query, sizes, boolean=True)


def window_mask(
    sizes: Sizes,
    is_causal: bool,
    alignment: Alignment,
    window: Window,
    device: torch.device,
) -> Tensor | None:
    """Which key causality and the window let each query attend to, `[1, 1, q_len, kv_len]`; None
    if neither hides anything. The arguments are checked, as `pyimpl.attention` does."""
    check.check_bool("is_causal", is_causal)
    check.check_one_of("causal_alignment", alignment, Alignment)
    check.check_window(window)
    left, right = (None if n is None else min(check.whole(n), NO_BOUND) for n in window)
    right = 0 if is_causal else right
    if left is None and right is None:
        return None
    _, _, q_len, kv_len = sizes
    shift = alignment_shift(alignment, q_len, kv_len)
    options = ScoreOptions(scale=1.0, left=left, right=right, shift=shift)
    return reference.window(options, q_len, kv_len, device)[None, None]


def combine(masks: list[Tensor], dtype: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
    """(the conjunction of the boolean masks, the sum of the floating ones), None where there is
    none of the kind. `dtype` is that of the queries."""
    visible: Tensor | None = None
    bias: Tensor | None = None
    for mask in masks:
        if mask.dtype == torch.bool:
            visible = mask if visible is None else visible & mask
        else:
            # Summed as wide as the scores: two numbers of float16 may add up to more than it holds.
            mask = mask.to(compute_dtype(dtype))
            bias = mask if bias is None else bias + mask
    return visible, bias


def widen(mask: Tensor | None) -> Tensor | None:
    """The mask with one more key, which every query may attend to, without a bias."""
    if mask is None:
        return None
    return pad(mask, (0, 1), value=True if mask.dtype == torch.bool else 0.0)
