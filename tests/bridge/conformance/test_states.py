"""The bound of the states of a cache notices wrong states."""

from __future__ import annotations

import math

import committed
import pytest

from bridge.conformance.tolerances.rounding_model import FORMATS
from bridge.conformance.tolerances.states import Computed, tolerances, wrong_states
from bridge.vectors.model.operations import CacheVector

FORM = FORMATS["float32"]


@pytest.fixture
def vectors() -> list[CacheVector]:
    return [v for v in committed.vectors() if isinstance(v, CacheVector)]


def right(vector: CacheVector) -> list[Computed]:
    """The exact states, rounded to float64 at most."""
    return [
        (
            -math.inf if state.m is None else math.log(2.0) * state.m,
            float(state.l),
            [float(x) for x in state.o],
        )
        for state in vector.expected
    ]


def test_the_exact_states_pass(vectors: list[CacheVector]) -> None:
    assert len(vectors) >= 25
    for vector in vectors:
        assert list(wrong_states(vector, right(vector), FORM)) == []


def test_what_is_further_away_than_allowed_is_named(vectors: list[CacheVector]) -> None:
    for vector in vectors:
        n = len(vector.edits)
        bounds = tolerances(vector, FORM)[n]
        m, l, o = right(vector)[n]
        beyond = [max(2.0 * x, 1e-30) for x in bounds]
        places = {
            f"m after change {n} is": (m + 1e-3 if math.isfinite(m) else 0.0, l, o),
            f"l after change {n} is": (m, l + beyond[0], o),
            f"o[1] after change {n} is": (m, l, [o[0], o[1] - beyond[2]]),
            f"o[0] after change {n} is nan": (m, l, [math.nan, o[1]]),
        }
        for place, wrong in places.items():
            (said,) = wrong_states(vector, [*right(vector)[:n], wrong], FORM)
            assert said.startswith(f"{vector.id}: {place}")


def test_the_bound_is_of_the_size_of_a_few_roundings(vectors: list[CacheVector]) -> None:
    """A bound that let anything pass would be none."""
    for vector in vectors:
        most = (
            max(abs(float(x)) for key in vector.keys for x in (1, *key.value)) if vector.keys else 1
        )
        more = [abs(float(x)) for e in vector.edits if e.key is not None for x in (1, *e.key.value)]
        terms = len(vector.keys) + len(vector.edits)
        largest = max(map(max, tolerances(vector, FORM)))
        # Scores are at most 20, so a weight is off by at most 4 + 60·ln 2 units, and each of the
        # terms that have ever been there is rounded with each change.
        assert largest <= 64 * FORM.unit * terms**2 * max([most, *more])


def test_a_missing_state_is_an_error(vectors: list[CacheVector]) -> None:
    with pytest.raises(ValueError, match="zip"):
        list(wrong_states(vectors[0], right(vectors[0])[:-1], FORM))
