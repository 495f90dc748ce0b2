"""Bounds that are computed here under the natural exponential: those that Lean gives."""

from __future__ import annotations

import functools
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import committed
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.spec import interval as intervals
from bridge.vectors.model.attention import AttentionVector, Mask
from bridge.vectors.model.by_intervals import NoBoundsError, enclosed_rows

# Queries times keys of the vectors that every run recomputes.
_SMALL = 40


@functools.cache
def shared_vectors() -> list[AttentionVector]:
    """The vectors of the files that fresh ones are like."""
    return [v for v in committed.vectors("attention") if v.model == "natural"]


def test_the_bounds_are_lean_s_bit_by_bit() -> None:
    small = [v for v in shared_vectors() if v.q_len * v.kv_len <= _SMALL]
    assert len(small) > 50
    assert {name for v in small for name in v.options} == {"softcap", "alibi", "bias", "sink"}
    assert {v.scale is None for v in small} == {True, False}
    assert [v.id for v in small if enclosed_rows(v) != v.expected] == []


@pytest.mark.thorough
def test_the_bounds_of_all_are() -> None:
    assert [v.id for v in shared_vectors() if enclosed_rows(v) != v.expected] == []


def test_an_option_that_is_left_out_shows() -> None:
    for option in ("softcap", "alibi", "bias", "sink"):
        vector = next(v for v in shared_vectors() if v.options == {option} and v.kv_len > 1)
        assert enclosed_rows(replace(vector, **{option: None})) != vector.expected


def test_what_has_no_bounds_is_refused() -> None:
    vector = next(v for v in shared_vectors() if v.id == "default-scale-000")
    one = {"q_len": 1, "kv_len": 1, "head_dim": 1, "value_dim": 1, "mask": Mask("none")}
    far = replace(vector, **one, q=((1,),), k=((1,),), v=((1,),), scale=-400)
    with pytest.raises(NoBoundsError, match="the precision does not suffice"):
        enclosed_rows(far)
    with pytest.raises(ValueError, match="a vector of the natural model without dropout"):
        enclosed_rows(replace(vector, model="exact"))


@settings(max_examples=60)
@given(st.integers(-(1 << 200), 1 << 200), st.integers(1, 1 << 200), st.integers(1, 1 << 90))
def test_an_interval_holds_what_it_stands_for(a: int, b: int, c: int) -> None:
    """Translated division and exponential, against fractions."""
    p = 128
    one, other = intervals.IntervalBetween(a, a + c), intervals.IntervalBetween(b, b + c)
    found = intervals.interval_div(one, other, p=p)
    assert isinstance(found, intervals.IntervalBetween)
    for x in (a, a + c):
        for y in (b, b + c):
            assert found.lo <= Fraction(x, y) * 2**p <= found.hi
    root = intervals.interval_sqrt(other, p=p)
    assert isinstance(root, intervals.IntervalBetween)
    assert root.lo**2 <= b * 2**p
    assert (b + c) * 2**p <= root.hi**2


SIGNED = st.integers(-(1 << 200), 1 << 200)


@given(st.tuples(SIGNED, SIGNED).map(sorted), st.tuples(SIGNED, SIGNED).map(sorted))
def test_a_product_has_the_least_and_the_greatest_of_bounds(x: list[int], y: list[int]) -> None:
    """Whatever their signs; rounded outward, and no further."""
    p = 128
    found = intervals.interval_mul(
        intervals.IntervalBetween(*x), intervals.IntervalBetween(*y), p=p
    )
    products = [Fraction(one * other, 2**p) for one in x for other in y]
    assert found == intervals.IntervalBetween(floor(min(products)), ceil(max(products)))


@pytest.mark.parametrize(("a", "b", "quotient"), [(7, 2, 3), (-7, 2, -4), (7, -2, -3), (-7, -2, 4)])
def test_quotients_of_integers_are_lean_s(a: int, b: int, quotient: int) -> None:
    """`#eval (-7 : Int) / -2` is 4: the remainder is never negative."""
    assert intervals.int_div(a, b) == quotient
    assert 0 <= a - b * quotient < abs(b)
    assert intervals.int_div(a, 0) == 0
