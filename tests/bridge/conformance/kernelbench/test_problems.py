"""Problems of KernelBench's form: the operation of a `Model`, and its `ModelNew` judged."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from misuse import misuse

import bridge
from bridge.conform import conform
from bridge.conformance.functions.features import CallableError
from bridge.conformance.kernelbench.problems import learn
from bridge.conformance.outcomes.outcome import Conditions
from bridge.vectors.model.attention import AttentionVector, Mask, Matrix
from bridge.vectors.model.by_intervals import enclosed_rows, integer_enclosed_rows
from bridge.verdict import Verdict, check

FILES = Path(__file__).parent
FULL = FILES / "full.py"
CONDITIONS = Conditions(required=True)


def judge_problem(name: str, problem: str = "full", **options: Any) -> Verdict:
    """On fewer fresh vectors than by default: their bounds take most of the time."""
    few = {"fresh": 5, "count": 6} | options
    return check(f"{FILES}/{name}", problem=FILES / f"{problem}.py", require_sandbox=True, **few)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("problem", "layout", "causal", "sizes", "any_size"),
    [
        ("full", "batch, heads, length, dim", None, (4, 2, 48, 48, 16), True),
        ("causal", "batch, length, dim", "top-left", (3, 1, 40, 40, 24), False),
        pytest.param(
            *("square", "batch, length, dim", "square", (2, 1, 20, 20, 8), True),
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            *("packed_heads", "batch, length, heads×dim", "top-left", (2, 3, 33, 33, 16), True),
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            *("rows_first", "batch, length, heads, dim", "bottom-right", (2, 2, 7, 70, 32), True),
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_the_operation_is_learned_and_its_model_passes(
    problem: str, layout: str, causal: str | None, sizes: tuple[int, ...], any_size: bool
) -> None:
    found = learn(FILES / f"{problem}.py", CONDITIONS)
    shown = (found.batch, found.heads, found.q_len, found.kv_len, found.head_dim)
    assert (found.layout, found.causal, shown, found.any_size) == (layout, causal, sizes, any_size)
    verdict = judge_problem(f"{problem}.py:Model", problem)
    assert verdict, verdict
    (outcome,) = verdict.outcomes
    assert outcome.result.dtype == ("bfloat16" if problem == "rows_first" else "float32")
    of = {v.family for v in outcome.result.vectors if v.status == "passed"}
    assert of >= ({"fresh-problem", "fresh-operation"} if any_size else {"fresh-problem"})


@pytest.mark.parametrize("name", ["Borrows", pytest.param("ModelNew", marks=pytest.mark.thorough)])
def test_a_right_model_passes(name: str) -> None:
    verdict = judge_problem(f"candidates.py:{name}")
    assert verdict, verdict
    (outcome,) = verdict.outcomes
    assert {v.status for v in outcome.result.vectors} == {"passed"}
    assert {v.family for v in outcome.result.vectors} == {
        "default-scale", "fresh-problem", "fresh-operation",
    }  # fmt: skip
    calls = "aten::scaled_dot_product_attention" in outcome.description.borrows
    assert calls == (name == "Borrows")
    schema = json.loads((Path(bridge.__file__).parent / "report/conform.schema.json").read_text())
    assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(verdict.json()))
    assert "The problem: scaled dot product attention without a mask" in str(verdict)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Unscaled", "scores are not scaled at all"),
        pytest.param("Zeros", "got 0.0", marks=pytest.mark.thorough),
        ("Mean", ""),
        ("Remembers", ""),
        ("PublicSizes", "fresh-operation"),
        pytest.param("RightForOnes", "", marks=pytest.mark.thorough),
        pytest.param("LooksForTheProblem", "got 0.0", marks=pytest.mark.thorough),
        ("Transposed", "returned an output of shape"),
    ],
)
def test_a_wrong_model_fails(name: str, said: str) -> None:
    verdict = judge_problem(f"candidates.py:{name}")
    assert not verdict
    assert verdict.outcomes[0].result.failures
    assert said in str(verdict)


@pytest.mark.thorough
def test_a_causal_mask_that_is_dropped_fails() -> None:
    verdict = judge_problem("candidates.py:ModelNew", "square")
    assert not verdict
    failed = {v.family for v in verdict.outcomes[0].result.failures}
    assert {"fresh-problem", "fresh-operation"} <= failed
    assert "causal" in str(verdict).partition("Likely cause:")[2].partition("by family")[0]


@pytest.mark.thorough
def test_a_model_of_its_own_sizes_is_judged_at_these() -> None:
    verdict = judge_problem("candidates.py:OwnSizes")
    assert verdict
    vectors = verdict.outcomes[0].result.vectors
    assert {v.status for v in vectors if v.family == "fresh-problem"} == {"passed"}
    assert {v.reason for v in vectors if v.family == "fresh-operation"} == {
        "takes the problem's own sizes alone: raised ValueError: 48 rows of 16 are accepted"
    }


@pytest.mark.thorough  # 3 s; the line is that of other reports
def test_the_html_says_how_a_vector_is_run_again() -> None:
    verdict = judge_problem("candidates.py:Zeros", families=["fresh-problem"])
    (outcome,) = verdict.outcomes
    assert {v.family for v in outcome.result.vectors} == {"fresh-problem"}
    assert f"--fresh 5 --count 6 --problem {FULL}" in verdict.html()
    again = judge_problem("candidates.py:Zeros", vectors=["fresh-problem-000"])
    (vector,) = again.outcomes[0].result.vectors
    assert vector.worst == outcome.result.vectors[0].worst


def test_what_is_more_than_attention_is_said() -> None:
    with pytest.raises(CallableError, match="its Model computes no attention that is known here"):
        learn(FILES / "projections.py", CONDITIONS)


MISUSE = {
    "projections": (["candidates.py:ModelNew"], "computes no attention that is known here"),
    "candidates": (["candidates.py:ModelNew"], "has no 'get_inputs'"),
    "absent": (["candidates.py:ModelNew"], "there is no file of Python"),
}


@pytest.mark.parametrize("problem", MISUSE)
def test_a_problem_that_cannot_be_used_is_one_sentence(problem: str) -> None:
    (name,), sentence = MISUSE[problem]
    words = [f"{FILES}/{name}", "--problem", f"{FILES}/{problem}.py"]
    said = misuse(conform, *words)
    (line,) = [line for line in said.splitlines() if "Error" in line]
    assert "--problem: " in line
    assert sentence in said


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([f"{FILES}/candidates.py:function", "--problem", str(FULL)], "is no class of torch.nn"),
        ([f"{FILES}/candidates.py:WithAnArgument", "--problem", str(FULL)], "cannot be made: Type"),
        ([f"{FILES}/candidates.py:Absent", "--problem", str(FULL)], "has no 'Absent'"),
        ([f"{FILES}/candidates.py:ModelNew"], "is a class; a function of query, key and value"),
        (["sdpa-math", "--problem", str(FULL)], "--problem: sdpa-math is built in"),
        ([f"{FULL}:Model", "--problem", str(FULL), "--without", "lse"], "--without: a problem"),
        ([f"{FULL}:Model", "--problem", str(FULL), "--large"], "--large: a problem determines"),
        ([f"{FULL}:Model", "--family", "fresh-problem"], "'fresh-problem' is not a fresh family"),
    ],
)
def test_misuse_is_said(words: list[str], sentence: str) -> None:
    assert sentence in misuse(conform, *words)


def test_inputs_of_another_kind_are_said(tmp_path: Path) -> None:
    problem = tmp_path / "other.py"
    for returned, sentence in {
        "[torch.rand(2, 3)]": "1 tensors of floating numbers in 1 inputs",
        "[torch.rand(2, 2, 3, 4), torch.rand(2, 2, 3, 4), 3]": "2 tensors of floating",
        "[torch.rand(2, 2, 3, 4), torch.rand(2, 2, 3, 5), torch.rand(2, 2, 3, 4)]": "is; it takes",
        "[torch.rand(1, 1, 8, 1 << 25)] * 3": "one head of its inputs has 33554432 numbers; up to",
        "1 / 0": "its get_inputs raised ZeroDivisionError",
    }.items():
        text = FULL.read_text().replace("[torch.rand(4, 2, 48, 16) for _ in range(3)]", returned)
        problem.write_text(text)
        with pytest.raises(CallableError, match=sentence):
            learn(problem, CONDITIONS)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("def get_inputs(): import_().sleep(1000)", "did not return: used practically no"),
        ("def get_inputs(): import_()._exit = os_exit(0)", "ended the process with status 0"),
        ("Model.forward = lambda *given: os_exit(0)", "ended the process with status 0"),
    ],
)
def test_a_problem_that_does_not_answer_is_said(line: str, sentence: str, tmp_path: Path) -> None:
    problem = tmp_path / "silent.py"
    head = "from os import _exit as os_exit\ndef import_(): return __import__('time')\n"
    problem.write_text(f"{FULL.read_text()}\n{head}{line}\n")
    with pytest.raises(CallableError, match=f"^its process {sentence}"):
        learn(problem, replace(CONDITIONS, limit=1.0))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 32))
def test_bounds_of_sums_of_integers_hold_those_of_the_translation(seed: int) -> None:
    """Both hold the exact result, so they meet; and those of sums are as narrow."""
    drawn = np.random.default_rng(seed)
    rows, keys, size, columns = (int(drawn.integers(1, n)) for n in (5, 20, 9, 5))
    q, k = drawn.integers(-2, 3, (rows, size)), drawn.integers(-2, 3, (keys, size))
    v, seen = drawn.integers(-64, 65, (keys, columns)), drawn.random((rows, keys)) < 0.7

    def matrix(numbers: Any) -> Matrix:
        return tuple(map(tuple, numbers.tolist()))

    options: dict[str, Any] = {}
    added = None
    if drawn.random() < 0.5:
        options["softcap"] = drawn.choice([1, 2, 20]).item()
    if drawn.random() < 0.5:
        added = options["bias"] = tuple(
            tuple(Fraction(x, 8) for x in row)
            for row in drawn.integers(-64, 65, (rows, keys)).tolist()
        )
    if drawn.random() < 0.5:
        options["sink"] = Fraction(int(drawn.integers(-64, 65)), 8)
    vector = AttentionVector(
        "x", "x", "", "", "", "natural", q_len=rows, kv_len=keys, head_dim=size, value_dim=columns,
        scale=None, q=matrix(q), k=matrix(k), v=matrix(v),
        mask=Mask("boolean", rows=matrix(seen)), expected=(), **options,
    )  # fmt: skip
    found = integer_enclosed_rows(
        q, k, v, seen, softcap=vector.softcap, added=added, sink=vector.sink
    )
    for one, other in zip(enclosed_rows(vector), found, strict=True):
        pairs = [*zip(one.lower, one.upper, strict=True), one.lse_bounds]
        others = [*zip(other.lower, other.upper, strict=True), other.lse_bounds]
        for a, b in zip(pairs, others, strict=True):
            assert (a is None) == (b is None)
            assert a is None or b is None or max(a[0], b[0]) <= min(a[1], b[1])
        assert other.uncertainty <= 2 * one.uncertainty
