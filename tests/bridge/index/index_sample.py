"""A library of two files, and what Lean stored of it (`test_lean_index.py` records it again)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.index.entries import Index, assemble
from bridge.index.extract import Stored
from pyimpl._implements import Implementation

SAMPLE = Path(__file__).parent / "sample"


@dataclass
class Sample:
    """What the index is made of; tests change it."""

    constants: dict[str, Stored]
    audited: dict[str, Any]
    texts: dict[str, str]

    @property
    def instances(self) -> list[str]:
        return [name for name, one in self.audited.items() if one["instance_of"]]

    def index(self) -> Index:
        headlines = [{"id": "count", "lean": "Attention.Proof.count_eq_length"}]
        python = [Implementation("Attention.Spec.step", "some.module", "step", "", 0, 0)]
        return assemble(self.constants, self.audited, headlines, {}, python)
