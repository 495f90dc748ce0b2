from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bridge.report.cache import imported_files
from bridge.report.theorems import SourceError
from bridge.report.verify import (
    Verification,
    implemented_names,
    listed_theorems,
    module_behind,
)

ENTRY = '[[theorem]]\nid = "{id}"\nlean = "{lean}"\nsentence = "Says."\n'

ROOT = Path(__file__).resolve().parents[3]


def declaration(kind: str = "theorem", mentions: tuple[str, ...] = ("Attention.Spec.f",)) -> Any:
    return {"name": "A.t", "kind": kind, "mentions": list(mentions), "axioms": []}


def listing(**changes: Any) -> dict[str, Any]:
    """A library with two classes, and a theorem that speaks of one of two definitions."""
    classes = {name: {"is_class": True} for name in ("A.Ring", "A.Field")}
    definitions = {name: {"is_class": False} for name in ("Attention.Spec.f", "A.f")}
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
