"""Break one link of the chain from Lean to the kernels: `verify` must not end well.

Each test edits a copy of the project and runs there the stage of `python -m bridge verify` that has
to see it; one, all stages. The copy starts with the results of an unedited copy, whose own run has
to end well. `make verify` comes first: without its results, they are left out.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from checkout_copy import ROOT, copy_of

from bridge import limits
from bridge.cache import Cache
from bridge.limits import Limit
from bridge.report.runs import Runs
from bridge.vectors.format.index import INDEX
from bridge.vectors.load import write_index

pytestmark = pytest.mark.long
# All of `verify`, the Lean build included, takes about 4500 s.
VERIFY_LIMIT = Limit(20_000, 1800)


@dataclass(frozen=True)
class Mutation:
    """An edit of one file, and the section of the report that has to notice it; built: whether Lean
    builds all the same, where that matters. families: the copy has the vectors of these alone, and
    its program makes no others, where the section takes any."""

    file: str
    old: str
    new: str
    noticed_by: str
    built: bool | None = None
    families: tuple[str, ...] = ()


MUTATIONS = {
    # The mutations of Lean are of files that few modules import: the others stay built.
    "spec-body-that-theorems-speak-of": Mutation(
        "Attention/Spec/SafeSoftcap.lean", "exp (0 - (size + size))", "exp (0 - size)", "build"
    ),
    # It builds, since no theorem is about the printing of results; nor does the exact arithmetic
    # tell, to which the order of parts is all one.
    "program-that-makes-the-vectors": Mutation(
        "Attention/Vectors/OperationJson.lean",
        'lines 5 (c.parts.map fun part => object [\n      ("log_sum_exp"',
        'lines 5 (c.parts.reverse.map fun part => object [\n      ("log_sum_exp"',
        "vectors",
        built=True,
        families=("combine",),
    ),
    "digit-of-a-vector": Mutation(
        "tests/vectors/one-key.json", '"denominator": "1"', '"denominator": "2"', "vectors"
    ),
    "loader-of-expected-values": Mutation(
        "bridge/vectors/format/read_results.py",
        "return Row(largest, denominator, bottom, numerators, log)",
        "return Row(largest, denominator, bottom, tuple(-x for x in numerators), log)",
        "vectors",
    ),
    # Only the modules of `pyimpl.modules` run again with it.
    "implements-name": Mutation(
        "pyimpl/modules/internal/generation.py",
        '@implements("Attention.Spec.argmax")',
        '@implements("Attention.Spec.argmaxOf")',
        "audit",
    ),
    "kernel": Mutation(
        "pyimpl/backends/kernels/parts/loop.py",
        "l = alpha * l + tl.sum(p, 1)",
        "l = l + tl.sum(p, 1)",
        "implementations",
        families=("maximum-moves", "small-random"),
    ),
}


# The one that goes through all stages: those after the failure have to be left out.
END_TO_END = "digit-of-a-vector"
# The others take 20 s each; the unedited copy runs what they edit in any case.
THOROUGH = MUTATIONS.keys() - {END_TO_END}


# Where the program that makes the vectors asks whose a family is.
PROGRAM, CLAIM = "Attention/Vectors/Main.lean", "  let some claims := folder.claims | return true\n"


def leave(folder: Path, families: Sequence[str]) -> None:
    """Of the vectors in a copy only these families, and its program makes these alone."""
    program = folder / PROGRAM
    text = program.read_text("utf-8")
    assert CLAIM in text, "the edit no longer applies"
    listed = ", ".join(f'"{name}"' for name in families)
    alone = f"  unless [{listed}].contains name do return false\n"
    program.write_text(text.replace(CLAIM, alone + CLAIM), "utf-8")
    vectors = folder / "tests" / "vectors"
    for path in vectors.glob("*.json"):
        if path.name != INDEX and path.stem not in families:
            path.unlink()
    write_index(vectors)


def verify(folder: Path, *stages: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, report and output of `verify` in a copy, of these stages or of all."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    chosen = [word for stage in stages for word in ("--stage", stage)]
    command = [sys.executable, "-m", "bridge", "verify", *chosen]
    done = limits.run(command, VERIFY_LIMIT, cwd=folder, env=environment)
    assert "Traceback" not in done.stderr, done.stderr
    report = json.loads((folder / "build" / "report.json").read_text("utf-8"))
    return done.returncode, report, done.stdout


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """An unedited copy, and the report of its first run, which takes over what `make verify` has
    found out: all of it is more than the rest of the suite."""
    runs = Runs(ROOT, Cache(ROOT / "build" / "cache"))
    # One of the results that take longest; besides it only a thorough test of one dtype makes it.
    if runs.find(runs.implementation("pyimpl-triton", "float32", "cpu")) is None:
        pytest.skip("`make verify` has not run on these sources")
    folder = tmp_path_factory.mktemp("unedited")
    copy_of(ROOT, folder)
    status, report, output = verify(folder)
    assert status == 0, output
    assert report["ok"] is True
    # Found by the hash of all their inputs: the next run need not find them out again.
    shutil.copytree(folder / "build" / "cache", ROOT / "build" / "cache", dirs_exist_ok=True)
    return folder, report


@pytest.fixture(scope="module")
def unedited(first: tuple[Path, dict[str, Any]]) -> Path:
    return first[0]


@pytest.mark.thorough
def test_nothing_is_done_twice(first: tuple[Path, dict[str, Any]]) -> None:
    folder, report = first
    stages = ("build", "audit", "kernels", "vectors", "implementations", "mutants")
    # After `make verify` the first run in the copy is the second of these files.
    if not all(report[name]["kept"] for name in stages):
        status, report, _ = verify(folder)
        assert status == 0
    assert [report[name]["kept"] for name in stages] == [True] * len(stages)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.thorough] * (n in THOROUGH)) for n in MUTATIONS]
)
def test_a_broken_link_is_noticed(name: str, unedited: Path, tmp_path: Path) -> None:
    mutation = MUTATIONS[name]
    copy_of(unedited, tmp_path)
    path = tmp_path / mutation.file
    text = path.read_text("utf-8")
    assert mutation.old in text, "the edit no longer applies"
    path.write_text(text.replace(mutation.old, mutation.new, 1), "utf-8")
    if mutation.families:
        leave(tmp_path, mutation.families)
    end_to_end = name == END_TO_END
    status, report, output = verify(tmp_path, *(() if end_to_end else (mutation.noticed_by,)))
    assert status == 1, output
    if end_to_end:
        assert "not run, since a stage before it failed" in output
    assert report["ok"] is False
    assert report[mutation.noticed_by]["ok"] is False
    assert report[mutation.noticed_by]["problems"], output
    if mutation.built is not None:
        assert report["build"]["ok"] is mutation.built
    if name == "program-that-makes-the-vectors":
        # The family that the edited program makes otherwise is all that differs.
        *differing, _ = report["vectors"]["problems"]
        assert [one.split(" ")[0] for one in differing] == ["combine.json", "index.json"], differing
    if name == "kernel":
        # In each dtype, and no implementation but the one with the edit.
        problems = report["implementations"]["problems"]
        assert [one.split(" ")[0] for one in problems] == ["pyimpl-triton"] * 3, problems
