"""The tests of `bridge.ttir` that need kernels which Triton compiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiled_tests import run_compiled

pytestmark = pytest.mark.long
MODULES = ("test_parse.py", "test_exact_vectors.py", "test_compare.py", "test_proofs.py")
FILES = [Path(__file__).with_name(name) for name in MODULES]


def test_compiled() -> None:
    run_compiled("not thorough", *FILES)


@pytest.mark.thorough
def test_compiled_thorough() -> None:
    run_compiled("thorough", *FILES)
