"""The recorded sample, for each test anew."""

from __future__ import annotations

import json

import pytest
from index_sample import RECORDED, SAMPLE, Sample

from bridge.index.collect import texts_of
from bridge.index.extract import read_constants


@pytest.fixture
def sample() -> Sample:
    recorded = json.loads(RECORDED.read_text("utf-8"))
    audited = {one["name"]: one for one in recorded["audit"]}
    return Sample(read_constants(recorded["listing"]), audited, texts_of(SAMPLE))
