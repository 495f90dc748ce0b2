"""Tests that need kernels which Triton compiles, in a process of their own: in this one it may
interpret them, and it does only one of both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_compiled(*files: Path) -> None:
    """Run the tests of these files that are marked as compiled where Triton compiles, but for the
    thorough ones: all pass and none is skipped."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
         "-m", "compiled and not thorough", *map(str, files)],
        cwd=Path(__file__).resolve().parents[1], env={**os.environ, "TRITON_INTERPRET": "0"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
    assert "skipped" not in done.stdout
