"""Sinusoidal positional encodings."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from pyimpl import _arguments as check
from pyimpl._implements import implements
from pyimpl.modules._sizes import positive

Arrangement = Literal["interleaved", "halves"]


@implements("Attention.Spec.sinusoids")
def sinusoidal_encoding(
    length: int,
    d_model: int,
    *,
    start: int = 0,
    arrangement: Arrangement = "interleaved",
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """sin(pos / 10000^(2i / d_model)) and cos of the same, for the positions start, …, start +
    length − 1 and i < d_model / 2: `[length, d_model]`, computed in float64.

    Vaswani et al. 2017, "Attention Is All You Need", section 3.5: "interleaved", sine in column 2i
    and cosine in column 2i + 1. With "halves" all sines come before all cosines, as document 001
    and `Attention.Spec.sinusoids` have it: the same columns in another order.

    Raises:
        TypeError, ValueError: `d_model` is not even, or an argument is none of these.
    """
    if positive("d_model", d_model) % 2:
        raise ValueError(f"d_model must be even, not {check.said(d_model)}")
    check.check_one_of("arrangement", arrangement, Arrangement)
    positions = torch.arange(start, start + length, device=device, dtype=torch.float64)
    exponents = torch.arange(0, d_model, 2, device=device, dtype=torch.float64) / d_model
    angles = positions[:, None] / 10000.0**exponents
    pair = torch.stack((angles.sin(), angles.cos()), dim=-1)
    table = pair.flatten(-2) if arrangement == "interleaved" else pair.mT.flatten(-2)
    return table.to(torch.get_default_dtype() if dtype is None else dtype)
