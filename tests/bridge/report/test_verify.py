from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bridge.report import headlines, statements, verify
from bridge.report.implemented import implemented_names
from bridge.report.theorems import SourceError, listed_theorems
from bridge.report.verify import Verification
from bridge.toolchain import ToolchainError
from bridge.toolchain.audit import Audit


@pytest.mark.parametrize(
    "found", [[], ["a: A.t says nothing: its conclusion `True` holds of anything"]]
)
def test_the_audit_passes_only_if_all_statements_say_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: list[str]
) -> None:
    verification = Verification(tmp_path, Console(quiet=True))
    audited = {"ok": True, "declarations": [], "problems": [], "classes": {}}
    audited |= {"replayed": 0, "trusted": "", "trusted_names": {}}
    monkeypatch.setattr(verification, "lean", object())
    monkeypatch.setattr(verification, "lean_key", lambda: "key")
    monkeypatch.setattr(verification.cache, "get", lambda *_: (audited, False))
    monkeypatch.setattr(headlines, "headlines", lambda *_: ([{"lean": "A.t"}], []))
    monkeypatch.setattr(headlines, "claimed", lambda *_: ({}, []))
    said = {"A.t": "A.t : 1 = 2"}
    monkeypatch.setattr(headlines, "stated", lambda *_: (said, found, False))
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
