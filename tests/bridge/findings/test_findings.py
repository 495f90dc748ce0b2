"""Tests that a function's failures are recomputed, grouped, and kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import committed
import pytest
import torch
from misuse import misuse
from spoiled import Spoiled
from torch import Tensor

import bridge.__main__ as command_line
from bridge.conformance.adapters.differentiate import Found
from bridge.conformance.adapters.own import PyimplTiled
from bridge.conformance.judging.run import run
from bridge.conformance.outcomes.outcome import Description, Outcome
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.tensors.batch import Batch, Outputs
from bridge.findings import collect, store, subjects
from bridge.findings.conditions import condition
from bridge.findings.symptoms import (
    FindingsError,
    problems_of,
    sees_nothing,
    show_number,
    wrong_numbers,
)
from bridge.vectors.load import default_directory
from bridge.vectors.model.attention import AttentionVector, Family
from bridge.vectors.model.gradients import GradientVector

NAMES = ("fully-masked", "scales", "sink", "grouped-query", "cache-edits")


def choose_families() -> list[Family]:
    return committed.families(*NAMES)


@cache
def hashes() -> dict[str, str]:
    return collect.hashes(default_directory(), choose_families())


def empty_rows(batch: Batch) -> Tensor:
    """Where a query sees no key: [batch, 1, q_len]."""
    shown = batch.boolean
    return ~shown.any(-1)


def mean_of_values(batch: Batch, outputs: Outputs) -> Outputs:
    """The result of adding a large negative number to masked scores."""
    if batch.boolean is None or batch.sink is not None:
        return outputs
    mean = batch.value.mean(-2, keepdim=True).expand_as(outputs.out)
    return Outputs(outputs.out.where(~empty_rows(batch)[..., None], mean), outputs.lse)


def zero_lse(batch: Batch, outputs: Outputs) -> Outputs:
    return Outputs(outputs.out, outputs.lse.where(outputs.lse > -math.inf, 0.0))


def nan_of_negative_scales(batch: Batch, outputs: Outputs) -> Outputs:
    assert outputs.lse is not None
    if batch.scale < 0:
        return Outputs(outputs.out * math.nan, outputs.lse * math.nan)
    return outputs


def refuses_the_scale_0(batch: Batch, outputs: Outputs) -> Outputs:
    if batch.scale == 0:
        raise ValueError(f"the scale must not be 0 for {batch.key.shape[-2]} keys")
    return outputs


def outcome_of(adapter: PyimplTiled, families: list[Family], dtype: str) -> Outcome:
    result = run(adapter, families, dtype, details=True)
    return Outcome(Subject("it"), Description(adapter.dtypes), result)


def find_entry(
    spoil: Callable[[Batch, Outputs], Outputs], *dtypes: str
) -> tuple[collect.Entry, list[Outcome]]:
    outcomes = [outcome_of(Spoiled(spoil), choose_families(), dtype) for dtype in dtypes]
    return collect.collect(outcomes, choose_families(), hashes()), outcomes


def test_a_function_that_is_right_has_no_symptoms() -> None:
    entry, _ = find_entry(lambda batch, outputs: outputs, "float64", "float32")
    assert entry["symptoms"] == []
    count = len(committed.family("scales").vectors)
    assert entry["families"]["scales"] == {"passed": count, "failed": 0, "unsupported": 0}
    assert entry["families"]["cache-edits"]["passed"] == 0
    (reason,) = entry["unsupported"]
    assert (reason["part"], reason["reason"]) == ("all", "takes no vectors of cache")
    assert reason["families"] == ["cache-edits"]
    assert set(entry["largest_ratio_passed"]) == {"float64", "float32"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_mean_of_all_values_is_recognised(dtype: str) -> None:
    entry, _ = find_entry(mean_of_values, dtype)
    (symptom,) = entry["symptoms"]
    assert symptom["what"] == (
        "The output of a query that sees no key is the mean of all values instead of 0."
    )
    assert symptom["condition"] in ("a query that sees no key", "a mask, no query that sees a key")
    assert set(symptom["vectors"]) <= set(hashes())
    example = symptom["example"]
    assert example["expected"] == ["0"] * len(example["got"])
    assert any(float(x) != 0 for x in example["got"])
    assert ("query 0 sees", "no key") in map(tuple, example["inputs"]) or example["row"] != 0


def test_a_log_sum_exp_of_0_and_the_vectors_that_show_it() -> None:
    entry, _ = find_entry(zero_lse, "float32", "float64")
    (symptom,) = entry["symptoms"]
    assert symptom["what"] == "The log-sum-exp of a query that sees no key is 0 instead of −∞."
    assert symptom["condition"] == "a query that sees no key"
    assert symptom["example"]["expected"] == ["−∞"]
    assert symptom["example"]["part"] == "lse"
    empty = [
        v.id
        for f in choose_families()
        for v in f.vectors
        if any(sees_nothing(p, i) for p in problems_of(v) for i in range(p.q_len))
        and isinstance(v, AttentionVector)
    ]
    assert sorted(symptom["vectors"]) == sorted(empty)
    assert symptom["failing"] == {"float32": len(empty), "float64": len(empty)}


def test_what_the_same_vectors_show_is_one_symptom_with_its_condition() -> None:
    entry, _ = find_entry(nan_of_negative_scales, "float32")
    (symptom,) = entry["symptoms"]
    assert symptom["what"] == (
        "The output of a query that sees a key is NaN. "
        "The log-sum-exp of a query that sees a key is NaN."
    )
    assert symptom["condition"] == "a negative scale"
    assert set(symptom["example"]["got"]) == {"NaN"}


def test_what_is_raised_is_one_symptom_whatever_the_sizes() -> None:
    entry, _ = find_entry(refuses_the_scale_0, "float32")
    (symptom,) = entry["symptoms"]
    assert symptom["what"] == "It raised ValueError."
    assert symptom["condition"] == "the scale 0"
    assert symptom["numbers"] == 0
    assert "the scale must not be 0 for" in symptom["example"]["raised"]
    (vector,) = [
        v for f in choose_families() for v in f.vectors if v.id == symptom["example"]["vector"]
    ]  # fmt: skip
    assert isinstance(vector, AttentionVector)
    assert symptom["example"]["expected"] == [str(x) for x in vector.expected[0].output]


class NanGradients(PyimplTiled):
    """A right function whose gradients are NaN by a query that sees no key, as where a softmax of
    −∞ alone is mended afterwards."""

    def gradients(self, vector: GradientVector, dtype: str, device: str) -> list[Found]:
        (first, *_) = super().gradients(vector, dtype, device)
        blind = [
            [not any(vector.visible(h, i, j) for j in range(vector.kv_len)) for i in rows]
            for h, rows in enumerate([range(vector.q_len)] * vector.num_heads)
        ]
        spoilt = first["q"].masked_fill(torch.tensor(blind)[None, ..., None], math.nan)
        return [{**first, "q": spoilt}]


def test_gradients_that_are_nan_are_recognised() -> None:
    families = committed.families("gradient", "gradient-softcap")
    outcomes = [outcome_of(NanGradients(), families, "float32")]
    entry = collect.collect(outcomes, families, collect.hashes(default_directory(), families))
    (symptom,) = entry["symptoms"]
    assert symptom["what"] == "The gradient by the queries of a query that sees no key is NaN."
    assert symptom["condition"] == "a query that sees no key"
    assert symptom["families"] == ["gradient", "gradient-softcap"]
    example = symptom["example"]
    assert (example["part"], set(example["expected"]), set(example["got"])) == (
        "dq[0]",
        {"0"},
        {"NaN"},
    )


def test_a_failure_that_exact_arithmetic_does_not_confirm_is_refused() -> None:
    _, (outcome,) = find_entry(zero_lse, "float32")
    failure = outcome.result.failures[0]
    vector = next(v for f in choose_families() for v in f.vectors if v.id == failure.id)
    assert list(wrong_numbers(failure, vector, "float32"))
    right = replace(failure.detail, lse_got=(-math.inf,) * len(failure.detail.lse_got))
    with pytest.raises(FindingsError, match="every number is within its tolerance"):
        list(wrong_numbers(replace(failure, detail=right), vector, "float32"))


def test_a_vector_whose_own_results_are_wrong_is_refused() -> None:
    _, outcomes = find_entry(zero_lse, "float32")
    masked = committed.family("fully-masked")
    vector = next(v for v in masked.vectors if isinstance(v, AttentionVector) and v.q_len > 1)
    rows = [r if r.masked else replace(r, numerators=tuple(n + 1 for n in r.numerators))
            for r in vector.expected]  # type: ignore[call-arg]  # fmt: skip
    if all(row.masked for row in vector.expected):
        rows[0] = replace(rows[0], max=0, denominator=Fraction(1))  # type: ignore[call-arg]
    spoilt = replace(vector, expected=tuple(rows))
    families = [
        Family(f.name, f.about, f.operation, f.model,
               tuple(spoilt if v.id == vector.id else v for v in f.vectors))
        for f in choose_families()
    ]  # fmt: skip
    with pytest.raises(FindingsError, match=vector.id):
        collect.collect(outcomes, families, hashes())


def test_a_condition_is_of_these_vectors_and_no_others() -> None:
    vectors = committed.family("scales").vectors
    negative = {v.id for v in vectors if isinstance(v, AttentionVector) and v.natural_scale < 0}
    assert condition(vectors, negative) == "a negative scale"
    assert condition(vectors, negative - {min(negative)}) is None


def test_numbers_are_shown_exactly_or_said_to_go_on() -> None:
    assert show_number(Fraction(-7, 2)) == "-7/2"
    assert show_number(3) == "3"
    assert show_number(Fraction(1, 3**100)).endswith("…")


def test_the_hash_of_a_vector_is_of_its_numbers(tmp_path: Path) -> None:
    family = committed.family("sink")
    document = json.loads((default_directory() / "sink.json").read_text("utf-8"))
    document["vectors"][0]["reason"] = "another"
    document["vectors"][1]["v"][0][0] = "1"
    (tmp_path / "sink.json").write_text(json.dumps(document), "utf-8")
    changed = {id for id, h in collect.hashes(tmp_path, [family]).items() if h != hashes()[id]}
    assert changed == {document["vectors"][1]["id"]}


def test_new_vectors_make_nothing_outdated_and_others_do() -> None:
    document = {"functions": [{"name": "it", "symptoms": [{"vectors": {"a-000": "1", "a-001": "2"}}]}]}  # noqa: E501  # fmt: skip
    assert store.outdated_vectors(document, {"a-000": "1", "a-001": "2", "b-000": "3"}) == []
    first, second = store.outdated_vectors(document, {"a-001": "4"})
    assert first.startswith("a-000, which it fails, is no longer there: run ")
    assert second == f"a-001, which it fails, is another one now: run {store.COMMAND}"


def test_one_function_is_run_and_the_others_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "vectors"
    folder.parent.mkdir()
    folder.symlink_to(default_directory())
    (tmp_path / "docs").mkdir()
    one, other = subjects.CALLED[0], subjects.CALLED[1]
    ran: list[str] = []

    def find(called: subjects.Called, *_: object) -> store.Document:
        ran.append(called.name)
        return {"symptoms": [], "run": len(ran)}

    assert store.update(tmp_path, [other, one], run=find) == [store.FILE]
    assert store.update(tmp_path, [one], run=find) == [store.FILE]
    kept = store.read(tmp_path / store.FILE)["functions"]
    assert [(entry["name"], entry["run"]) for entry in kept] == [(one.name, 3), (other.name, 1)]
    assert all(entry["versions"]["torch"] for entry in kept)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(["spda"], "NAME: no function 'spda' is run; there are torch.nn.functional:scaled_dot")],
)
def test_misuse_is_one_sentence(arguments: list[str], sentence: str) -> None:
    assert sentence in misuse(command_line.main, "findings", *arguments)


def test_packages_that_are_not_here_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from bridge.conformance.adapters import libraries

    monkeypatch.setattr(
        libraries, "missing_packages", lambda name: "jax" if name == "jax" else None
    )
    said = misuse(command_line.main, "findings", "jax")
    assert "jax need packages that are not installed: " in said
    assert "pip install jax" in said
