"""The translated definitions give Lean's results: equal on every exact vector, within the bounds on
every enclosed one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import localcontext
from fractions import Fraction
from typing import Any

import backward_calls
import committed
import dropout_calls
import numpy as np
import pytest
import ring_calls
import spec_calls
import tangent_calls
import transformer_calls

from bridge.spec import online as states
from bridge.spec.core import EXACT
from bridge.spec.sink import sink_state
from bridge.vectors.model import attention as model
from bridge.vectors.model import operations
from bridge.vectors.model.dropout import PhiloxVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.sampled import SampledGradientVector, SampledVector
from bridge.vectors.model.shards import ShardsVector
from bridge.vectors.model.tangents import TangentVector
from bridge.vectors.model.transformers import Enclosed, LayerVector, TransformerVector

CALLS = {
    **spec_calls.CALLS,
    **backward_calls.CALLS,
    **dropout_calls.CALLS,
    **ring_calls.CALLS,
    **tangent_calls.CALLS,
    **transformer_calls.CALLS,
}


def flat(expected: Sequence[Any]) -> list[Any]:
    """The rows of all heads, one after another."""
    return [row for part in expected for row in (part if isinstance(part, tuple) else (part,))]


def enclosures(field: str, part: Enclosed) -> list[tuple[str, int, int]]:
    return [(field + place, lower, upper) for place, lower, upper in part.places()]


def expected_results(vector: Any) -> list[Any]:
    if isinstance(vector, TransformerVector):
        parts = (vector.expected_logits, vector.expected_probabilities)
        named = zip(("expected_logits", "expected_probabilities"), parts, strict=True)
        tokens = [(f"expected_tokens[{i}]", n) for i, n in enumerate(vector.expected_tokens)]
        return [x for field, part in named for x in enclosures(field, part)] + tokens
    if isinstance(vector, LayerVector):
        return enclosures("expected", vector.expected)
    if isinstance(vector, SampledVector):
        return [each.expected[0] for each in spec_calls.last_rows(vector)]
    if isinstance(vector, TangentVector):
        return [
            (f"expected[{i}]", *pair)
            for i, row in enumerate(vector.expected)
            for pair in (
                *zip(row.lower, row.upper, strict=True),
                *(() if row.lse_bounds is None else (row.lse_bounds,)),
            )
        ]
    expected = vector.expected
    if isinstance(vector, PhiloxVector):
        return [list(words) for words in expected]
    if isinstance(vector, GradientVector):
        bounds = vector.bounds or (expected, expected)
        pairs = zip(*(part.numbers() for part in bounds), strict=True)
        return [(place, lower, upper) for (place, lower), (_, upper) in pairs]
    if isinstance(vector, ShardsVector):
        return [
            row for found in expected for part in (*found.partials, found.merged) for row in part
        ]
    return flat(expected) if isinstance(expected, tuple) else [expected]


def numbers(nested: Any) -> Iterator[Any]:
    """Those of nested lists, row by row."""
    if isinstance(nested, list):
        for part in nested:
            yield from numbers(part)
    else:
        yield nested


def judged_parts(vector: SampledGradientVector, found: Sequence[Any]) -> list[Any]:
    """Of all gradients those that the vector has."""
    names = vector.expected.by_name()
    parts = {name: np.array(part, dtype=object) for name, part in zip(names, found, strict=True)}
    return [vector.judged_part(name, part).tolist() for name, part in parts.items()]


def check(vector: model.Vector, found: Sequence[Any]) -> None:
    expected = expected_results(vector)
    if isinstance(vector, SampledGradientVector):
        found = judged_parts(vector, found)
    if isinstance(vector, (GradientVector, LayerVector, TangentVector, TransformerVector)):
        found = list(numbers(found))
    unit = model.BOUNDS_UNIT if vector.model == "natural" else 1
    assert len(found) == len(expected)
    for i, (got, row) in enumerate(zip(found, expected, strict=True)):
        match row:
            case model.Row():
                assert got == list(row.output), f"row {i}"
            case model.EnclosedRow():
                for x, lower, upper in zip(got, row.lower, row.upper, strict=True):
                    assert lower <= x * model.BOUNDS_UNIT <= upper, f"row {i}"
            case model.State():
                assert got == states.State(row.m, row.l, list(row.o)), f"state {i}"
            case str() | list():
                assert got == row, f"tile, or words, {i}"
            case (str() as place, lower, upper):
                assert lower <= got * unit <= upper, place
            case (str() as place, token):
                assert got == token, place
            case _:
                raise TypeError(f"there is nothing to compare with {row}")


# Lean made all of them, and `make verify` compares them with its results of today; a definition
# that is translated wrongly shows on any.
SHARES = [
    pytest.param(3, id="every third vector"),
    pytest.param(1, marks=pytest.mark.thorough, id="every vector"),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("step", SHARES)
@pytest.mark.parametrize("name", committed.names())
def test_the_definition_that_made_the_vector_gives_its_result(name: str, step: int) -> None:
    for vector in committed.family(name).vectors[::step]:
        call = CALLS[vector.lean.removeprefix("Attention.Spec.")]
        try:
            with localcontext(spec_calls.DIGITS):
                check(vector, call(vector))
        except AssertionError as error:
            raise AssertionError(f"{vector.id}: {error}") from error


@pytest.mark.parametrize("step", SHARES)
@pytest.mark.parametrize("name", committed.names("attention", "exact"))
def test_the_states_of_the_rows(name: str, step: int) -> None:
    """Largest score and denominator, which no definition of a whole attention gives out."""
    for vector in committed.family(name).vectors[::step]:
        assert isinstance(vector, model.AttentionVector)
        size: dict[str, Any] = {"d": vector.value_dim, "num": EXACT}
        rows = zip(vector.expected, spec_calls.rows_of(vector), strict=True)
        for i, (row, keys) in enumerate(rows):
            assert isinstance(row, model.Row)
            state = states.of_block(keys, **size)
            if vector.sink is not None:
                sink = spec_calls.score_number(vector, vector.sink)
                state = states.merge(sink_state(sink, **size), state, num=EXACT)
            assert (state.m, state.l) == (row.max, row.denominator), f"{vector.id}, row {i}"


def test_every_definition_that_made_vectors_is_called() -> None:
    lean = {name for entry in committed.ENTRIES for name in entry["definitions"]}
    made = {name.removeprefix("Attention.Spec.") for name in lean}
    assert made == set(CALLS)


def test_a_wrong_result_is_seen() -> None:
    """The comparison can fail: by one in a numerator, and by an ulp of the bounds."""
    vector = committed.vector("one-key-001")
    assert not vector.expected[0].masked
    found = [list(row.output) for row in vector.expected]
    check(vector, found)
    found[0][0] += Fraction(1, 1 << 60)
    with pytest.raises(AssertionError, match="row 0"):
        check(vector, found)
    enclosed = committed.vector("combine-000")
    assert isinstance(enclosed, operations.CombineVector)
    outside = [Fraction(x + 1, model.BOUNDS_UNIT) for x in enclosed.expected.upper]
    with pytest.raises(AssertionError, match="row 0"):
        check(enclosed, [outside])
