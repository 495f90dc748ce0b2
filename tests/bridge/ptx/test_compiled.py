"""The tests that need kernels which Triton compiles, in a process of their own: in this one it may
interpret them, and it does only one of both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def _run(marker: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", marker,
         str(HERE / "test_vectors.py")],
        cwd=HERE.parents[2], env={**os.environ, "TRITON_INTERPRET": "0"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
    assert "skipped" not in done.stdout


def test_compiled() -> None:
    _run("not thorough")


@pytest.mark.thorough
def test_compiled_thorough() -> None:
    _run("thorough")
