"""Compiling for GPUs that are not here: the facts read from the binary, the cache, the sentences. A
step of `make test` of its own checks that the kernels fit every architecture."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pyimpl
from pyimpl.backends.kernels.offline import compile as offline
from pyimpl.backends.kernels.offline.cases import ONLY, Case, cases, compiles
from pyimpl.backends.kernels.offline.compile import (
    ARCHITECTURES,
    SHARED_MEMORY,
    SPILL_LIMIT,
    Record,
    compile_offline,
    misfits,
    repeats,
    table,
)

SMALL = Case("combine", "bf16", 64)
RECORD = Record(
    90, Case("forward", "bf16", 64), 64, 64, num_warps=4, num_stages=2, registers=128, spilled=0,
    shared=SHARED_MEMORY[90], tensor_memory=0, loop_instructions=800, loop_spills=0,
    serialised=False,
)  # fmt: skip


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.thorough
def test_what_a_kernel_needs_is_read_from_its_binary_and_kept(empty_cache: Path) -> None:
    (record,) = compile_offline([90], [SMALL])
    assert (record.arch, record.case, record.block_n) == (90, SMALL, 0)
    assert 0 < record.registers <= 255
    assert misfits([record]) == []
    assert "combine" in table([record])
    # Only a cached result can differ.
    (kept,) = empty_cache.rglob("record.json")
    plain = json.loads(kept.read_text("utf-8"))
    kept.write_text(json.dumps({**plain, "registers": 7}), "utf-8")
    assert compile_offline([90], [SMALL]) == [replace(record, registers=7)]


def test_records_are_kept_by_case_architecture_and_sources(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[tuple[int, Case]] = []

    def compile_one(arch: int, case: Case) -> Record:
        compiled.append((arch, case))
        return replace(RECORD, arch=arch, case=case)

    monkeypatch.setattr(offline.INTERPRETED, "value", False)
    monkeypatch.setattr(offline, "_compile", compile_one)
    monkeypatch.setattr(offline.os, "cpu_count", lambda: 1)
    which = cases(quick=True)
    every = [(arch, case) for arch in ARCHITECTURES for case in which if compiles(arch, case)]
    special = sum(case.kernel in ONLY for case in which)
    assert len(every) == len(ARCHITECTURES) * (len(which) - special) + special
    steps: list[tuple[int, int]] = []
    for _ in range(2):
        records = compile_offline(
            ARCHITECTURES, which, progress=lambda done, total: steps.append((done, total))
        )
        assert [(r.arch, r.case) for r in records] == every
    assert steps == [(done, len(every)) for done in range(1, len(every) + 1)]
    assert compiled == every
    # An entry that cannot be read is found out again, and so is everything with other sources.
    kept = list(empty_cache.rglob("record.json"))
    kept[0].write_text("{", "utf-8")
    compile_offline(ARCHITECTURES, which)
    assert len(compiled) == len(every) + 1 == len(kept) + 1
    monkeypatch.setattr(offline, "sources", lambda: "others")
    compile_offline([90], which[:1])
    assert compiled[-1] == (90, which[0])
    assert len(compiled) == len(every) + 2


def test_the_hash_of_the_sources_sees_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pyimpl" / "backends" / "kernels"
    monkeypatch.setattr(offline, "__file__", str(folder / "offline" / "compile.py"))
    inner = folder / "parts" / "loop.py"
    inner.parent.mkdir(parents=True)
    found = set()
    for text in ("a", "b"):
        inner.write_text(text, "utf-8")
        offline.sources.cache_clear()
        found.add(offline.sources())
    offline.sources.cache_clear()
    assert len(found) == 2


def test_these_files_import_no_other_of_the_package() -> None:
    package = Path(pyimpl.__file__).parent
    files = {path for name in offline.SOURCES for path in package.glob(name)}
    assert package / "backends" / "kernels" / "forward.py" in files
    for path in files:
        text = path.read_text("utf-8")
        for module in re.findall(r"^\s*(?:from|import) (pyimpl[\w.]*)", text, re.MULTILINE):
            place = package.parent / module.replace(".", "/")
            # A package's own file says nothing here.
            assert place.is_dir() or place.with_suffix(".py") in files, f"{path}: {module}"


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            replace(RECORD, case=SMALL, spilled=SPILL_LIMIT + 8, loop_instructions=0),
            "40 bytes spilled, over 32",
        ),
        (
            replace(RECORD, loop_instructions=200, loop_spills=11),
            "11 of 200 instructions in the loop move spilled registers, over 5%",
        ),
        (
            replace(RECORD, arch=80, shared=SHARED_MEMORY[80] + 1),
            "166913 bytes of shared memory, over 166912",
        ),
        (replace(RECORD, tensor_memory=544), "544 columns of tensor memory, over 512"),
        (
            replace(RECORD, serialised=True),
            "the compiler serialises its matrix instructions",
        ),
        (
            replace(
                RECORD,
                case=Case("keys", "bf16", 64, "causal+sums"),
                loop_instructions=200,
                loop_spills=21,
            ),
            "21 of 200 instructions in the loop move spilled registers, over 10%",
        ),
        (
            replace(RECORD, case=Case("decode", "bf16", 64, "causal"), registers=129, shared=2048),
            "4 programs take 69632 registers, of 65536, and 8192 bytes of shared memory",
        ),
        (
            replace(
                RECORD,
                case=Case("paged", "bf16", 64, "causal+pages-of-256"),
                registers=64,
                shared=60_000,
            ),
            "4 programs take 32768 registers, of 65536, and 240000 bytes of shared memory, of 23",
        ),
        (replace(RECORD, repeated=True), "a product adds elements of its tile twice"),
        (replace(RECORD, loop_instructions=0), "0 instructions were read of its loop"),
        (replace(RECORD, registers=0), "0 registers and"),
    ],
)
def test_what_does_not_fit_is_said(record: Record, said: str) -> None:
    (message,) = misfits([record])
    assert said in message


DOT = (
    "%y = tt.dot %p, %v, %acc : tensor<16x{size}xbf16, #ttg.dot_op<{{opIdx = 0, parent = #mma, "
    "kWidth = {width}}}>> * tensor<{size}x64xbf16, #ttg.dot_op<{{opIdx = 1, parent = #mma, "
    "kWidth = {width}}}>> -> tensor<16x64xf32, #mma>"
)


@pytest.mark.parametrize(
    ("size", "width", "found"), [(16, 2, False), (16, 4, False), (16, 8, True), (32, 8, False)]
)
def test_a_tile_that_four_threads_do_not_fill_is_repeated(
    size: int, width: int, found: bool
) -> None:
    """As Triton wrote it of weights that a mask hides and dropout drops, until `kept_pairs` took
    the largest of one."""
    assert repeats(DOT.format(size=size, width=width)) == found


HOPPER = replace(
    RECORD, case=Case("hopper", "bf16", 128), exponentials=66, overlapped=66, columns=64,
    regrouped=True,
)  # fmt: skip

OF_QUERIES = replace(HOPPER, case=Case("hopper-queries", "bf16", 128))


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (replace(HOPPER, loop_spills=1), "1 instructions in the loop move spilled registers"),
        (replace(HOPPER, overlapped=65), "of 66 exponentials in the loop 65 are taken"),
        (replace(HOPPER, exponentials=0, overlapped=0), "of 0 exponentials in the loop 0 are"),
        (replace(HOPPER, columns=32), "a matrix instruction of the loop has 32 columns"),
        (replace(HOPPER, regrouped=False), "no warps give their registers away"),
        (replace(OF_QUERIES, overlapped=65), "of 66 exponentials in the loop 65 are taken"),
    ],
)
def test_what_a_kernel_with_warps_of_their_own_has_lost_is_said(record: Record, said: str) -> None:
    wide = replace(OF_QUERIES, case=Case("hopper-queries", "bf16", 256), overlapped=3)
    with_sums = replace(
        HOPPER, case=Case("hopper-keys", "bf16", 128, "causal+sums"), loop_spills=52,
        loop_instructions=559,
    )  # fmt: skip
    assert misfits([HOPPER, OF_QUERIES, wide, with_sums]) == []
    (message,) = misfits([record])
    assert said in message


def test_what_fits_is_not_complained_of() -> None:
    assert misfits([RECORD]) == []


@pytest.mark.parametrize("instructions", [0, 375])
def test_the_loop_of_a_bias_s_gradient_may_be_gone(instructions: int) -> None:
    # With a window it stays, and was taken for a mistake of the reading.
    case = Case("bias", "bf16", 64, "window+mask+bias")
    assert misfits([replace(RECORD, case=case, loop_instructions=instructions)]) == []


def test_each_quick_case_is_compiled_for_one_architecture_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def compile_jobs(jobs: list[tuple[int, Case]], _: object) -> list[Record]:
        return [replace(RECORD, arch=arch, case=case) for arch, case in jobs]

    monkeypatch.setattr(offline.INTERPRETED, "value", False)
    monkeypatch.setattr(offline, "_compile_jobs", compile_jobs)
    which = cases(quick=True)
    records = compile_offline(ARCHITECTURES, which, in_turn=True)
    assert Counter(record.case for record in records) == Counter(which)
    assert all(compiles(record.arch, record.case) for record in records)
    assert [record.arch for record in records] == sorted(record.arch for record in records)
    for kernel in {case.kernel for case in which} - ONLY.keys():
        of_kernel = [record for record in records if record.case.kernel == kernel]
        assert len({record.arch for record in of_kernel}) == min(len(of_kernel), 3), kernel
    alone = compile_offline((100,), which, in_turn=True)
    assert [r.case for r in alone] == [case for case in which if case.kernel not in ONLY]


def test_the_command_fails_with_what_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find(*_: Any, **__: Any) -> list[Record]:
        return [RECORD, replace(RECORD, tensor_memory=544)]

    monkeypatch.setattr(offline, "compile_offline", find)
    assert offline.main(["--quick"]) == 1
    assert "544 columns" in capsys.readouterr().err
    monkeypatch.setattr(offline, "compile_offline", lambda *_, **__: [RECORD])
    assert offline.main(["--quick"]) == 0


def test_lines_say_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter([0.0, 10.0, 20.0, 30.0, 80.0])
    monkeypatch.setattr(offline.time, "monotonic", lambda: next(seconds))
    show = offline.progress_lines(15.0)
    for done in (1, 2, 3, 4):
        show(done, 4)
    # Nothing within 15 s of the start or of the line before, and nothing at the end.
    assert capsys.readouterr().err == "2 of 4 compiled, about 0.3 min left\n"


def test_an_error_of_the_compiler_is_reported() -> None:
    with pytest.raises(RuntimeError, match="offline compilation failed"):
        compile_offline([1], [SMALL])
