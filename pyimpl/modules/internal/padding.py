"""Tokens and their padding, checked."""

from __future__ import annotations

import torch
from torch import Tensor

from pyimpl.internal import arguments as check


def checked_tokens(name: str, given: Tensor, vocab_size: int) -> None:
    """Raises TypeError or ValueError unless `given` is `[batch, length]` of tokens.

    Their numbers are looked at on a CPU alone: on a GPU that would wait for it, and there PyTorch's
    embedding refuses them.
    """
    check.check_integers(name, given)
    if given.dim() != 2:
        raise ValueError(f"{name} must be [batch, length], not of shape {check.shape(given)}")
    if given.device.type != "cpu" or not given.numel() or torch.compiler.is_compiling():
        return
    low, high = int(given.min()), int(given.max())
    if low < 0 or high >= vocab_size:
        bad = low if low < 0 else high
        raise ValueError(f"{name} must hold tokens from 0 to {vocab_size - 1}, not {bad}")


def checked_padding(
    side: str,
    tokens: Tensor,
    lens: Tensor | None,
    key_mask: Tensor | None,
    length: int | None = None,
) -> Tensor | None:
    """Which tokens are there, boolean `[batch, length]`, True = there; None: all. length: that of
    the sequence of which `tokens` are a part, where they are not all.

    Raises TypeError or ValueError for lengths or a mask that do not fit, or both.
    """
    batch = tokens.shape[0]
    length = tokens.shape[1] if length is None else length
    if lens is None:
        if key_mask is not None and (
            not isinstance(key_mask, Tensor) or key_mask.dtype != torch.bool
        ):
            kind = key_mask.dtype if isinstance(key_mask, Tensor) else type(key_mask).__name__
            raise TypeError(f"{side}_key_mask must be a boolean torch.Tensor or None, not {kind}")
        if key_mask is not None and check.shape(key_mask) != [batch, length]:
            raise ValueError(
                f"{side}_key_mask must be [batch, length] = {[batch, length]}, not of shape "
                f"{check.shape(key_mask)}"
            )
        return key_mask
    if key_mask is not None:
        raise ValueError(f"{side}_lens and {side}_key_mask say the same: give one of them")
    check.check_integers(f"{side}_lens", lens)
    if check.shape(lens) != [batch]:
        raise ValueError(
            f"{side}_lens must be of shape {[batch]}, [batch], not {check.shape(lens)}"
        )
    if lens.device.type == "cpu" and batch and not torch.compiler.is_compiling():
        low, high = int(lens.min()), int(lens.max())
        if low < 0 or high > length:
            bad = low if low < 0 else high
            raise ValueError(f"{side}_lens must be from 0 to the length, {length}, not {bad}")
    return torch.arange(length, device=tokens.device) < lens.to(tokens.device)[:, None]
