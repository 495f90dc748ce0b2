"""Faults in the sources of the backward pass are caught by the vectors of gradients."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bridge.conformance import gradient_faults as faults
from bridge.conformance import gradients
from bridge.conformance.planting import FaultError
from bridge.vectors.gradients import GradientVector
from bridge.vectors.load import default_directory, load

VECTORS = [
    v
    for f in load(default_directory())
    if f.operation == "gradient"
    for v in f.vectors
    if isinstance(v, GradientVector)
]
# Several tiles, masks, and groups first: Triton's interpreter is slow.
PROMISING = sorted(
    (v for v in VECTORS if v.family in ("gradient", "gradient-grouped")),
    key=lambda v: (v.q_len < 17 and v.kv_len < 17, v.mask.kind == "none", v.id),
)


@pytest.mark.parametrize("entry", faults.ENTRIES)
def test_the_unedited_copy_passes(entry: str) -> None:
    with faults.planted(None, entry) as function:
        options = [v for v in VECTORS if v.model == "natural"]
        for vector in [*PROMISING[:12], *options[::6]]:
            found = faults.computed(function, vector, torch.float32)
            assert list(gradients.wrong_gradients(vector, found, 2.0**-24)) == []


@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_caught(fault: faults.Fault) -> None:
    vectors = [v for v in VECTORS if v.family in fault.promising] or PROMISING
    assert faults.caught_by(fault, vectors) is not None


def test_what_changes_nothing_is_not_caught() -> None:
    """That a fault is caught says something only if a harmless edit is not."""
    harmless = replace(
        faults.FAULTS[0], name="harmless", new=faults.FAULTS[0].old + "  # as it was"
    )
    assert faults.caught_by(harmless, PROMISING[:12]) is None


def test_a_fault_whose_place_is_gone() -> None:
    with pytest.raises(FaultError, match="no longer applies"):
        faults.caught_by(replace(faults.FAULTS[0], old="no such text"), [])


def test_names_are_unique() -> None:
    names = [fault.name for fault in faults.FAULTS]
    assert len(set(names)) == len(names) >= 10
