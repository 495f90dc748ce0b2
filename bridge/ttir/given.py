"""Check, for one launch, the hypotheses of the theorems about the forward kernel.

`Attention.Kernel.Problem.Given` and, of packed sequences, `Attention.Kernel.Packed.Given` say that
the arguments of a kernel describe tensors `Q`, `K` and `V`, and the theorems ask that no two
elements of a result share a place. `Sized` of both says of them the same as `Given` without memory;
`Within` has bounds (`bridge.ttir.bounds`). Lean has these as hypotheses; whether the launcher sees
to them is asked here, of the launch that it makes and the tensors that it was given. Two more are
trusted in Lean, and looked at all the same: that there are as many programs as tiles, and that
inputs and results share no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from torch import Tensor

from bridge.ttir.bounds import beyond
from pyimpl.backends.kernels.parts.launch import Arguments, Launch
from pyimpl.backends.kernels.parts.numerics import LOG2E
from pyimpl.internal.scores import ScoreOptions

# Beyond so many elements it is not decided whether two share a place, unless strides tell.
_MOST = 10**7
_AXES = {"query": "bhmd", "key": "bhnd", "value": "bhnd", "out": "bhmd", "lse": "bhm"}


class Unmet(NamedTuple):
    """A hypothesis that does not hold.

    name: of the field of `Given` or `Within`, or "out" and "lse" of a result, "injective",
    "programs", "mask" and "memory" of the rest. of_tensors: it is about the tensors that the
    launcher was given, and no launcher could meet it.
    """

    name: str
    said: str
    of_tensors: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.said}"


def unmet_conditions(
    launch: Launch,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    options: ScoreOptions,
) -> list[Unmet]:
    """The hypotheses that a launch of the forward kernel for these tensors does not meet.

    query, key, value, out, lse, options: the arguments of `backends.kernels.forward.launch`.
    Elements are looked at where the tensors have memory. The mask of packed sequences, whose
    tensors are those of one batch, is not looked at.
    """
    inputs = {"query": query, "key": key, "value": value}
    looked_at = _Launched(launch, inputs, {"out": out, "lse": lse}, options)
    return [
        *looked_at.tiles(), *looked_at.sizes(), *looked_at.sequences(), *looked_at.scores(),
        *looked_at.inputs(), *looked_at.results(), *looked_at.bounds(),
    ]  # fmt: skip


class _Launched:
    def __init__(
        self,
        launch: Launch,
        inputs: dict[str, Tensor],
        results: dict[str, Tensor],
        options: ScoreOptions,
    ) -> None:
        self.launch, self.options = launch, options
        self.arguments: Arguments = launch.arguments
        self.inputs_by_name, self.results_by_name = inputs, results
        query, key, value = inputs.values()
        self.batches, self.heads, self.q_len, self.d = query.shape
        self.kv_heads, self.kv_len = key.shape[1:3]
        self.value_dim = value.shape[-1]
        self.packed = self.arguments["cu_q_ptr"] is not None

    def number(self, name: str) -> int:
        """An argument, 0 for a stride that is not there."""
        found = self.arguments[name]
        return found if isinstance(found, int) else 0

    def differ(self, name: str, argument: str, wanted: int) -> Iterator[Unmet]:
        found = self.arguments[argument]
        if found != wanted:
            yield Unmet(name, f"{argument} is {found}, and should be {wanted}", False)

    def tiles(self) -> Iterator[Unmet]:
        """`BM`, `BN`, `fits`, `even`, the same of values, and one program for each tile of queries
        of each head."""
        constants = self.launch.constants
        names = ("BLOCK_M", "BLOCK_N", "BLOCK_D", "BLOCK_V")
        sizes = {name: int(constants[name] or 0) for name in names}
        for field, name in (("BM", "BLOCK_M"), ("BN", "BLOCK_N")):
            if sizes[name] <= 0:
                yield Unmet(field, f"{name} is {sizes[name]}, and should be above 0", False)
        for more, letter, what, size in (
            ("", "D", "head size", self.d), ("Value", "V", "size of values", self.value_dim)
        ):  # fmt: skip
            width = sizes[f"BLOCK_{letter}"]
            if width < size:
                said = f"BLOCK_{letter} is {width}, below the {what} {size}"
                yield Unmet(f"fits{more}", said, False)
            if constants[f"EVEN_{letter}"] and width != size:
                said = f"EVEN_{letter} is set, for {width} columns of {size}"
                yield Unmet(f"even{more}", said, False)
        batches, q_len = self.batches, self.q_len
        if self.packed:
            begins = self.arguments["cu_q_ptr"]
            assert isinstance(begins, Tensor)
            batches, q_len = len(begins) - 1, self.number("max_q_len")
        programs = -(-q_len // max(1, sizes["BLOCK_M"])) * batches * self.heads
        if self.launch.programs != programs:
            found = self.launch.programs
            yield Unmet("programs", f"there are {found}, and should be {programs}", False)

    def sizes(self) -> Iterator[Unmet]:
        """`numHeads`, `perHead`, `dim`, `valueDim`, `qLen` and `kvLen`."""
        yield from self.differ("numHeads", "num_heads", self.heads)
        if self.kv_heads * self.number("group") != self.heads:
            yield Unmet(
                "perHead",
                f"group is {self.arguments['group']}, for {self.heads} heads of queries and "
                f"{self.kv_heads} of keys",
                False,
            )
        yield from self.differ("dim", "head_dim", self.d)
        yield from self.differ("valueDim", "value_dim", self.value_dim)
        yield from self.differ("qLen", "q_len", self.q_len)
        yield from self.differ("kvLen", "kv_len", self.kv_len)

    def sequences(self) -> Iterator[Unmet]:
        """Check where packed sequences begin, of `queries`, `keys` and `longest`. The launcher does
        not look at these numbers, which may lie on a device."""
        for name, letters, rows in (("queries", "qx", self.q_len), ("keys", "ky", self.kv_len)):
            begins = self.arguments[f"cu_{letters[0]}_ptr"]
            if not isinstance(begins, Tensor):
                continue
            yield from self.differ(name, f"stride_{letters[1]}b", begins.stride(0))
            if begins.is_meta:
                continue
            sums = begins.tolist()
            lengths = [stop - first for first, stop in pairwise(sums)]
            if min(lengths, default=0) < 0 or sums[0] < 0 or sums[-1] > rows:
                yield Unmet(name, f"sequences of {rows} rows begin at {sums}", True)
            longest = self.number("max_q_len")
            if name == "queries" and max(lengths, default=0) > longest:
                yield Unmet("longest", f"max_q_len is {longest}, and a sequence longer", True)

    def scores(self) -> Iterator[Unmet]:
        """`scale` and `scale_nonneg`, and which keys a query sees."""
        found, options = self.arguments["scale"], self.options
        assert isinstance(found, int | float)
        wanted = abs(options.scale) * LOG2E.value
        if options.softcap is not None:
            wanted = abs(options.scale) / options.softcap
        if found != wanted:
            yield Unmet("scale", f"it is {found}, and should be {wanted}", False)
        if not found >= 0:
            yield Unmet("scale_nonneg", f"scale is {found}", False)
        if self.packed:
            return
        yield from self.differ("mask", "shift", options.shift)
        # A bound that is left out hides no pair: of all, the last query and the first key are
        # furthest apart on the left, the first query and the last key on the right.
        furthest = {
            "left": self.q_len - 1 + options.shift, "right": self.kv_len - 1 - options.shift
        }  # fmt: skip
        for side, distance in furthest.items():
            bound, passed = getattr(options, side), self.arguments[side]
            hides = bound is not None and bound < distance and self.q_len > 0 and self.kv_len > 0
            if passed != bound and (hides or passed is not None):
                yield Unmet("mask", f"{side} is {passed}, and should be {bound}", False)

    def strides(self, name: str) -> tuple[int, ...]:
        """The strides in the arguments: 0 for an axis that is not there, 1 along vectors."""
        *axes, along = (self.arguments[f"stride_{name[0]}{axis}"] for axis in _AXES[name])
        last = 1 if along is None else along
        return tuple(n if isinstance(n, int) else 0 for n in (*axes, last))

    def bounds(self) -> Iterator[Unmet]:
        """The fields of `Within`."""
        for name in beyond(self.launch):
            yield Unmet(name, "it is beyond the bounds within which no integer overflows", False)

    def inputs(self) -> Iterator[Unmet]:
        """`query`, `key` and `value`: the elements lie where the strides say, and are numbers."""
        for name, tensor in self.inputs_by_name.items():
            behind = self.arguments[f"{name}_ptr"]
            assert isinstance(behind, Tensor)
            try:
                first = behind.storage_offset()
                there = behind.as_strided(tensor.shape, self.strides(name), first)
            except RuntimeError:
                yield Unmet(name, "an element lies outside of its memory", False)
                continue
            if tensor.is_meta:
                continue
            wanted = -tensor if name == "query" and self.options.scale < 0 else tensor
            same = (there == wanted) | (there.isnan() & wanted.isnan())
            if not bool(same.all()):
                yield Unmet(name, "an element lies not where the strides say", False)
            if not bool(tensor.isfinite().all()):
                yield Unmet(name, "an element is no number", True)

    def results(self) -> Iterator[Unmet]:
        """No two elements of a result share a place, nor results and inputs their memory."""
        for name, tensor in self.results_by_name.items():
            sizes = zip(tensor.shape, self.strides(name), tensor.stride(), strict=True)
            wrong = any(n > 1 and passed != wanted for n, passed, wanted in sizes)
            behind = self.arguments[f"{name}_ptr"]
            if wrong or not isinstance(behind, Tensor) or behind.data_ptr() != tensor.data_ptr():
                yield Unmet(name, "its elements lie not where the strides say", False)
            if not _is_injective(tensor):
                yield Unmet("injective", f"two elements of {name} share a place", True)
            for other, one in {**self.inputs_by_name, **self.results_by_name}.items():
                if other != name and _overlap(tensor, one):
                    yield Unmet("memory", f"{name} and {other} may overlap", True)


def _is_injective(tensor: Tensor) -> bool:
    """Whether no two elements of a tensor share a place; False, too, of one that is too large to
    tell."""
    steps = sorted(
        (stride, size)
        for stride, size in zip(tensor.stride(), tensor.shape, strict=True)
        if size != 1
    )
    reach = 0
    for stride, size in steps:
        if stride <= reach:
            break
        reach += stride * (size - 1)
    else:
        return True
    if tensor.numel() > _MOST:
        return False
    places = np.zeros((), np.int64)
    for stride, size in steps:
        places = places[..., None] + stride * np.arange(size)
    return len(np.unique(places)) == places.size


def _overlap(one: Tensor, other: Tensor) -> bool:
    """Whether the spans of two tensors in memory have anything in common; they have no memory on
    device "meta"."""

    def span(tensor: Tensor) -> tuple[int, int]:
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        last = sum((size - 1) * stride for size, stride in steps)
        first = tensor.data_ptr()
        return first, first + (last + 1) * tensor.element_size()

    if one.is_meta or not one.numel() or not other.numel():
        return False
    (a, b), (c, d) = span(one), span(other)
    return a < d and c < b
