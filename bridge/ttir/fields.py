"""Random evidence at real sizes: values in one prime field, exponents in another.

A number has a value in F_P and a value as an exponent in F_Q, where Q divides P − 1: 2^x is g^x for
a g of order Q, so exp2 turns sums into products. Every input is drawn at random; two kernels that
compute one function of the inputs agree always, and others agree by chance. The idea is that of
Mirage (arXiv 2405.05751, section 5), with maxima added: of a set of numbers it is a number that a
hash draws from the set, since in softmax it does not matter which reference point is subtracted.
So is that of logarithms, of a sum and its exponent.

How likely a wrong output goes unseen. Fix one output of a kernel that differs from attention, as a
function of the inputs, and let w_j = 2^(s_j) be the weights of the keys. If the exponents that
occur are scores, differences of scores and maxima, then output − attention, multiplied by the
denominators, is a polynomial f in the values v, the weights w and the weights of maxima, not zero.
For scores scale·⟨q, k_j⟩ with scale ≠ 0 and q ≠ 0 the s_j are independent and uniform in F_Q, since
the k_j are, and so w_j is uniform among the Q powers of g; values are uniform in F_P and
independent of these, since they are another component of the draw; a maximum's hash counts as a
uniform number of its own. By the lemma of Schwartz and Zippel f is 0 with probability at most
deg f / Q: with denominators of degree 1 and the weights of t maxima in the numerator deg f ≤ t + 3.
So the probability is at most (t + 4)/Q for one output, 1/Q of which is for q = 0 or scale = 0;
Q > 2^26, t is the number of tiles of keys: below 2·10⁻⁷ for 8 tiles. A second run with other inputs
squares it. It is a bound for the hash as a random function, and for kernels whose exponents are as
said: for others, such as one that scales twice, it is a heuristic.

Not seen: anything that is no function of values and exponents, such as overflow and rounding. There
is no order: the machine's check of exp2's argument does not take place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bridge.ttir.domain import LN2, LOG2E, Array, Domain
from bridge.ttir.faults import Undecided


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % k for k in range(2, math.isqrt(n) + 1))


# The largest Q below 2²⁷ for which P = 2Q + 1 is prime too.
Q = next(q for q in range(2**27 - 1, 2**26, -2) if _is_prime(q) and _is_prime(2 * q + 1))
P = 2 * Q + 1
# A square that is not 1 has order Q.
_G = 4
_HALF = 14
_LOW = np.array([pow(_G, k, P) for k in range(1 << _HALF)], np.int64)
_HIGH = np.array([pow(_G, k << _HALF, P) for k in range(1 << (27 - _HALF))], np.int64)
_LN2_VALUE, _LN2_EXPONENT = 12345677, 7654321
_NUMBER, _MINUS_INFINITY, _INFINITY, _NAN, _UNWRITTEN = range(5)


_OPPOSITE = np.array([_NUMBER, _INFINITY, _MINUS_INFINITY, _NAN, _UNWRITTEN], np.int8)


class Residues(NamedTuple):
    """A tile: value in F_P, exponent in F_Q, and kind: 0 a number, 1 −∞, 2 ∞, 3 NaN, 4 not written.

    ratio: None, or a further summand unit·log₂ ratio of the number as an exponent, ratio in F_P: a
    logarithm. It counts nothing as a value.
    """

    value: Array
    exponent: Array
    kind: Array
    ratio: Array | None = None
    unit: int = 1


def _tile(value: Any, exponent: Any, kind: Any = _NUMBER) -> Residues:
    shape = np.broadcast_shapes(np.shape(value), np.shape(exponent), np.shape(kind))
    return Residues(
        np.broadcast_to(np.asarray(value, np.int64), shape),
        np.broadcast_to(np.asarray(exponent, np.int64), shape),
        np.broadcast_to(np.asarray(kind, np.int8), shape),
    )


def _mix(x: Array) -> Array:
    """A hash of exponents or values (splitmix64), modulo 2⁶⁴."""
    with np.errstate(over="ignore"):
        z = (x.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) % np.uint64(Q)).astype(np.int64)


def _powers(exponent: Array) -> Array:
    """g to these exponents."""
    low = _LOW[exponent & ((1 << _HALF) - 1)]
    return np.asarray(low * _HIGH[exponent >> _HALF] % P)


def _power(base: Array, power: int, modulus: int) -> Array:
    """Elements to a power, modulo a number below 2³¹."""
    found = np.ones_like(base)
    while power:
        if power & 1:
            found = found * base % modulus
        base = base * base % modulus
        power >>= 1
    return found


def _inverse(x: Array) -> Array:
    """1/x in F_P; 0 of 0."""
    return _power(x, P - 2, P)


def _matmul(a: Array, b: Array, modulus: int) -> Array:
    """a @ b modulo a number below 2²⁸, by products of floats that are exact: 28 bits by 14, and
    sums of 2¹¹ of them, are below 2⁵³."""
    found: Any = 0
    for i in range(0, a.shape[1], 1 << 11):
        left, right = a[:, i : i + (1 << 11)].astype(np.float64), b[i : i + (1 << 11)]
        high = (left @ (right >> _HALF).astype(np.float64)).astype(np.int64) % modulus
        low = (left @ (right & ((1 << _HALF) - 1)).astype(np.float64)).astype(np.int64)
        found = (found + (high << _HALF) + low) % modulus
    return np.asarray(found, np.int64) if a.shape[1] else np.zeros((len(a), b.shape[1]), np.int64)


def _is_plain(tile: Residues) -> bool:
    """Whether no element is a logarithm."""
    return tile.ratio is None or bool((tile.ratio == 1).all())


class FieldDomain(Domain):
    """Tiles are `Residues`. Comparisons are for equality alone."""

    def draw(self, shape: tuple[int, ...], random: np.random.Generator) -> Residues:
        """Random numbers: values and exponents uniform and independent."""
        return _tile(random.integers(0, P, shape), random.integers(0, Q, shape))

    def constant(self, x: float) -> Residues:
        if x == LN2:
            return _tile(_LN2_VALUE, _LN2_EXPONENT)
        if x == LOG2E:
            return _tile(pow(_LN2_VALUE, -1, P), pow(_LN2_EXPONENT, -1, Q))
        if not math.isfinite(x):
            kinds = {math.inf: _INFINITY, -math.inf: _MINUS_INFINITY}
            return _tile(0, 0, kinds.get(x, _NAN))
        top, bottom = x.as_integer_ratio()
        return _tile(top * pow(bottom, -1, P) % P, top * pow(bottom, -1, Q) % Q)

    def integers(self, x: Array) -> Residues:
        return _tile(x % P, x % Q)

    def empty(self, size: int) -> Residues:
        zeros = np.zeros(size, np.int64)
        return Residues(
            zeros, zeros.copy(), np.full(size, _UNWRITTEN, np.int8), np.ones(size, np.int64)
        )

    def each(self, f: Callable[..., Any], *tiles: Residues) -> Residues:
        parts = [f(*(tile[i] for tile in tiles)) for i in range(3)]
        ratio, unit = None, 1
        with_ratio = [tile for tile in tiles if tile.ratio is not None]
        if with_ratio:
            unit = with_ratio[0].unit
            for tile in with_ratio[1:]:
                if tile.unit != unit:
                    unit = self._units(with_ratio)
            ratio = f(*(np.ones_like(t.value) if t.ratio is None else t.ratio for t in tiles))
        return Residues(parts[0], parts[1], parts[2], ratio, unit)

    def add(self, a: Residues, b: Residues) -> Residues:
        kind = np.maximum(a.kind, b.kind)
        if kind.any():
            opposite = (kind == _INFINITY) & (np.minimum(a.kind, b.kind) == _MINUS_INFINITY)
            kind = np.where(opposite, np.int8(_NAN), kind)
        value = (a.value + b.value) % P
        exponent = (a.exponent + b.exponent) % Q
        if a.ratio is not None and b.ratio is not None:
            return Residues(value, exponent, kind, a.ratio * b.ratio % P, self._units([a, b]))
        one = a if b.ratio is None else b
        if one.ratio is None:
            return Residues(value, exponent, kind)
        return Residues(value, exponent, kind, np.broadcast_to(one.ratio, value.shape), one.unit)

    def subtract(self, a: Residues, b: Residues) -> Residues:
        return self.add(a, self.negate(b))

    def negate(self, a: Residues) -> Residues:
        kind = _OPPOSITE[a.kind]
        ratio = None if a.ratio is None else _inverse(np.asarray(a.ratio))
        return Residues(-a.value % P, -a.exponent % Q, kind, ratio, a.unit)

    def multiply(self, a: Residues, b: Residues) -> Residues:
        """∞ times a number, of which no sign is known, is taken as if the number were positive."""
        value, exponent = a.value * b.value % P, a.exponent * b.exponent % Q
        kind = np.maximum(a.kind, b.kind)
        a, b = (x._replace(ratio=None) if _is_plain(x) else x for x in (a, b))
        if a.ratio is None and b.ratio is None:
            return Residues(value, exponent, kind)
        if a.ratio is None:
            a, b = b, a
        factors: Array = np.unique(b.exponent)
        if b.ratio is not None or len(factors) != 1 or a.ratio is None:
            raise Undecided("a logarithm times something other than a constant")
        ratio = np.broadcast_to(a.ratio, value.shape)
        return Residues(value, exponent, kind, ratio, a.unit * int(factors.item()) % Q)

    def divide(self, a: Residues, b: Residues) -> Residues:
        kind = np.where(b.value == 0, np.int8(_NAN), np.maximum(a.kind, b.kind))
        value = a.value * _inverse(b.value) % P
        exponent = a.exponent * _power(b.exponent, Q - 2, Q) % Q
        return Residues(value, np.asarray(exponent), kind)

    def maximum(self, a: Residues, b: Residues) -> Residues:
        ratios = [np.ones_like(x.value) if x.ratio is None else x.ratio for x in (a, b)]
        of_logs = not (_is_plain(a) and _is_plain(b))
        hashes = [_mix(x.exponent) for x in (a, b)]
        if of_logs:
            hashes = [_mix((h + _mix(r)) % Q) for h, r in zip(hashes, ratios, strict=True)]
        drawn = sum(hashes) % Q
        same = (a.exponent == b.exponent) & (a.kind == b.kind) & (ratios[0] == ratios[1])

        def choose(x: Array, y: Array, other: Any) -> Array:
            return np.where(b.kind > 0, x, np.where(a.kind > 0, y, np.where(same, x, other)))

        value, exponent = choose(a.value, b.value, drawn), choose(a.exponent, b.exponent, drawn)
        ratio = choose(ratios[0], ratios[1], 1) if of_logs else None
        if (np.maximum(a.kind, b.kind) == _INFINITY).any():
            raise Undecided("a maximum with ∞")
        # A number and −∞ give the number, a number and NaN too; −∞ and NaN give −∞.
        unit = self._units([a, b]) if of_logs else 1
        return Residues(value, exponent, np.minimum(a.kind, b.kind), ratio, unit)

    def absolute(self, a: Residues) -> Residues:
        raise Undecided("the absolute value of a number that may have either sign")

    def exp2(self, a: Residues) -> Residues:
        if ((a.kind == _INFINITY) | (a.kind == _UNWRITTEN)).any():
            raise Undecided("2 to the power of ∞, or of a value that was never written")
        if a.ratio is not None and a.unit != 1 and (a.ratio != 1).any():
            raise Undecided("2 to the power of a logarithm to another base")
        value = _powers(a.exponent)
        if a.ratio is not None:
            value = value * a.ratio % P
        value = np.where(a.kind == _MINUS_INFINITY, 0, value)
        # As an exponent it is a number of its own.
        exponent = np.where(a.kind == _MINUS_INFINITY, 0, _mix(value))
        return _tile(value, exponent, np.where(a.kind == _NAN, np.int8(_NAN), np.int8(_NUMBER)))

    def log2(self, a: Residues) -> Residues:
        zero = np.zeros_like(a.value)
        kind = np.where(a.value == 0, np.int8(_MINUS_INFINITY), a.kind)
        return Residues(_mix(a.value), zero, kind, np.where(a.value == 0, 1, a.value), 1)

    def compare(self, predicate: str, a: Residues, b: Residues) -> Array:
        if not ((a.kind > 0).all() or (b.kind > 0).all()):
            # With ∞ a logarithm is compared by its kind alone.
            self._plain(a, b)
        nan = (a.kind >= _NAN) | (b.kind >= _NAN)
        equal = (a.kind == b.kind) & ((a.kind > 0) | (a.value == b.value))
        if predicate[1:] in ("eq", "ne"):
            holds = equal == (predicate[1:] == "eq")
            return np.asarray(np.where(nan, predicate[0] == "u", holds))
        raise Undecided(f"the order of two numbers ({predicate})")

    def sum(self, a: Residues, axis: int) -> Residues:
        self._plain(a)
        return Residues(a.value.sum(axis) % P, a.exponent.sum(axis) % Q, a.kind.max(axis))

    def largest(self, a: Residues, axis: int) -> Residues:
        self._plain(a)
        if ((a.kind == _INFINITY) | (a.kind == _UNWRITTEN)).any():
            raise Undecided("a maximum with ∞, or with a value that was never written")
        is_number = a.kind == _NUMBER
        count = is_number.sum(axis)
        drawn = np.where(is_number, _mix(a.exponent), 0).sum(axis) % Q
        one, lone = (np.where(is_number, x, 0).sum(axis) for x in (a.value, a.exponent))
        value, exponent = np.where(count == 1, one, drawn), np.where(count == 1, lone, drawn)
        # NaN counts only where there is nothing else.
        kind = np.where(count == 0, a.kind.min(axis), np.int8(_NUMBER))
        return _tile(np.where(count == 0, 0, value), np.where(count == 0, 0, exponent), kind)

    def dot(self, a: Residues, b: Residues, c: Residues) -> Residues:
        self._plain(a, b)
        special = np.logical_or.outer(np.any(a.kind > 0, 1), np.any(b.kind > 0, 0))
        product = Residues(
            _matmul(a.value, b.value, P),
            _matmul(a.exponent, b.exponent, Q),
            np.where(special, np.int8(_NAN), np.int8(_NUMBER)),
        )
        return self.add(product, c)

    def at_most_zero(self, a: Residues) -> Array | None:
        return None

    def equal(self, a: Residues, b: Residues) -> Array:
        same = (a.kind == b.kind) & ((a.kind > 0) | (a.value == b.value))
        return np.asarray(same & (a.kind < _NAN), bool)

    def text(self, a: Residues) -> str:
        kinds = {_MINUS_INFINITY: "−∞", _INFINITY: "∞", _NAN: "NaN", _UNWRITTEN: "not written"}
        return kinds.get(int(a.kind), f"{int(a.value)} in F_P, {int(a.exponent)} in F_Q")

    def _units(self, tiles: list[Residues]) -> int:
        """The one unit of several logarithms."""
        units = {
            tile.unit
            for tile in tiles
            if tile.ratio is not None and (np.asarray(tile.ratio) != 1).any()
        }
        if len(units) > 1:
            raise Undecided("logarithms to two bases in one tile")
        return units.pop() if units else 1

    def _plain(self, *tiles: Residues) -> None:
        if not all(map(_is_plain, tiles)):
            raise Undecided("an operation on logarithms that is not a sum")
