"""Inputs that lie in larger buffers: with rows, heads and columns around them that are NaN."""

from __future__ import annotations

import torch
from torch import Tensor

# Columns behind each row: 16 bytes or more in every dtype, so that rows begin where they may.
_COLUMNS = 8


def pad(tensor: Tensor) -> Tensor:
    """The same numbers, [batch, heads, length, dim], with columns next to each other in memory and
    the other dimensions in the order [batch, length, heads, dim], in a buffer that is NaN where
    they are not."""
    batch, heads, length, dim = tensor.shape
    sizes = (batch, length + 1, heads + 1, dim + _COLUMNS)
    buffer = tensor.new_full(sizes, torch.nan)
    view = buffer[:, :length, :heads, :dim].transpose(1, 2)
    return view.copy_(tensor)
