"""What the theorems about integers see that those about stores do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from lean_copies import ROOT, copy
from ttir_cases import NEEDS_COMPILER, planted

from bridge.conformance.planting import Fault
from bridge.ttir import texts

pytestmark = NEEDS_COMPILER


@pytest.mark.thorough
def test_products_in_32_bits_have_no_proof(tmp_path: Path) -> None:
    """In Lean the text stores the same, since its integers are unbounded."""
    edit = Fault(
        "rows in 32 bits", "the row times a stride overflows", "kernels/forward.py",
        "queries64 = queries.to(tl.int64)", "queries64 = queries",
    )  # fmt: skip
    with planted(edit):
        wanted = texts.texts()
        found = {path: wanted[path] for path in texts.differing(ROOT, wanted)}
    assert found
    with copy(tmp_path) as lean:
        built = lean.build(found, all_of_them=True)
    modules = {module.name.removeprefix("Attention.Kernel."): module.ok for module in built.modules}
    assert modules["Texts"]
    assert not modules["TextConditions"]
    errors = [message.text for message in built.messages if message.severity == "error"]
    assert errors
    assert all("type mismatch" in error for error in errors), errors
