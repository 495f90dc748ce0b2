from __future__ import annotations

from pathlib import Path

import pytest

from bridge.source.excerpt import Excerpt, SourceError, excerpt, statement_only


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("theorem a : 1 = 1 := rfl", "theorem a : 1 = 1"),
        ("/-- Says. -/\ntheorem a (x : N) :\n    P x := by\n  rfl", "theorem a (x : N) :\n    P x"),
        ("theorem a :\n    f = fun x => x :=\n  rfl", "theorem a :\n    f = fun x => x"),
        ("private theorem a : P := by simp", "private theorem a : P"),
        ("theorem a :\n    f (R := R) x = y := rfl", "theorem a :\n    f (R := R) x = y"),
        ("theorem a :\n    let w : R :=\n      0\n    w = 0 := by\n  rfl",
         "theorem a :\n    let w : R :=\n      0\n    w = 0"),
        ("theorem a :\n    let w := 0; let v := 1\n    w < v := by decide",
         "theorem a :\n    let w := 0; let v := 1\n    w < v"),
    ],
)  # fmt: skip
def test_a_statement_is_the_theorem_without_docstring_and_proof(text: str, statement: str) -> None:
    whole = Excerpt("a", "A.lean", 10, 10 + text.count("\n"), text)
    cut = statement_only(whole)
    assert cut.text == statement
    assert cut.first_line == (11 if text.startswith("/--") else 10)
    assert cut.last_line == cut.first_line + statement.count("\n")


def test_an_excerpt_has_its_lines_without_indentation(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("class A:\n    def f(self):\n        return 1\n")
    found = excerpt(tmp_path, "A.f", "f.py", 2, 3)
    assert found.text == "def f(self):\n    return 1"
    assert found.link == "../f.py#L2-L3"


def test_a_statement_without_an_end_is_refused() -> None:
    with pytest.raises(SourceError, match=r"A\.lean:1: the statement of a has no end"):
        statement_only(Excerpt("a", "A.lean", 1, 1, "theorem a (x : N"))
