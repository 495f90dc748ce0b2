"""Bounds of attention under the natural exponential, for inputs that no file has: by the
translation of the Spec, over that of the intervals around numbers with no exact value.

They are the bounds that Lean gives for the same inputs, bit by bit; tests compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.spec import backward_heads, score_mods, slopes
from bridge.spec import interval as intervals
from bridge.spec.attention import ScoredValue, attend, scored
from bridge.spec.core import Arithmetic
from bridge.spec.interval import Interval, IntervalBetween
from bridge.spec.sink import with_sink
from bridge.spec.softmax import denominator
from bridge.vectors.model.attention import BOUNDS_UNIT, AttentionVector, EnclosedRow, Exact
from bridge.vectors.model.by_spec import Integers, largest_of, spec_changes
from bridge.vectors.model.gradients import Gradients, GradientVector

# The precisions of Attention/Vectors/Natural.lean: `working`, and that of the written bounds.
_PRECISION = 384
_UNIT = (1 << _PRECISION) // BOUNDS_UNIT
# Weights of `integer_enclosed_rows` are integers over 2^144, in limbs of 24 bits, of which sums of
# int64 have 2^38 at most.
_WEIGHT, _LIMB, _MOST = 144, 24, 1 << 38


class NoBoundsError(ValueError):
    """The precision does not suffice for a bound: a score too far above or below 0."""


@dataclass(frozen=True)
class Number:
    """A number that is known by an interval. Its operations are the instances of
    `Attention.Model.Interval`."""

    interval: Interval

    def __add__(self, other: Number) -> Number:
        return Number(intervals.interval_add(self.interval, other.interval))

    def __neg__(self) -> Number:
        return Number(intervals.interval_neg(self.interval))

    def __sub__(self, other: Number) -> Number:
        return self + -other

    def __mul__(self, other: Number) -> Number:
        return Number(intervals.interval_mul(self.interval, other.interval, p=_PRECISION))

    def __truediv__(self, other: Number) -> Number:
        return Number(intervals.interval_div(self.interval, other.interval, p=_PRECISION))

    @property
    def bounds(self) -> tuple[int, int]:
        """The bounds as integers over 2^128, rounded outward. Raises NoBoundsError where there are
        none."""
        if not isinstance(self.interval, IntervalBetween):
            raise NoBoundsError("the precision does not suffice for a bound")
        lo, hi = self.interval.lo, self.interval.hi
        return lo // _UNIT, intervals.interval_ceil_div(hi, _UNIT)


def _exp(x: Number) -> Number:
    return Number(intervals.interval_exponential(x.interval, p=_PRECISION))


def _number(x: Exact) -> Number:
    """A dyadic number."""
    x = Fraction(x)
    exponent = x.denominator.bit_length() - 1
    return Number(intervals.interval_of_dyadic(x.numerator, exponent, p=_PRECISION))


_INTERVALS = Arithmetic(_exp, _number, _number)


def enclosed_rows(vector: AttentionVector) -> tuple[EnclosedRow, ...]:
    """The rows of a vector of the natural model, some 0.3 ms for each query and key, and more with
    a softcap. Raises ValueError for one with dropout or another model, and NoBoundsError."""
    if vector.model != "natural" or vector.dropout is not None:
        raise ValueError(f"{vector.id}: a vector of the natural model without dropout is accepted")
    size, keys = vector.head_dim, list(range(vector.kv_len))
    scale, modify = _scale(vector), spec_changes(vector, _number, _INTERVALS)
    q, k, v = map(_numbers, (vector.q, vector.k, vector.v))
    found = []
    for i in range(vector.q_len):
        row = scored(scale, modify, q, k, v, i, keys, d=size, num=_INTERVALS)
        if vector.sink is not None:
            row = with_sink(_number(vector.sink), row, d=vector.value_dim, num=_INTERVALS)
        found.append(_row(row, vector.value_dim))
    return tuple(found)


def enclosed_gradients(vector: GradientVector) -> tuple[Gradients, Gradients]:
    """Lower and upper bounds of all gradients of a vector of the natural model, some milliseconds
    for each query and key, as `Attention/Vectors/NaturalGradient.lean` has them. Raises ValueError
    for one with slopes, sinks or a bias that heads or queries share, and NoBoundsError."""
    more = vector.options - {"softcap", "bias"}
    if vector.model != "natural" or more or vector.shares_bias:
        raise ValueError(f"{vector.id}: a softcap and a bias of each head alone are accepted")
    heads = vector.attentions()
    modify = [spec_changes(head, _number, _INTERVALS) for head in heads]
    slope = slopes.score_slope_one(num=_INTERVALS)
    if vector.softcap is not None:
        slope = slopes.score_slope_softcap(_number(vector.softcap), num=_INTERVALS)
    q, k, v, by_output = (
        [_numbers(head) for head in part]
        for part in (vector.q, vector.k, vector.v, vector.grad_output)
    )
    found = backward_heads.grouped_query_vjp(
        _scale(heads[0]), lambda h, i, j, s: modify[h](i, j, s), lambda _, i, j, s: slope(i, j, s),
        q, k, v, lambda x: x, by_output, _numbers(vector.grad_log_sum_exp),
        q_len=vector.q_len, kv_len=vector.kv_len, d=vector.head_dim, d_v=vector.value_dim,
        num_kv_heads=vector.num_kv_heads, group=vector.num_heads // vector.num_kv_heads,
        num=_INTERVALS,
    )  # fmt: skip

    def of(side: int) -> Gradients:
        q, k, v, bias = (
            tuple(_side(matrix, side) for matrix in part)
            for part in (found.dQ, found.dK, found.dV, found.dBias)
        )
        return Gradients(q, k, v, bias)

    return of(0), of(1)


def _side(matrix: Sequence[Sequence[Number]], side: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(x.bounds[side] for x in row) for row in matrix)


def _scale(vector: AttentionVector) -> Number:
    if vector.scale is None:
        return Number(intervals.interval_inv_sqrt(vector.head_dim, p=_PRECISION))
    return _number(vector.scale)


def _numbers(rows: Sequence[Sequence[Exact]]) -> list[list[Number]]:
    return [[_number(x) for x in row] for row in rows]


def _row(row: list[ScoredValue], value_dim: int) -> EnclosedRow:
    """The row's result, as `enclosedRow` of Attention/Vectors/Natural.lean makes it."""
    scores = [one.score for one in row]
    pairs = [x.bounds for x in attend(row, d_v=value_dim, num=_INTERVALS)]
    lse = None
    if any(score is not None for score in scores):
        total = denominator(scores, num=_INTERVALS)
        lse = Number(intervals.interval_log(total.interval, p=_PRECISION)).bounds
    return EnclosedRow(tuple(lo for lo, _ in pairs), tuple(hi for _, hi in pairs), lse)


def integer_enclosed_rows(
    q: Integers,
    k: Integers,
    v: Integers,
    seen: NDArray[np.bool_],
    *,
    softcap: Exact | None = None,
    added: Sequence[Sequence[Exact | None]] | None = None,
    sink: Exact | None = None,
) -> tuple[EnclosedRow, ...]:
    """Bounds of the rows for the default scale 1/√head_dim, from integers, for real sizes. q:
    [rows, head_dim]; k: [kv_len, head_dim]; v: [kv_len, value_dim]; seen: [rows, kv_len], which
    keys each query may attend to; softcap, then added: [rows, kv_len], the changes of a score;
    sink: one more score of each row. The added numbers are dyadic.

    The values of keys with one score are added up before they are weighted, each weight is the
    exponential of the score less one near the row's largest, and all sums are of integers, by those
    bounds of each weight that the intervals of `enclosed_rows` give. Raises ValueError for numbers
    that int64 might not hold, and NoBoundsError.
    """
    reach = largest_of(q) * largest_of(k) * q.shape[1]
    if reach >= _MOST or largest_of(v) * len(v) >= _MOST:
        raise ValueError("these numbers are too large for sums of 64 bits")
    scores = _Scores(Number(intervals.interval_inv_sqrt(q.shape[1], p=_PRECISION)), softcap)
    found = []
    for i, (line, visible) in enumerate(zip(q @ k.T, seen, strict=True)):
        places = np.flatnonzero(visible)
        more = None
        if added is not None:
            more = [Fraction(added[i][j] or 0) for j in places.tolist()]
        found.append(_integer_row(line[places], more, v[places], scores, sink))
    return tuple(found)


class _Scores:
    """Scores of integers, and exponentials, each computed once. Those that are added have
    exponentials of their own, by which a weight is multiplied."""

    def __init__(self, scale: Number, softcap: Exact | None) -> None:
        self.scale = scale
        self.cap = None if softcap is None else _number(softcap)
        self._changed: dict[int, Number] = {}
        self._exponentials: dict[tuple[int, int], Number] = {}
        self._of_added: dict[Fraction, Number] = {}

    def change(self, product: int) -> Number:
        """scale·product, capped."""
        if product not in self._changed:
            score: Any = self.scale * _number(product)
            if self.cap is not None:
                cap = score_mods.score_mod_softcap(self.cap, num=_INTERVALS)
                score = cap(0, 0, score)
            self._changed[product] = score
        return self._changed[product]

    def weight(self, product: int, above: int, added: Fraction) -> tuple[int, int]:
        """Bounds of exp (changed product − changed above + added), integers over 2^144."""
        # Without a cap the difference decides, for all rows.
        key = (product - above, 0) if self.cap is None else (product, above)
        if key not in self._exponentials:
            difference = (
                self.scale * _number(product - above)
                if self.cap is None
                else self.change(product) - self.change(above)
            )
            self._exponentials[key] = _exp(difference)
        return _bounds_of_weight(self._exponentials[key], self._of(added))

    def weight_alone(self, score: Exact, above: int, added: Fraction) -> tuple[int, int]:
        """The bounds of exp (score − changed above + added)."""
        return _bounds_of_weight(_exp(_number(score) - self.change(above)), self._of(added))

    def _of(self, added: Fraction) -> Number | None:
        if not added:
            return None
        if added not in self._of_added:
            self._of_added[added] = _exp(_number(added))
        return self._of_added[added]


def _bounds_of_weight(weight: Number, factor: Number | None) -> tuple[int, int]:
    found = (weight if factor is None else weight * factor).interval
    if not isinstance(found, IntervalBetween):
        raise NoBoundsError("the precision does not suffice for a bound")
    unit = 1 << (_PRECISION - _WEIGHT)
    return max(found.lo, 0) // unit, intervals.interval_ceil_div(found.hi, unit)


def _integer_row(
    products: Integers,
    added: Sequence[Fraction] | None,
    values: Integers,
    scores: _Scores,
    sink: Exact | None,
) -> EnclosedRow:
    """products, added: [n]; values: [n, value_dim], of the keys that are seen."""
    if not len(products):
        zeros = (0,) * values.shape[1]
        return EnclosedRow(zeros, zeros, None if sink is None else _number(sink).bounds)
    order, first, different = _classes(products, added)
    counts = np.diff(np.append(first, len(products)))
    sums = np.add.reduceat(values[order], first, axis=0)
    # Any of the scores will do, as long as no weight is far above 1.
    above, most = max(different, key=lambda pair: _about(scores.change(pair[0])) + float(pair[1]))
    pairs = [scores.weight(product, above, more - most) for product, more in different]
    if sink is not None:
        pairs.append(scores.weight_alone(sink, above, -most))
        sums = np.vstack((sums, np.zeros_like(sums[:1])))
        counts = np.append(counts, 1)
    lower, upper = (_limbs(bounds) for bounds in zip(*pairs, strict=True))
    positive, negative = np.maximum(sums, 0), np.maximum(-sums, 0)
    totals = [_weighted_sums(bounds, counts[:, None])[0] for bounds in (lower, upper)]
    total = Number(IntervalBetween(*(x << (_PRECISION - _WEIGHT) for x in totals)))
    rows = (
        [
            a - b
            for a, b in zip(
                _weighted_sums(one, positive), _weighted_sums(other, negative), strict=True
            )
        ]
        for one, other in ((lower, upper), (upper, lower))
    )
    found = [_quotient(lo, hi, totals) for lo, hi in zip(*rows, strict=True)]
    log = Number(intervals.interval_log(total.interval, p=_PRECISION))
    lse = (log + scores.change(above) + _number(most)).bounds
    return EnclosedRow(tuple(lo for lo, _ in found), tuple(hi for _, hi in found), lse)


def _classes(
    products: Integers, added: Sequence[Fraction] | None
) -> tuple[Integers, Integers, list[tuple[int, Fraction]]]:
    """An order in which keys with one score follow each other, where each score begins in it, and
    the scores, each by its product and the number added to it."""
    if added is None:
        order = np.argsort(products, kind="stable")
        each, first = np.unique(products[order], return_index=True)
        return order, first, [(int(product), Fraction(0)) for product in each]
    numbers: dict[tuple[int, Fraction], int] = {}
    pairs = zip(products.tolist(), added, strict=True)
    classes = np.array([numbers.setdefault(pair, len(numbers)) for pair in pairs])
    order = np.argsort(classes, kind="stable")
    _, first = np.unique(classes[order], return_index=True)
    return order, first, list(numbers)


def _about(x: Number) -> float:
    """A number near this."""
    return x.bounds[0] / BOUNDS_UNIT


def _limbs(numbers: Sequence[int]) -> Integers:
    """Non-negative integers by their limbs, the lowest first: [limbs, n]."""
    shifts = range(0, max(numbers).bit_length() + 1, _LIMB)
    mask = (1 << _LIMB) - 1
    return np.array([[x >> shift & mask for x in numbers] for shift in shifts], dtype=np.int64)


def _weighted_sums(limbs: Integers, sums: Integers) -> list[int]:
    """The sum of each column of the sums, [n, columns], weighted by integers in limbs."""
    columns = (limbs @ sums).T.tolist()
    return [sum(x << n * _LIMB for n, x in enumerate(column)) for column in columns]


def _quotient(lo: int, hi: int, totals: Sequence[int]) -> tuple[int, int]:
    """Bounds of a number between lo and hi by one between the positive totals, over 2^128."""
    least, most = totals
    lower = lo * BOUNDS_UNIT // (most if lo >= 0 else least)
    return lower, intervals.interval_ceil_div(hi * BOUNDS_UNIT, least if hi >= 0 else most)
