"""The tests of `bridge.ptx` that need kernels which Triton compiles, and those of the adapter where
it interprets them."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiled_tests import run_compiled

from bridge.conformance.adapters.builtin import BUILTIN, NAMED, builtin
from bridge.conformance.judging.run import run
from bridge.vectors.load import default_directory, read_trusted
from pyimpl.backends.kernels.parts.numerics import INTERPRETED


@pytest.mark.thorough
def test_compiled() -> None:
    run_compiled(Path(__file__).with_name("test_vectors.py"))


@pytest.mark.skipif(not INTERPRETED.value, reason="Triton compiles in this process")
def test_where_triton_interprets_no_vector_is_supported() -> None:
    family = read_trusted(default_directory() / "causal.json")
    result = run(builtin("pyimpl-ptx"), [family], "float16")
    assert {vector.status for vector in result.vectors} == {"unsupported"}
    assert "start it with TRITON_INTERPRET=0" in str(result.vectors[0].reason)


def test_it_runs_where_it_is_named_alone() -> None:
    assert "pyimpl-ptx" in NAMED
    assert not set(NAMED) & set(BUILTIN)
