"""The domain of float32 numbers, and the dtypes of a simulated kernel.

An operation gives the float32 number nearest to the exact result, or NumPy's result for it: sums,
products of matrices and exponentials are in no particular order, and not those of a GPU bit by bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from bridge.ttir.domain import Array, Domain, Numbers

_PREDICATES = {
    "eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
}  # fmt: skip


@dataclass(frozen=True)
class DType:
    """An element type. primitive_bitwidth: as Triton calls the number of its bits."""

    name: str
    kind: Literal["float", "integer", "boolean"]
    primitive_bitwidth: int

    def is_floating(self) -> bool:
        return self.kind == "float"


FLOAT16 = DType("float16", "float", 16)
BFLOAT16 = DType("bfloat16", "float", 16)
FLOAT32 = DType("float32", "float", 32)
INT1 = DType("int1", "boolean", 1)
INT32 = DType("int32", "integer", 32)
INT64 = DType("int64", "integer", 64)
DTYPES = {
    torch.float16: FLOAT16, torch.bfloat16: BFLOAT16, torch.float32: FLOAT32, torch.bool: INT1,
    torch.int32: INT32, torch.int64: INT64,
}  # fmt: skip
_TORCH = {dtype: torch_dtype for torch_dtype, dtype in DTYPES.items()}


def round_to(domain: Domain, a: Numbers, dtype: DType) -> Numbers:
    """The numbers of a dtype that are nearest; in a domain that does not round the same numbers."""
    if not isinstance(domain, Float32) or dtype is FLOAT32:
        return a
    given = torch.from_numpy(np.array(a, np.float32))
    return given.to(_TORCH[dtype]).float().numpy()


def _f32(x: Any) -> Array:
    return np.asarray(x, np.float32)


class Float32(Domain):
    """Elements: float32. Unwritten numbers are NaN."""

    def constant(self, x: float) -> Array:
        return _f32(x)

    def integers(self, x: Array) -> Array:
        return _f32(x)

    def empty(self, size: int) -> Array:
        return np.full(size, np.nan, np.float32)

    def add(self, a: Array, b: Array) -> Array:
        return _f32(a + b)

    def subtract(self, a: Array, b: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return _f32(a - b)

    def multiply(self, a: Array, b: Array) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            return _f32(a * b)

    def divide(self, a: Array, b: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return _f32(a / b)

    def maximum(self, a: Array, b: Array) -> Array:
        return _f32(np.fmax(a, b))

    def absolute(self, a: Array) -> Array:
        return _f32(np.abs(a))

    def exp2(self, a: Array) -> Array:
        with np.errstate(over="ignore"):
            return _f32(np.exp2(a))

    def log2(self, a: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return _f32(np.log2(a))

    def compare(self, predicate: str, a: Array, b: Array) -> Array:
        no_number = np.isnan(a) | np.isnan(b)
        if predicate in ("ord", "uno"):
            return np.asarray(no_number == (predicate == "uno"))
        if predicate[1:] == "ne":
            found = np.not_equal(a, b) & ~no_number
        else:
            found = _PREDICATES[predicate[1:]](a, b)
        return np.asarray(found | no_number if predicate[0] == "u" else found)

    def sum(self, a: Array, axis: int) -> Array:
        return _f32(np.sum(a, axis=axis, dtype=np.float32))

    def largest(self, a: Array, axis: int) -> Array:
        return _f32(np.fmax.reduce(a, axis=axis))

    def dot(self, a: Array, b: Array, c: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return _f32(a @ b + c)

    def at_most_zero(self, a: Array) -> Array:
        return np.asarray(~(a > 0))

    def equal(self, a: Array, b: Array) -> Array:
        return np.asarray(a == b)

    def text(self, a: Array) -> str:
        return str(a[()])
