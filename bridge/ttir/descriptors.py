"""Tensor descriptors: tensors in memory that are read and written in tiles, the elements beyond
their sizes read as 0 or NaN and not written.

`tt.make_tensor_descriptor`, `tt.descriptor_load` and `tt.descriptor_store` of
https://triton-lang.org/main/dialects/TritonOps.html.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.ttir.access import load_tile, store_tile
from bridge.ttir.domain import Array
from bridge.ttir.faults import Undecided
from bridge.ttir.memory import Pointers, Region
from bridge.ttir.syntax import Operation, Tensor, Type

if TYPE_CHECKING:
    from bridge.ttir.machine import Machine


@dataclass(frozen=True, eq=False)
class Described:
    """A tensor in memory: from element `first` of a buffer on, with these sizes and strides.
    fill: the number that reads beyond the tensor give, 0 or NaN."""

    region: Region
    first: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    fill: float


def make(machine: Machine, operation: Operation, base: Any, *rest: Any) -> Described:
    if not isinstance(base, Pointers):
        raise Undecided("a descriptor of something other than a pointer to numbers")
    numbers = [int(x) for x in rest]
    rank = len(numbers) // 2
    fill = math.nan if "nan" in str(operation.attributes.get("padding", "")).lower() else 0.0
    words = operation.attributes.get("words", [])
    if isinstance(words, list) and any("nan" in str(word).lower() for word in words):
        fill = math.nan
    sizes, strides = tuple(numbers[:rank]), tuple(numbers[rank:])
    return Described(base.region, int(base.offsets), sizes, strides, fill)


def _places(
    operation: Operation, described: Any, type: Type, begin: tuple[Any, ...]
) -> tuple[Pointers, Array]:
    """Pointers to the elements of a tile of this type, and which of them exist."""
    if not isinstance(described, Described) or not isinstance(type, Tensor):
        raise Undecided("a tile of something other than a tensor descriptor")
    if len(type.shape) != len(described.sizes) or len(begin) != len(described.sizes):
        raise Undecided("a tile of fewer dimensions than its tensor descriptor")
    offsets, inside = places(described.sizes, described.strides, begin, type.shape)
    return Pointers(described.region, described.first + offsets), inside


def places(
    sizes: Sequence[int], strides: Sequence[int], begin: Sequence[Any], shape: Sequence[int]
) -> tuple[Array, Array]:
    """The places of the elements of a tile of this shape, which begins at these coordinates of a
    tensor of these sizes and strides, counted from the tensor's first element; and the elements
    that are in it."""
    offsets, inside = np.array(0, np.int64), np.array(True)
    for i, (start, length) in enumerate(zip(begin, shape, strict=True)):
        at = int(start) + np.arange(length, dtype=np.int64)
        axis = [1] * len(shape)
        axis[i] = length
        offsets = offsets + (at * strides[i]).reshape(axis)
        inside = inside & ((at >= 0) & (at < sizes[i])).reshape(axis)
    return np.broadcast_to(offsets, shape), np.broadcast_to(inside, shape)


def load(machine: Machine, operation: Operation, described: Any, *begin: Any) -> Any:
    type = operation.result.type
    pointers, inside = _places(operation, described, type, begin)
    fill: Any = np.array(0, np.int64)
    if pointers.region.buffer.is_float:
        fill = machine.domain.constant(described.fill)
    return load_tile(machine, operation, pointers, inside, fill, type)


def store(machine: Machine, operation: Operation, described: Any, *rest: Any) -> None:
    # The operands are the descriptor, where the tile begins, and the tile.
    *begin, value = rest
    type = operation.operands[-1].type
    pointers, inside = _places(operation, described, type, tuple(begin))
    store_tile(machine, operation, pointers, inside, value, type)
