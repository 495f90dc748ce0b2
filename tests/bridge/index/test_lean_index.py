"""The recorded sample equals the facts that the embedded Lean stores of it today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from index_sample import RECORDED, stored_today

from bridge.toolchain.prepare import Embedded


# Of the whole library `make test` asks Lean the same, in its check `index`.
@pytest.mark.thorough
def test_the_recorded_sample_is_what_lean_stores(prepared: Embedded, tmp_path: Path) -> None:
    recorded = json.loads(RECORDED.read_text("utf-8"))
    assert stored_today(tmp_path, prepared) == recorded, "record it anew: see index_sample.py"
