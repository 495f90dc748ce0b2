"""Vectors for the conformance tests."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.cache import Cache
from bridge.report.runs import Runs
from bridge.vectors.load import load
from bridge.vectors.model.attention import Family

ROOT = Path(__file__).resolve().parents[3]


@functools.cache
def everything() -> list[Family]:
    return load()


@pytest.fixture(scope="session")
def families() -> list[Family]:
    return everything()


@pytest.fixture(scope="session")
def all_families() -> Callable[[], list[Family]]:
    """For what reads them only where its result is not kept."""
    return everything


@pytest.fixture(scope="session")
def runs() -> Runs:
    """The results that `make verify` has kept, and those that tests keep."""
    return Runs(ROOT, Cache(ROOT / "build" / "cache"))
