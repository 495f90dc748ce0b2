"""The exact vectors through the kernels' TTIR, without any tolerance.

A vector's numbers are rational and its weights powers of two, so a kernel without rounding must
find the expected numbers themselves: outputs, log-sum-exps and gradients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bridge.ttir.domain import Array, single
from bridge.ttir.launches import Kernels
from bridge.ttir.memory import Memory
from bridge.ttir.rational import RationalDomain, logarithm
from bridge.vectors.dropout import DropoutVector
from bridge.vectors.gradients import GradientVector
from bridge.vectors.model import Alibi, AttentionVector, Mask, Row, Vector
from bridge.vectors.operations import GroupedQueryVector, PagedVector, VarlenVector
from pyimpl._scores import ScoreOptions
from pyimpl.dropout import Dropout
from pyimpl.kernels._sequences import Sequences

TAKEN = (
    AttentionVector, DropoutVector, GradientVector, GroupedQueryVector, PagedVector, VarlenVector,
)  # fmt: skip
# A whole tile of queries, a ragged tile of keys: the weights of its padding, whose rows are never
# stored, may be 2 to a positive power, and the machine asks that others are chosen at once.
REFUSED = ("gradient-dropout-011",)
# The family that runs through the decoding kernel's splits too.
SPLIT = "split-kv"


def differences(vector: Vector, splits: int = 0, **kernels: Any) -> Iterator[str]:
    """A sentence for each number that the kernels find otherwise than the vector says.

    vector: of one of `TAKEN` and the exact model. splits: 0: the forward kernel; else the decoding
    kernel with so many splits and the combining one, which `PagedVector` always takes. kernels: the
    fields of `Kernels`. Raises as `machine.Machine.run` does.
    """
    if not isinstance(vector, TAKEN) or vector.model != "exact":
        raise ValueError(
            f"vector must be of the exact model and one of "
            f"{', '.join(kind.operation for kind in TAKEN)}, not {vector.operation}"
        )
    runner = _Runner(Kernels(Memory(RationalDomain()), **kernels), splits)
    match vector:
        case VarlenVector():
            yield from runner.varlen(vector)
        case PagedVector():
            yield from runner.paged(vector)
        case GradientVector():
            yield from runner.gradient(vector)
        case AttentionVector():
            yield from runner.heads(
                vector, [vector.q], [vector.k], [vector.v], (1, 1, 1), [vector.expected]
            )
        case GroupedQueryVector():
            sizes = (1, vector.num_heads, vector.num_kv_heads)
            yield from runner.heads(vector, vector.q, vector.k, vector.v, sizes, vector.expected)
        case DropoutVector():
            sizes = (vector.batch, vector.num_heads, vector.num_kv_heads)
            yield from runner.heads(vector, vector.q, vector.k, vector.v, sizes, vector.expected)


class _Runner:
    def __init__(self, kernels: Kernels, splits: int) -> None:
        self.kernels, self.splits = kernels, splits
        self.memory = kernels.memory
        self.domain = kernels.memory.domain

    def tensor(self, numbers: Any, *shape: int) -> Tensor:
        """A tensor of the kernels' dtype with these numbers, nested tuples, in this shape."""
        return self.kernels.tensor(_tile(numbers, *shape))

    def wide(self, numbers: Any, *shape: int) -> Tensor:
        """A tensor of float32."""
        return self.memory.tensor(_tile(numbers, *shape))

    def options(self, vector: Any, sizes: tuple[int, int, int], **more: Any) -> ScoreOptions:
        """What a vector asks for. Its scores are those of the natural exponential divided by ln 2,
        and so are scale, bias, slopes and sinks."""
        heads = sizes[1]
        mask: Mask = vector.mask
        window = mask.window
        given: dict[str, Any] = {}
        if window is not None:
            given |= {"left": window.left, "right": window.right, "shift": window.shift}
        elif mask.kind != "none":
            seen = [[mask.visible(i, j) for j in range(vector.kv_len)] for i in range(vector.q_len)]
            given["mask"] = torch.tensor(seen).reshape(vector.q_len, vector.kv_len)
        bias = getattr(vector, "bias", None)
        if bias is not None:
            tile = _tile(bias)
            given["bias"] = self.memory.tensor(_NATURAL(tile))
        alibi = getattr(vector, "alibi", None)
        if alibi is not None:
            slopes = [alibi.slope] if isinstance(alibi, Alibi) else alibi.slopes
            given["alibi_slopes"] = self.memory.tensor(_NATURAL(_tile(slopes, 1, heads)))
            if window is not None and window.shift != alibi.shift:
                raise ValueError("vector must have one alignment for its window and its slopes")
            given["shift"] = alibi.shift
        sinks = getattr(vector, "sinks", None) or getattr(vector, "sink", None)
        if sinks is not None:
            sinks = sinks if isinstance(sinks, tuple) else (sinks,)
            given["sinks"] = self.memory.tensor(_NATURAL(_tile(sinks, heads)))
        dropout = getattr(vector, "dropout", None)
        if dropout:
            given["dropout"] = Dropout(float(dropout[0].p), torch.tensor(vector.dropout_seed))
        return ScoreOptions(self.scale(vector), **given, **more)

    def scale(self, vector: Any) -> float:
        """|scale|, as it is given to a kernel: `turned` below sees to its sign."""
        natural = abs(float(vector.scale)) * math.log(2.0)
        self.domain.known.append((natural, single(_natural(abs(vector.scale)))))
        return natural

    def turned(self, vector: Any, numbers: Any) -> Any:
        """The queries, negated where scale < 0, as the launchers do with a copy of them."""
        return numbers if vector.scale >= 0 else _negated(numbers)

    def heads(
        self, vector: Any, q: Any, k: Any, v: Any, sizes: tuple[int, int, int], expected: Any
    ) -> Iterator[str]:
        """Attention of heads: matrices [batch · heads], and rows that are expected of each."""
        out, lse, _ = self.attention(vector, q, k, v, sizes)
        heads = sizes[1]
        for number, rows in enumerate(expected):
            place = (number // heads, number % heads)
            yield from self.compared(rows, out[place], lse[place], f"head {number}")

    def attention(
        self, vector: Any, q: Any, k: Any, v: Any, sizes: tuple[int, int, int]
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor]]:
        batch, heads, kv_heads = sizes
        tensors = (
            self.tensor(self.turned(vector, q), batch, heads, vector.q_len, vector.head_dim),
            self.tensor(k, batch, kv_heads, vector.kv_len, vector.head_dim),
            self.tensor(v, batch, kv_heads, vector.kv_len, vector.value_dim),
        )
        options = self.options(vector, sizes)
        if self.splits:
            return *self.kernels.decode(*tensors, options, splits=self.splits), tensors
        return *self.kernels.forward(*tensors, options), tensors

    def varlen(self, vector: VarlenVector) -> Iterator[str]:
        q = self.tensor(self.turned(vector, vector.q), len(vector.q), 1, vector.head_dim)
        k = self.tensor(vector.k, len(vector.k), 1, vector.head_dim)
        v = self.tensor(vector.v, len(vector.v), 1, vector.value_dim)
        cu_q, cu_k = (
            torch.tensor(x, dtype=torch.int32) for x in (vector.cu_seqlens_q, vector.cu_seqlens_k)
        )
        longest = max(b - a for a, b in pairwise(vector.cu_seqlens_q))
        longest_k = max(b - a for a, b in pairwise(vector.cu_seqlens_k))
        sequences = Sequences(cu_q, cu_k, longest, longest_k, vector.alignment == "bottom-right")
        window = vector.masks[0].window
        bounds: dict[str, Any] = (
            {} if window is None else {"left": window.left, "right": window.right}
        )
        options = ScoreOptions(self.scale(vector), **bounds)
        out, lse = self.kernels.varlen(q, k, v, sequences, options)
        yield from self.compared(vector.expected, out[:, 0], lse[0], "packed")

    def paged(self, vector: PagedVector) -> Iterator[str]:
        pages, size = vector.num_pages, vector.page_size
        batch, longest = len(vector.q), max(map(len, vector.tables))
        table = [[*row, *[0] * (longest - len(row))] for row in vector.tables]
        out, lse = self.kernels.decode(
            self.tensor(self.turned(vector, vector.q), batch, 1, 1, vector.head_dim),
            self.tensor(vector.k, pages, 1, size, vector.head_dim),
            self.tensor(vector.v, pages, 1, size, vector.value_dim),
            ScoreOptions(self.scale(vector)),
            splits=max(1, self.splits),
            kv_lens=torch.tensor(vector.lengths, dtype=torch.int32),
            page_table=torch.tensor(table, dtype=torch.int32).reshape(batch, longest),
        )
        yield from self.compared(vector.expected, out[:, 0, 0], lse[:, 0, 0], "paged")

    def gradient(self, vector: GradientVector) -> Iterator[str]:
        """The forward kernel, then all of the backward pass."""
        sizes = (1, vector.num_heads, vector.num_kv_heads)
        out, lse, (q, k, v) = self.attention(vector, vector.q, vector.k, vector.v, sizes)
        rows = (1, vector.num_heads, vector.q_len)
        grad_out = self.tensor(vector.grad_output, *rows, vector.value_dim)
        grad_lse = self.wide(vector.grad_log_sum_exp, *rows)
        found = self.kernels.backward(
            q, k, v, out, lse, grad_out, grad_lse, self.options(vector, sizes)
        )
        if vector.bias is None:
            # The gradient by a bias of 0 is expected too.
            zeros = self.wide(0, 1, vector.num_heads, vector.q_len, vector.kv_len)
            options = self.options(vector, sizes, bias=zeros)
            by_bias = self.kernels.backward(q, k, v, out, lse, grad_out, grad_lse, options)
            found["bias"] = by_bias["bias"]
        sign = 1 if vector.scale is None or vector.scale >= 0 else -1
        expected = vector.expected
        for name, numbers, unit in (
            ("query", expected.q, _SIGNED[sign]),
            ("key", expected.k, _NATURAL),
            ("value", expected.v, None),
            ("bias", expected.bias, None),
        ):
            tile = _tile(numbers).reshape(tuple(found[name].shape))
            wanted = tile if unit is None else unit(tile)
            yield from self.same(found[name], wanted, name)

    def compared(
        self, expected: Sequence[Row], out: Tensor, lse: Tensor, name: str
    ) -> Iterator[str]:
        rows = [row.output for row in expected]
        yield from self.same(out, _tile(rows, *out.shape), f"{name}: output")
        logs = np.empty(len(expected), object)
        for i, row in enumerate(expected):
            logs[i] = -math.inf if row.max is None else logarithm(row.max, row.denominator, 1)
        yield from self.same(lse, logs, f"{name}: log-sum-exp")

    def same(self, found: Tensor, wanted: Array, name: str) -> Iterator[str]:
        numbers = self.memory.read(found)
        for place in np.argwhere(~self.domain.equal(numbers, wanted)):
            at = tuple(map(int, place))
            yield f"{name}{list(at)} is {numbers[at]}, not {wanted[at]}"


def _natural(x: Any) -> Any:
    """A score of the exact model as one of the natural exponential; None masks."""
    if x is None:
        return -math.inf
    return logarithm(x, 1, 1)


_NATURAL = np.frompyfunc(_natural, 1, 1)
_SIGNED = {1: _NATURAL, -1: np.frompyfunc(lambda x: _natural(-x), 1, 1)}


def _negated(x: Any) -> Any:
    return tuple(map(_negated, x)) if isinstance(x, tuple | list) else -x


def _tile(numbers: Any, *shape: int) -> Array:
    """Nested tuples of numbers as a tile of this shape, or of their own; a number alone is every
    element's."""
    if not isinstance(numbers, tuple | list):
        return np.full(shape, numbers, object)

    def flat(x: Any) -> Iterator[Any]:
        if isinstance(x, tuple | list):
            for part in x:
                yield from flat(part)
        else:
            yield x

    def own(x: Any) -> tuple[int, ...]:
        return (len(x), *own(x[0])) if isinstance(x, tuple | list) and len(x) else ()

    found = list(flat(numbers))
    tile = np.empty(len(found), object)
    tile[:] = found
    return tile.reshape(shape or own(numbers))
