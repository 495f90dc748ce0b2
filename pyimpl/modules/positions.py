"""Sinusoidal positional encodings."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from pyimpl.internal import arguments as check
from pyimpl.internal.implements import implements
from pyimpl.modules.internal.sizes import check_dtype, positive

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

    `length` is at least 0, `start` any whole number that float64 holds exactly, `dtype` float64,
    float32, float16 or bfloat16, PyTorch's default if None.

    Raises:
        TypeError, ValueError: `d_model` is not even, or an argument is none of these.
    """
    for name, given, least, limit, accepted in (
        ("length", length, 0, 2**31, "at least 0 and below 2³¹"),
        ("start", start, -(2**52), 2**52, "at least −2⁵² and below 2⁵²"),
    ):
        if not check.is_whole(given):
            raise TypeError(f"{name} must be a whole number, not {check.describe(given)}")
        # `torch.export` would take a bound for one of its own.
        if not torch.compiler.is_compiling() and not least <= given < limit:
            raise ValueError(f"{name} must be {accepted}, not {check.describe(given)}")
    length, start = check.whole(length), check.whole(start)
    if positive("d_model", d_model) % 2:
        raise ValueError(f"d_model must be even, not {check.describe(d_model)}")
    check_dtype(dtype)
    check.check_one_of("arrangement", arrangement, Arrangement)
    positions = torch.arange(start, start + length, device=device, dtype=torch.float64)
    return encodings_at(positions, d_model, arrangement, dtype)


def encodings_at(
    positions: Tensor, d_model: int, arrangement: Arrangement, dtype: torch.dtype | None
) -> Tensor:
    """`sinusoidal_encoding` of any positions, `[length]`, float64, of checked arguments."""
    exponents = torch.arange(0, d_model, 2, device=positions.device, dtype=torch.float64) / d_model
    angles = positions[:, None] / 10000.0**exponents
    pair = torch.stack((angles.sin(), angles.cos()), dim=-1)
    table = pair.flatten(-2) if arrangement == "interleaved" else pair.mT.flatten(-2)
    return table.to(torch.get_default_dtype() if dtype is None else dtype)
