"""Break one link of the chain from Lean to the kernels: `verify` must not end well.

Each test edits a copy of the project and runs `python -m bridge verify` there. The copy starts with
the results of an unedited copy, whose own run has to end well.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from checkout_copy import ROOT, copy_of


@dataclass(frozen=True)
class Mutation:
    """An edit of one file, and the section of the report that has to notice it; built: whether Lean
    builds all the same, where that matters."""

    file: str
    old: str
    new: str
    noticed_by: str
    built: bool | None = None


MUTATIONS = {
    "spec-body-that-theorems-speak-of": Mutation(
        "Attention/Spec/Online.lean",
        "    l := α * s.l + sumOver (fun key => rescale key.score m) block",
        "    l := s.l + sumOver (fun key => rescale key.score m) block",
        "build",
    ),
    # It builds: what the vectors say of it is another matter.
    "program-that-makes-the-vectors": Mutation(
        "Attention/Vectors/Algorithm.lean",
        "attention scale modify Q K V).toList",
        "attention (scale + 1) modify Q K V).toList",
        "vectors",
        built=True,
    ),
    "digit-of-a-vector": Mutation(
        "tests/vectors/one-key.json", '"denominator": "1"', '"denominator": "2"', "vectors"
    ),
    "loader-of-expected-values": Mutation(
        "bridge/vectors/fields.py",
        "numerators = tuple(int(x) for x in data",
        "numerators = tuple(-int(x) for x in data",
        "vectors",
    ),
    "implements-name": Mutation(
        "pyimpl/state.py",
        '@implements("Attention.Spec.Online.merge")',
        '@implements("Attention.Spec.Online.mergeAll")',
        "audit",
    ),
    "kernel": Mutation(
        "pyimpl/kernels/_loop.py",
        "l = alpha * l + tl.sum(p, 1)",
        "l = l + tl.sum(p, 1)",
        "implementations",
    ),
}


def verify(folder: Path) -> tuple[int, dict[str, Any], str]:
    """Exit status, report and output of `verify` in a copy."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", "bridge", "verify"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=3600,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    report = json.loads((folder / "build" / "report.json").read_text("utf-8"))
    return done.returncode, report, done.stdout


@pytest.fixture(scope="module")
def unedited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unedited")
    copy_of(ROOT, folder)
    status, report, output = verify(folder)
    assert status == 0, output
    assert report["ok"] is True
    # Found by the hash of all that they depend on: what the next run need not find out again.
    shutil.copytree(folder / "build" / "cache", ROOT / "build" / "cache", dirs_exist_ok=True)
    return folder


def test_the_committed_page_of_theorems_is_current(unedited: Path) -> None:
    page = Path("docs", "theorems.md")
    assert (unedited / page).read_bytes() == (ROOT / page).read_bytes()


def test_nothing_is_done_twice(unedited: Path) -> None:
    status, report, _ = verify(unedited)
    assert status == 0
    stages = ("build", "audit", "vectors", "implementations", "faults", "docs")
    assert [report[name]["kept"] for name in stages] == [True] * len(stages)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_link_is_noticed(name: str, unedited: Path, tmp_path: Path) -> None:
    mutation = MUTATIONS[name]
    copy_of(unedited, tmp_path)
    path = tmp_path / mutation.file
    text = path.read_text("utf-8")
    assert mutation.old in text, "the edit no longer applies"
    path.write_text(text.replace(mutation.old, mutation.new, 1), "utf-8")
    status, report, output = verify(tmp_path)
    assert status == 1, output
    assert report["ok"] is False
    assert report[mutation.noticed_by]["ok"] is False
    assert report[mutation.noticed_by]["problems"], output
    if mutation.built is not None:
        assert report["build"]["ok"] is mutation.built
