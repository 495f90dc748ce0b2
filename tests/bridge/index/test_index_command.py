"""`python -m bridge index`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from index_sample import Sample
from misuse import misuse

from bridge import __main__
from bridge.__main__ import main
from bridge.audit.library import LibraryFailure
from bridge.audit.second_kernel.core_statements import TABLE, Statement, table
from bridge.index import collect, gaps, maps
from bridge.pages import written


@pytest.fixture
def root(sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose maps are current."""
    monkeypatch.setattr(__main__, "checkout", lambda: tmp_path)
    maps.write(tmp_path, sample.index())
    return tmp_path


@pytest.fixture
def run(sample: Sample, root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def command(
        *arguments: str,
        problems: tuple[str, ...] = (),
        core: dict[str, Statement] | None = None,
    ) -> Result:
        index = sample.index()
        found = collect.Collected(
            index, list(problems), None, "there is no trace", *gaps.gaps(index), core
        )
        monkeypatch.setattr(collect, "collect", lambda library, stage: found)
        monkeypatch.setattr(collect, "texts_of", lambda root: sample.texts)
        return CliRunner().invoke(main, ["index", *arguments])

    return command


def test_the_summary_names_the_gaps_and_fails(run: Any) -> None:
    result = run()
    assert result.exit_code == 1
    assert "Attention.Spec.total lacks vectors and Python and theorem" in result.output
    assert "Note: there is no trace." in result.output


def test_without_gaps_it_ends_well(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaps, "gaps", lambda index: (["Attention.Spec.total"], []))
    result = run()
    assert result.exit_code == 0
    assert "lacks vectors" not in result.output


def test_maps_that_are_not_current_fail_and_are_written(
    run: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaps, "gaps", lambda index: (["Attention.Spec.total"], []))
    monkeypatch.setattr(written, "write_all", lambda _: ["docs/maps.md"])
    (root / maps.FILE).write_text("{}", "utf-8")
    result = run()
    assert result.exit_code == 1
    assert f"{maps.FILE} differs from the index; run {maps.COMMAND}" in result.output
    assert run("step").exit_code == 0
    result = run("--maps")
    assert result.exit_code == 0
    assert "wrote docs/maps.json\nwrote docs/maps.md\n" in result.output
    monkeypatch.setattr(written, "write_all", lambda _: [])
    assert "the maps are current" in run("--maps").output


def test_a_table_of_core_statements_that_is_not_current_fails_and_is_written(
    run: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaps, "gaps", lambda index: (["Attention.Spec.total"], []))
    monkeypatch.setattr(written, "write_all", lambda _: [])
    # Without a second kernel nothing tells which constants there are.
    assert run().exit_code == 0
    assert "the maps are current" in run("--maps").output
    for core in ({"Nat.a": Statement("theorem", "1")}, {"Nat.b": Statement("theorem", "1")}):
        result = run(core=core)
        assert result.exit_code == 1
        assert f"{TABLE} differs from the constants that the library rests on; " in result.output
        result = run("--maps", core=core)
        assert result.exit_code == 0
        assert f"wrote {TABLE}\n" in result.output
        assert run(core=core).exit_code == 0
        assert table(root) == core


def test_one_declaration_and_a_module(run: Any) -> None:
    assert "position: Attention/Spec/Fold.lean:30:0" in run("step").output
    result = run("Attention.Proof")
    assert result.exit_code == 0
    assert "count_eq_length" in result.output
    assert "Spec.step" not in result.output


def test_json_and_graph(run: Any, tmp_path: Path) -> None:
    result = run("step", "--json", str(tmp_path / "a.json"), "--graph", str(tmp_path / "a.svg"))
    assert result.exit_code == 0
    written = json.loads((tmp_path / "a.json").read_text("utf-8"))
    names = [one["name"] for one in written["declarations"]]
    assert "Attention.Proof.count_eq_length" in names
    assert set(written) == {"declarations", "operations", "gaps", "problems"}
    assert (tmp_path / "a.svg").read_text("utf-8").startswith("<svg")


def test_a_mismatch_fails(run: Any) -> None:
    result = run("step", problems=("A.f is stored, and the audit does not list it",))
    assert result.exit_code == 1
    assert "A.f is stored, and the audit does not list it" in result.output


def test_a_misspelt_name_builds_nothing(
    sample: Sample, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(*given: object) -> None:
        raise AssertionError("was built")

    monkeypatch.setattr(collect, "collect", build)
    monkeypatch.setattr(collect, "texts_of", lambda root: sample.texts)
    said = misuse(main, "index", "Spec.stepp")
    nearest = "Error: NAME: the library declares nothing called 'Spec.stepp'; the nearest: "
    assert said.startswith(nearest)
    assert "Attention.Spec.step" in said
    # Lean makes up names that stand in no text: those are looked up in the stored constants.
    assert isinstance(CliRunner().invoke(main, ["index", "instLE"]).exception, AssertionError)


def test_misuse_is_one_sentence(run: Any, tmp_path: Path) -> None:
    result = run("nothing")
    assert (result.exit_code, result.output) == (
        2,
        "Error: NAME: the library declares nothing called 'nothing'\n",
    )
    result = run("instNothing")
    assert "nothing called 'instNothing'" in result.output
    result = run("step", "--json", str(tmp_path / "no" / "a.json"))
    assert result.exit_code == 2
    assert "cannot be written: No such file or directory" in result.output


def test_a_library_that_fails_its_audit_is_not_indexed(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise LibraryFailure(["count: its statement mentions no Spec definition"])

    monkeypatch.setattr(collect, "collect", fail)
    result = CliRunner().invoke(main, ["index"])
    assert result.exit_code == 1
    assert "cannot be indexed: count: its statement mentions no Spec definition" in result.output
