"""Errors that show only past a tile, or only with features that small vectors lack, fail the
vectors that are there for them."""

from __future__ import annotations

import committed
import pytest
import wrong_parts_past_tiles as parts
import wrong_wide_layouts as wide
from wrong_past_tiles import BACKWARD, MUTANTS, function, function_backwards

from bridge.conformance.adapters.callables import CallableAdapter
from bridge.conformance.functions.features import Function, probe
from bridge.conformance.judging.run import Result, run
from bridge.conformance.tolerances.rounding_model import generous

# Of attention functions; packed sequences and pages have theirs below.
FAMILIES = (
    "past-tiles", "past-tiles-options", "gradient-past-tiles", "hidden-scores",
    "gradient-hidden-scores",
)  # fmt: skip
# By it alone the mutants of backward passes show that are listed beside them.
MASKS = "gradient-past-tiles-masks"
WIDE = ("varlen-wide-heads", "paged-wide-heads")
# Those that show the mutants of dropout, temperatures and packed heads.
PARTS = sorted({family for _, family in parts.MUTANTS.values()})


def judge_function(call: Function, dtype: str, *names: str) -> Result:
    adapter = CallableAdapter("f:x", call, probe(call, "cpu", (dtype,)), generous)
    return run(adapter, committed.families(*names), dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_the_right_function_passes(dtype: str) -> None:
    result = judge_function(function(""), dtype, *FAMILIES)
    assert [v.id for v in result.failures] == []
    passed = {v.family for v in result.vectors if v.status == "passed"}
    assert passed == set(FAMILIES)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_mutant_is_caught(mutant: str) -> None:
    family = MUTANTS[mutant][1]
    assert judge_function(function(mutant), "float32", family).failures


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", MUTANTS)
def test_no_other_family_catches_it(mutant: str) -> None:
    """So these families are there for it, and those of the parts, which came later."""
    others = [name for name in committed.names() if name not in (*FAMILIES, MASKS, *PARTS)]
    assert not judge_function(function(mutant), "float32", *others).failures


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_the_right_backward_pass_passes(dtype: str) -> None:
    result = judge_function(function_backwards(""), dtype, MASKS)
    assert [v.id for v in result.failures] == []
    # It is given the same slope and sink for every head alone.
    given = {v.id: v.options & {"alibi", "sinks"} for v in committed.family(MASKS).vectors}
    assert all((v.status == "unsupported") == bool(given[v.id]) for v in result.vectors)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mutant", BACKWARD)
def test_each_mutant_of_a_backward_pass_is_caught(mutant: str) -> None:
    assert judge_function(function_backwards(mutant), "float32", MASKS).failures


# The place of a gradient by a bias of 0 shows it, too.
SHOWN_ELSEWHERE = {"bias_of_rows_in_tile"}


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", sorted(BACKWARD.keys() - SHOWN_ELSEWHERE))
def test_no_other_family_catches_that_backward_pass(mutant: str) -> None:
    others = [name for name in committed.names() if name not in (MASKS, *PARTS)]
    assert not judge_function(function_backwards(mutant), "float32", *others).failures


def judged_layouts(mutant: str, *names: str) -> Result:
    return run(wide.WideLayouts(mutant), committed.families(*names), "float32")


def test_right_packed_sequences_and_pages_of_wide_heads_pass() -> None:
    result = judged_layouts("", *WIDE)
    assert {v.status for v in result.vectors} == {"passed"}


@pytest.mark.parametrize("family", WIDE)
@pytest.mark.parametrize("mutant", wide.MUTANTS)
def test_each_mutant_in_wide_heads_is_caught(mutant: str, family: str) -> None:
    assert judged_layouts(mutant, family).failures


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mutant", wide.MUTANTS)
def test_no_other_packed_or_paged_family_catches_it(mutant: str) -> None:
    packed = [n for operation in ("varlen", "paged") for n in committed.names(operation)]
    others = [name for name in packed if name not in WIDE]
    assert not judged_layouts(mutant, *others).failures


def judged_parts(mutant: str, *names: str) -> Result:
    return run(parts.Parts(mutant), committed.families(*names), "float32")


def test_right_dropout_temperatures_and_packed_heads_pass() -> None:
    result = judged_parts("", *PARTS)
    assert {v.status for v in result.vectors} == {"passed"}


@pytest.mark.parametrize("mutant", parts.MUTANTS)
def test_each_mutant_of_dropout_temperatures_and_packed_heads_is_caught(mutant: str) -> None:
    assert judged_parts(mutant, parts.MUTANTS[mutant][1]).failures


# It has two heads, and 140 keys.
SHOWN_BY_OTHERS = {"first_head_draws": {"dropout-past-tiles"}}


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", parts.MUTANTS)
def test_no_other_family_catches_those(mutant: str) -> None:
    operations = ("dropout", "varlen", "gradient", "sampled", "sampled-gradient")
    others = [n for operation in operations for n in committed.names(operation) if n not in PARTS]
    caught = {v.family for v in judged_parts(mutant, *others).failures}
    assert caught == SHOWN_BY_OTHERS.get(mutant, set())
