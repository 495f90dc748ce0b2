"""The tests that need kernels which Triton compiles, in a process of their own: in this one it may
interpret them, and it does only one of both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.conformance.adapters.builtin import BUILTIN, NAMED, builtin
from bridge.conformance.run import run
from bridge.vectors.load import default_directory, read_trusted
from pyimpl.backends.kernels.parts.numerics import INTERPRETED

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


@pytest.mark.skipif(not INTERPRETED.value, reason="Triton compiles in this process")
def test_where_triton_interprets_no_vector_is_supported() -> None:
    family = read_trusted(default_directory() / "causal.json")
    result = run(builtin("pyimpl-ptx"), [family], "float16")
    assert {vector.status for vector in result.vectors} == {"unsupported"}
    assert "start it with TRITON_INTERPRET=0" in str(result.vectors[0].reason)


def test_it_runs_where_it_is_named_alone() -> None:
    assert "pyimpl-ptx" in NAMED
    assert not set(NAMED) & set(BUILTIN)
