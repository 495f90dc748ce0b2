"""Checks of the sizes that modules are made with, and of the dtype and device of their inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyimpl.internal import arguments as check


def positive(name: str, given: object, default: int | None = None) -> int:
    """`given`, or the default; raises TypeError or ValueError unless it is a whole number from 1
    on that a tensor's size can be."""
    number: Any = default if given is None else given
    if not check.is_whole(number):
        raise TypeError(f"{name} must be a whole number, not {check.describe(number)}")
    if not 1 <= number < 2**31:
        raise ValueError(f"{name} must be at least 1 and below 2³¹, not {check.describe(number)}")
    return check.whole(number)


def heads_of_model(d_model: object, num_heads: object) -> tuple[int, int]:
    """Both, checked; raises ValueError unless the heads divide the width."""
    width, heads = positive("d_model", d_model), positive("num_heads", num_heads)
    if width % heads:
        raise ValueError(f"d_model must be a multiple of num_heads, {heads}, not {width}")
    return width, heads


def check_dtype(dtype: object) -> None:
    """Raises TypeError unless `dtype` is None or one that attention takes."""
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype in check.DTYPES):
        raise TypeError(
            f"dtype must be float64, float32, float16 or bfloat16, not {check.describe(dtype)}"
        )


def check_like_module(name: str, given: Tensor, weight: Tensor) -> None:
    """Raises TypeError or ValueError unless `given`, floating, has the device and dtype of a
    module, whose parameter `weight` is. Under autocast its linear maps take all dtypes but float64,
    and give one."""
    if given.device != weight.device:
        raise ValueError(
            f"{name} must be on the device of the module, {weight.device}, not on {given.device}"
        )
    kind = given.device.type
    cast = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    cast = cast and torch.float64 not in (given.dtype, weight.dtype)
    if given.dtype != weight.dtype and not cast:
        raise TypeError(
            f"{name} must have the dtype of the module, {weight.dtype}, not {given.dtype}"
        )
