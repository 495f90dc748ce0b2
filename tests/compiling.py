"""Processes in which Triton compiles its kernels; in that of the tests it interprets them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run_compiling(
    *arguments: object, folder: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Python with these arguments; TRITON_INTERPRET is set only if it is given."""
    inherited = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder, env={**inherited, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True, text=True,
    )  # fmt: skip


def output_of(code: str, *arguments: object, **environment: str) -> str:
    """The output of the code there."""
    done = run_compiling("-P", "-c", code, *arguments, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
