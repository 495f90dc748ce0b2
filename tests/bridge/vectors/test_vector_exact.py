"""The committed results against a second derivation, from the mathematical definition."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from bridge.vectors import exact
from bridge.vectors.load import load
from bridge.vectors.model import EnclosedRow, Mask, Row, Vector


def vector(**changes: object) -> Vector:
    """Scores 0 and 1 for one query, values 3 and −1/2; without a result."""
    base = Vector(
        "hand-1", "hand", "Attention.Spec.attention", "flash-eq-attention", "By hand.", "exact",
        1, 2, 1, 1, 1, ((1,),), ((0,), (1,)), ((3,), (Fraction(-1, 2),)), Mask("none"), (),
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def test_by_hand() -> None:
    # Weights 1 and 2: (3 − 1)/3.
    (row,) = exact.attention(vector())
    assert (row.max, row.denominator, row.output) == (1, Fraction(3, 2), (Fraction(2, 3),))


def test_scale_and_negative_scores_by_hand() -> None:
    # Weights 1 and 1/4: (3 − 1/8)·4/5.
    (row,) = exact.attention(vector(scale=-2))
    assert (row.max, row.denominator, row.output) == (0, Fraction(5, 4), (Fraction(23, 10),))


def test_a_masked_row() -> None:
    (row,) = exact.attention(vector(mask=Mask("boolean", ((False, False),))))
    assert (row.max, row.denominator, row.output) == (None, 0, (Fraction(0),))


def test_causal_is_top_left() -> None:
    (row,) = exact.attention(vector(mask=Mask("causal")))
    assert row.output == (Fraction(3),)


def test_a_score_that_is_no_integer() -> None:
    with pytest.raises(ValueError, match="query 0 and key 1 is not an integer"):
        exact.attention(vector(scale=Fraction(1, 2)))


def test_every_committed_vector_agrees() -> None:
    wrong = [w for family in load() for v in family.vectors for w in exact.disagreements(v)]
    assert wrong == []


@pytest.mark.parametrize("field", ["max", "denominator", "numerators"])
def test_one_changed_number_is_found(field: str) -> None:
    family = next(f for f in load() if f.name == "small-random")
    good = family.vectors[-1]
    row = good.expected[0]
    assert isinstance(row, Row)
    assert row.max is not None
    changed = {
        "max": replace(row, max=row.max + 1),
        "denominator": replace(row, denominator=row.denominator + 1),
        "numerators": replace(row, numerators=(row.numerators[0] + 1, *row.numerators[1:])),
    }[field]
    bad = replace(good, expected=(changed, *good.expected[1:]))
    assert len(exact.disagreements(bad)) == 1


@pytest.mark.parametrize("field", ["lower", "upper", "lse_bounds", "no key"])
def test_a_bound_on_the_wrong_side_is_found(field: str) -> None:
    family = next(f for f in load() if f.name == "default-scale")
    good = family.vectors[-1]
    row = good.expected[0]
    assert isinstance(row, EnclosedRow)
    assert row.lse_bounds is not None
    low, high = row.lse_bounds
    changed = {
        "lower": replace(row, lower=(row.upper[0] + 1, *row.lower[1:])),
        "upper": replace(row, upper=(row.lower[0] - 1, *row.upper[1:])),
        "lse_bounds": replace(row, lse_bounds=(high + 1, high + (high - low) + 1)),
        "no key": replace(row, lse_bounds=None),
    }[field]
    bad = replace(good, expected=(changed, *good.expected[1:]))
    assert len(exact.disagreements(bad)) == 1


def test_the_natural_exponential_by_hand() -> None:
    # Weights e^0 and e^(1/√4 · 2): (3 − e/2)/(1 + e).
    one = vector(model="natural", scale=None, head_dim=4, q=((1, 0, 0, 0),), k=((0,) * 4, (2,) * 4))
    (out,), lse = exact.natural_row(one, 0)
    assert float(out) == pytest.approx((3 - math.e / 2) / (1 + math.e), abs=1e-15)
    assert float(lse) == pytest.approx(math.log(1 + math.e), abs=1e-15)


SEEN = {
    # Which of 4 keys each of 2 queries sees, from the definitions by hand.
    "causal": (Mask("causal"), ["1000", "1100"]),
    "causal-bottom-right": (Mask("causal-bottom-right", shift=2), ["1110", "1111"]),
    "window top-left": (Mask("window", left=0, right=1), ["1100", "0110"]),
    "window bottom-right": (Mask("window", shift=2, left=1, right=0), ["0110", "0011"]),
    "no bound before": (Mask("window", shift=1, left=None, right=0), ["1100", "1110"]),
    "no bound after": (Mask("window", left=0, right=None), ["1111", "0111"]),
    "key-length": (Mask("key-length", length=3), ["1110", "1110"]),
    "document": (Mask("document", queries=(1, 0), keys=(0, 0, 1, 1)), ["0011", "1100"]),
}


@pytest.mark.parametrize("name", SEEN)
def test_what_each_mask_shows(name: str) -> None:
    mask, rows = SEEN[name]
    assert ["".join("01"[mask.visible(i, j)] for j in range(4)) for i in range(2)] == rows
