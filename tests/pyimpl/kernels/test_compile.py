"""The forward kernel compiles for GPUs that are not here, and fits them."""

from __future__ import annotations

import pytest

from pyimpl.kernels.compile import (
    ARCHITECTURES,
    SHARED_MEMORY,
    SPILL_LIMIT,
    cases,
    compile_offline,
    table,
)


def test_quick_cases_fit_every_architecture(capsys: pytest.CaptureFixture[str]) -> None:
    records = compile_offline(ARCHITECTURES, cases(quick=True))
    with capsys.disabled():
        print("\n" + table(records))
    assert [r.arch for r in records] == [a for a in ARCHITECTURES for _ in cases(quick=True)]
    for record in records:
        assert 0 < record.registers <= 255
        assert record.spilled <= SPILL_LIMIT
        assert 0 < record.shared <= SHARED_MEMORY[record.arch]


def test_an_error_of_the_compiler_is_reported() -> None:
    with pytest.raises(RuntimeError, match="offline compilation failed"):
        compile_offline([1], cases(quick=True)[:1])
