"""Mutants: each is caught, and an edit that changes no result is not."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import committed
import pytest

from bridge.conformance.adapters.adapter import ALL_DTYPES
from bridge.conformance.adapters.own import PyimplState
from bridge.conformance.mutants.attention import EQUIVALENT, KERNEL_MUTANTS, MUTANTS
from bridge.conformance.mutants.planting import (
    ADAPTERS,
    BACKWARD,
    SHARES_IN,
    Mutant,
    MutantError,
    mutated_module,
    plant,
    shares,
    source_of,
)
from bridge.report.runs import Runs
from bridge.vectors.model.attention import AttentionVector, Family
from pyimpl.internal.implements import implementations

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda f: f.name)
def test_every_mutant_is_caught_in_every_dtype(mutant: Mutant, runs: Runs) -> None:
    result = runs.get(runs.mutant(mutant, "cpu"), committed.everything)
    assert result["caught_by"] is not None
    assert all(any(families.values()) for families in result["families"].values())
    assert float(result["worst"]["ratio"]) > 100, "a mistake this gross is no close call"
    assert result["theorem"] is not None


LSE_ALONE = {"lse-base-2", "empty-row-lse-infinite", "empty-row-lse-finite"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "mutant",
    [f for f in MUTANTS if f.name not in LSE_ALONE and not f.backward],
    ids=lambda f: f.name,
)
def test_the_output_alone_shows_it(mutant: Mutant, runs: Runs) -> None:
    """Many functions return no log-sum-exp. In the coarsest dtype, which hides most."""
    how = {"dtypes": ["bfloat16"], "output_only": True}
    result = runs.plant("output", mutant, committed.everything, caught=True, **how)
    assert result["worst"]["part"] == "output"
    assert float(result["worst"]["ratio"]) > 1


def test_there_are_enough_and_they_have_names_of_their_own() -> None:
    assert len(MUTANTS) >= 8
    assert len(KERNEL_MUTANTS) >= 5
    assert len({f.name for f in MUTANTS + EQUIVALENT}) == len(MUTANTS + EQUIVALENT)
    assert {"wrong-scale", "omitted-scale", "doubled-scale"} <= {f.name for f in KERNEL_MUTANTS}


@pytest.mark.parametrize(
    "dtypes",
    [("float32",), pytest.param(ALL_DTYPES, marks=pytest.mark.thorough)],
    ids=["float32", "all"],
)
@pytest.mark.parametrize("mutant", EQUIVALENT, ids=lambda f: f.name)
def test_an_equivalent_mutant_is_not_caught(
    mutant: Mutant, dtypes: tuple[str, ...], runs: Runs
) -> None:
    name = f"equivalent-{len(dtypes)}"
    result = runs.plant(name, mutant, committed.everything, caught=False, dtypes=list(dtypes))
    assert not result["caught"]
    vectors = [v for v in committed.vectors() if isinstance(v, AttentionVector)]
    assert result["tried"] == len(dtypes) * sum(v.options <= PyimplState.takes for v in vectors)


@pytest.mark.parametrize(
    "file", [*ADAPTERS, *(pytest.param(one, marks=pytest.mark.thorough) for one in BACKWARD)]
)
def test_the_unedited_copy_passes(file: str, runs: Runs) -> None:
    """The planting itself breaks nothing: an edit that changes nothing is not caught. It is the
    same for every dtype."""
    same = "from __future__ import annotations"
    control = Mutant(f"control-{file.replace('/', '-')}", "no change", file, same, same)

    def four() -> list[Family]:
        return [replace(f, vectors=f.vectors[:4]) for f in committed.everything()]

    result = runs.plant("four", control, four, caught=False, dtypes=["float32"])
    assert not result["caught"]
    assert result["tried"] > 0


def test_a_mutant_that_no_longer_applies_says_so() -> None:
    gone = Mutant("gone", "", "state.py", "no such text", "x")
    with pytest.raises(
        MutantError, match="the mutant gone no longer applies: 'no such text' occurs"
    ):
        plant(gone, committed.everything())
    assert source_of("state.py").count("return") > 1
    with pytest.raises(MutantError, match=r"occurs \d+ times in pyimpl/state.py, not 1"):
        plant(replace(gone, old="return"), committed.everything())


def test_a_mutant_that_does_not_run_is_no_catch() -> None:
    old = "torch.maximum("
    broken = Mutant("broken", "", "state.py", old, "torch.maxi(", source_of("state.py").count(old))
    with pytest.raises(MutantError, match=r"does not run: .*AttributeError"):
        plant(broken, committed.everything(), ["float32"])


def test_planting_leaves_no_trace() -> None:
    # Modules that a kernel imports stay imported.
    importlib.import_module("pyimpl.backends.kernels.forward")
    before = (implementations(), set(sys.modules))
    with mutated_module(EQUIVALENT[0]) as module:
        assert module.__name__ in sys.modules
    plant(MUTANTS[0], committed.everything()[:1], ["float32"])
    assert (implementations(), {m for m in sys.modules if m.startswith("mutated")}) == (
        before[0],
        set(),
    )


@pytest.mark.thorough
def test_what_a_planted_module_is_the_first_to_import_is_recorded() -> None:
    # The kernels' common loop, by a process that has imported no kernel before.
    program = """
from bridge.conformance.mutants.attention import MUTANTS
from bridge.conformance.mutants.planting import mutated_module
from pyimpl.internal.implements import implementations

mutant = next(f for f in MUTANTS if f.file == "backends/kernels/forward.py")
with mutated_module(mutant):
    print({one.module for one in implementations() if one.lean == "Attention.Spec.ScoreMod.bias"})
"""
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout == "{'pyimpl.backends.kernels.parts.loop'}\n"


def test_the_shares_by_family() -> None:
    # A mutant of masks does not show in these families.
    tiled = [
        f for f in MUTANTS if f.file == "backends/tiled.py" and f.promising != ("masked-holes",)
    ]
    some = committed.families("causal", "one-key", "scales")
    results = [plant(f, some, ["float32"], every_family_in="float32") for f in tiled]
    table = shares(results, "float32")
    assert set(table) == {"causal", "one-key", "scales"}
    assert all(tried == len(tiled) for _, tried in table.values())
    assert table["causal"][0] == len(tiled)
    assert table["one-key"][0] < len(tiled)
    json.dumps([r.to_json() for r in results], allow_nan=False)


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", [f for f in MUTANTS if not f.backward], ids=lambda f: f.name)
def test_the_families_that_promise_to_show_a_mutant_do(mutant: Mutant, runs: Runs) -> None:
    """Each mutant goes through every family: `bridge mutants --every-family` shows the table."""
    result = runs.get(runs.mutant(mutant, "cpu", every_family=True), committed.everything)
    caught = {name for name, by in result["families"][SHARES_IN].items() if by}
    assert set(mutant.promising) <= caught
