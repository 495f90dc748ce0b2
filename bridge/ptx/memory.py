"""Global memory: the storages of PyTorch tensors, of which only the tensors' own bytes exist."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import torch

from bridge.ptx.kinds import Array

# Between storages there are as many bytes at least that belong to none.
_GAP = 1 << 20


@dataclass(frozen=True, eq=False)
class _Buffer:
    """A storage at the addresses from `base` on. there: which of its bytes belong to a tensor that
    was given; storage: kept alive."""

    base: int
    content: Array
    there: Array
    storage: torch.UntypedStorage


class Outside(Exception):
    """Raised with the position of the first address that is outside of every tensor."""

    def __init__(self, position: int) -> None:
        self.position = position
        super().__init__(position)


class Buffers:
    """Addresses of tensors, and accesses to them. Two views of a storage have one memory."""

    def __init__(self) -> None:
        self._buffers: dict[int, _Buffer] = {}
        self._next = _GAP

    def address(self, tensor: torch.Tensor) -> int:
        """The address of the tensor's first element; from now on its bytes may be accessed, from
        the first of its elements to the last."""
        storage = tensor.untyped_storage()
        key = storage.data_ptr()
        if not tensor.numel():
            return self._next
        buffer = self._buffers.get(key)
        if buffer is None:
            size = storage.nbytes()
            content = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(key))
            # It lies as far from a multiple of 256 as in this process's memory.
            base = self._next + key % 256
            buffer = _Buffer(base, content, np.zeros(size, bool), storage)
            self._buffers[key] = buffer
            self._next += (size // _GAP + 2) * _GAP
        element = tensor.element_size()
        first = int(tensor.storage_offset()) * element
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        span = 1 + sum((size - 1) * stride for size, stride in steps)
        buffer.there[first : first + span * element] = True
        return buffer.base + first

    def read(self, addresses: Array, size: int) -> Array:
        """`size` bytes from each address on, `[n, size]`. Raises Outside."""
        found = np.empty((len(addresses), size), np.uint8)
        for buffer, which, places in self._places(addresses, size):
            found[which] = buffer.content[places]
        return found

    def write(self, addresses: Array, data: Array) -> None:
        """Put the bytes `[n, size]` from each address on; of equal ones the last counts. Raises
        Outside."""
        for buffer, which, places in self._places(addresses, data.shape[1]):
            buffer.content[places] = data[which]

    def _places(self, addresses: Array, size: int) -> list[tuple[_Buffer, Array, Array]]:
        """By buffer: which of the addresses are in it, and where their bytes are."""
        found = []
        left = np.ones(len(addresses), bool)
        for buffer in self._buffers.values():
            offsets = addresses.astype(np.int64) - buffer.base
            inside = (offsets >= 0) & (offsets + size <= len(buffer.content))
            if not inside.any():
                continue
            which = np.nonzero(inside)[0]
            places = offsets[which, None] + np.arange(size)
            there = buffer.there[places].all(1)
            left[which[there]] = False
            found.append((buffer, which, places))
        if left.any():
            raise Outside(int(np.argmax(left)))
        return found
