"""The sample is what the embedded Lean stores of it today."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from index_sample import SAMPLE, Sample

from bridge.index import extract
from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.prepare import prepare


def test_the_recorded_sample_is_what_lean_stores(tmp_path: Path, sample: Sample) -> None:
    root = tmp_path / "sample"
    shutil.copytree(SAMPLE, root)
    lean = EmbeddedLean(root, prepare(print))
    assert lean.build().ok
    assert extract.stored(extract.listing(lean)) == sample.constants
    # Through JSON, as it was recorded.
    audited = json.loads(json.dumps(lean.audit().to_json()))["declarations"]
    assert {one["name"]: one for one in audited} == sample.audited
