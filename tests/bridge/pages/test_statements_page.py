"""docs/statements.md: every main result, whole, with a sentence."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest
from edits import edit

from bridge.audit.restated import restatement
from bridge.pages import statements_page
from bridge.source.excerpt import SourceError

ROOT = Path(__file__).resolve().parents[3]
MAIN = [
    one
    for one in tomllib.loads((ROOT / "docs" / "theorems.toml").read_text("utf-8"))["theorem"]
    if one["kind"] == "main"
]


def test_every_main_result_stands_there_once() -> None:
    text = (ROOT / statements_page.PAGE).read_text("utf-8")
    assert sorted(re.findall(r"^### (\S+)$", text, re.M)) == sorted(one["id"] for one in MAIN)
    assert 25 <= len(MAIN) <= 40
    for one in MAIN:
        section = text.partition(f"\n### {one['id']}\n\n")[2].partition("\n### ")[0]
        sentence, _, rest = section.partition("\n\n```lean\n")
        assert sentence.endswith(".")
        assert rest.startswith(f"theorem {restatement(one['id']).rpartition('.')[2]} ")
        assert f"from [`{one['lean']}`](../Attention/" in rest


def test_no_statement_has_what_the_page_does_not_show() -> None:
    """No class and no hypothesis comes from a `variable` or an `include`."""
    for path in (ROOT / statements_page.FOLDER).glob("*.lean"):
        assert not re.search(r"^(?:variable|include|local|macro|notation)", path.read_text(), re.M)


def test_statements_see_nothing_that_is_made_for_a_proof() -> None:
    """Modules that prove them are imported for proofs alone: Lean refuses other statements too."""
    for path in (ROOT / statements_page.FOLDER).glob("*.lean"):
        for shown in re.findall(r"^public import (\S+)$", path.read_text("utf-8"), re.M):
            assert shown.startswith(("Attention.Spec.", "Attention.Algebra.", "Attention.Model."))


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "Attention", tmp_path / "Attention")
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "theorems.toml", tmp_path / "docs")
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            "/-- The maximum may be subtracted first. -/\n",
            "",
            "no sentence says Attention.Statements.safe_softmax",
        ),
        (
            "theorem safe_softmax",
            "variable (n : Nat)\n\ntheorem safe_softmax",
            "a `variable` adds to the statement of Attention.Statements.safe_softmax",
        ),
        (
            "theorem safe_softmax",
            "theorem safer",
            "Attention.Statements.safer is no main result of docs/theorems.toml",
        ),
        ("/-! # Attention, online", "/-! Attention, online", "has no title, /-! # … -/"),
    ],
)
def test_a_statement_that_the_page_cannot_show_is_refused(
    copied: Path, old: str, new: str, why: str
) -> None:
    edit(copied / statements_page.FOLDER / "Attention.lean", old, new)
    with pytest.raises(SourceError, match=re.escape(why)):
        statements_page.parts(copied)


def test_a_result_that_is_not_stated_is_missed(copied: Path) -> None:
    path = copied / "docs" / "theorems.toml"
    edit(path, 'id = "ring"\nkind = "main"', 'id = "ring"\nkind = "sanity"')
    with pytest.raises(SourceError, match=r"Attention\.Statements\.ring is no main result"):
        statements_page.parts(copied)
    edit(path, 'id = "ring"\nkind = "sanity"', 'id = "ring"\nkind = "main"')
    edit(path, 'id = "alibi"\nkind = "sanity"', 'id = "alibi"\nkind = "main"')
    with pytest.raises(SourceError, match=r"does not state Attention\.Statements\.alibi"):
        statements_page.parts(copied)


def test_a_file_that_no_page_shows_is_refused(copied: Path) -> None:
    (copied / statements_page.FOLDER / "More.lean").write_text("module\n")
    with pytest.raises(SourceError, match=r"More\.lean is no part of the page"):
        statements_page.parts(copied)
