"""The buffers that a tile loop keeps from tile to tile."""

from __future__ import annotations

import math
import threading

import torch
from torch import Tensor


class Scratch:
    """Memory that is kept from tile to tile: for the scores of one, of the kind of `like`, which
    the system would otherwise give, clear and take back each time; and the masks of the window,
    which are alike for many tiles."""

    def __init__(self, like: Tensor) -> None:
        self.like = like
        self.memory: dict[int, Tensor] = {}
        self.outside: dict[tuple[int, ...], Tensor] = {}

    def of(self, *shape: int, which: int = 0) -> Tensor:
        """Uninitialised memory of this shape; there is one for each `which`, and they do not
        overlap."""
        kept = self.memory.get(which)
        if kept is not None and kept.shape == shape:
            return kept
        size = math.prod(shape)
        if kept is None or kept.numel() < size:
            kept = self.memory[which] = self.like.new_empty(shape)
            return kept
        return kept.view(-1)[:size].view(shape)

    def beyond(self, side: int, rows: int, keys: int, diagonal: int) -> Tensor:
        """−∞ above (side 1) or below (side −1) this diagonal of `[rows, keys]`, else 0."""
        key = (side, rows, keys, diagonal)
        if key not in self.outside:
            if len(self.outside) == 4:
                self.outside.clear()
            hidden = self.like.new_full((rows, keys), -torch.inf)
            self.outside[key] = hidden.triu_(diagonal) if side > 0 else hidden.tril_(diagonal)
        return self.outside[key]


class ThreadScratch(threading.local, Scratch):
    """The buffers that each thread keeps."""
