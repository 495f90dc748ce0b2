"""Integers and truth values of fake tensors, kept where they can be told.

A launcher tells its kernels by integers where sequences begin and which pages or blocks are theirs.
Tensors on the device "meta" have no numbers; so each operation of PyTorch on integers that are
known is done on the CPU too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_map_only, tree_unflatten

_META = torch.device("meta")
_CPU = torch.device("cpu")
# So many numbers of one tensor are kept.
MOST = 1 << 16


def is_whole(dtype: torch.dtype) -> bool:
    """Whether its numbers are integers or truth values."""
    return not (dtype.is_floating_point or dtype.is_complex)


def key_of(tensor: Tensor) -> int:
    """A number that identifies a storage while it lasts."""
    return int(tensor.untyped_storage()._cdata)


class Integers:
    """The integers that are known: by storage, as a tensor of one dimension on the CPU."""

    def __init__(self) -> None:
        self._flat: dict[int, Tensor] = {}
        # Storages of which kernels were told: an operation must not change them any more.
        self.told: set[int] = set()

    def of(self, tensor: Tensor) -> Tensor | None:
        """A tensor's numbers, a view of the kept ones; None: they are not known."""
        if tensor.device.type == "cpu":
            return tensor
        flat = self._flat.get(key_of(tensor))
        if flat is None or flat.dtype != tensor.dtype:
            return None
        return flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def numbers(self, tensor: Tensor) -> list[int] | None:
        """The numbers of a tensor's whole storage, None if they are not known."""
        flat = self._flat.get(key_of(tensor))
        return None if flat is None else [int(x) for x in flat.tolist()]

    def forget(self, tensor: Tensor) -> None:
        self._flat.pop(key_of(tensor), None)

    def keep(self, tensor: Tensor, numbers: Tensor) -> None:
        """A fake tensor, the first of its storage, has these numbers."""
        size = tensor.untyped_storage().nbytes() // tensor.element_size()
        if size <= MOST:
            flat = torch.zeros(size, dtype=tensor.dtype)
            flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).copy_(numbers)
            self._flat[key_of(tensor)] = flat

    def compute(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Compute an operation on known integers, if it makes new tensors or a number. Returns
        tensors on the device that was asked for; else NotImplemented."""
        if func.is_view or func._schema.is_mutable or _is_random(func):
            return NotImplemented
        leaves = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        if not leaves and kwargs.get("device") != _META:
            return NotImplemented
        known = [self.of(x) if is_whole(x.dtype) else None for x in leaves]
        if any(x is None for x in known):
            return NotImplemented
        to_cpu = dict(zip(map(id, leaves), known, strict=True))
        args, kwargs = tree_map_only(Tensor, lambda x: to_cpu[id(x)], (args, kwargs))
        on_meta = kwargs.get("device") == _META or (
            kwargs.get("device") is None and any(x.device.type == "meta" for x in leaves)
        )
        if "device" in kwargs:
            kwargs["device"] = _CPU
        if not leaves and not _gives_integers(func, args, kwargs):
            return NotImplemented
        found = func(*args, **kwargs)
        flat, spec = tree_flatten(found)
        if any(isinstance(x, Tensor) and not is_whole(x.dtype) for x in flat):
            return NotImplemented
        return tree_unflatten([self._place(x, on_meta) for x in flat], spec)

    def _place(self, x: Any, on_meta: bool) -> Any:
        if not isinstance(x, Tensor) or not on_meta:
            return x
        fake = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=_META)
        self.keep(fake, x)
        return fake

    def write(self, func: Any, args: Any, kwargs: Any) -> None:
        """Apply an operation that writes to fake tensors to their known numbers too."""
        leaves = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        targets = [
            x
            for argument, x in zip(func._schema.arguments, args, strict=False)
            if argument.alias_info is not None and argument.alias_info.is_write
            for x in tree_leaves(x)
            if isinstance(x, Tensor)
        ]
        known = {id(x): self.of(x) for x in leaves if is_whole(x.dtype)}
        if any(known.get(id(x)) is None for x in leaves) or self.told & {*map(key_of, targets)}:
            for x in targets:
                if x.device.type == "meta":
                    self.forget(x)
            return
        args, kwargs = tree_map(
            lambda x: known[id(x)] if isinstance(x, Tensor) else x, (args, kwargs)
        )
        func(*args, **kwargs)


def _is_random(func: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in func.tags


def _gives_integers(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether an operation that makes tensors of no others makes integers."""
    found = func(*args, **{**kwargs, "device": _META})
    is_empty = "empty" in func.overloadpacket.__name__
    return not is_empty and all(is_whole(x.dtype) for x in tree_leaves(found))
