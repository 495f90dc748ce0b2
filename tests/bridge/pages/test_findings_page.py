"""`docs/findings.md` and its data: its examples reproduce."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import committed
import pytest

from bridge.conformance.adapters import libraries
from bridge.conformance.judging.judge import VectorResult
from bridge.conformance.outcomes.outcome import Conditions, outcomes
from bridge.conformance.outcomes.subject import Subject
from bridge.findings import collect, store, subjects, verdicts
from bridge.findings.symptoms import wrong_numbers
from bridge.pages import findings_page
from bridge.pages.findings_page import cell
from bridge.proving.published import PUBLISHED
from bridge.vectors.load import default_directory, load

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = store.read(ROOT / store.FILE)
VERDICTS = verdicts.read(ROOT)
EXAMPLES = [
    pytest.param(entry, symptom, id=f"{entry['name']}-{symptom['example']['vector']}")
    for entry in DOCUMENT["functions"]
    for symptom in entry["symptoms"]
]


def test_the_document_is_as_it_is_written_and_complete() -> None:
    assert (ROOT / store.FILE).read_text("utf-8") == store.as_text(DOCUMENT)
    assert [entry["name"] for entry in DOCUMENT["functions"]] == [c.name for c in subjects.CALLED]


def test_each_verdict_is_on_the_page_with_its_command_and_cause() -> None:
    text = (ROOT / findings_page.PAGE).read_text("utf-8")
    assert {one["name"] for one in VERDICTS} == set(PUBLISHED)
    for one in VERDICTS:
        assert f"    {verdicts.command(one)}\n" in text
        if one["verdict"] == "WRONG":
            assert one["finding"]["shape"] in text
            assert one["finding"]["what"] in text


def test_each_vector_that_is_said_to_fail_is_still_there() -> None:
    assert store.outdated_vectors(DOCUMENT, collect.hashes(default_directory(), load())) == []


def test_each_symptom_is_on_the_page_with_the_command_that_shows_it() -> None:
    text = (ROOT / findings_page.PAGE).read_text("utf-8")
    assert len(EXAMPLES) > 4
    for entry in DOCUMENT["functions"]:
        for symptom in entry["symptoms"]:
            example = symptom["example"]
            assert f"**{symptom['what']}**" in text
            assert (
                f"conform {entry['name']} --undeclared --dtype {example['dtype']} "
                f"--vector {example['vector']}\n" in text
            )


def test_the_counts_of_each_family_are_those_of_the_index_or_older() -> None:
    sizes = {entry["family"]: entry["vectors"] for entry in committed.ENTRIES}
    for entry in DOCUMENT["functions"]:
        for name, counts in entry["families"].items():
            assert sum(counts.values()) <= sizes.get(name, 0), f"{name}: run {store.COMMAND}"


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"passed": 3, "failed": 0, "unsupported": 0}, "✔"),
        ({"passed": 0, "failed": 3, "unsupported": 0}, "✘ **3**"),
        ({"passed": 2, "failed": 1, "unsupported": 0}, "✘ **1** 2/1/0"),
        ({"passed": 2, "failed": 0, "unsupported": 1}, "✔ 2/0/1"),
        ({"passed": 0, "failed": 0, "unsupported": 3}, "–"),
        (None, "not run"),
    ],
)
def test_the_cells(counts: dict[str, int] | None, text: str) -> None:
    assert cell(counts) == text


@functools.cache
def results(name: str) -> Mapping[tuple[str, str], VectorResult]:
    """Of a function the results on its examples, by vector and dtype: all of a dtype run in one
    process, which some take seconds to start."""
    (entry,) = (entry for entry in DOCUMENT["functions"] if entry["name"] == name)
    examples = [symptom["example"] for symptom in entry["symptoms"]]
    only = []
    for family in map(committed.family, sorted({example["family"] for example in examples})):
        named = {e["vector"] for e in examples if e["family"] == family.name}
        vectors = tuple(map(committed.vector, sorted(named)))
        only.append(replace(family, vectors=vectors))
    dtypes = tuple({example["dtype"]: None for example in examples})
    run = outcomes(Subject(name, undeclared=True), only, dtypes, Conditions(required=True))
    return {
        (vector.id, outcome.result.dtype): vector
        for outcome in run
        for vector in outcome.result.vectors
    }


@pytest.mark.parametrize(("entry", "symptom"), EXAMPLES)
def test_the_example_reproduces(entry: dict[str, Any], symptom: dict[str, Any]) -> None:
    """In the versions that it was found with, where they are installed."""
    if libraries.missing_packages(entry["name"]) is not None:
        pytest.skip(f"needs {libraries.missing_packages(entry['name'])}")
    here = {package: metadata.version(package) for package in entry["versions"]}
    if here != entry["versions"]:
        pytest.skip(f"found with {entry['versions']}, here are {here}")
    example = symptom["example"]
    result = results(entry["name"])[example["vector"], example["dtype"]]
    assert result.status == "failed"
    if "raised" in example:
        assert result.reason == example["raised"]
    else:
        # It may show other symptoms as well, which more vectors have.
        left = symptom["what"]
        vector = committed.vector(example["vector"])
        for wrong in wrong_numbers(result, vector, example["dtype"]):
            left = left.replace(wrong.what, "")
        assert not left.strip()
