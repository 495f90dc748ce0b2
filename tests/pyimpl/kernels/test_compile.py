"""The forward kernel compiles for GPUs that are not here, and fits them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyimpl.kernels.compile import (
    ARCHITECTURES,
    SHARED_MEMORY,
    SPILL_LIMIT,
    cases,
    compile_offline,
    misfits,
    table,
)


def test_quick_cases_fit_every_architecture(capsys: pytest.CaptureFixture[str]) -> None:
    records = compile_offline(ARCHITECTURES, cases(quick=True))
    with capsys.disabled():
        print("\n" + table(records))
    assert [r.arch for r in records] == [a for a in ARCHITECTURES for _ in cases(quick=True)]
    assert all(0 < r.registers <= 255 and r.shared > 0 for r in records)
    assert misfits(records) == []
    spilling = replace(records[0], spilled=SPILL_LIMIT + 8)
    too_large = replace(records[0], shared=SHARED_MEMORY[80] + 1)
    messages = misfits([spilling, too_large])
    assert "40 bytes spilled, over 32" in messages[0]
    assert "166913 bytes of shared memory, over 166912" in messages[1]


def test_an_error_of_the_compiler_is_reported() -> None:
    with pytest.raises(RuntimeError, match="offline compilation failed"):
        compile_offline([1], cases(quick=True)[:1])
