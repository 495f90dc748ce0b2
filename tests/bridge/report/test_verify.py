from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bridge.pages import claims
from bridge.pages.claims import Claim, Manifest
from bridge.report import verify
from bridge.report.cache import imported_files
from bridge.report.theorems import SourceError
from bridge.report.verify import (
    Verification,
    implemented_names,
    listed_theorems,
    module_behind,
)
from bridge.toolchain import ToolchainError

ENTRY = '[[theorem]]\nid = "{id}"\nlean = "{lean}"\nsentence = "Says."\n'

ROOT = Path(__file__).resolve().parents[3]


def declaration(kind: str = "theorem", mentions: tuple[str, ...] = ("Attention.Spec.f",)) -> Any:
    return {"name": "A.t", "kind": kind, "mentions": list(mentions), "axioms": []}


def listing(**changes: Any) -> dict[str, Any]:
    """A library with two classes, and a theorem that speaks of one of two definitions."""
    kind = {"kind": "definition"}
    classes = {name: {**kind, "is_class": True} for name in ("A.Ring", "A.Field")}
    definitions = {name: {**kind, "is_class": False} for name in ("Attention.Spec.f", "A.f")}
    return {**classes, **definitions, "A.t": declaration(**changes)}


def problems(folder: Path, toml: str, listing: dict[str, Any]) -> list[str]:
    (folder / "docs").mkdir()
    (folder / "docs" / "theorems.toml").write_text(toml)
    verification = Verification(folder, Console(quiet=True))
    found = verification.headlines(listing)[1]
    return [one for one in found if not one.startswith("vectors name")]


def test_a_good_headline_has_no_problem(tmp_path: Path) -> None:
    toml = ENTRY.format(id="a", lean="A.t")
    assert problems(tmp_path, toml, listing()) == []


@pytest.mark.parametrize(
    ("library", "problem"),
    [
        ({"A.f": {}}, "a: A.t is not a theorem of the library"),
        (listing(kind="definition"), "a: A.t is not a theorem of the library"),
        (listing(mentions=("A.f",)), "a: its statement mentions no Spec definition"),
    ],
)
def test_a_bad_headline_is_a_problem(tmp_path: Path, library: dict[str, Any], problem: str) -> None:
    assert problems(tmp_path, ENTRY.format(id="a", lean="A.t"), library) == [problem]


@pytest.mark.parametrize(
    ("mentions", "over"),
    [(("A.Field", "A.Ring"), "A.Field"), (("A.Ring",), "A.Ring"), ((), None)],
)
def test_a_headline_has_the_last_of_the_classes_that_it_mentions(
    tmp_path: Path, mentions: tuple[str, ...], over: str | None
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "theorems.toml").write_text(ENTRY.format(id="a", lean="A.t"))
    library = listing(mentions=("Attention.Spec.f", *mentions))
    (found,) = Verification(tmp_path, Console(quiet=True)).headlines(library)[0]
    assert found["over"] == over


class OneAnswer:
    """A Lean that has one answer to whatever is asked, and counts how often it is."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[list[str]] = []

    def read_stored(self, script: Path, until: str, wanted: list[str]) -> list[dict[str, Any]]:
        self.asked.append(wanted)
        return [*self.answers, {until: len(wanted)}]


def empty_statements(folder: Path, lean: Any, patch: pytest.MonkeyPatch) -> list[str]:
    """What is said of one headline and of one claim, which name the same theorem, and of a claim
    that names a definition."""
    (folder / "bridge" / "report").mkdir(parents=True, exist_ok=True)
    (folder / "bridge" / "report" / "statements.lean").write_text("module\n")
    verification = Verification(folder, Console(quiet=True))
    verification.lean = lean
    patch.setattr(verification, "lean_key", lambda: "key")
    claim = Claim("9", "Sum", "", "proved", "", (), ("A.t", "A.f"), ("A.g",), (), ())
    patch.setattr(claims, "read", lambda root: Manifest((), (claim,)))
    return verification.empty_statements([{"id": "a", "lean": "A.t"}], listing())[0]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (
            {"what": "sides", "part": False, "shown": ["e.exp x =\n  e.exp x"]},
            "its conclusion `e.exp x = e.exp x` has the same term on both sides",
        ),
        (
            {"what": "true", "part": True, "shown": ["True"]},
            "the part `True` of its conclusion holds of anything",
        ),
        (
            {"what": "contradiction", "part": False, "shown": ["p", "¬p"]},
            "its hypotheses `p` and `¬p` contradict each other",
        ),
    ],
)
def test_a_statement_that_says_nothing_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], why: str
) -> None:
    lean = OneAnswer({"theorem": "A.t", "found": found})
    for _ in range(2):  # What fails is looked at again.
        assert empty_statements(tmp_path, lean, monkeypatch) == [
            f"a: A.t says nothing: {why}",
            f"9, Sum: A.t says nothing: {why}",
        ]
    assert lean.asked == [["A.t"]] * 2


@pytest.mark.parametrize(
    "found", [[], ["a: A.t says nothing: its conclusion `True` holds of anything"]]
)
def test_the_audit_passes_only_if_all_statements_say_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: list[str]
) -> None:
    verification = Verification(tmp_path, Console(quiet=True))
    audited = {"ok": True, "declarations": [], "problems": [], "classes": {}}
    audited |= {"replayed": 0, "trusted": ""}
    monkeypatch.setattr(verification, "lean", OneAnswer())
    monkeypatch.setattr(verification, "lean_key", lambda: "key")
    monkeypatch.setattr(verification.cache, "get", lambda *_: (audited, False))
    monkeypatch.setattr(verification, "headlines", lambda _: ([], []))
    monkeypatch.setattr(verification, "claims", lambda _: ({}, []))
    monkeypatch.setattr(verification, "empty_statements", lambda *_: (found, False))
    monkeypatch.setattr(verify, "implemented_names", dict)
    section = verification.audit()
    assert section["problems"] == found
    assert section["ok"] is not bool(found)


def test_statements_that_say_something_are_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lean = OneAnswer({"theorem": "A.t", "found": None})
    for _ in range(2):
        assert empty_statements(tmp_path, lean, monkeypatch) == []
    assert lean.asked == [["A.t"]]


def test_a_statement_that_was_not_looked_at_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolchainError, match="0 of 1 statements were looked at"):
        empty_statements(tmp_path, OneAnswer(), monkeypatch)


def test_an_id_is_listed_once(tmp_path: Path) -> None:
    toml = ENTRY.format(id="a", lean="A.t") * 2
    assert problems(tmp_path, toml, listing()) == ["a is listed twice"]


def test_vectors_name_only_listed_theorems(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "theorems.toml").write_text(ENTRY.format(id="a", lean="A.t"))
    found = Verification(tmp_path, Console(quiet=True)).headlines(listing())[1]
    assert "vectors name flash-eq-attention, which is not listed" in found


def test_every_part_of_pyimpl_says_what_it_implements() -> None:
    names = implemented_names()
    for name in ("softmax", "attention", "flash", "Online.step", "Online.merge", "Online.finish"):
        assert f"Attention.Spec.{name}" in names


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("[[theorem]\n", "theorems.toml: is no list of theorems: "),
        ("theorem = 3\n", "theorems.toml: is no list of theorems: "),
        ("", "theorems.toml: is no list of theorems: 'theorem'"),
        ('[[theorem]]\nid = "a"\n', "theorems.toml: a theorem has id, lean and sentence, not id"),
    ],
)
def test_a_list_of_theorems_that_is_none(tmp_path: Path, toml: str, sentence: str) -> None:
    path = tmp_path / "theorems.toml"
    path.write_text(toml, "utf-8")
    with pytest.raises(SourceError) as caught:
        listed_theorems(path)
    assert str(caught.value).startswith(sentence)


def test_stages_that_were_not_run_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(record=True, width=200, quiet=False, file=io.StringIO())
    verification = Verification(tmp_path, console)

    def none() -> dict[str, Any]:
        raise SourceError("There is no Lean.")

    monkeypatch.setattr(verification, "find_lean", none)
    monkeypatch.setattr(verification, "vectors", none)
    assert not verification.run()
    text = console.export_text()
    assert "✘ Lean" in text
    assert "There is no Lean." in text
    assert "– Planted faults: not run, since a stage before it failed" in text


@pytest.mark.parametrize(
    ("adapter", "files"),
    [
        (
            "pyimpl-triton",
            {"pyimpl/kernels/varlen.py", "pyimpl/kernels/_loop.py", "pyimpl/decode.py"},
        ),
        ("pyimpl-tiled", {"pyimpl/tiled.py", "pyimpl/varlen.py", "pyimpl/merge.py"}),
        ("pyimpl-reference", {"pyimpl/reference.py"}),
    ],
)
def test_results_depend_on_all_that_runs(adapter: str, files: set[str]) -> None:
    module = module_behind(adapter)
    assert module is not None
    assert files <= set(imported_files(ROOT, module))


def test_results_of_others_functions_depend_on_no_module() -> None:
    assert module_behind("sdpa-math") is None
