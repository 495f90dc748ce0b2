"""Run exact vectors of all operations through the kernels' TTIR: make tensors of their numbers,
make options, and compare the results that a kernel stored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bridge.ttir.domain import Array, single
from bridge.ttir.launches import Kernels
from bridge.ttir.rational import logarithm
from bridge.vectors.model.attention import Alibi, Exact, Mask, Row, State
from bridge.vectors.model.gradients import GradientVector
from pyimpl.internal.dropout import Dropout
from pyimpl.internal.scores import ScoreOptions

BackwardTensors = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


class Runner:
    """Runs kernels on the numbers of a vector, and compares the results that they store.

    splits: 0: the forward kernel; else the decoding kernel with so many splits.
    """

    def __init__(self, kernels: Kernels, splits: int) -> None:
        self.kernels, self.splits = kernels, splits
        self.memory = kernels.memory
        self.domain = kernels.memory.domain

    def tensor(self, numbers: Any, *shape: int) -> Tensor:
        """A tensor of the kernels' dtype with these numbers, nested tuples, in this shape."""
        return self.kernels.tensor(tile(numbers, *shape))

    def wide(self, numbers: Any, *shape: int) -> Tensor:
        """A tensor of float32."""
        return self.memory.tensor(tile(numbers, *shape))

    def options(self, vector: Any, sizes: tuple[int, int, int], **more: Any) -> ScoreOptions:
        """The options of a vector. Its scores are those of the natural exponential divided by ln 2,
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
            numbers = tile(bias)
            given["bias"] = self.memory.tensor(NATURAL(numbers))
        alibi = getattr(vector, "alibi", None)
        if alibi is not None:
            slopes = [alibi.slope] if isinstance(alibi, Alibi) else alibi.slopes
            given["alibi_slopes"] = self.memory.tensor(NATURAL(tile(slopes, 1, heads)))
            if window is not None and window.shift != alibi.shift:
                raise ValueError("vector must have one alignment for its window and its slopes")
            given["shift"] = alibi.shift
        sinks = getattr(vector, "sinks", None) or getattr(vector, "sink", None)
        if sinks is not None:
            sinks = sinks if isinstance(sinks, tuple) else (sinks,)
            given["sinks"] = self.memory.tensor(NATURAL(tile(sinks, heads)))
        dropout = getattr(vector, "dropout", None)
        if dropout:
            given["dropout"] = Dropout(float(dropout[0].p), torch.tensor(vector.dropout_seed))
        return ScoreOptions(self.scale(vector.scale), **given, **more)

    def scale(self, scale: Exact) -> float:
        """|scale|, as it is given to a kernel: `apply_sign` below sees to its sign."""
        natural = abs(float(scale)) * math.log(2.0)
        self.domain.known.append((natural, single(_natural(abs(scale)))))
        return natural

    def apply_sign(self, vector: Any, numbers: Any) -> Any:
        """The queries, negated where scale < 0, as the launchers do with a copy of them."""
        return numbers if vector.scale >= 0 else _negate(numbers)

    def attention(
        self, vector: Any, q: Any, k: Any, v: Any, sizes: tuple[int, int, int]
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor]]:
        """Output and log-sum-exp, and the tensors of q, k and v: matrices `[batch · heads]` for
        sizes (batch, heads, heads of keys)."""
        batch, heads, kv_heads = sizes
        tensors = (
            self.tensor(self.apply_sign(vector, q), batch, heads, vector.q_len, vector.head_dim),
            self.tensor(k, batch, kv_heads, vector.kv_len, vector.head_dim),
            self.tensor(v, batch, kv_heads, vector.kv_len, vector.value_dim),
        )
        options = self.options(vector, sizes)
        if self.splits:
            return *self.kernels.decode(*tensors, options, splits=self.splits), tensors
        return *self.kernels.forward(*tensors, options), tensors

    def combine(self, *parts: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The combining kernel's result for outputs and log-sum-exps of like shapes."""
        stacked = [
            self.memory.tensor(np.stack([np.asarray(self.memory.read(x)) for x in tensors]))
            for tensors in zip(*parts, strict=True)
        ]
        return self.kernels.combine(*stacked)

    def compare(
        self, expected: Sequence[Row | State], out: Tensor, lse: Tensor, name: str
    ) -> Iterator[str]:
        """A sentence for each number of rows that is not the expected one."""
        rows = [_output(row) for row in expected]
        yield from self.same(out, tile(rows, *out.shape), f"{name}: output")
        logs = np.empty(len(expected), object)
        for i, row in enumerate(expected):
            largest, denominator = (
                (row.m, row.l) if isinstance(row, State) else (row.max, row.denominator)
            )
            # A state keeps its m where all keys were deleted again.
            logs[i] = -math.inf
            if largest is not None and denominator:
                logs[i] = logarithm(largest, denominator, 1)
        yield from self.same(lse, logs, f"{name}: log-sum-exp")

    def backward_arguments(self, vector: GradientVector, queries: Any) -> BackwardTensors:
        """The arguments of `Kernels.backward` but for the options: inputs and what the forward
        kernel makes of them, and the gradients by that."""
        sizes = (1, vector.num_heads, vector.num_kv_heads)
        out, lse, inputs = self.attention(vector, queries, vector.k, vector.v, sizes)
        rows = (1, vector.num_heads, vector.q_len)
        grad_out = self.tensor(vector.grad_output, *rows, vector.value_dim)
        return *inputs, out, lse, grad_out, self.wide(vector.grad_log_sum_exp, *rows)

    def compare_gradients(self, vector: GradientVector, found: dict[str, Tensor]) -> Iterator[str]:
        """A sentence for each number of these gradients that is not the expected one."""
        sign = 1 if vector.scale is None or vector.scale >= 0 else -1
        right = vector.expected
        expected = {"query": right.q, "key": right.k, "value": right.v, "bias": right.bias}
        units = {"query": SIGNED[sign], "key": NATURAL}
        for name, tensor in found.items():
            wanted = tile(expected[name]).reshape(tuple(tensor.shape))
            yield from self.same(tensor, units[name](wanted) if name in units else wanted, name)

    def same(self, found: Tensor, wanted: Array, name: str) -> Iterator[str]:
        numbers = self.memory.read(found)
        for place in np.argwhere(~self.domain.equal(numbers, wanted)):
            at = tuple(map(int, place))
            yield f"{name}{list(at)} is {numbers[at]}, not {wanted[at]}"


def _output(row: Row | State) -> tuple[Fraction, ...]:
    """The output of a row, or of a state: o / l, 0 where no key is left."""
    if isinstance(row, Row):
        return row.output
    return tuple(Fraction(x) / Fraction(row.l) if row.l else Fraction(0) for x in row.o)


def _natural(x: Any) -> Any:
    """A score of the exact model as one of the natural exponential; None masks."""
    if x is None:
        return -math.inf
    return logarithm(x, 1, 1)


NATURAL = np.frompyfunc(_natural, 1, 1)
SIGNED = {1: NATURAL, -1: np.frompyfunc(lambda x: _natural(-x), 1, 1)}


def _negate(x: Any) -> Any:
    return tuple(map(_negate, x)) if isinstance(x, tuple | list) else -x


def tile(numbers: Any, *shape: int) -> Array:
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
