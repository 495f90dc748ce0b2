"""Combining attention over parts of the keys: `Attention.Spec.combine`.

Source: Dao, Haziza, Massa and Sizov 2023, "Flash-Decoding for long-context inference"; Ye et al.
2025, "FlashInfer", section 2.2.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyimpl.internal import arguments as check
from pyimpl.internal.arguments import compute_dtype
from pyimpl.internal.implements import implements


@implements("Attention.Spec.combine")
def combine(outs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
    """Σ exp(Lₖ − L) · Oₖ and L = ln Σ exp(Lₖ) over the first dimension, of at least 1 part; both of
    the dtype of `lses`.

    `outs` `[parts, ..., value_dim]`, `lses` `[parts, ...]`. Arguments are not checked. The weights
    are taken against the largest Lₖ and divided by their sum: L itself is rounded, and where it is
    large exp(Lₖ − L) would be off by as much. Differentiable as it stands: the largest counts as a
    constant, since neither result depends on the number that is subtracted from the Lₖ.
    """
    m = lses.detach().amax(dim=0)
    weights = torch.exp(lses - torch.where(torch.isneginf(m), 0.0, m))
    total = weights.sum(dim=0)
    total = torch.where(torch.isneginf(m), 1.0, total)
    # A weight 0 would not silence a NaN.
    outs = outs.to(lses.dtype).masked_fill(torch.isneginf(lses).unsqueeze(-1), 0.0)
    out = (weights.unsqueeze(-1) * outs).sum(dim=0) / total.unsqueeze(-1)
    return out, m + torch.log(total)


def merge_states(outs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
    """The attention over all keys from attention over disjoint parts of them, in any order and
    number (`Attention.Spec.combine`).

    Args:
        outs: `[parts, ..., value_dim]`, the output over each part, float64, float32, float16 or
            bfloat16; `torch.stack` makes it of several tensors. At least 1 part.
        lses: `[parts, ...]`, the natural log-sum-exp of each part, float64 for float64 outputs and
            otherwise float32; −∞ where a part has no key to attend to.

    Returns:
        The result of `attention(..., return_lse=True)` over all keys: the output in the dtype of
        `outs`, and the log-sum-exp in that of `lses`. A part with log-sum-exp −∞ has no influence,
        whatever its output holds. Sinks that were given to several parts count several times.

    Both outputs are differentiable by `outs` and `lses`, any number of times and forward-mode too.

    Raises:
        TypeError: an argument of the wrong type or dtype.
        ValueError: shapes or devices that do not fit together.
    """
    for name, tensor in (("outs", outs), ("lses", lses)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a torch.Tensor, not {type(tensor).__name__}")
        check.check_dense(name, tensor)
    if outs.dtype not in check.DTYPES:
        raise TypeError(f"outs must be float64, float32, float16 or bfloat16, not {outs.dtype}")
    wide = compute_dtype(outs.dtype)
    if lses.dtype != wide:
        raise TypeError(f"lses must be {wide} for outs of {outs.dtype}, not {lses.dtype}")
    if outs.dim() < 2 or outs.shape[0] == 0:
        raise ValueError(
            f"outs must be [parts, ..., value_dim] with at least 1 part, "
            f"not of shape {check.shape(outs)}"
        )
    if lses.shape != outs.shape[:-1]:
        raise ValueError(
            f"lses must be of the shape of outs without its last dimension, "
            f"{check.shape(outs)[:-1]}, not {check.shape(lses)}"
        )
    if lses.device != outs.device:
        raise ValueError(f"lses must be on the device of outs, {outs.device}, not {lses.device}")
    out, lse = combine(outs, lses)
    return out.to(outs.dtype), lse
