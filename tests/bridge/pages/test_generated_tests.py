"""The tests that are written from the vectors: complete, and able to fail."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import committed
import pytest
import torch

import pyimpl
from bridge.conformance.mutants.planting import Mutant, mutated_module
from bridge.pages import generated_tests
from bridge.source.excerpt import SourceError
from pyimpl import state
from pyimpl.backends import tile_bounds

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / generated_tests.FOLDER


def test_every_vector_is_in_one_of_them() -> None:
    text = "".join(path.read_text("utf-8") for path in FOLDER.glob("test_*.py"))
    for family in committed.everything():
        assert f'\n@vectors("{family.name}", {len(family.vectors)})\n' in text


def test_a_family_of_definitions_called_differently_is_refused() -> None:
    one, _, _, other, *_ = committed.everything()
    mixed = replace(one, name="mixed", vectors=one.vectors + other.vectors)
    with pytest.raises(ValueError, match="mixed were made by definitions that are called diff"):
        generated_tests.modules(ROOT, [mixed])


def test_what_the_table_of_calls_or_of_theorems_lacks_is_one_sentence() -> None:
    family = committed.family("alibi")
    vector, name = family.vectors[0], family.name
    for changed, said in (
        ({"lean": "Attention.Spec.new"}, f"has no call for new, which made the vectors of {name}"),
        ({"theorem": "new"}, f"the vectors of {name} name the theorem new, which docs/theorems"),
    ):
        one = replace(family, vectors=(replace(vector, **changed),))
        with pytest.raises(SourceError, match=said):
            generated_tests.modules(ROOT, [one])


def import_generated(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"generated_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def off(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with an output that is off by a thousandth."""

    def wrong(*arguments: Any, **named: Any) -> Any:
        out, lse = function(*arguments, **named)
        return out * 1.001, lse

    return wrong


# The module, the function of `pyimpl`, and a vector that shows its mistake.
OF_PYIMPL = [
    ("attention", "attention", "causal-003"),
    ("attention", "attention", "tile-loop-003"),
    ("attention", "attention", "sink-tiles-003"),
    ("attention", "attention", "softmax-weights-003"),
    ("split", "merge_states", "split-kv-003"),
    ("grouped", "attention", "grouped-query-003"),
    ("grouped", "attention", "multi-head-003"),
    ("varlen", "attention_varlen", "varlen-003"),
    ("paged", "attention_decode", "paged-003"),
    ("cascade", "attention_cascade", "cascade-003"),
    ("combine", "merge_states", "combine-003"),
]


@pytest.mark.parametrize(("name", "function", "vector_id"), OF_PYIMPL)
def test_a_wrong_function_fails(
    name: str, function: str, vector_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_generated(f"test_{name}")
    module.check(vector_id, torch.float32)
    monkeypatch.setattr(pyimpl, function, off(getattr(pyimpl, function)))
    with pytest.raises(AssertionError, match=rf"{vector_id}: output\[.* tolerance "):
        module.check(vector_id, torch.float32)


def test_a_wrong_merge_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_generated("test_merge")
    module.check("merge-003", torch.float32)
    monkeypatch.setattr(state, "merge", lambda a, b: a)
    with pytest.raises(AssertionError, match="merge-003: "):
        module.check("merge-003", torch.float32)


# By mutant: the module, the name in it or in `pyimpl` that is exchanged, and a vector that shows
# it; then the file and the edit.
PLANTED = {
    "keys-not-passed-on": (
        "ring", "simulate_ring", "ring-003",
        "ring.py", "return held[1:] + held[:1]", "return held",
    ),
    "parts-averaged": (
        "cascade", "attention_cascade", "cascade-003",
        "cascade.py",
        "out, lse = combine(outs, lses)", "out, lse = outs.mean(0), lses.logsumexp(0)",
    ),
    "denominator-keeps-the-key": (
        "cache", "cache", "cache-edits-004",
        "cache.py", "State(state.m, state.l - p, o)", "State(state.m, state.l, o)",
    ),
    "window-off-by-one": (
        "cache", "cache", "cache-window-002",
        "cache.py", "if window < cache.", "if window <= cache.",
    ),
    "not-multiplied-back": (
        "divided", "state", "divided-updates-001",
        "state.py", "State(state.m, state.l, state.l.unsqueeze(-1) * state.o)", "state",
    ),
    "sink-without-weight": (
        "sink", "state", "sink-online-001",
        "state.py", "State(sinks, torch.ones_like(sinks), o)",
        "State(sinks, torch.zeros_like(sinks), o)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_a_mutant_fails(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, exchanged, vector_id, *edit = PLANTED[planted]
    module = import_generated(f"test_{name}")
    module.check(vector_id, torch.float32)
    with mutated_module(Mutant(planted, "", *edit)) as mutated:
        if hasattr(module, exchanged):
            monkeypatch.setattr(module, exchanged, mutated)
        else:
            monkeypatch.setattr(pyimpl, exchanged, getattr(mutated, exchanged))
        with pytest.raises(AssertionError, match=f"{vector_id}: "):
            module.check(vector_id, torch.float32)


def test_wrong_bounds_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_generated("test_tile_bounds")
    module.check("tile-bounds-003")
    wrong = tile_bounds.TileRange(0, 1)
    monkeypatch.setattr(tile_bounds.TileBounds, "visited_tiles", lambda *_: wrong)
    with pytest.raises(AssertionError):
        module.check("tile-bounds-003")
