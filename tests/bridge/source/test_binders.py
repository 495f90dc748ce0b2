"""The binders that a theorem has from commands before it, read from text."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import pytest

from bridge.source.binders import Binder, binders, of_variables, whole
from bridge.source.lean import Written, declarations
from bridge.source.sources import Sources

ROOT = Path(__file__).resolve().parents[3]
HEAD = (
    "namespace A\nvariable {S R : Type u} [Ring S] [Field R] [Exponential S R]\n"
    "variable {n : Nat} (s t : S) (hs : 0 ≤ s) {f : R → R} (hf : ∀ x, f x = x)\n"
)


def last(text: str) -> Written:
    return declarations(HEAD + text)[-1]


def test_binders_of_all_kinds() -> None:
    found, rest = binders(
        " {S R : Type u}\n  [Ring S] [inst : Add R] ⦃x : S⦄ (h : (a : S) → a = a) : P"
    )
    assert found == [
        Binder("{", ("S", "R"), "Type u"),
        Binder("[", (), "Ring S"),
        Binder("[", ("inst",), "Add R"),
        Binder("⦃", ("x",), "S"),
        Binder("(", ("h",), "(a : S) → a = a"),
    ]
    assert rest == ": P"
    assert " ".join(one.text for one in found).startswith("{S R : Type u} [Ring S] [inst : Add R]")


@pytest.mark.parametrize(
    ("theorem", "said"),
    [
        # The variables that it names, those in their types, and instances of these alone.
        ("theorem a : s = s := rfl", "{S : Type u} [Ring S] (s : S)"),
        ("theorem a : s = t := rfl", "{S : Type u} [Ring S] (s t : S)"),
        (
            "theorem a (x : R) (y : S) : x = x := rfl",
            "{S R : Type u} [Ring S] [Field R] [Exponential S R]",
        ),
        ("theorem a : 1 = 1 := rfl", ""),
        # A hypothesis that nothing names is one where `include` says so.
        ("include hs\n\ntheorem a : 1 = 1 := rfl", "{S : Type u} [Ring S] (s : S) (hs : 0 ≤ s)"),
        ("include hs in\n/-- A. -/\ntheorem a : 1 = 1 := rfl",
         "{S : Type u} [Ring S] (s : S) (hs : 0 ≤ s)"),
        ("include hs in\ntheorem b : 1 = 1 := rfl\n\ntheorem a : 1 = 1 := rfl", ""),
        ("section\ninclude hs\nend\n\ntheorem a : 1 = 1 := rfl", ""),
        ("omit [Ring S] in\ntheorem a : s = s := rfl", "{S : Type u} (s : S)"),
        # Its own binder of the same name is another.
        ("theorem a (s : Nat) : s = s := rfl", ""),
        ("variable {s} in\ntheorem a : s = s := rfl", "{S : Type u} [Ring S] {s : S}"),
        ("theorem a : f 1 = f.g := rfl", "{R : Type u} [Field R] {f : R → R}"),
    ],
)  # fmt: skip
def test_what_a_theorem_has(theorem: str, said: str) -> None:
    assert " ".join(one.text for one in of_variables(last(theorem))) == said


def test_a_whole_statement() -> None:
    one = last("theorem a (x : R) :\n    f x = x := hf x\n")
    code = "theorem a (x : R) :\n    f x = x"
    said = "theorem a\n    {R : Type u} [Field R] {f : R → R}\n    (x : R) :\n    f x = x"
    assert whole(one, code) == said
    assert whole(last("theorem a : s = t := rfl\n"), "theorem a : s = t") == (
        "theorem a\n    {S : Type u} [Ring S] (s t : S) :\n    s = t"
    )
    assert whole(last("theorem a : 1 = 1 := rfl"), "theorem a : 1 = 1") == "theorem a : 1 = 1"


@cache
def sources() -> Sources:
    return Sources(ROOT, ())


# Theorems whose hypotheses stand in `variable` commands and are theirs by `include`.
INCLUDED = {
    "exact-is-real": ["hmodify"],
    "exact-sink-is-real": ["hmodify"],
    "exact-dropout-is-real": ["hmodify"],
    "exact-gradients-are-real": ["hmodify", "hslope"],
    "exact-dropout-gradients-are-real": ["hmodify", "hslope"],
    "gradient-row-finite": ["hp", "hr", "hsum", "he₀", "he"],
    "gradient-sum-finite": ["hp"],
    "transformer-memorises": ["root", "hε", "positive", "width", "heads", "units"],
    "encoder-bounded": ["h₀", "hsqrt"],
    "encoder-enclosed": ["hroot", "hε", "hscale"],
    "decoder-enclosed": ["hroot", "hε", "hscale"],
    "natural-vectors-sound": ["hroot", "hnumber"],
    "transformer-vectors-sound": ["hroot"],
    "transformer-tokens-sound": ["hroot"],
    "transformer-gradient": ["hsqrt", "hε"],
    "no-poison": ["h"],
    "no-poison-split": ["h"],
    "no-poison-sink": ["h"],
    "no-poison-dropout": ["h"],
    "no-poison-softcap": ["h"],
    "no-poison-backward": ["h"],
    "no-poison-combine": ["h"],
    "no-poison-schedule": ["h", "hb", "hmodify"],
    "no-poison-one-loop": ["h"],
    "sink-derivative": ["hscale", "hmodify", "hQ", "hK", "hV"],
    "dropout-derivative": ["hscale", "hmodify", "hQ", "hK", "hV"],
    "gradient-is-derivative": ["hmodify", "hlift", "hQ", "hK", "hV"],
    "gradient-is-derivative-dropout": ["hmodify", "hlift", "hQ", "hK", "hV"],
    "gradient-is-derivative-real": ["hmodify", "hlift", "hQ", "hK", "hV"],
    "gradient-is-derivative-dropout-real": ["hmodify", "hlift", "hQ", "hK", "hV"],
    "layer-norm-derivative": ["hsqrt", "hε"],
    "encoder-layer-derivative": ["hsqrt", "hε", "hscale"],
    "decoder-layer-derivative": ["hsqrt", "hε", "hscale"],
    "transformer-derivative": ["hsqrt", "hε", "hscale"],
}


@pytest.mark.parametrize("id", INCLUDED)
def test_no_hypothesis_is_hidden(id: str) -> None:
    theorem = sources().theorem(id)
    for name in INCLUDED[id]:
        assert f"({name} : " in theorem.whole
        assert f"({name} : " not in theorem.statement.text
    assert [one[1:].partition(" :")[0] for one in theorem.assumed] == INCLUDED[id]


def test_what_include_names_stands_in_every_main_theorem() -> None:
    """Those named above are all there are, and every theorem has the class of its exponential."""
    listed = tomllib.loads((ROOT / "docs" / "theorems.toml").read_text("utf-8"))["theorem"]
    found = {one["id"]: sources().theorem(one["lean"]) for one in listed}
    assert {id for id, theorem in found.items() if theorem.assumed} == set(INCLUDED)
    assert "[Exponential S R]" in found["flash-eq-attention"].whole
