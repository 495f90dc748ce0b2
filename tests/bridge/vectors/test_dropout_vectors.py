"""The vectors of dropout and of its generator: known answers, and refusals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import committed
import pytest
from vector_edits import put, refusal_of

from bridge.vectors.exact import attention as exact
from bridge.vectors.model.dropout import DropoutVector, PhiloxVector
from bridge.vectors.model.philox import philox, threshold

ONES = 0xFFFFFFFF
# Random123, tests/kat_vectors, philox4x32 with 10 rounds: counter, key, words.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def vectors(name: str) -> Any:
    return committed.family(name).vectors


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_known_answers_of_the_generator(counter: Any, key: Any, words: Any) -> None:
    assert philox(key, [counter]).tolist() == [list(words)]


def test_the_known_answers_are_among_the_vectors() -> None:
    made = {(v.counters[0], v.key, v.expected[0]) for v in vectors("philox")}
    assert set(KNOWN) <= made


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (0, 1 << 32),
        (1, 0),
        (Fraction(1, 2), 1 << 31),
        # Halves go to the even number.
        (Fraction(1, 1 << 33), 1 << 32),
        (Fraction(3, 1 << 33), (1 << 32) - 2),
        (Fraction(1, 10), 3865470566),
    ],
)
def test_the_threshold(p: Fraction | int, words: int) -> None:
    assert threshold(p) == words


def test_a_changed_word_is_found() -> None:
    good = vectors("philox")[-1]
    assert isinstance(good, PhiloxVector)
    assert exact.disagreements(good) == []
    first, *others = good.expected
    bad = replace(good, expected=((first[0] ^ 1, *first[1:]), *others))
    assert len(exact.disagreements(bad)) == 1


def test_a_mask_of_another_seed_is_found() -> None:
    good = vectors("dropout")[2]
    assert isinstance(good, DropoutVector)
    assert exact.disagreements(good) == []
    found = exact.disagreements(replace(good, dropout_seed=good.dropout_seed + 1))
    assert found
    assert all("keep" in sentence for sentence in found)


def test_the_probability_counts() -> None:
    """Dropped rightly, but divided by another 1 − p."""
    good = vectors("dropout")[2]
    (problem,) = good.attentions()
    wrong = replace(problem.dropout, p=Fraction(1, 4))
    assert exact.attention(replace(problem, dropout=wrong)) != problem.expected
    assert exact.attention(problem) == problem.expected


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("dropout_p", "3/2", "field dropout_p: is 3/2, no probability from 0 to 1"),
        ("dropout_p", "-1", "field dropout_p: is -1, no probability from 0 to 1"),
        ("dropout_seed", "-1", "field dropout_seed: is -1, not from 0 to 2^63 − 1"),
        ("dropout_seed", str(1 << 63), "not from 0 to 2^63 − 1"),
        ("keep", [], "field keep: has 0 heads, but batch·num_heads is 1"),
        ("keep", [["1"]], "field keep[0]: has 1 rows, but q_len is 3"),
        ("keep", [["11111", "11111", "1"]], "field keep[0][2]: has 1 characters, but kv_len is 5"),
        ("batch", 2, "has 1 heads, but batch·num_heads is 2"),
    ],
)
def test_what_is_refused(field: str, value: object, complaint: str) -> None:
    assert complaint in refusal_of("dropout", 0, put(field, value))


def test_as_many_words_as_counters() -> None:
    sentence = refusal_of("philox", 0, put("expected", []))
    assert "field expected: has 0 entries, but the number" in sentence
