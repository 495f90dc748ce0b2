"""The tests of `bridge.ttir` that need kernels which Triton compiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiled_tests import run_compiled

MODULES = ("test_parse.py", "test_exact_vectors.py", "test_compare.py", "test_proofs.py")


@pytest.mark.thorough
@pytest.mark.long
def test_compiled() -> None:
    run_compiled(*(Path(__file__).with_name(name) for name in MODULES))
