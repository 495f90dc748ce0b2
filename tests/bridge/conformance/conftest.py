"""Vectors for the conformance tests."""

from __future__ import annotations

import pytest

from bridge.vectors.load import load
from bridge.vectors.model import Family


@pytest.fixture(scope="session")
def families() -> list[Family]:
    return load()
