"""Exact results that are computed here: those that Lean gives, number by number."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.conformance.batch import exactly
from bridge.vectors.by_spec import Integers, attention_rows, grouped_rows, integer_rows
from bridge.vectors.exact import attention as exact
from bridge.vectors.load import default_directory, load
from bridge.vectors.model.attention import AttentionVector, Matrix, Row
from bridge.vectors.model.operations import GroupedQueryVector
from bridge.vectors.model.sampled import seen_by

# Queries times keys times columns that the translation goes through in a few milliseconds.
_SMALL = 400
# A power of two that makes every value of the files whole.
_UNIT = 1 << 16


@functools.cache
def shared_vectors() -> list[AttentionVector]:
    """The vectors of the files that fresh ones are like: exact, and without a sink."""
    return [
        vector
        for family in load()
        for vector in family.vectors
        if isinstance(vector, AttentionVector) and vector.model == "exact" and not vector.options
    ]


@functools.cache
def in_files() -> dict[str, Any]:
    """What Lean has written as the expected results, by the ids of the vectors."""
    found = {}
    for name in {vector.family for vector in shared_vectors()}:
        document = json.loads((default_directory() / f"{name}.json").read_text("utf-8"))
        found.update({entry["id"]: entry["expected"] for entry in document["vectors"]})
    return found


def text(row: Row) -> dict[str, Any]:
    """A row as Lean writes it."""
    numerators = [str(x) for x in row.numerators]
    return {
        "max": None if row.max is None else str(row.max),
        "denominator": str(row.denominator),
        "output": {"denominator": str(row.output_denominator), "numerators": numerators},
    }


def as_lean_has_it(vector: AttentionVector, rows: tuple[Row, ...]) -> bool:
    # An exact log-sum-exp follows from the denominator, and only some of the files have it.
    written = [
        {name: x for name, x in row.items() if name != "log2_sum_exp"}
        for row in in_files()[vector.id]
    ]
    return [text(row) for row in rows] == written


def whole(matrix: Matrix, unit: int = 1) -> Integers:
    return np.array([[int(x * unit) for x in row] for row in matrix], dtype=np.int64)


def by_integers(vector: AttentionVector) -> tuple[Row, ...]:
    """The rows by integers, with values of the vector made whole."""
    assert vector.scale is not None
    seen = seen_by(vector.mask, tuple(range(vector.q_len)), vector.kv_len)
    q, k, v = whole(vector.q), whole(vector.k), whole(vector.v, _UNIT)
    rows = integer_rows(q, k, v, int(vector.scale), seen)
    return tuple(
        replace(row, output_denominator=x.output_denominator, numerators=x.numerators)
        for row, x in ((row, smaller(row)) for row in rows)
    )


def smaller(row: Row) -> Row:
    """The output of a row divided by the unit, in lowest terms."""
    output = [x / _UNIT for x in row.output]
    bottom = int(np.lcm.reduce(np.array([x.denominator for x in output], dtype=object)))
    return Row(row.max, row.denominator, bottom, tuple(int(x * bottom) for x in output))


def test_integers_give_what_lean_gives() -> None:
    """Of every vector of the files: string by string, and so bit by bit what is judged by."""
    assert len(shared_vectors()) > 600
    wrong = [v.id for v in shared_vectors() if not as_lean_has_it(v, by_integers(v))]
    assert wrong == []


def test_the_translation_gives_what_lean_gives() -> None:
    small = [
        v for v in shared_vectors() if v.q_len * v.kv_len * (v.head_dim + v.value_dim) <= _SMALL
    ]
    assert len({v.mask.kind for v in small}) == 8
    wrong = [v.id for v in small if not as_lean_has_it(v, attention_rows(v))]
    assert wrong == []


def test_grouped_heads_by_the_translation_are_what_lean_gives() -> None:
    grouped = [v for f in load() for v in f.vectors if isinstance(v, GroupedQueryVector)]
    sizes = [v.num_heads * v.q_len * v.kv_len * (v.head_dim + v.value_dim) for v in grouped]
    small = [v for v, size in zip(grouped, sizes, strict=True) if size <= 4 * _SMALL]
    assert len(small) > 20
    assert [v.id for v in small if grouped_rows(v) != v.expected] == []


def test_what_is_judged_by_is_the_same_bit_by_bit() -> None:
    vector = next(v for v in shared_vectors() if v.id == "small-random-004")
    again = exactly(replace(vector, expected=attention_rows(vector)))
    for name in ("out", "out_low", "lse", "lse_low", "uncertainty"):
        mine, leans = getattr(again, name), getattr(exactly(vector), name)
        assert mine.tobytes() == leans.tobytes()


@st.composite
def problems(draw: st.DrawFn) -> tuple[Integers, Integers, Integers, int, Any]:
    q_len, kv_len, head_dim, value_dim = (draw(st.integers(1, n)) for n in (3, 9, 3, 3))
    bound = draw(st.sampled_from([1, 3, 40]))

    def matrix(rows: int, columns: int, most: int) -> Integers:
        size = rows * columns
        numbers = draw(st.lists(st.integers(-most, most), min_size=size, max_size=size))
        return np.array(numbers, dtype=np.int64).reshape(rows, columns)

    seen = draw(st.lists(st.booleans(), min_size=q_len * kv_len, max_size=q_len * kv_len))
    return (
        matrix(q_len, head_dim, bound),
        matrix(kv_len, head_dim, bound),
        matrix(kv_len, value_dim, 1 << 24),
        draw(st.integers(-2, 2)),
        np.array(seen).reshape(q_len, kv_len),
    )


@settings(max_examples=60)
@given(problems())
def test_integers_translation_and_definition_agree(problem: Any) -> None:
    q, k, v, scale, seen = problem
    vector = replace(
        shared_vectors()[0],
        q_len=len(q), kv_len=len(k), head_dim=q.shape[1], value_dim=v.shape[1], scale=scale,
        **{name: tuple(map(tuple, x.tolist())) for name, x in (("q", q), ("k", k), ("v", v))},
        mask=replace(
            shared_vectors()[0].mask, kind="boolean", rows=tuple(map(tuple, seen.tolist()))
        ),
        expected=(),
    )  # fmt: skip
    rows = integer_rows(q, k, v, scale, seen)
    assert rows == attention_rows(vector)
    assert rows == exact.attention(vector)


def test_a_wrong_number_is_seen() -> None:
    vector = shared_vectors()[0]
    row = vector.expected[0]
    assert isinstance(row, Row)
    off = replace(row, numerators=(row.numerators[0] + 1, *row.numerators[1:]))
    assert not as_lean_has_it(vector, (off, *vector.expected[1:]))  # type: ignore[arg-type]


def test_numbers_that_int64_might_not_hold_are_refused() -> None:
    ones = np.ones((1, 2), dtype=np.int64)
    with pytest.raises(ValueError, match="too large for sums of 64 bits"):
        integer_rows(ones << 31, ones << 31, ones, 1, np.ones((1, 1), bool))
    with pytest.raises(ValueError, match="too large for sums of 64 bits"):
        integer_rows(ones, ones, ones << 62, 1, np.ones((1, 1), bool))


def test_the_translation_refuses_what_the_exact_model_lacks() -> None:
    vector = replace(shared_vectors()[0], sink=1)
    with pytest.raises(ValueError, match="a scale and a mask alone"):
        attention_rows(vector)
