"""The comparison of the extractions finds nothing in a good library, and each planted mismatch."""

from __future__ import annotations

from typing import Any

import pytest
from index_sample import Sample
from msgspec.structs import replace

from bridge.index import compare

SPEC, PROOF = "Attention.Spec.Fold", "Attention.Proof.Fold"
COUNT = "Attention.Proof.count_eq_length"


def problems(sample: Sample) -> list[str]:
    found = compare.against_audit(sample.constants, sample.audited)
    return found + compare.against_source(sample.constants, sample.texts, sample.instances)


def test_a_good_library_has_no_mismatch(sample: Sample) -> None:
    assert problems(sample) == []


@pytest.mark.parametrize(
    ("module", "old", "new", "sentence"),
    [
        (PROOF, "count_eq_length", "count_is_length", f"{COUNT} is stored for line 17"),
        (PROOF, "count_eq_length", "count_is_length", "Attention.Proof.count_is_length stands in"),
        (PROOF, "/-- **count**: the", "/-- **count**: a", "its documentation is not stored"),
        (PROOF, "private theorem", "theorem", "count_foldl is private either as stored or as"),
        (PROOF, "theorem total_nil", "def total_nil", "stored as a theorem and written as a def"),
        (PROOF, "(xs.foldl step empty)", "(xs.foldl stop empty)", "Attention.Spec.step is stored"),
        (PROOF, "total ([]", "empty ([]", "total_nil: empty is written in its statement"),
        (PROOF, "open Spec\n", "open Spec\n\n", "count_foldl begins at 11:0 as stored and at 12:0"),
        (PROOF, "  simp [count_foldl, empty]", "  simp [empty]", f"{COUNT} ends at 19:27"),
        (PROOF, "instance : Inh", "def x : Inh", "Attention.Proof.x stands in line 24"),
        (SPEC, "  count : Nat\n", "  number : Nat\n", "Attention.Spec.State.number stands in"),
        (SPEC, "  | take\n", "  | took\n", "Attention.Spec.Choice.take is stored for line"),
        (SPEC, "namespace Attention.Spec", "namespace Attention", "Attention.Spec.step is stored"),
        (SPEC, "/-- The state of no numbers. -/\n", "-- nothing\n", "Attention.Spec.empty begins"),
    ],
)
def test_a_text_that_is_not_what_was_stored(
    sample: Sample, module: str, old: str, new: str, sentence: str
) -> None:
    assert old in sample.texts[module]
    sample.texts[module] = sample.texts[module].replace(old, new)
    assert any(sentence in problem for problem in problems(sample)), problems(sample)


def test_a_variable_hides_the_constant_of_its_name(sample: Sample) -> None:
    said = "total_nil: empty is written in its statement"
    text = sample.texts[PROOF].replace("total ([]", "empty ([]")
    comment = next(line for line in text.splitlines() if line.startswith("-- Written"))
    for instead, hidden in ((comment, False), ("variable (empty : List Nat → Nat)", True)):
        sample.texts[PROOF] = text.replace(comment, instead)
        assert any(said in problem for problem in problems(sample)) != hidden


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "definition"}, "is stored as a definition and written as a theorem"),
        ({"module": SPEC}, f"module is {SPEC} as stored and {PROOF} in the audit"),
        ({"range": (17, 0, 19, 28)}, f"{COUNT} ends at 19:28 as stored"),
        ({"range": (16, 0, 19, 27)}, "first line is 16 as stored and 17 in the audit"),
        ({"name_range": (18, 9, 18, 24)}, f"{COUNT} has its name at 18:9 as stored"),
        ({"doc": None}, f"{COUNT}: its documentation is not stored"),
        ({"uses_of_type": ("Attention.Spec.empty",)}, f"{COUNT}: step is written"),
        ({"uses_of_type": ("Attention.Spec.empty",)}, f"{COUNT}: mentions is"),
    ],
)
def test_something_stored_that_is_not_what_is_written(
    sample: Sample, change: dict[str, Any], sentence: str
) -> None:
    sample.constants[COUNT] = replace(sample.constants[COUNT], **change)
    assert any(sentence in problem for problem in problems(sample)), problems(sample)


def test_a_declaration_that_only_one_of_them_has(sample: Sample) -> None:
    lost = sample.constants.pop(COUNT)
    assert f"{COUNT} is listed by the audit, and not stored" in problems(sample)
    sample.constants[COUNT] = lost
    del sample.audited[COUNT]
    assert f"{COUNT} is stored, and the audit does not list it" in problems(sample)


def test_a_file_that_is_not_read(sample: Sample) -> None:
    del sample.texts[PROOF]
    assert f"{PROOF} is stored, and its file is not read" in problems(sample)


def test_an_instance_that_lean_did_not_make_with_its_type(sample: Sample) -> None:
    """Only declarations inside the text of a type come with it."""
    name = "Attention.Spec.instInhabitedState"
    one = sample.constants[name]
    sample.constants[name] = replace(one, range=(40, 0, 40, 3))
    sample.audited[name] = {**sample.audited[name], "first_line": 40, "last_line": 40}
    assert any(problem.startswith(f"{name} is stored for line 40") for problem in problems(sample))


def test_parsers_and_their_expansions_stand_in_no_text(sample: Sample) -> None:
    """Of `syntax` and `macro`, which Lean names; a definition of another type must be read."""
    written = next(c for c in sample.constants.values() if c.kind == "definition" and c.range)
    parser = replace(
        written,
        name="Attention.Spec.tacticSolve",
        user_name=None,
        uses_of_type=("Lean.ParserDescr",),
    )
    expansion = "Attention.Spec.«_aux_Attention_Spec___macroRules_tacticSolve[_,,]_1»"
    made = {parser.name: parser, expansion: replace(parser, name=expansion, uses_of_type=())}
    assert compare.against_source(sample.constants | made, sample.texts, sample.instances) == []
    assert expansion not in "".join(compare.against_audit(made, {}))
    other = {parser.name: replace(parser, uses_of_type=("Nat",))}
    found = compare.against_source(sample.constants | other, sample.texts, sample.instances)
    assert any("tacticSolve is stored for line" in problem for problem in found)
