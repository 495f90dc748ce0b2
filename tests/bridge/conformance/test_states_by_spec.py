"""The code's bounds of states that change are those that are proved: the Spec's, with 50 digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerance_by_spec import CLOSE, NATURAL, change_code, difference, digits

from bridge.conformance.tolerances import states
from bridge.conformance.tolerances.rounding_model import FORMATS, Format
from bridge.spec.state_tolerance import (
    BoundedColumn,
    bounded_column_append,
    bounded_column_delete,
)
from bridge.vectors.model.operations import Key

FORM = FORMATS["float32"]
# With so large a smallest number that errors of it show.
FEW = replace(FORM, smallest_normal=2.0**-16)


def wrong_states_of(seed: int, form: Format, code: ModuleType = states) -> Iterator[str]:
    """Which bounds are not as the Spec has them after some keys that come and go, in this format.
    Scores are integers times ln 2; a masked one is None."""
    rng = np.random.default_rng(seed)
    state = code._Bounded(form, None, [0.0, 0.0], [0.0, 0.0])
    columns = [BoundedColumn(None, Decimal(0), Decimal(0)) for _ in range(2)]
    held: list[Key] = []
    with localcontext(digits()):
        natural = Decimal(2).ln()
        for change in range(int(rng.integers(1, 12))):
            delete = bool(held) and rng.random() < 0.4
            if delete:
                key = held.pop(int(rng.integers(len(held))))
                state.delete(key)
            else:
                score = None if rng.random() < 0.1 else int(rng.integers(-40, 40))
                key = Key(score, (Fraction(int(rng.integers(-64, 64)), 16),))
                held.append(key)
                state.step(key)
            changed = bounded_column_delete if delete else bounded_column_append
            s = None if key.score is None else Decimal(key.score) * natural
            values = [Decimal(1), Decimal(float(key.value[0]))]
            columns = [
                changed(Decimal(form.unit), Decimal(form.smallest_normal), c, s, v, num=NATURAL)
                for c, v in zip(columns, values, strict=True)
            ]
            for found, exact in zip(state.errors, columns, strict=True):
                close = CLOSE * float(exact.error) + 2.0**-1000
                if not abs(difference(found, exact.error)) <= close:
                    yield f"after change {change}: {found} for {float(exact.error)}"


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_drawn_changes(seed: int) -> None:
    assert list(wrong_states_of(seed, FORM)) == []
    assert list(wrong_states_of(seed, FEW)) == []


MUTANTS = {
    "an exponential that is exact": ("_EXP = 4.0", "_EXP = 0.0"),
    "no products of errors": ("_SECOND_ORDER = 1.02", "_SECOND_ORDER = 1.0"),
    "scores that are not rounded": (
        "size = 2 * abs(s) + 2 * abs(m) + abs(s - m)",
        "size = abs(s - m)",
    ),
    "an error that is not rescaled": (
        "self.errors[c] = alpha * self.errors[c] + _SECOND_ORDER",
        "self.errors[c] = self.errors[c] + _SECOND_ORDER",
    ),
    "a difference that is not rounded": (
        "self.form.unit * held",
        "0.0 * held",
    ),
    "products that are not rounded": (
        "(off_p + twice) * (p * more)",
        "off_p * (p * more)",
    ),
    "a key that does not underflow": ("tiny * (size + more + 3.0)", "0.0"),
    "a weight that does not underflow": ("tiny * (size + more + 3.0)", "tiny * 3.0"),
    "terms that do not underflow": ("self.form.smallest_normal * (less + 2.0)", "0.0"),
    "a sum that is not flushed to 0": ("tiny * (size + more + 3.0)", "tiny * (size + more + 2.0)"),
    "a difference that is not flushed to 0": (
        "self.form.smallest_normal * (less + 2.0)",
        "self.form.smallest_normal * (less + 1.0)",
    ),
    "an exponent that is not flushed to 0": (" * size) + self.form.smallest_normal", " * size)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_bound_disagrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = MUTANTS[name]
    module = change_code(old, new, monkeypatch, states)
    assert any(any(wrong_states_of(seed, FEW, module)) for seed in range(10))


def test_the_bounds_that_follow_are_for_scores_up_to_4000() -> None:
    """Weights are off by less than a hundredth of themselves, which the theorem asks for."""
    size = 4000 * math.log(2.0)
    error = 6 * FORM.unit + FORM.unit * (2 * size + 2 * size + 2 * size) + FORM.smallest_normal
    assert 100 * error <= 1
