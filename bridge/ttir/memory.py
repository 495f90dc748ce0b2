"""The memory of a run: tensors of PyTorch whose numbers are those of a domain.

A launcher is given tensors, and takes from them addresses and strides. Here their storages stand
for buffers of exact numbers; the tensors' own contents do not matter, but for integers and truth
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bridge.ttir.domain import Array, Domain, Numbers


@dataclass(eq=False)
class Buffer:
    """A storage. values: one for each of its elements; stored_by: the number of the program of
    this launch that stored to an element, −1: none; stored_before: that of the launch before that
    stored to it; loaded: whether one of this launch read it."""

    values: Numbers
    is_float: bool
    stored_by: Array
    stored_before: Array
    loaded: Array
    tensor: Tensor


@dataclass(eq=False)
class Region:
    """The part of a buffer that a tensor argument spans: elements first … last.

    name: the argument's. loaded, stored, added: whether a kernel loaded from it, stored to it or
    added to it at all.
    """

    name: str
    buffer: Buffer
    first: int
    last: int
    loaded: bool = field(default=False)
    stored: bool = field(default=False)
    added: bool = field(default=False)


@dataclass(frozen=True, eq=False)
class Pointers:
    """A tile of pointers into one tensor: `offsets` from the beginning of its storage, in
    elements."""

    region: Region
    offsets: Array


class Memory:
    """Tensors with numbers of `domain`."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._buffers: dict[int, Buffer] = {}

    def tensor(self, numbers: Numbers, dtype: torch.dtype = torch.float32) -> Tensor:
        """A new contiguous tensor of these numbers; `dtype`: the type that the kernel sees."""
        shape: tuple[int, ...] = ()

        def flat(x: Array) -> Array:
            nonlocal shape
            shape = x.shape
            return np.array(x).reshape(-1)

        values = self.domain.each(flat, numbers)
        tensor = torch.zeros(shape, dtype=dtype)
        self._add(tensor, values, True)
        return tensor

    def empty(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """A new tensor to which nothing was written."""
        tensor = torch.zeros(tuple(shape), dtype=dtype)
        self._add(tensor, self.domain.empty(tensor.numel()), True)
        return tensor

    def _add(self, tensor: Tensor, values: Numbers, is_float: bool) -> Buffer:
        size = tensor.untyped_storage().nbytes() // tensor.element_size()
        nobody = np.full(size, -1, np.int64)
        buffer = Buffer(values, is_float, nobody, nobody.copy(), np.zeros(size, bool), tensor)
        if size:
            self._buffers[tensor.untyped_storage().data_ptr()] = buffer
        return buffer

    def begin_launch(self) -> None:
        """Allow reads of elements that earlier launches wrote, and writes to those they read."""
        for buffer in self._buffers.values():
            stored = buffer.stored_by >= 0
            buffer.stored_before[stored] = buffer.stored_by[stored]
            buffer.stored_by[:] = -1
            buffer.loaded[:] = False

    def region(self, name: str, tensor: Tensor) -> Region:
        """The region of a tensor, which must be of this memory or hold integers.

        Raises:
            ValueError: it is none of both; a copy of a tensor of this memory is none.
        """
        buffer = self._buffers.get(tensor.untyped_storage().data_ptr())
        if buffer is None:
            if tensor.is_floating_point() and tensor.numel():
                raise ValueError(
                    f"{name} must be a tensor of this memory or a view of one, not another tensor "
                    f"of {tensor.dtype} {list(tensor.shape)}"
                )
            is_float = tensor.is_floating_point()
            values = self.domain.empty(0) if is_float else _integers(tensor)
            buffer = self._add(tensor, values, is_float)
        first = int(tensor.storage_offset())
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        last = first + int(sum((size - 1) * stride for size, stride in steps))
        if not tensor.numel():
            last = first - 1
        return Region(name, buffer, first, last)

    def read(self, tensor: Tensor) -> Numbers:
        """The numbers of a tensor of this memory."""
        region = self.region("tensor", tensor)
        places = _places(tensor)
        return self.domain.each(lambda values: values[places], region.buffer.values)

    def write(self, tensor: Tensor, numbers: Numbers) -> None:
        """Give a tensor of this memory, which has each address once, these numbers of its shape."""
        buffer = self.region("tensor", tensor).buffer
        places = _places(tensor)

        def put(values: Array, given: Array) -> Array:
            values = np.array(values)
            values[places] = given
            return values

        buffer.values = self.domain.each(put, buffer.values, numbers)
        buffer.stored_before[places] = -1

    def settle(self) -> None:
        """`Domain.settle` of all numbers."""
        for buffer in self._buffers.values():
            if buffer.is_float:
                buffer.values = self.domain.settle(buffer.values)

    def programs(self, tensor: Tensor) -> Array:
        """The numbers of the programs that last stored to the elements of a tensor, −1: none."""
        buffer = self.region("tensor", tensor).buffer
        last = np.where(buffer.stored_by >= 0, buffer.stored_by, buffer.stored_before)
        return np.asarray(last[_places(tensor)])


def _places(tensor: Tensor) -> Array:
    """The place in its storage of each element of a tensor."""
    places = np.full((), tensor.storage_offset(), np.int64)
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        places = places[..., None] + np.arange(size) * stride
    return places


def _integers(tensor: Tensor) -> Any:
    """The whole storage of a tensor of integers or truth values, as int64."""
    size = tensor.untyped_storage().nbytes() // tensor.element_size()
    flat = tensor.as_strided((size,), (1,), 0) if size else tensor.reshape(-1)
    return flat.numpy().astype(np.int64)
