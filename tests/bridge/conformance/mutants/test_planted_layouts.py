"""Mutants of the other layouts, caught by their vectors."""

from __future__ import annotations

from dataclasses import replace

import committed
import pytest

from bridge.conformance.mutants.options import OPTION_MUTANTS
from bridge.conformance.mutants.planted_layouts import CATCHES, plant
from bridge.conformance.mutants.planting import Mutant, MutantError

MUTANTS = {mutant.name: mutant for mutant in OPTION_MUTANTS}


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CATCHES)
def test_a_vector_catches_it(name: str) -> None:
    result = plant(MUTANTS[name], committed.families(CATCHES[name]))
    assert result.worst.ratio > 100, "a mistake this gross is no close call"


@pytest.mark.parametrize("family", sorted(set(CATCHES.values())))
def test_the_unedited_copy_passes(family: str) -> None:
    name = next(name for name in CATCHES if CATCHES[name] == family)
    mutant = MUTANTS[name]
    same = replace(mutant, new=mutant.old)
    assert plant(same, committed.families(family)) is None


def test_a_mutant_that_does_not_run_is_no_catch() -> None:
    broken: Mutant = replace(MUTANTS["parts-not-normalised"], new="o = o.no_such_thing")
    with pytest.raises(MutantError, match="does not run: combine-000: raised"):
        plant(broken, committed.families("combine"))
