"""Tests that statements of main results over more than the Spec are refused, and why."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.audit import restated
from bridge.audit.statements import Statement

STATED = "Attention.Statements.flash_eq_attention"
ENTRY = {"id": "flash-eq-attention", "kind": "main", "lean": "Attention.Proof.t", "sentence": ""}


def one(name: str, module: str, kind: str = "definition", *mentions: str) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "module": module,
        "mentions": mentions,
        "instance_of": "Add" if "inst" in name else None,
    }


def library(*mentions: str) -> dict[str, dict[str, Any]]:
    """A library with a statement that mentions these."""
    found = (
        one("Attention.sumOver", "Attention.Algebra.Sum"),
        one("Attention.Spec.flash", "Attention.Spec.Flash"),
        one("Attention.Spec.instAdd", "Attention.Spec.Flash"),
        one("Attention.Spec.State", "Attention.Spec.Online"),
        one("Attention.Model.Real", "Attention.Model.Real.Ring"),
        one("Attention.Proof.Sound", "Attention.Proof.Flash.Schedule"),
        # In a namespace of the Spec, and yet made for a proof.
        one("Attention.Spec.total", "Attention.Proof.Flash.Schedule"),
        one("Attention.Proof.t", "Attention.Proof.Flash", "theorem", "Attention.Spec.flash"),
        one(STATED, "Attention.Statements.Attention", "theorem", *mentions),
    )
    return {each["name"]: each for each in found}


def test_a_statement_may_speak_of_numbers_the_spec_and_models() -> None:
    made = [f"{STATED}._proof_1", "Attention.Statements.ring.match_2"]
    mentions = ["Attention.sumOver", "Attention.Spec.State.mk", "Attention.Model.Real", *made]
    assert restated.problems_of_kinds([ENTRY], library(*mentions)) == []


@pytest.mark.parametrize(
    ("mention", "place"),
    [
        ("Attention.Proof.Sound", "Attention.Proof.Flash.Schedule"),
        ("Attention.Proof.Sound.mk", "Attention.Proof.Flash.Schedule"),
        ("Attention.Spec.total", "Attention.Proof.Flash.Schedule"),
        ("Attention.Hidden", "no module that is listed"),
    ],
)
def test_it_may_speak_of_nothing_else(mention: str, place: str) -> None:
    assert restated.problems_of_kinds([ENTRY], library("Attention.Spec.flash", mention)) == [
        f"flash-eq-attention: {STATED} speaks of {mention}, of {place}; a main result is stated "
        "with definitions of Attention.Algebra, Attention.Model and Attention.Spec alone"
    ]


def test_every_main_result_is_stated_and_nothing_else_is() -> None:
    without = library()
    del without[STATED]
    assert restated.problems_of_kinds([ENTRY], without) == [
        f"flash-eq-attention: a main result, and there is no theorem {STATED}"
    ]
    corollary = ENTRY | {"kind": "corollary"}
    problem = f"{STATED} states no main result of docs/theorems.toml"
    assert restated.problems_of_kinds([corollary], library()) == [problem]
    helping = "Attention.Statements.Flash"
    helped = library() | {helping: one(helping, "Attention.Statements.Attention")}
    assert restated.problems_of_kinds([ENTRY], helped) == [
        f"{helping} states no main result of docs/theorems.toml"
    ]


def test_what_speaks_of_the_spec_alone_is_not_beyond_it() -> None:
    entry = ENTRY | {"kind": "beyond"}
    listing = library()
    del listing[STATED]
    assert restated.problems_of_kinds([entry], listing) == [
        "flash-eq-attention: its statement speaks of the Spec alone, so it is not 'beyond' it"
    ]
    for other in ("Attention.Proof.Sound", "Attention.Model.Pebble.run"):
        listing["Attention.Proof.t"]["mentions"] = ("Attention.Spec.flash", other)
        assert restated.problems_of_kinds([entry], listing) == []


def test_what_is_supposed_of_a_definition_is_not_concluded_of_it() -> None:
    names = ("Attention.Spec.flash", "Attention.Spec.instAdd", "Attention.sumOver", "List.map")
    said = {STATED: Statement("", None, "", names)}
    assert restated.problems_of_hypotheses([ENTRY], library(), said) == [
        f"flash-eq-attention: a hypothesis of {STATED} speaks of flash, and so does its conclusion"
    ]
    said = {STATED: Statement("", None, "", names[1:])}
    assert restated.problems_of_hypotheses([ENTRY], library(), said) == []


def test_the_exceptions_are_of_one_result_each() -> None:
    name = restated.restatement("split-kv")
    names = ("Attention.Spec.attend", "Attention.Spec.combine")
    entry = ENTRY | {"id": "split-kv"}
    said = {name: Statement("", None, "", names)}
    assert restated.problems_of_hypotheses([entry], {}, said) == [
        f"split-kv: a hypothesis of {name} speaks of combine, and so does its conclusion"
    ]
