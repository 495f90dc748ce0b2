"""The index in lean-dojo's data model."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from index_sample import SAMPLE, Sample

from bridge.index import traced
from bridge.index.collect import texts_of
from bridge.index.entries import Index

COUNT = "Attention.Proof.count_eq_length"
FOLDL = "_private.Attention.Proof.Fold.0.Attention.Proof.count_foldl"

needs_lean_dojo = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="lean-dojo needs Python older than 3.13"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(SAMPLE, tmp_path / "project")
    return tmp_path / "project"


def change(index: Index, **what: object) -> Index:
    return Index({**index.entries, COUNT: replace(index.entries[COUNT], **what)})  # type: ignore[arg-type]


@needs_lean_dojo
def test_lean_dojo_answers_from_the_trace(root: Path, sample: Sample) -> None:
    index = sample.index()
    repo = traced.trace(root, index, texts_of(root))
    assert traced.disagreements(repo, index) == []
    theorems = {one.theorem.full_name: one for one in repo.get_traced_theorems()}
    assert len(theorems) == 3
    count = theorems[COUNT]
    assert (tuple(count.start), tuple(count.end)) == ((18, 1), (19, 28))
    assert count.has_tactic_proof()
    assert not count.is_private
    assert theorems["Attention.Proof.count_foldl"].is_private
    assert FOLDL in count.get_premise_full_names()
    file = repo.get_traced_file("Attention/Proof/Fold.lean")
    file.check_sanity()
    assert file.comments[0].text == " **count**: the count is the number of numbers. -/"
    assert repo.traced_files_graph.has_edge("Attention/Proof/Fold.lean", "Attention/Spec/Fold.lean")
    statement = "theorem count_eq_length (xs : List Nat) : (xs.foldl step empty).count = xs.length"
    assert traced.source_of(repo, index.entries[COUNT]) == statement
    empty = traced.source_of(repo, index.entries["Attention.Spec.empty"])
    assert empty == "@[expose] def empty : State R := ⟨0, 0⟩"
    assert traced.source_of(repo, index.entries["Attention.Spec.State.mk"]) is None


@needs_lean_dojo
def test_what_the_trace_says_otherwise_is_found(root: Path, sample: Sample) -> None:
    index = sample.index()
    repo = traced.trace(root, index, texts_of(root))
    moved = traced.disagreements(repo, change(index, range=(17, 0, 19, 20)))
    assert moved == [f"{COUNT} ends at (19, 28) in lean-dojo's trace"]
    other = traced.disagreements(repo, change(index, core=()))
    assert other == [f"{COUNT} has other premises in lean-dojo's trace"]
    renamed = traced.disagreements(repo, change(index, shown="Attention.Proof.other"))
    assert renamed == [
        f"{COUNT} is no theorem of lean-dojo's trace",
        f"{COUNT} is in lean-dojo's trace alone",
    ]


@needs_lean_dojo
def test_the_trace_is_kept_until_something_changes(root: Path, sample: Sample) -> None:
    index = sample.index()
    folder = traced.folder_of(root)
    xml = folder / ".lake" / "build" / "ir" / "Attention" / "Proof" / "Fold.trace.xml"
    traced.trace(root, index, texts_of(root))
    os.utime(xml, (1, 1))
    traced.trace(root, index, texts_of(root))
    assert xml.stat().st_mtime == 1
    traced.trace(root, change(index, core=("Nat",)), texts_of(root))
    assert xml.stat().st_mtime > 1


@needs_lean_dojo
def test_two_that_trace_at_once_make_one_trace(
    root: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, made = sample.index(), []
    copy, write = traced._copy_sources, traced._write
    texts = texts_of(root)
    other = threading.Thread(target=traced.trace, args=(root, index, texts))

    def note_copy(*given: Any) -> None:
        made.append("copied")
        copy(*given)

    def note_write(*given: Any) -> None:
        made.append("written")
        if not other.ident:
            other.start()
            other.join(0.3)  # It could begin now, and has to wait.
        write(*given)

    monkeypatch.setattr(traced, "_copy_sources", note_copy)
    monkeypatch.setattr(traced, "_write", note_write)
    repo = traced.trace(root, index, texts)
    other.join()
    assert made == ["copied", "written"]
    assert traced.disagreements(repo, index) == []


def test_what_is_in_the_way_is_one_sentence(
    root: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    with pytest.raises(traced.TraceError, match="so there is no trace"):
        traced.trace(root, sample.index(), texts_of(root))
    monkeypatch.setattr(sys, "version_info", (3, 12, 0))
    monkeypatch.setitem(sys.modules, "lean_dojo", None)
    with pytest.raises(traced.TraceError, match="cannot be imported"):
        traced.trace(root, sample.index(), texts_of(root))
