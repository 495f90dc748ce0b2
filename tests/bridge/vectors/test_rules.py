"""Inputs by rule: drawn as `docs/vectors.md` says, every column in use, and nothing that a hostile
file can make of them."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import committed
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vector_edits import document, refusal_of

from bridge.pages.vectors_page import EXAMPLE, SHOWN
from bridge.vectors.format.rules import Rule
from bridge.vectors.model.sampled import SampledGradientVector, SampledVector

PAGE = (Path(__file__).parents[3] / "docs" / "vectors.md").read_text("utf-8")


def draw(rule: Rule, count: int) -> list[Fraction]:
    """As the page has it, number by number; the factors and summands are read there."""
    first, prime = map(int, re.findall(r"h = (\d+);.*?· (\d+)\)", PAGE)[0])
    by, more = map(int, re.findall(r"becomes \((\d+) · state \+ (\d+)\)", PAGE)[0])
    state = first
    for byte in rule.drawn_from.encode():
        state = (state ^ byte) * prime % 2**64
    found = []
    for _ in range(count):
        state = (by * state + more) % 2**64
        x = state // 2**33 % ((2 * rule.bound + 1) * rule.one_in)
        found.append(Fraction(x - rule.bound if x <= 2 * rule.bound else 0, rule.over))
    return found


RULES = st.builds(
    Rule,
    st.text("abcλ/-0", max_size=9),
    st.sampled_from([0, 1, 3, 64, 2**23 - 1, 2**24]),
    st.integers(1, 50),
    st.sampled_from([1, 2, 2**24]),
)


@given(RULES, st.integers(0, 300))
def test_they_are_drawn_as_the_page_says(rule: Rule, count: int) -> None:
    numbers = [Fraction(x) for x in rule.numbers(count).tolist()]
    assert numbers == draw(rule, count)


def test_the_example_of_the_page_is_right() -> None:
    text = re.sub(r"\s+", " ", PAGE)
    said = re.findall(r"numbers are ([-\d/, ]+)\.", text)[0].split(", ")
    assert [Fraction(x) for x in said] == draw(EXAMPLE, SHOWN)
    assert f'"drawn_from": "{EXAMPLE.drawn_from}"' in text


def test_every_column_is_in_use() -> None:
    """Of keys and values in each vector; of the queries that are judged by each head size."""
    used: dict[int, set[int]] = {}
    vectors: list[SampledVector] = committed.vectors("sampled")
    for vector in vectors:
        for numbers in (vector.k, vector.v):
            assert np.any(numbers != 0, axis=(0, 1, 2)).all(), vector.id
        judged = np.any(vector.q[:, :, list(vector.rows)] != 0, axis=(0, 1, 2))
        used.setdefault(vector.head_dim, set()).update(np.flatnonzero(judged).tolist())
    assert used == {size: set(range(size)) for size in used}


def test_every_column_of_wide_packed_heads_is_in_use() -> None:
    """Of keys and values in each vector; of the queries in those of a head size together."""
    used: dict[int, set[int]] = {}
    wide = committed.families("varlen-wide-heads", "paged-wide-heads")
    vectors: list[Any] = [vector for family in wide for vector in family.vectors]
    for vector in vectors:
        for numbers in (vector.k, vector.v):
            columns = np.array(numbers, dtype=float).reshape(-1, vector.head_dim)
            assert np.any(columns != 0, axis=0).all(), vector.id
        judged = np.any(np.array(vector.q, dtype=float) != 0, axis=0)
        used.setdefault(vector.head_dim, set()).update(np.flatnonzero(judged).tolist())
    assert used == {size: set(range(size)) for size in (64, 128, 256)}


def rules(id: str) -> list[dict[str, Any]]:
    family, _, number = id.rpartition("-")
    (entry,) = document(family, int(number))["vectors"]
    return [x for x in entry.values() if isinstance(x, dict) and "drawn_from" in x]


def test_no_two_inputs_are_drawn_alike() -> None:
    names = [
        (Rule(**each).drawn_from, id)
        for operation in ("sampled", "sampled-gradient", "varlen", "paged")
        for id in committed.ids(operation)
        for each in rules(id)
    ]
    assert len(names) == len(dict(names)) > 80


def test_scales_are_not_1() -> None:
    vectors = [*committed.vectors("sampled"), *committed.vectors("sampled-gradient")]
    assert 1 not in {vector.scale for vector in vectors}


def test_the_sizes_reach_past_the_tiles() -> None:
    """Ragged, with several tiles of 64 and of 128; forwards of both in both directions at once."""
    forward: list[SampledVector] = committed.vectors("sampled")
    assert {v.head_dim for v in forward} >= {16, 64, 128, 256}
    assert any(v.q.shape[2] > 128 and v.k.shape[2] > 128 for v in forward)
    assert any(v.k.shape[2] > 2048 for v in forward)
    assert any(len(v.masks) > 1 for v in forward)
    backward: list[SampledGradientVector] = committed.vectors("sampled-gradient")
    assert any(v.q_len > 128 for v in backward)
    assert any(v.kv_len > 256 for v in backward)
    assert any(v.q_len > 64 and v.kv_len > 64 for v in backward)
    assert {v.head_dim for v in backward} >= {16, 64, 128, 256}
    assert any(v.kv_len > 1024 for v in backward)
    assert any(len(v.masks) > 1 and v.batch > 1 for v in backward)
    for options in ({"softcap"}, {"alibi"}, {"sinks"}, {"bias"}, {"dropout"}, {"temperature"}):
        assert any(v.options == options and max(v.rows) > 63 for v in backward)
        assert any(v.options == options and max(v.keys) > 127 for v in backward)


# In the place of a value: the field is taken out.
UNSET = object()
HUGE = dict.fromkeys(("batch", "num_heads", "num_kv_heads", "q_len"), 1000)
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "numbers without end": ("past-tiles", HUGE, "more than 4194304 numbers, or pairs"),
    "pairs without end": (
        "past-tiles", {"q_len": 4096, "kv_len": 4096}, "more than 4194304 numbers, or pairs",
    ),
    "gradients without end": (
        "gradient-past-tiles", {"q_len": 4096, "kv_len": 4096}, "more than 4194304 numbers",
    ),
    "products without end": (
        "gradient-past-tiles", {"q_len": 1000, "kv_len": 1000}, "comes to more than 4194304",
    ),
    "rows that fall": ("past-tiles", {"rows": [3, 2]}, "field rows: does not rise to less than"),
    "a row too many": ("past-tiles", {"rows": [0, 4000]}, "field rows: does not rise to less"),
    "no rows": ("past-tiles", {"rows": []}, "field rows: has 0 entries, less than 1"),
    "a key too many": ("gradient-past-tiles", {"keys": [4]}, "field keys: does not rise to less"),
    "masks for some heads": (
        "past-tiles", {"masks": [{"kind": "none"}] * 3}, "field masks: has 3 entries, but there",
    ),
    "heads that do not fit": ("past-tiles", {"num_heads": 3, "num_kv_heads": 2}, "no multiple"),
    "a bias of the exact model": (
        "past-tiles", {"bias": vars(EXAMPLE)}, "field bias: is given, which the exact model cannot",
    ),
    "sinks of the exact model": ("past-tiles", {"sinks": ["0", "0"]}, "field sinks: is given"),
    "a scale that is a fraction": ("past-tiles", {"scale": "1/2"}, "field scale: is not an"),
    "a matrix": ("past-tiles", {"q": [["1"]]}, "is not an object"),
    "pages without end": (
        "paged-wide-heads", {"num_pages": 4096, "page_size": 4096},
        "field k: stands for more than 4194304 numbers",
    ),
    "packed numbers that bfloat16 does not hold": (
        "varlen-wide-heads", {"v": {**vars(EXAMPLE), "bound": 257, "one_in": 1}},
        "field v.bound: is 257, but bfloat16 holds integers up to 256",
    ),
    "packed scores that are fractions": (
        "paged-wide-heads", {"q": {**vars(EXAMPLE), "bound": 1, "over": 2}},
        "field q.over: is not 1, but scores of the exact model are integers",
    ),
    "gradients of slopes that sequences share": (
        "gradient-past-tiles", {"batch": 2, "alibi": {"alignment": "top-left", "slopes": ["1"]}},
        "field alibi: is given for each head, but there are 2 sequences",
    ),
    "masks for some heads of a gradient": (
        "gradient-past-tiles", {"masks": [{"kind": "none"}] * 3}, "field masks: has 3 entries",
    ),
    "dropout without a seed": (
        "past-tiles", {"dropout_p": "1/2"},
        "field dropout_p and dropout_seed: are given together or not at all",
    ),
    "no probability": (
        "past-tiles-dropout", {"dropout_p": "3/2"}, "field dropout_p: is 3/2, no probability",
    ),
    "no seed": (
        "gradient-past-tiles-dropout", {"dropout_seed": "-1"}, "field dropout_seed: is -1, not",
    ),
    "a fraction in the exact model": (
        "past-tiles", {"temperature": ["1", "1/2"]}, "field temperature: has fractions, but",
    ),
    "too few temperatures": (
        "past-tiles-temperature", {"temperature": ["1"]}, "field temperature: has 1 ",
    ),
    "temperatures without their gradient": (
        "gradient-past-tiles", {"temperature": ["1"]},
        "field expected_temperature: is given or missing, unlike its input",
    ),
    "half of the prefix sums": (
        "past-tiles-packed", {"cu_seqlens_k": UNSET},
        "field cu_seqlens_q and cu_seqlens_k: are given together or not at all",
    ),
    "tokens of no sequence": (
        "past-tiles-packed", {"cu_seqlens_q": [0, 67, 70, 135]},
        "field cu_seqlens_q: does not end at q_len, 136",
    ),
    "prefix sums that fall": (
        "past-tiles-packed", {"cu_seqlens_q": [0, 140, 70, 136]},
        "field cu_seqlens_q: does not rise from 0",
    ),
    "more sequences by their keys": (
        "past-tiles-packed", {"cu_seqlens_k": [0, 140, 142, 142, 208]}, "field cu_seqlens_k: has 5",
    ),
    "packed sequences with masks": (
        "past-tiles-packed", {"masks": [{"kind": "none"}] * 3},
        "field masks: has several entries, but the sequences are packed",
    ),
    "packed sequences of one padding": (
        "past-tiles-packed", {"masks": [{"kind": "key-length", "length": 3}]},
        "field masks[0].kind: is none that means the same for every length",
    ),
    "a batch of packed sequences": (
        "gradient-past-tiles-packed", {"batch": 2}, "field batch: is above 1, but the sequences",
    ),
    "results that are missing": ("past-tiles", {"expected": []}, "field expected: has 0 heads"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_fields_get_a_sentence(name: str) -> None:
    family, fields, sentence = REFUSED[name]

    def change(vector: dict[str, Any]) -> None:
        for field, value in fields.items():
            if value is UNSET:
                del vector[field]
            else:
                vector[field] = value

    assert sentence in refusal_of(family, 0, change)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"bound": 10**12}, "field q.bound: 1000000000000 is above 16777216"),
        ({"bound": -1}, "field q.bound: -1 is below 0"),
        ({"bound": 1 << 24, "one_in": 64}, "field q.one_in: times 2·bound + 1 is above 2^31"),
        ({"one_in": 0}, "field q.one_in: 0 is below 1"),
        ({"over": 3}, "field q.over: is 3, no power of 2"),
        ({"over": 2}, "field q.over: is not 1, but scores of the exact model are integers"),
        ({"drawn_from": "a b"}, "field q.drawn_from: "),
        ({"seed": 7}, "field q.seed: is not known"),
    ],
)
def test_hostile_rules_get_a_sentence(fields: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal_of("past-tiles", 0, lambda vector: vector["q"].update(fields))


def test_results_that_no_inputs_have_are_refused() -> None:
    def larger(vector: dict[str, Any]) -> None:
        vector["expected"][0][0]["output"]["numerators"][0] = "9" * 30

    sentence = refusal_of("past-tiles", 0, larger)
    assert "is larger than every value, of which it is a mean" in sentence
    nothing = {"max": None, "denominator": "0", "output": {"denominator": "1"}}

    def none(vector: dict[str, Any]) -> None:
        numerators = ["0"] * vector["value_dim"]
        vector["expected"][0][0] = {**nothing, "output": {
            "denominator": "1", "numerators": numerators}}  # fmt: skip

    assert "does not agree with the mask" in refusal_of("past-tiles", 0, none)


def test_the_first_numbers_are_those_of_more() -> None:
    assert list(islice(EXAMPLE.numerators(5).tolist(), 3)) == EXAMPLE.numerators(3).tolist()
