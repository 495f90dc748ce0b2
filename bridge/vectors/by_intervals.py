"""Bounds of attention under the natural exponential, for inputs that no file has: by the
translation of the Spec, over that of the intervals that enclose what cannot be computed exactly.

They are the bounds that Lean gives for the same inputs, bit by bit; tests compare them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from bridge.spec import interval as intervals
from bridge.spec import score_mods
from bridge.spec.attention import ScoredValue, ScoreMod, attend, mask_to_score_mod, scored
from bridge.spec.core import Arithmetic
from bridge.spec.interval import Interval, IntervalBetween
from bridge.spec.masks import Alignment
from bridge.spec.sink import with_sink
from bridge.spec.softmax import denominator
from bridge.vectors.by_spec import spec_mask
from bridge.vectors.model.attention import BOUNDS_UNIT, AttentionVector, EnclosedRow, Exact

# Those of Attention/Vectors/Natural.lean: `working`, and how much of it is written down.
_PRECISION = 384
_UNIT = (1 << _PRECISION) // BOUNDS_UNIT


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
        """As integers over 2^128, rounded outward. Raises NoBoundsError where there are none."""
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
    scale = (
        Number(intervals.interval_inv_sqrt(size, p=_PRECISION))
        if vector.scale is None
        else _number(vector.scale)
    )
    modify = _modify(vector)
    q, k, v = (
        [[_number(x) for x in row] for row in rows] for rows in (vector.q, vector.k, vector.v)
    )
    found = []
    for i in range(vector.q_len):
        row = scored(scale, modify, q, k, v, i, keys, d=size, num=_INTERVALS)
        if vector.sink is not None:
            row = with_sink(_number(vector.sink), row, d=vector.value_dim, num=_INTERVALS)
        found.append(_row(row, vector.value_dim))
    return tuple(found)


def _row(row: list[ScoredValue], value_dim: int) -> EnclosedRow:
    """What `enclosedRow` of Attention/Vectors/Natural.lean makes of it."""
    scores = [one.score for one in row]
    pairs = [x.bounds for x in attend(row, d_v=value_dim, num=_INTERVALS)]
    lse = None
    if any(score is not None for score in scores):
        total = denominator(scores, num=_INTERVALS)
        lse = Number(intervals.interval_log(total.interval, p=_PRECISION)).bounds
    return EnclosedRow(tuple(lo for lo, _ in pairs), tuple(hi for _, hi in pairs), lse)


def _modify(vector: AttentionVector) -> ScoreMod:
    """What becomes of a score: softcap, ALiBi, bias, mask, in this order."""
    steps: list[ScoreMod] = []
    sizes = {"q_len": vector.q_len, "kv_len": vector.kv_len}
    if vector.softcap is not None:
        steps.append(score_mods.score_mod_softcap(_number(vector.softcap), num=_INTERVALS))
    if vector.alibi is not None:
        alignment = Alignment.BOTTOM_RIGHT if vector.alibi.shift else Alignment.TOP_LEFT
        slope = _number(vector.alibi.slope)
        steps.append(score_mods.score_mod_alibi(alignment, slope, **sizes, num=_INTERVALS))
    if vector.bias is not None:
        rows = [[None if x is None else _number(x) for x in row] for row in vector.bias]
        steps.append(score_mods.score_mod_bias(rows))
    modify = mask_to_score_mod(spec_mask(vector.mask, **sizes))
    for step in reversed(steps):
        modify = score_mods.score_mod_and_then(step, modify)
    return modify
