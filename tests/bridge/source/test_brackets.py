"""Matches outside of Lean's brackets."""

from __future__ import annotations

import pytest

from bridge.source.brackets import closing_bracket, outside


def marks(text: str, pattern: str) -> list[tuple[int, str]]:
    return [(mark.start(), mark[0]) for mark in outside(text, pattern)]


def test_marks_within_brackets_of_each_kind_are_not_found() -> None:
    assert marks("(a:b) {c:d} [e:f] ⦃g:h⦄ ⟨i:j⟩ : k", ":") == [(30, ":")]
    assert marks("((a:b):c):d", ":") == [(9, ":")]


def test_brackets_are_found_where_they_open() -> None:
    assert marks("{a (b)} → (c (d))", "[(→]") == [(8, "→"), (10, "(")]


@pytest.mark.parametrize(
    ("text", "at"), [("(a)", 2), ("[a (b) ⟨c⟩] d", 10), ("{a : {b} → c} : (d)", 12), ("(a", 2)]
)
def test_where_a_bracket_is_closed(text: str, at: int) -> None:
    assert closing_bracket(text) == at
