"""Faults of the other layouts, caught by their vectors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.conformance.faults.options import OPTION_FAULTS
from bridge.conformance.faults.planted_layouts import CATCHES, plant
from bridge.conformance.faults.planting import Fault, FaultError
from bridge.vectors.model.attention import Family

FAULTS = {fault.name: fault for fault in OPTION_FAULTS}


def only(families: list[Family], name: str) -> list[Family]:
    return [family for family in families if family.name == name]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CATCHES)
def test_a_vector_catches_it(name: str, families: list[Family]) -> None:
    result = plant(FAULTS[name], only(families, CATCHES[name]))
    assert result is not None
    assert result.worst is not None
    assert result.worst.ratio > 100, "a fault this gross is no close call"


@pytest.mark.parametrize("family", sorted(set(CATCHES.values())))
def test_the_unedited_copy_passes(family: str, families: list[Family]) -> None:
    name = next(name for name in CATCHES if CATCHES[name] == family)
    fault = FAULTS[name]
    same = replace(fault, new=fault.old)
    assert plant(same, only(families, family)) is None


def test_a_fault_that_does_not_run_is_no_catch(families: list[Family]) -> None:
    broken: Fault = replace(FAULTS["parts-not-normalised"], new="o = o.no_such_thing")
    with pytest.raises(FaultError, match="does not run: combine-000: raised"):
        plant(broken, only(families, "combine"))
