"""The site of this checkout, built once for all workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from in_browser import start

from bridge.site import full
from bridge.site.build import build

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In a folder whose name has a blank; the tests change nothing in it."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        # The folder of the run, which has one for each worker.
        base = base.parent
    out = base / "built" / "under" / "a path"
    with FileLock(base / "built.lock"):
        if not out.is_dir():
            build(ROOT, out, full.pages(ROOT))
    return out


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One for all tests of a worker."""
    with start(tmp_path_factory.mktemp("chromium")) as found:
        yield found
