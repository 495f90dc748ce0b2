"""`docs/maps.json`: the facts of the index, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from index_sample import Sample

from bridge.index import maps
from bridge.index.entries import Index

SPEC = "Attention.Spec."
COUNT = "Attention.Proof.count_eq_length"


def test_the_maps_of_a_small_library(sample: Sample) -> None:
    found = maps.data(sample.index())
    definitions = found["definitions"]
    names = {name.removeprefix(SPEC) for name in definitions}
    assert {"State", "Choice", "Choice.text", "empty", "step", "total"} <= names
    # Neither fields nor constructors nor instances.
    assert not names & {"State.total", "Choice.leave", "instInhabitedState"}
    assert definitions[f"{SPEC}step"] == {
        "module": "Attention.Spec.Fold",
        "uses": [f"{SPEC}State"],
        "operation": True,
        "run": False,
    }
    assert definitions[f"{SPEC}total"]["uses"] == [f"{SPEC}{n}" for n in ("State", "empty", "step")]
    assert not definitions[f"{SPEC}State"]["operation"]
    assert found["theorems"] == {
        "count": {
            "lean": COUNT,
            "module": "Attention.Proof.Fold",
            "uses": [f"{SPEC}{n}" for n in ("State", "empty", "step")],
            "needs": [],
            "rests_on": [],
        }
    }


def with_theorems(sample: Sample, uses: dict[str, list[str]], main_theorems: set[str]) -> Index:
    """Theorems by their names with the declarations they use, beside those of the sample."""
    index = sample.index()
    one = index.entries[COUNT]
    made = {
        name: replace(
            one, name=name, uses=tuple(used), main_theorem=name if name in main_theorems else None
        )
        for name, used in uses.items()
    }
    return Index({**index.entries, **made})


def test_a_proof_rests_on_the_nearest_main_theorems(sample: Sample) -> None:
    """By way of a lemma, and not on the theorems behind another listed theorem."""
    uses = {"a": [], "b": ["a"], "lemma": ["b", "step"], "c": ["lemma", "c"], "d": ["lemma", "a"]}
    index = with_theorems(sample, uses, {"a", "b", "c", "d"})
    found = {name: maps.rests_on(index, name) for name in uses}
    assert found == {"a": [], "b": ["a"], "lemma": ["b"], "c": ["b"], "d": ["a", "b"]}
    stored = maps.data(index)["theorems"]
    assert {id: stored[id]["rests_on"] for id in "abcd"} == {id: found[id] for id in "abcd"}


def test_what_the_vector_program_runs_is_marked(sample: Sample) -> None:
    index = sample.index()
    program = replace(
        index.entries[f"{SPEC}total"],
        name="main",
        module="Attention.Vectors.Main",
        uses=(f"{SPEC}step",),
    )
    definitions = maps.data(Index({**index.entries, "main": program}))["definitions"]
    run = {name for name, one in definitions.items() if one["run"]}
    assert f"{SPEC}step" in run
    assert f"{SPEC}total" not in run


def test_a_file_that_differs_is_a_problem(sample: Sample, tmp_path: Path) -> None:
    index = sample.index()
    said = f"{maps.FILE} differs from the index; run {maps.COMMAND}"
    assert maps.problems(tmp_path, index) == [said]
    assert maps.write(tmp_path, index)
    assert not maps.write(tmp_path, index)
    assert maps.problems(tmp_path, index) == []
    assert json.loads((tmp_path / maps.FILE).read_text("utf-8")) == {
        "format": maps.FORMAT,
        **maps.data(index),
    }
    fewer = Index({n: e for n, e in index.entries.items() if n != COUNT})
    assert maps.problems(tmp_path, fewer) == [said]
