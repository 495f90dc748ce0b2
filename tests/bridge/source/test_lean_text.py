"""Declarations read from text alone."""

from __future__ import annotations

import pytest

from bridge.source.lean import Written, declarations

HEAD = "module\n\npublic section\n\nnamespace A.B\n\nopen C\n\n"


def only(text: str) -> Written:
    found = declarations(HEAD + text)
    assert len(found) == 1
    return found[0]


def test_a_theorem_with_everything_around_it() -> None:
    found = only(
        "/-- Said. -/\n@[simp, grind =]\nprivate theorem D.e' (x : Nat) :\n"
        "    let y := x\n    x = y := by -- a comment\n  rfl\n\n-- another\n\nend A.B\n"
    )
    assert found.name == "A.B.D.e'"
    assert (found.keyword, found.private, found.doc) == ("theorem", True, " Said. ")
    assert (found.first, found.last) == ((9, 0), (14, 5))
    assert (found.keyword_at, found.named_at) == ((11, 8), (11, 16))
    assert found.value_at == (13, 10)
    assert found.opened == ("A.B.D", "A.B", "A", "A.B.C", "A.C", "C")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("def f := 1\n", "A.B.f"),
        ("abbrev _root_.G.f : Nat := 1\n", "G.f"),
        ("omit [Add R] in\n/-- Said. -/\ntheorem f : True := trivial\n", "A.B.f"),
        ("@[expose]\ndef f : Nat → Nat\n  | 0 => 1\n  | n => n\n", "A.B.f"),
        ("theorem f : (match 1 with\n    | 0 => True\n    | _ => True) := trivial\n", "A.B.f"),
        ("instance (priority := low) f : Inhabited Nat := ⟨1⟩\n", "A.B.f"),
        ("instance : Inhabited Nat := ⟨1⟩\n", None),
        ('def f := "\n-- /- -/ def g := 1\n"\n', "A.B.f"),
        ("/- def g := 1 /- nested -/ -/\ndef f := 1\n", "A.B.f"),
        ("section S\ndef f := '\"'\nend S\n", "A.B.f"),
    ],
)
def test_names(text: str, name: str | None) -> None:
    assert only(text).name == name


def test_namespaces_and_sections_end() -> None:
    found = declarations(
        "namespace A\nsection\nvariable (x : Nat)\ndef f := x\nend\nnamespace B\ndef g := 1\n"
        "end B\ndef h := 1\nend A\ndef i := 1\n"
    )
    assert [one.name for one in found] == ["A.f", "A.B.g", "A.h", "i"]
    assert [one.variables for one in found] == ["variable (x : Nat)", "", "", ""]
    found = declarations(
        "module\n\n@[expose] public section\n\nnamespace A\n@[expose] section\ndef f := 1\nend\n"
        "def g := 1\nnoncomputable section\ndef h := 1\nend\nend A\ndef i := 1\n"
    )
    assert [one.name for one in found] == ["A.f", "A.g", "A.h", "i"]


def test_fields_and_constructors() -> None:
    found = declarations(
        "structure S (n : Nat) extends T where\n  /-- The first. -/\n  a b : Nat\n"
        "  c (x : Nat) : x = x := rfl\n    -- : indented further\n"
        "inductive I where\n  /-- One. -/\n  | one (n : Nat)\n  | two | three\n"
        "  deriving Inhabited\n"
    )
    assert [(one.name, one.keyword) for one in found] == [
        ("S", "structure"),
        ("S.a", "field"),
        ("S.b", "field"),
        ("S.c", "field"),
        ("I", "inductive"),
        ("I.one", "constructor"),
        ("I.two", "constructor"),
        ("I.three", "constructor"),
    ]
    assert found[1].doc == " The first. "
    assert (found[5].first, found[5].last) == ((7, 2), (8, 17))
    assert found[7].last == (9, 15)
