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
    # A bias that is broadcast over nothing has one tile of scores for each of its own.
    with_loop = [r for r in records if r.case.kernel not in ("rows", "combine", "bias")]
    assert all(r.loop_instructions > 0 and r.issued > 4 for r in with_loop)
    assert all(r.loop_instructions == 0 for r in records if r not in with_loop)
    spilling = replace(records[0], spilled=SPILL_LIMIT + 8, loop_instructions=0)
    in_loop = replace(records[0], loop_instructions=200, loop_spills=11)
    too_large = replace(records[0], shared=SHARED_MEMORY[80] + 1)
    too_deep = replace(records[0], tensor_memory=544)
    messages = misfits([spilling, in_loop, too_large, too_deep])
    assert "40 bytes spilled, over 32" in messages[0]
    assert "11 of 200 instructions in the loop move spilled registers, over 5%" in messages[1]
    assert "166913 bytes of shared memory, over 166912" in messages[2]
    assert "544 columns of tensor memory, over 512" in messages[3]


def test_an_error_of_the_compiler_is_reported() -> None:
    with pytest.raises(RuntimeError, match="offline compilation failed"):
        compile_offline([1], cases(quick=True)[:1])
