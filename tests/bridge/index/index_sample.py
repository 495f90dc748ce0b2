"""A library of two files, and the facts that Lean stores of it: recorded for tests without Lean.

`python tests/bridge/index/index_sample.py` records them again.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.index import extract
from bridge.index.entries import Index, assemble
from bridge.index.extract import Stored
from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.prepare import Embedded, prepare
from pyimpl.internal.implements import Implementation

SAMPLE = Path(__file__).parent / "sample"
RECORDED = SAMPLE / "recorded.json"


def stored_today(folder: Path, prepared: Embedded) -> dict[str, Any]:
    """The facts that the embedded Lean stores of the sample, built below `folder`, as JSON."""
    root = folder / "sample"
    shutil.copytree(SAMPLE, root)
    lean = EmbeddedLean(root, prepared)
    built = lean.build()
    assert built.ok, built
    listing = lean.read_stored(extract.SCRIPT, "listed")
    today = {"audit": lean.audit().to_json()["declarations"], "listing": listing}
    read: dict[str, Any] = json.loads(json.dumps(today))
    return read


@dataclass
class Sample:
    """The parts that the index is made of; tests change them."""

    constants: dict[str, Stored]
    audited: dict[str, Any]
    texts: dict[str, str]

    @property
    def instances(self) -> list[str]:
        return [name for name, one in self.audited.items() if one["instance_of"]]

    def index(self) -> Index:
        main_theorems = [{"id": "count", "lean": "Attention.Proof.count_eq_length"}]
        python = [Implementation("Attention.Spec.step", "some.module", "step", "", 0, 0)]
        return assemble(self.constants, self.audited, main_theorems, {}, python)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        text = json.dumps(
            stored_today(Path(made), prepare(print)), indent=1, sort_keys=True, ensure_ascii=False
        )
    RECORDED.write_text(text + "\n", "utf-8")
