"""Cheats that a function can try on a GPU alone (docs/cheats.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from gpu_device import DEVICE, needs_gpu, skip_elsewhere

skip_elsewhere()
CHEATS = Path(__file__).parents[1] / "bridge" / "conformance" / "sandbox" / "cheats"


def call(name: str, *inputs: torch.Tensor) -> torch.Tensor:
    # The judge reads with it the messages of a function's process; a machine with a GPU may lack
    # it.
    pytest.importorskip("msgspec")
    from bridge.conformance.sandbox.remote import Remote
    from bridge.conformance.sandbox.session import Session

    also = (CHEATS / "honest.py",)
    with Session(f"{CHEATS / name}", DEVICE, also=also, required=True) as session:
        session.open()
        found: torch.Tensor = Remote(session)(*inputs)
    return found


@needs_gpu
def test_numbers_are_taken_when_the_call_returns() -> None:
    """Those that a second stream is still to write are not there yet."""
    inputs = [torch.randn(1, 2, 5, 8, device=DEVICE) for _ in range(3)]
    right = call("honest.py:attention", *inputs)
    assert right.abs().max() > 0
    late = call("remembering.py:leaves_a_stream_running", *inputs)
    assert torch.equal(late, torch.zeros_like(late))
