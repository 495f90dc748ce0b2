"""Tests that need kernels which Triton compiles, in a process of their own: in this one it may
interpret them, and it does only one of both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyimpl.backends.kernels.parts.numerics import INTERPRETED

NEEDS_COMPILER = pytest.mark.skipif(
    INTERPRETED.value, reason="`test_compiled` runs this where Triton compiles"
)


def run_compiled(marker: str, *files: Path) -> None:
    """Run the tests with this marker in these files where Triton compiles: all pass and none is
    skipped."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", marker,
         *map(str, files)],
        cwd=Path(__file__).resolve().parents[1], env={**os.environ, "TRITON_INTERPRET": "0"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
    assert "skipped" not in done.stdout
