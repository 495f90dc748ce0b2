"""Functions that are called step by step with a cache: right ones pass, wrong ones are told."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import committed
import jsonschema
import pytest
import test_cheats
from edits import edit
from hypothesis import given, settings
from hypothesis import strategies as st
from misuse import misuse

import bridge
from bridge.conform import conform
from bridge.conformance.decoding.form import NAMES, form_of
from bridge.conformance.drawing.fresh import Fresh
from bridge.conformance.functions.features import CallableError
from bridge.conformance.mutants.hypotheses import every
from bridge.conformance.mutants.hypotheses.decoding import DECODING
from bridge.conformance.outcomes import likely
from bridge.conformance.outcomes.outcome import Outcome, outcomes
from bridge.conformance.outcomes.subject import Subject
from bridge.report.page import command
from bridge.spec.attention import ScoredValue
from bridge.spec.cache import append
from bridge.spec.core import EXACT
from bridge.spec.online import empty, finish
from bridge.vectors.model.attention import AttentionVector, EnclosedRow, Family, Row
from bridge.vectors.model.by_intervals import enclosed_rows
from bridge.vectors.model.by_spec import attention_rows
from bridge.vectors.model.decode import DecodeVector, as_decoding, decoded_families
from bridge.vectors.model.operations import ComesToAttention
from bridge.verdict import check

FOLDER = test_cheats.FOLDER
# A first call that imports torch's compiler uses some seconds: no limit of a function that hangs.
CONDITIONS = replace(test_cheats.CONDITIONS, limit=60.0, fresh=Fresh(6, 5, decode=True))
SOME = ("causal", "causal-bottom-right", "paged")


@pytest.fixture(scope="module")
def chosen() -> list[Family]:
    """A few vectors of each kind; with those that are drawn, of several streams."""
    some = decoded_families(committed.families(*SOME))
    return [replace(f, vectors=f.vectors[-3:]) for f in some]


def judge_function(name: str, chosen: list[Family], dtype: str = "float32") -> Outcome:
    subject = Subject(name if ":" in name and "/" in name else f"{FOLDER}/{name}", decode=True)
    if name.startswith("pyimpl"):
        subject = replace(subject, name=name)
    (outcome,) = outcomes(subject, chosen, (dtype,), CONDITIONS)
    assert outcome.without_walls is None
    return outcome


BUFFERS = {"gqa", "scale", "several-tokens", "pages", "unwritten-nan"}


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("honest.py:step", {"gqa", "scale", "several-tokens"}),
        ("honest.py:kvcache", BUFFERS | {"append"}),
        ("pyimpl.decode:attention_decode", BUFFERS | {"lse"}),
    ],
)
def test_a_right_function_passes(name: str, takes: set[str], chosen: list[Family]) -> None:
    outcome = judge_function(name, chosen)
    assert outcome.ok
    assert {v.status for v in outcome.result.vectors} == {"passed"}
    assert len(outcome.result.vectors) == 14
    assert outcome.description.features.supported == takes
    assert outcome.description.dtypes == ("float64", "float32", "float16", "bfloat16")


# Cheat → the message about it: a part of the reason, or the hypothesis that explains it; None:
# wrong numbers that no hypothesis has.
TOLD: dict[str, str | None] = {
    "keeps_one_cache_for_all": None,
    "keeps_nothing": "cache-not-kept",
    "appends_twice": "appended-twice",
    "forgets_the_first": None,
    "lets_tokens_see_later_ones": "later-tokens-seen",
    "returns_no_cache": "returned no pair of an output and a cache",
    "misses_its_own_key": "own-key-left-out",
    "reads_a_row_beyond": "key-beyond-read",
    "reads_a_row_beyond_that_is_a_number": None,
    "reads_the_whole_buffer": None,
    "takes_all_to_be_as_long_as_the_first": "lengths-of-first",
    "reads_the_next_sequence": "sequence-of-another",
    "drops_the_first_key": "first-key-dropped",
    "replaces_the_last_key": None,
    "forgets_its_steps": "steps-not-kept",
    "does_not_append": "did not write the new numbers to row",
    "overwrites_the_last_row": "of k_cache",
    "appends_in_two_rows": "which is no new one",
    "clears_what_is_not_filled": "which is no new one",
    "rounds_what_it_appends": "wrote other numbers than those given to row",
    "counts_its_calls": None,
    "changes_its_query": "changed its input q",
    "changes_the_lengths": "changed its input cache_seqlens",
    "returns_rows_of_its_cache": "returned memory that is not new: that of its cache",
    "ignores_the_table": None,
}
# The hypothesis does not say how these treat the tokens before the first step.
PARTLY = ("appends_twice", "forgets_its_steps")
HYPOTHESES = {h.name: h for h in DECODING}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", TOLD)
def test_a_wrong_function_is_told(
    name: str, chosen: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, said = judge_function(f"decoding.py:{name}", chosen), TOLD[name]
    failures = outcome.result.failures
    assert failures
    assert not outcome.ok
    if said is None:
        assert any(v.worst is not None for v in failures)
    elif said not in HYPOTHESES:
        assert any(said in str(v.reason) for v in failures)
    else:
        monkeypatch.setattr(every, "HYPOTHESES", DECODING)
        (after,) = likely.with_likely([outcome], [*chosen, *outcome.fresh.families])
        cause, *others = after.likely.causes
        assert (cause.name, others) == (said, [])
        assert cause.explained == cause.compared or name in PARTLY
        assert f"like: {HYPOTHESES[said].description} (" in after.likely.sentences()[0]


def test_heads_that_one_head_of_keys_alone_can_have_are_no_grouped_heads(
    tmp_path: Path, chosen: list[Family]
) -> None:
    """PyTorch makes several of one by itself, and raises a RuntimeError for two."""
    file = tmp_path / "plain.py"
    edit(FOLDER / "honest.py", "x.repeat_interleave(group, 1)", "x", file)
    outcome = judge_function(f"{file}:step", chosen)
    assert outcome.ok
    assert "raised RuntimeError" in outcome.description.features.unsupported["gqa"]


def test_every_cheat_and_every_hypothesis_is_tried() -> None:
    assert set(TOLD) == set(test_cheats.functions("decoding"))
    assert set(HYPOTHESES) == set(TOLD.values()) & set(HYPOTHESES)


@pytest.mark.thorough
def test_what_is_not_taken_is_unsupported_and_can_be_required() -> None:
    verdict = check(
        f"{FOLDER}/honest.py:one_token",
        operation="decode", also=[FOLDER / "honest.py"], dtypes=["float32"], fresh=6, count=8,
        families=["fresh-decode"], require=["several-tokens"], without=["gqa"],
    )  # fmt: skip
    assert not verdict
    assert verdict.outcomes[0].result.ok
    reasons = {v.reason for v in verdict.outcomes[0].result.vectors if v.status == "unsupported"}
    assert "takes no grouped heads: declared by --without" in reasons
    several = "raised ValueError: one token in a call is accepted"
    assert f"takes one token in a call: {several}" in reasons
    assert f"several-tokens is required but unsupported: {several}" in str(verdict)
    schema = json.loads((Path(bridge.__file__).parent / "report/conform.schema.json").read_text())
    assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(verdict.json()))
    again = command(verdict.outcomes[0], "fresh-decode-000")
    assert "--operation decode" in again
    assert "--fresh 6 --count 8" in again


@pytest.mark.thorough
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 32))
def test_drawn_rows_are_those_of_the_translation(seed: int) -> None:
    """Of the shortest sequence, whose rows are also those of the state that the Spec's cache keeps
    as keys are appended."""
    (family,) = Fresh(seed, 1, decode=True).families
    (vector,) = family.vectors
    assert isinstance(vector, ComesToAttention)
    problem = min(vector.attentions(), key=lambda x: x.kv_len)
    if problem.model == "exact":
        assert attention_rows(problem) == problem.expected
        assert cached_rows(problem) == [[*row.output] for row in problem.expected]
        return
    for one, other in zip(enclosed_rows(problem), problem.expected, strict=True):
        assert isinstance(other, EnclosedRow)
        for lo, hi, low, high in zip(one.lower, one.upper, other.lower, other.upper, strict=True):
            assert max(lo, low) <= min(hi, high)
        assert other.uncertainty <= 2 * one.uncertainty


def cached_rows(x: AttentionVector) -> list[list[Fraction]]:
    """The outputs of all steps, one key after the other appended to the state of a row."""
    found, scale = [], Fraction(x.scale or 0)
    for i, q in enumerate(x.q):
        keys = [
            ScoredValue(int(scale * sum(a * b for a, b in zip(q, k, strict=True))), [*v])
            for k, v in zip(x.k[: x.mask.shift + i + 1], x.v, strict=False)
        ]
        state = append(empty(d=x.value_dim, num=EXACT), keys, num=EXACT)
        found.append([Fraction(o) for o in finish(state, d=x.value_dim, num=EXACT)])
    return found


def test_vectors_of_decoding_have_the_rows_of_those_they_are_made_of() -> None:
    count = 0
    for family in committed.everything():
        for vector in family.vectors:
            made = as_decoding(vector)
            if made is None:
                continue
            count += 1
            assert isinstance(vector, AttentionVector | ComesToAttention)
            before = (vector,) if isinstance(vector, AttentionVector) else vector.attentions()
            for one, other in zip(made.attentions(), (x for x in before if x.kv_len), strict=True):
                last = other.q_len - one.q_len
                assert one.expected == other.expected[last:]
                for i in range(one.q_len):
                    for j in range(one.kv_len):
                        assert one.visible(i, j) == other.visible(last + i, j)
    assert count > 150


def test_calls_take_every_token_once() -> None:
    for seed in range(20):
        (family,) = Fresh(seed, 1, decode=True).families
        (vector,) = family.vectors
        assert isinstance(vector, DecodeVector)
        for n, stream in enumerate(vector.streams):
            tokens = {vector.sequences[s].tokens for s in stream}
            spans = [(a, b) for stream, a, b in vector.calls() if stream == n]
            assert [t for a, b in spans for t in range(a, b)] == [*range(*{0, *tokens})]


def _needs_more(query: object, key: object, value: object, cache: object, layer: int) -> None: ...


def _three(query: object, key: object, value: object) -> None: ...


def _no_lengths(q: object, k_cache: object, v_cache: object) -> None: ...


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (_needs_more, "needs layer; such arguments must have a default"),
        (_three, "takes 3 positional arguments; step"),
        (_no_lengths, "has no cache_seqlens"),
        (max, "has no signature that is known"),
    ],
)
def test_a_function_of_no_form_is_told(function: Any, sentence: str) -> None:
    with pytest.raises(CallableError, match=sentence):
        form_of(function)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["sdpa-math"], "--operation: sdpa-math is built in; decoding is judged of functions"),
        (["x.py:f", "--alignment", "bottom-right"], "--alignment: none is accepted for decoding"),
        (["x.py:f", "--require", "sinks"], f"'sinks' is not a feature or a dtype; {NAMES[0]}"),
        (["x.py:f", "--family", "window"], "--family: none of these vectors is of decoding"),
    ],
)
def test_misuse_is_said(words: list[str], sentence: str) -> None:
    assert sentence in misuse(conform, *words, "--operation", "decode")


def test_rows_of_attention_are_exact(chosen: list[Family]) -> None:
    rows = [row for f in chosen for v in f.vectors if isinstance(v, DecodeVector)
            for s in v.sequences for head in s.expected for row in head]  # fmt: skip
    assert all(isinstance(row, Row) for row in rows)
