"""Vectors for the conformance tests."""

from __future__ import annotations

from pathlib import Path

import committed
import pytest

from bridge.cache import Cache
from bridge.report.runs import Runs
from bridge.vectors.model.attention import Family

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def families() -> list[Family]:
    return committed.everything()


@pytest.fixture(scope="session")
def runs() -> Runs:
    """The results that `make verify` has kept, and those that tests keep."""
    return Runs(ROOT, Cache(ROOT / "build" / "cache"))
