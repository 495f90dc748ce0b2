from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bridge import audit
from bridge.audit import main_theorems, statements
from bridge.audit.implemented import implemented_names
from bridge.audit.library import Library, LibraryFailure
from bridge.audit.theorems import listed_theorems
from bridge.cache import Cache
from bridge.report.verify import Verification
from bridge.source.excerpt import SourceError
from bridge.toolchain import ToolchainError
from bridge.toolchain.audit import Audit


@pytest.mark.parametrize(
    "found", [[], ["a: A.t says nothing: its conclusion `True` holds of anything"]]
)
def test_the_audit_passes_only_if_all_statements_say_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: list[str]
) -> None:
    library = Library(tmp_path, Cache(tmp_path / "build" / "cache"), print, print)
    audited = {"ok": True, "declarations": [], "problems": [], "classes": {}}
    audited |= {"replayed": 0, "trusted": "", "trusted_names": {}}
    monkeypatch.setattr(library, "_lean", object())
    monkeypatch.setattr(library, "key", lambda: "key")
    monkeypatch.setattr(library.cache, "get", lambda *_: (audited, False))
    monkeypatch.setattr(main_theorems, "main_theorems", lambda *_: ([{"lean": "A.t"}], []))
    monkeypatch.setattr(main_theorems, "count_verdicts", lambda *_: ({}, []))
    said = {"A.t": statements.Statement("A.t : 1 = 2", None, "digest")}
    monkeypatch.setattr(main_theorems, "whole_statements", lambda *_: (said, found, False))
    monkeypatch.setattr(audit.library, "implemented_names", dict)
    (tmp_path / "Attention").mkdir()
    (tmp_path / "Attention.lean").touch()
    section = library.audit()
    assert section["problems"] == found
    assert section["ok"] is not bool(found)
    assert statements.read_kept(tmp_path) == {"A.t": "A.t : 1 = 2"}
    assert section["terms"] == {"A.t": "digest"}
    assert section["main_theorems"] == [{"lean": "A.t", "statement": "A.t : 1 = 2"}]


def test_the_audit_shows_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped:
        def audit(self, on_checked: Callable[[int, int], None]) -> Audit:
            on_checked(3, 12)
            raise ToolchainError("stopped there")

    verification = Verification(tmp_path, Console(quiet=True))
    monkeypatch.setattr(verification.library, "_lean", Stopped())
    monkeypatch.setattr(verification.library, "key", lambda: "key")
    section = verification.stage("audit", verification.library.audit)
    assert section["problems"] == ["stopped there"]
    assert verification.bars["audit"].text().startswith("3 of 12, about ")


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
        (
            '[[theorem]]\nid = "a"\n',
            "theorems.toml: a theorem has id, kind, lean and sentence, not id",
        ),
        (
            '[[theorem]]\nid = "a"\nkind = "best"\nlean = "A"\nsentence = "A."\n',
            "theorems.toml: a is of the kind 'best', not one of main, beyond, corollary, sanity",
        ),
    ],
)
def test_a_list_of_theorems_that_is_none(tmp_path: Path, toml: str, sentence: str) -> None:
    path = tmp_path / "theorems.toml"
    path.write_text(toml, "utf-8")
    with pytest.raises(SourceError) as caught:
        listed_theorems(path)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("failing", ["toolchain", "build", "audit"])
def test_the_first_stage_that_fails_is_the_last(failing: str, tmp_path: Path) -> None:
    library = Library(tmp_path, Cache(tmp_path), print, print)
    stages = []

    def stage(name: str, work: Callable[[], Any]) -> dict[str, Any]:
        stages.append(name)
        return {"ok": name != failing, "problems": []}

    with pytest.raises(LibraryFailure, match=f"{failing} fails"):
        library.find_build_and_audit(stage)
    assert stages == ["toolchain", "build", "audit"][: len(stages)]
    assert stages[-1] == failing
