from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bridge.pages import claims
from bridge.pages.claims import Claim, Manifest
from bridge.report import statements, verify
from bridge.report.implemented import implemented_names
from bridge.report.theorems import SourceError, listed_theorems
from bridge.report.verify import Verification
from bridge.toolchain import ToolchainError
from bridge.toolchain.audit import Audit

ENTRY = '[[theorem]]\nid = "{id}"\nlean = "{lean}"\nsentence = "Says."\n'


def declaration(kind: str = "theorem", mentions: tuple[str, ...] = ("Attention.Spec.f",)) -> Any:
    return {"name": "A.t", "kind": kind, "file": "A.lean", "mentions": list(mentions)}


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

    def __init__(self, root: Path, *answers: dict[str, Any]) -> None:
        self.root = root
        self.answers = answers
        self.asked: list[list[str]] = []

    def read_stored(self, script: Path, until: str, wanted: list[str]) -> list[dict[str, Any]]:
        self.asked.append(wanted)
        return [*self.answers, {until: len(wanted)}]


def said_of_statements(
    folder: Path, lean: Any, patch: pytest.MonkeyPatch
) -> tuple[dict[str, str], list[str]]:
    """The statements that are read, and what is said of one headline and of one claim, which name
    the same theorem, and of a claim that names a definition."""
    for part in statements.SOURCES:
        (folder / "bridge" / part).parent.mkdir(parents=True, exist_ok=True)
        (folder / "bridge" / part).write_text("module\n")
    (folder / "A.lean").write_text("namespace A\nopen B\ntheorem t : True := trivial\n")
    verification = Verification(folder, Console(quiet=True))
    verification.lean = lean
    patch.setattr(verification, "lean_key", lambda: "key")
    claim = Claim("9", "Sum", "", "proved", "", (), ("A.t", "A.f"), ("A.g",), (), ())
    patch.setattr(claims, "read", lambda root: Manifest((), (claim,)))
    return verification.statements([{"id": "a", "lean": "A.t"}], listing())[:2]


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
    lean = OneAnswer(tmp_path, {"theorem": "A.t", "found": found, "statement": "A.t : True"})
    for _ in range(2):  # What fails is looked at again.
        assert said_of_statements(tmp_path, lean, monkeypatch)[1] == [
            f"a: A.t says nothing: {why}",
            f"9, Sum: A.t says nothing: {why}",
        ]
    assert lean.asked == [["A.t A A.B B"]] * 2


@pytest.mark.parametrize(
    "found", [[], ["a: A.t says nothing: its conclusion `True` holds of anything"]]
)
def test_the_audit_passes_only_if_all_statements_say_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: list[str]
) -> None:
    verification = Verification(tmp_path, Console(quiet=True))
    audited = {"ok": True, "declarations": [], "problems": [], "classes": {}}
    audited |= {"replayed": 0, "trusted": "", "trusted_names": {}}
    monkeypatch.setattr(verification, "lean", OneAnswer(tmp_path))
    monkeypatch.setattr(verification, "lean_key", lambda: "key")
    monkeypatch.setattr(verification.cache, "get", lambda *_: (audited, False))
    monkeypatch.setattr(verification, "headlines", lambda _: ([{"lean": "A.t"}], []))
    monkeypatch.setattr(verification, "claims", lambda _: ({}, []))
    said = {"A.t": "A.t : 1 = 2"}
    monkeypatch.setattr(verification, "statements", lambda *_: (said, found, False))
    monkeypatch.setattr(verify, "implemented_names", dict)
    (tmp_path / "Attention").mkdir()
    (tmp_path / "Attention.lean").touch()
    section = verification.audit()
    assert section["problems"] == found
    assert section["ok"] is not bool(found)
    assert statements.kept(tmp_path) == said
    assert section["headlines"] == [{"lean": "A.t", "statement": "A.t : 1 = 2"}]


def test_the_audit_shows_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped:
        def audit(self, on_checked: Callable[[int, int], None]) -> Audit:
            on_checked(3, 12)
            raise ToolchainError("stopped there")

    verification = Verification(tmp_path, Console(quiet=True))
    monkeypatch.setattr(verification, "lean", Stopped())
    monkeypatch.setattr(verification, "lean_key", lambda: "key")
    section = verification.stage("audit", verification.audit)
    assert section["problems"] == ["stopped there"]
    assert verification.bars["audit"].text().startswith("3 of 12, about ")


def test_statements_that_say_something_are_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lean = OneAnswer(tmp_path, {"theorem": "A.t", "found": None, "statement": "A.t : 1 = 2"})
    for _ in range(2):
        said = said_of_statements(tmp_path, lean, monkeypatch)
        assert said == ({"A.t": "A.t : 1 = 2"}, [])
    assert lean.asked == [["A.t A A.B B"]]


def test_a_statement_that_was_not_looked_at_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolchainError, match="0 of 1 statements were looked at"):
        said_of_statements(tmp_path, OneAnswer(tmp_path), monkeypatch)


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
    monkeypatch.setattr(verification, "vectors", lambda made: none())
    monkeypatch.setattr(verification, "kernels", lambda: {"ok": True})
    assert not verification.run()
    text = console.export_text()
    assert "✘ Lean" in text
    assert "There is no Lean." in text
    assert "– Planted faults: not run, since a stage before it failed" in text


def test_one_stage_alone_is_judged_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(record=True, width=200, quiet=False, file=io.StringIO())
    for good in (True, False):
        verification = Verification(tmp_path, console)
        monkeypatch.setattr(verification, "faults", lambda good=good: {"ok": good})
        assert verification.run(("faults",)) is good
        assert list(verification.report) == ["faults"]
    assert "not run" not in console.export_text()


def test_a_family_is_done_when_it_is_made_and_recomputed(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "vectors"
    folder.mkdir(parents=True)
    for name in ("one", "two", "three", "index"):
        (folder / f"{name}.json").touch()
    verification = Verification(tmp_path, Console(quiet=True))
    with verification.progress.bar("Vectors") as bar:
        verification.bars["vectors"] = bar
        verification.vectors_reached(recomputed=3)
        assert (bar.done, bar.total) == (0, 3)
        verification.vectors_reached(made=2)
        assert (bar.done, bar.total) == (2, 3)
