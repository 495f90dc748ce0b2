"""The facts about each declaration, declarations that lack something, and the graph."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from index_sample import Sample
from rich.console import Console

from bridge.index import show
from bridge.index.entries import assemble
from bridge.index.gaps import (
    WITHOUT_PYTHON,
    WITHOUT_VECTORS,
    Gap,
    gaps,
    is_number,
    result_types,
)
from bridge.index.graph import arrows, draw, reduce

COUNT = "Attention.Proof.count_eq_length"


def test_an_entry_has_all_that_is_known(sample: Sample) -> None:
    index = sample.index()
    count = index.entries[COUNT]
    assert (count.kind, count.main_theorem, count.axioms) == ("theorem", "count", ("propext",))
    assert (count.file, count.range) == ("Attention/Proof/Fold.lean", (17, 0, 19, 27))
    assert count.doc == "**count**: the count is the number of numbers."
    assert count.statement.endswith("(List.foldl Spec.step Spec.empty xs).count = xs.length")
    assert "_private.Attention.Proof.Fold.0.Attention.Proof.count_foldl" in count.uses
    assert "Attention.Spec.step" in count.uses_in_statement
    step = index.entries["Attention.Spec.step"]
    assert COUNT in step.used_by
    assert step.python == ("some.module.step",)


def test_kinds(sample: Sample) -> None:
    kinds = {e.shown.removeprefix("Attention."): e.kind for e in sample.index().entries.values()}
    assert kinds["Spec.State"] == "structure"
    assert kinds["Spec.State.total"] == "field"
    assert kinds["Spec.Choice"] == "inductive"
    assert kinds["Spec.Choice.leave"] == "constructor"
    assert kinds["Spec.instInhabitedState"] == "instance"
    assert kinds["Proof.count_foldl"] == "theorem"


def test_vectors_of_a_definition_and_of_a_theorem(sample: Sample) -> None:
    families = {
        "one": [("Attention.Spec.step", "count"), ("Attention.Spec.step", "other")],
        "two": [("Attention.Spec.empty", "count")],
    }
    main_theorems = [{"id": "count", "lean": COUNT}]
    index = assemble(sample.constants, sample.audited, main_theorems, families, [])
    assert index.entries["Attention.Spec.step"].vectors == {"one": 2}
    assert index.entries[COUNT].vectors == {"one": 1, "two": 1}


def test_names_are_found_whole_or_by_their_end(sample: Sample) -> None:
    index = sample.index()
    assert [e.name for e in index.find("Attention.Spec.total")] == ["Attention.Spec.total"]
    assert {e.shown for e in index.find("total")} == {
        "Attention.Spec.total",
        "Attention.Spec.State.total",
    }
    assert index.find("otal") == []
    assert len(index.inside("Attention.Proof.Fold")) == 4
    assert {e.shown for e in index.inside("Attention.Spec.Choice")} >= {
        "Attention.Spec.Choice.take"
    }


def test_operations_and_their_gaps(sample: Sample) -> None:
    """`total` yields a value and nobody implements it; `step` is implemented, and `empty`, which
    the listed theorem mentions too, has no Python."""
    operations, found = gaps(sample.index())
    assert operations == [f"Attention.Spec.{name}" for name in ("empty", "step", "total")]
    assert found == [
        Gap("Attention.Spec.empty", ("vectors", "Python")),
        Gap("Attention.Spec.step", ("vectors",)),
        Gap("Attention.Spec.total", ("vectors", "Python", "theorem")),
    ]


def test_a_theorem_of_the_program_is_none_of_what_it_runs(sample: Sample) -> None:
    index = sample.index()
    run = replace(
        index.entries["Attention.Spec.step"], name="Attention.Vectors.run",
        uses=("Attention.Spec.total",), main_theorem=None, python=(),
    )  # fmt: skip
    count = index.entries[COUNT]
    mentions = replace(count, uses_in_statement=(*count.uses_in_statement, run.name))
    index = replace(index, entries={**index.entries, run.name: run, COUNT: mentions})
    assert Gap("Attention.Spec.total", ("vectors", "Python", "theorem")) in gaps(index)[1]
    # Elsewhere it would do.
    other = replace(run, name="Attention.Spec.run")
    mentions = replace(count, uses_in_statement=(*count.uses_in_statement, other.name))
    index = replace(index, entries={**index.entries, other.name: other, COUNT: mentions})
    assert Gap("Attention.Spec.total", ("vectors", "Python")) in gaps(index)[1]


def test_bounds_need_no_vectors(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python and a theorem they need like the others."""
    monkeypatch.setitem(WITHOUT_VECTORS, "Attention.Spec.Fold", "a bound")
    assert gaps(sample.index())[1] == [
        Gap("Attention.Spec.empty", ("Python",)),
        Gap("Attention.Spec.total", ("Python", "theorem")),
    ]


def test_what_others_compute_needs_no_python(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors and a theorem it needs like the others."""
    monkeypatch.setitem(WITHOUT_PYTHON, "Attention.Spec.Fold", "another's")
    assert gaps(sample.index())[1] == [
        Gap("Attention.Spec.empty", ("vectors",)),
        Gap("Attention.Spec.step", ("vectors",)),
        Gap("Attention.Spec.total", ("vectors", "theorem")),
    ]


def test_what_is_excepted_is_there_and_says_why() -> None:
    root = Path(__file__).resolve().parents[3]
    for module, reason in [*WITHOUT_VECTORS.items(), *WITHOUT_PYTHON.items()]:
        assert (root / f"{module.replace('.', '/')}.lean").is_file()
        assert len(reason) > 20


def test_a_number_that_has_a_name_is_no_operation() -> None:
    assert is_number("f {R : Type u} [Add R] : R")
    assert not is_number("f {R : Type u} (x : R) : R")
    assert not is_number("f {R : Type u} : R → R")
    assert not is_number("f {R : Type u} : State R R d")


def test_what_a_definition_yields() -> None:
    assert result_types("f (x : Nat) : Vec R d") == ["Vec R d"]
    assert result_types("f : Option S → (Nat → R) → R") == ["R"]
    assert result_types("f (n : A × B) :\n  List (K × R) × State S R d") == [
        "List (K × R)",
        "State S R d",
    ]


def test_the_graph(sample: Sample) -> None:
    index = sample.index()
    above = arrows(index)
    assert above[COUNT] == {f"Attention.Spec.{name}" for name in ("State", "step", "empty")}
    assert reduce(above)[COUNT] == {"Attention.Spec.step", "Attention.Spec.empty"}
    svg = ElementTree.fromstring(draw(index))
    lines = ["".join(one.itertext()) for one in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert any(line.endswith("\nuses: State, empty, stepcount") for line in lines)
    assert any("\nused by: count, total" in line for line in lines)


def test_one_declaration_on_the_terminal(sample: Sample) -> None:
    index = sample.index()
    out = Console(file=io.StringIO(), width=200)
    show.one(out, index.entries[COUNT], index, "theorem as written")
    assert isinstance(out.file, io.StringIO)
    text = out.file.getvalue()
    for part in (
        "Attention/Proof/Fold.lean:17:0",
        "axioms: propext",
        "count_foldl",
        "theorem as written",
    ):
        assert part in text
