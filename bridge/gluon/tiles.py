"""Values of a kernel: tiles of numbers, and integers that are known when it runs.

Numbers with a fraction are those of the program's domain, which must hold a tile in one array;
integers and truth values are NumPy's. Integers have as many bits as they need. Layouts are not
simulated: each value says that it has one, which is nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from bridge.gluon.faults import Fault, line
from bridge.gluon.program import here
from bridge.gluon.rounded import FLOAT32, INT1, INT32, INT64, DType, round_to
from bridge.ttir.domain import Array, Numbers

Value = Any
_UNBOUND = SimpleNamespace(layout=None)


def _toward_zero(a: Any, b: Any) -> Any:
    """The quotient of integers as C has it."""
    quotient = np.abs(a) // np.abs(b)
    return np.where((np.asarray(a) < 0) != (np.asarray(b) < 0), -quotient, quotient)


def _remainder(a: Any, b: Any) -> Any:
    return a - b * _toward_zero(a, b)


class Int(int):
    """An integer that is known when the kernel runs: its quotients are rounded toward zero, as
    those of Triton's scalars, not downwards as those of Python's integers."""

    dtype = INT32

    def to(self, dtype: DType) -> Int | Tile:
        return tile_of(self).to(dtype) if dtype.is_floating() else self


def _of_int(name: str, f: Callable[[Any, Any], Any]) -> None:
    def method(self: Int, other: Any) -> Any:
        if not isinstance(other, int | np.integer):
            return NotImplemented
        found = f(int(self), int(other))
        return bool(found) if isinstance(found, bool | np.bool_) else Int(found)

    def reflected_method(self: Int, other: Any) -> Any:
        return Int(f(int(other), int(self))) if isinstance(other, int) else NotImplemented

    setattr(Int, f"__{name}__", method)
    setattr(Int, f"__r{name}__", reflected_method)


class Tile:
    """Numbers of a dtype. type: as in Triton, something that has a layout."""

    type = _UNBOUND
    # NumPy's arrays leave operations to this class.
    __array_ufunc__ = None

    def __init__(self, dtype: DType, numbers: Numbers) -> None:
        self.dtype, self._numbers = dtype, numbers

    @property
    def numbers(self) -> Numbers:
        return self._numbers

    @property
    def shape(self) -> list[int]:
        return list(self.numbers.shape)

    def __bool__(self) -> bool:
        if self.numbers.ndim or self.dtype.is_floating():
            raise Fault("shape", f"a condition at {line()} is a tile of {self.shape}")
        return bool(self.numbers)

    def __getitem__(self, key: Any) -> Tile:
        key = key if isinstance(key, tuple) else (key,)
        if any(part is not None and part != slice(None) for part in key):
            raise NotImplementedError(f"tiles are indexed by None and : alone, not {key}")
        return Tile(self.dtype, here().domain.each(lambda x: x[key], self.numbers))

    def to(self, dtype: DType) -> Tile:
        domain = here().domain
        if dtype.is_floating():
            numbers = self.numbers
            if not self.dtype.is_floating():
                numbers = domain.integers(np.asarray(numbers, np.int64))
            return Tile(dtype, round_to(domain, numbers, dtype))
        if self.dtype.is_floating():
            raise NotImplementedError(f"a conversion from {self.dtype.name} to {dtype.name}")
        return Tile(dtype, self.numbers.astype(bool if dtype is INT1 else np.int64))

    def reshape(self, shape: Any) -> Tile:
        return Tile(self.dtype, here().domain.each(lambda x: x.reshape(shape), self.numbers))

    def permute(self, order: Any) -> Tile:
        return Tile(self.dtype, here().domain.each(lambda x: x.transpose(order), self.numbers))

    def __neg__(self) -> Tile:
        if self.dtype.is_floating():
            return Tile(self.dtype, here().domain.negate(self.numbers))
        return Tile(self.dtype, -self.numbers)

    def __invert__(self) -> Tile:
        return Tile(self.dtype, ~self.numbers)


def tile_of(x: Value, like: DType = FLOAT32) -> Tile:
    """A number as a tile; one with a fraction of dtype `like`."""
    if isinstance(x, Tile):
        return x
    if isinstance(x, bool | np.bool_):
        return Tile(INT1, np.asarray(bool(x)))
    if isinstance(x, int):
        return Tile(INT32 if -(2**31) <= x < 2**31 else INT64, np.asarray(int(x)))
    if isinstance(x, float | Fraction):
        return Tile(like, here().domain.literal(float(np.float32(x))))
    raise NotImplementedError(f"{line()} computes with {type(x).__name__}")


def together(a: Value, b: Value) -> tuple[Tile, Tile]:
    """Two values of one dtype: the wider of theirs; a number in the text has the other's."""
    like = next((x.dtype for x in (a, b) if isinstance(x, Tile) and x.dtype.is_floating()), FLOAT32)
    a, b = tile_of(a, like), tile_of(b, like)
    floats = [x.dtype for x in (a, b) if x.dtype.is_floating()]
    if floats:
        dtype = max(floats, key=lambda x: x.primitive_bitwidth)
        a, b = (x if x.dtype is dtype else x.to(dtype) for x in (a, b))
    return a, b


def _arithmetic(name: str, of_floats: str | None, of_integers: Callable[[Any, Any], Any]) -> None:
    def compute(a: Value, b: Value) -> Tile:
        a, b = together(a, b)
        if not a.dtype.is_floating():
            found = np.asarray(of_integers(a.numbers, b.numbers))
            wide = max((a.dtype, b.dtype), key=lambda x: x.primitive_bitwidth)
            return Tile(INT1 if found.dtype == bool else wide, found)
        if of_floats is None:
            raise NotImplementedError(f"{name} of {a.dtype.name}")
        domain = here().domain
        found = getattr(domain, of_floats)(a.numbers, b.numbers)
        return Tile(a.dtype, round_to(domain, found, a.dtype))

    setattr(Tile, f"__{name}__", lambda self, other: compute(self, other))
    setattr(Tile, f"__r{name}__", lambda self, other: compute(other, self))


def _comparison(name: str, of_floats: str, of_integers: Callable[[Any, Any], Any]) -> None:
    def compare(self: Tile, other: Value) -> Tile:
        a, b = together(self, other)
        if a.dtype.is_floating():
            return Tile(INT1, here().domain.compare(of_floats, a.numbers, b.numbers))
        return Tile(INT1, np.asarray(of_integers(a.numbers, b.numbers)))

    setattr(Tile, f"__{name}__", compare)


for _name, _floats, _f in (
    ("add", "add", operator.add), ("sub", "subtract", operator.sub),
    ("mul", "multiply", operator.mul), ("truediv", "divide", operator.truediv),
    ("floordiv", None, _toward_zero), ("mod", None, _remainder), ("and", None, operator.and_),
    ("or", None, operator.or_), ("xor", None, operator.xor), ("lshift", None, operator.lshift),
    ("rshift", None, operator.rshift),
):  # fmt: skip
    _arithmetic(_name, _floats, _f)
    if _name != "truediv":
        _of_int(_name, _f)
for _name, _floats, _f in (
    ("lt", "olt", operator.lt), ("le", "ole", operator.le), ("gt", "ogt", operator.gt),
    ("ge", "oge", operator.ge), ("eq", "oeq", operator.eq), ("ne", "une", operator.ne),
):  # fmt: skip
    _comparison(_name, _floats, _f)


def choose(condition: Value, a: Value, b: Value) -> Value:
    """`a` where the condition holds, else `b`; of integers and a truth value an integer."""
    scalars = all(isinstance(x, int | np.integer) for x in (a, b))
    if scalars and isinstance(condition, bool | int):
        return Int(a if condition else b)
    a, b = together(a, b)
    where = tile_of(condition).numbers
    return Tile(
        a.dtype, here().domain.each(lambda x, y: np.where(where, x, y), a.numbers, b.numbers)
    )


def extreme(a: Value, b: Value, largest: bool) -> Value:
    """The larger or the smaller of two values, element by element."""
    if all(isinstance(x, int) for x in (a, b)):
        return Int(max(a, b) if largest else min(a, b))
    a, b = together(a, b)
    if a.dtype.is_floating():
        domain = here().domain
        f = domain.maximum if largest else domain.minimum
        return Tile(a.dtype, f(a.numbers, b.numbers))
    return Tile(a.dtype, (np.maximum if largest else np.minimum)(a.numbers, b.numbers))


def full(shape: Any, value: Value, dtype: DType) -> Tile:
    """A tile of one number."""
    one = tile_of(value).to(dtype)
    sizes = [int(size) for size in shape]
    return Tile(dtype, here().domain.each(lambda x: np.broadcast_to(x, sizes), one.numbers))


def flat_integers(x: Value) -> Array:
    """An integer or a tile of them, as an array."""
    return np.asarray(tile_of(x).numbers, np.int64)
