"""The vectors and tests that docs/trackers.toml names exist, and show the errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bridge.conformance.mutants import planted_layouts, planting
from bridge.conformance.mutants.attention import MUTANTS
from bridge.conformance.mutants.options import OPTION_MUTANTS
from bridge.pages import trackers
from bridge.vectors.load import load
from bridge.vectors.model.attention import AttentionVector, Family

ROOT = Path(__file__).resolve().parents[3]
ITEMS = trackers.items(ROOT)
SHOWN = sorted({pair for item in ITEMS for pair in item.shown})
BY_NAME = {mutant.name: mutant for mutant in (*MUTANTS, *OPTION_MUTANTS)}


@pytest.fixture(scope="module")
def families() -> dict[str, Family]:
    return {family.name: family for family in load()}


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.says[:40])
def test_every_name_is_there(item: trackers.Item, families: dict[str, Family]) -> None:
    assert item.shown or item.tests
    for family, mutant in item.shown:
        assert family in families
        assert mutant in BY_NAME
    for test in item.tests:
        file, _, function = test.partition("::")
        text = (ROOT / file).read_text("utf-8")
        assert re.search(rf"^def {re.escape(function)}\(", text, re.MULTILINE), test
    for issue in item.issues:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#[0-9]+", issue)
        assert issue.replace("#", "/issues/") in item.links


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "mutant"), SHOWN)
def test_the_family_catches_the_mutant(name: str, mutant: str, families: dict[str, Family]) -> None:
    family = families[name]
    if all(isinstance(vector, AttentionVector) for vector in family.vectors):
        result = planting.plant(BY_NAME[mutant], [family], ["float32"])
        assert result.caught
        assert result.worst.ratio > 2
    else:
        assert planted_layouts.CATCHES[mutant] == name, "the tests of planted_layouts plant it"
