"""The exact vectors through all kernels' TTIR, with no tolerance at all."""

from __future__ import annotations

import dataclasses

import pytest
from ttir_cases import NEEDS_COMPILER

from bridge.ttir.faults import Violation
from bridge.ttir.vectors import REFUSED, SPLIT, TAKEN, differences
from bridge.vectors.load import load

pytestmark = NEEDS_COMPILER

# The forward kernel (with dropout), varlen, paged with combine, and those of the backward pass.
QUICK = ("causal", "sink-tiles", "dropout", "varlen", "paged", "gradient")
EXACT = [
    family.name
    for family in load()
    if family.model == "exact" and isinstance(family.vectors[0], TAKEN)
]


@pytest.mark.parametrize("name", QUICK)
def test_quick_families(name: str) -> None:
    (family,) = load(names=[name])
    for vector in family.vectors[:1]:
        assert list(differences(vector)) == []


def test_splits_and_their_combination() -> None:
    (family,) = load(names=[SPLIT])
    assert list(differences(family.vectors[0], splits=3)) == []


@pytest.mark.thorough
def test_all_splits() -> None:
    (family,) = load(names=[SPLIT])
    for vector in family.vectors:
        assert list(differences(vector, splits=3)) == [], vector.id


@pytest.mark.thorough
@pytest.mark.parametrize("name", EXACT)
def test_all_families(name: str) -> None:
    (family,) = load(names=[name])
    for vector in family.vectors:
        if vector.id not in REFUSED:
            assert list(differences(vector)) == [], vector.id
            continue
        with pytest.raises(Violation, match=r"exp2 of a positive number .*_gradient\.py"):
            list(differences(vector))


def test_a_changed_number_is_found() -> None:
    (family,) = load(names=["causal"])
    vector = family.vectors[0]
    changed = dataclasses.replace(vector, v=tuple(tuple(x + 1 for x in row) for row in vector.v))
    assert any("head 0: output[" in sentence for sentence in differences(changed))
