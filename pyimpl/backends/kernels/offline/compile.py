"""Compile the kernels for absent GPUs, and report the registers and memory that each needs.

    python -m pyimpl.backends.kernels.offline.compile                    # every case, as a table
    python -m pyimpl.backends.kernels.offline.compile --quick            # few, each for one of them
    python -m pyimpl.backends.kernels.offline.compile --arch 90 --quick  # few, all for this one

The exit status is 1 if a case spills too much or does not fit into shared memory.

Triton compiles to PTX and calls the `ptxas` that comes with it; no driver and no device are needed.
Registers and spilled bytes are read from the finished binary with the `cuobjdump` beside it, the
instructions of the loop over tiles with `nvdisasm` (`sass`).

A case's needs are kept in Triton's cache folder, by a hash of the sources of the kernels and the
versions of Triton and PyTorch; cases that are not there are compiled on all processors.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import multiprocessing
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.cache import get_cache_manager

from pyimpl.backends.kernels.decode import programs_each
from pyimpl.backends.kernels.offline import sass
from pyimpl.backends.kernels.offline.cases import KERNELS, Case, cases, compiles
from pyimpl.backends.kernels.parts.launch import Launch
from pyimpl.backends.kernels.parts.numerics import INTERPRETED

ARCHITECTURES = (80, 90, 100)
# The files that a record depends on, below pyimpl: the kernels, and those that they import.
SOURCES = ("backends/kernels/**/*.py", "internal/*.py", "dropout.py", "part.py")
# Shared memory that one block may use, in bytes (CUDA C++ Programming Guide, compute capabilities).
SHARED_MEMORY = {80: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024}
# Columns of Blackwell's tensor memory; a kernel that needs more Triton compiles to nothing, and
# refuses to launch.
TENSOR_MEMORY = 512
# Seconds between two lines that say how far the compilation is.
PACE = 15.0
# The most that may be spilled, in bytes per thread, by a kernel without a loop over tiles of
# scores: 8 registers.
SPILL_LIMIT = 32
# In such a loop: the share of its instructions that move spilled registers.
SPILL_SHARE = 0.05
# The same where dQ is added too: its tile takes registers of every thread. Tiles of which nothing
# spills are slower for it (1.12 times at head_dim 64 on an H100, without masks).
SPILL_SHARE_WITH_SUMS = 0.10
# Registers of a multiprocessor, which are given to the threads of a warp by eights.
REGISTERS = 64 * 1024
# Kernels of which a multiprocessor gets `decode.programs_each` programs, all at once where the
# scores are not changed.
SPLIT = ("decode", "paged")
PLAIN = {"causal", "pages-of-256"}
# Kernels without such a loop.
LOOPLESS = ("rows", "combine")
# Kernels whose warp groups have a part each: nothing may spill in their loop unless it adds to dQ,
# and all exponentials are taken while products of the same group are under way.
WARP_SPECIALISED = ("hopper", "hopper-keys", "hopper-queries")
# Their matrix instructions have so many columns at least: narrower ones are below the full rate.
LEAST_COLUMNS = 64
# Of heads so wide there are no registers for that in the backward pass.
WIDE = 256
# One whose loop the compiler may find to run once at most: a bias that is broadcast over nothing
# has one tile of scores for each of its own, and a window may hide it.
LOOP_MAY_GO = ("bias",)


@dataclass(frozen=True)
class Record:
    """The resources of one compiled case: `registers` per thread, `spilled` bytes of local memory
    per thread, `shared` bytes of shared memory per block, `tensor_memory` columns of Blackwell's
    tensor memory. Block sizes that a kernel lacks are 0.

    Of the loop over tiles that most tiles take, the one without masks if there is one:
    instructions, how many of them move spilled registers, and as `sass.Loop` the bytes of these,
    the columns of the narrowest matrix instruction, and the exponentials; 0 of a kernel without
    such a loop. serialised: each matrix instruction of a warp group waits for the one before it.
    regrouped: warps that copy give their registers to those that compute. repeated: some matrix
    instruction is given elements of its tile twice (`repeats`).
    """

    arch: int
    case: Case
    block_m: int
    block_n: int
    num_warps: int
    num_stages: int
    registers: int
    spilled: int
    shared: int
    tensor_memory: int
    loop_instructions: int
    loop_spills: int
    serialised: bool
    loop_spilled_bytes: int = 0
    columns: int = 0
    exponentials: int = 0
    overlapped: int = 0
    regrouped: bool = False
    repeated: bool = False

    @property
    def adds_queries(self) -> bool:
        """Whether the loop for dK and dV adds to dQ, too."""
        return "sums" in self.case.features.split("+")

    @property
    def issued(self) -> float:
        """Instructions for each score: those that a warp issues in an iteration, over the scores
        that one of its threads has."""
        scores = self.block_m * self.block_n / (32 * self.num_warps)
        return self.loop_instructions / scores if self.loop_instructions else 0.0


def compile_offline(
    archs: Iterable[int],
    which: Iterable[Case] | None = None,
    *,
    in_turn: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Record]:
    """Compile the cases (default: all) for each compute capability, such as 90, that they are for;
    in_turn: each for one of these, the next case of its kernel for the next one.

    Where this process interprets Triton (TRITON_INTERPRET=1) a second one is started that does not.
    progress: called after each case that is compiled, with how many are of those that no earlier
    run kept, and how many these were; not of the cases of a second process.

    Raises:
        RuntimeError: a case does not compile; the message is the compiler's.
    """
    archs, which = list(archs), list(cases() if which is None else which)
    jobs = [job for job in itertools.product(archs, which) if compiles(*job)]
    if in_turn:
        chosen = _in_turn(archs, which)
        jobs = [job for job in jobs if job in chosen]
    if INTERPRETED.value:
        return _in_another_process(jobs)
    return _compile_jobs(jobs, progress)


def _in_turn(archs: list[int], which: list[Case]) -> set[tuple[int, Case]]:
    turns: dict[str, int] = {}
    chosen = set()
    for case in which:
        # Each kernel begins with another architecture.
        turn = turns.get(case.kernel, len(turns))
        if mine := [arch for arch in archs if compiles(arch, case)]:
            chosen.add((mine[turn % len(mine)], case))
        turns[case.kernel] = turn + 1
    return chosen


def _compile_jobs(
    jobs: list[tuple[int, Case]], progress: Callable[[int, int], None]
) -> list[Record]:
    found = {job: record for job in jobs if (record := _read_kept(*job)) is not None}
    missing = [job for job in jobs if job not in found]
    # Each process holds PyTorch and a compiler, about half a GB.
    workers = min(len(missing), os.cpu_count() or 1, 8)
    with contextlib.ExitStack() as stack:
        each: Callable[..., Iterable[Record]] = map
        if workers > 1:
            # Started afresh, not forked: a copy of a process with threads of PyTorch's can hang.
            context = multiprocessing.get_context("spawn")
            pool = concurrent.futures.ProcessPoolExecutor(workers, context)
            each = stack.enter_context(pool).map
        records = each(_compile_and_keep, [arch for arch, _ in missing], [c for _, c in missing])
        for done, (job, record) in enumerate(zip(missing, records, strict=True), start=1):
            found[job] = record
            progress(done, len(missing))
    return [found[job] for job in jobs]


@functools.cache
def sources() -> str:
    """A hash of all that a record depends on, besides the architecture and the case."""
    package = Path(__file__).resolve().parents[3]
    state = hashlib.sha256(f"{triton.__version__} {torch.__version__}".encode())
    for path in sorted(path for name in SOURCES for path in package.glob(name)):
        content = path.read_bytes()
        state.update(f"{path.relative_to(package)} {len(content)} ".encode() + content)
    return state.hexdigest()


_RECORD = "record.json"


def _manager(arch: int, case: Case) -> Any:
    key = f"{sources()} {arch} {dataclasses.astuple(case)}"
    return get_cache_manager(hashlib.sha256(key.encode()).hexdigest())


def _read_kept(arch: int, case: Case) -> Record | None:
    """The record of the case from an earlier run, if its sources were the same."""
    path = _manager(arch, case).get_file(_RECORD)
    if path is None:
        return None
    try:
        return _record(json.loads(Path(path).read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _compile_and_keep(arch: int, case: Case) -> Record:
    """The record of the case, now kept. Raises RuntimeError with the compiler's message."""
    try:
        record = _compile(arch, case)
    except Exception as error:
        raise RuntimeError(f"sm_{arch}, {case}: {type(error).__name__}: {error}") from error
    text = json.dumps(dataclasses.asdict(record))
    _manager(arch, case).put(text, _RECORD, binary=False)
    return record


def _record(plain: dict[str, Any]) -> Record:
    return Record(**{**plain, "case": Case(**plain["case"])})


def _in_another_process(jobs: list[tuple[int, Case]]) -> list[Record]:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    wanted = json.dumps([[arch, dataclasses.asdict(case)] for arch, case in jobs])
    done = subprocess.run(
        [sys.executable, "-m", "pyimpl.backends.kernels.offline.compile", "--json", wanted],
        env=environment,
        cwd=Path(__file__).resolve().parents[4],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"offline compilation failed:\n{done.stderr}")
    return [_record(plain) for plain in json.loads(done.stdout)]


def _compile(arch: int, case: Case) -> Record:
    launch = KERNELS[case.kernel](case, arch)
    options = {"num_warps": launch.num_warps, "num_stages": launch.num_stages}
    compiled = triton.compile(
        specialise(launch), target=GPUTarget("cuda", arch, 32), options=options
    )
    registers, spilled = resources(compiled.asm["cubin"])
    block_m, block_n = (int(launch.constants.get(name) or 0) for name in ("BLOCK_M", "BLOCK_N"))
    # Without masks an iteration is shortest. Without tiles of keys there are no scores.
    text = sass.disassemble(compiled.asm["cubin"])
    loops = sass.loops_of(text) if block_n else []
    main = min(loops, key=lambda loop: loop.instructions, default=sass.Loop(0, 0))
    return Record(
        arch, case, block_m, block_n, **options,
        registers=registers, spilled=spilled, shared=compiled.metadata.shared,
        tensor_memory=compiled.metadata.tmem_size,
        loop_instructions=main.instructions, loop_spills=main.spills,
        serialised=sass.is_serialised(text), loop_spilled_bytes=main.spilled_bytes,
        columns=main.columns, exponentials=main.exponentials, overlapped=main.overlapped,
        regrouped=sass.is_regrouped(text), repeated=repeats(compiled.asm["ttgir"]),
    )  # fmt: skip


def specialise(launch: Launch) -> ASTSource:
    """The kernel's source as this launch specialises it, of which Triton makes the text; addresses
    are those that PyTorch allocates, which 16 divides."""
    types, constants = launch.specialisation()
    hints = {
        (index,): [["tt.divisibility", 16]]
        for index, kind in enumerate(types.values())
        if kind.startswith("*")
    }
    if launch.kernel.is_gluon():
        from triton.experimental.gluon._runtime import GluonASTSource

        return GluonASTSource(launch.kernel, types, constants, hints)
    return ASTSource(launch.kernel, types, constants, hints)


def resources(cubin: bytes) -> tuple[int, int]:
    """Registers per thread and bytes of stack per thread of the one kernel in the binary.

    The kernel has no arrays of its own in local memory: its stack is for spilled registers.
    """
    text = sass.tool_output(triton.knobs.nvidia.cuobjdump.path, "--dump-resource-usage", cubin)
    found = re.search(r"REG:(\d+) STACK:(\d+)", text)
    if found is None:
        raise RuntimeError(f"cuobjdump printed no resource usage:\n{text}")
    return int(found[1]), int(found[2])


def repeats(text: str) -> bool:
    """Whether some product of Triton's GPU text adds elements of a tile more than once: the four
    threads that share a row hold `kWidth` elements each in a row, and a tile that has fewer is
    repeated. Triton 3.6 and 3.7 write such a text where a weight depends on a byte that is loaded
    and on an interleaved tensor."""
    operand = r"tt\.dot .* : tensor<\d+x(\d+)x\w+, #ttg\.dot_op<\{opIdx = 0, .*?kWidth = (\d+)\}>>"
    return any(4 * int(width) > int(size) for size, width in re.findall(operand, text))


def misfits(records: Iterable[Record]) -> list[str]:
    """One sentence for each way in which a record spills too much, is over its `SHARED_MEMORY` or
    `TENSOR_MEMORY`, has its matrix instructions serialised or given elements twice, or whose binary
    was misread."""
    found = []
    for r in records:
        if not (0 < r.registers <= 255 and r.shared > 0):
            found.append(
                f"sm_{r.arch}, {r.case}: {r.registers} registers and {r.shared} bytes of shared "
                "memory were read, where there are 1 to 255 and more than 0"
            )
        looped, kernel = bool(r.loop_instructions), r.case.kernel
        if kernel not in LOOP_MAY_GO and looped != (kernel not in LOOPLESS):
            found.append(
                f"sm_{r.arch}, {r.case}: {r.loop_instructions} instructions were read of its loop "
                f"over tiles of scores, which all kernels but {', '.join(LOOPLESS)} have"
            )
        if not r.loop_instructions and r.spilled > SPILL_LIMIT:
            found.append(f"sm_{r.arch}, {r.case}: {r.spilled} bytes spilled, over {SPILL_LIMIT}")
        share = SPILL_SHARE_WITH_SUMS if r.adds_queries else SPILL_SHARE
        if r.loop_spills > share * r.loop_instructions:
            found.append(
                f"sm_{r.arch}, {r.case}: {r.loop_spills} of {r.loop_instructions} instructions in "
                f"the loop move spilled registers, over {share:.0%}"
            )
        if r.shared > SHARED_MEMORY[r.arch]:
            limit = SHARED_MEMORY[r.arch]
            found.append(f"sm_{r.arch}, {r.case}: {r.shared} bytes of shared memory, over {limit}")
        if r.serialised:
            found.append(f"sm_{r.arch}, {r.case}: the compiler serialises its matrix instructions")
        if r.repeated:
            found.append(f"sm_{r.arch}, {r.case}: a product adds elements of its tile twice")
        if r.case.kernel in WARP_SPECIALISED:
            found += _losses(r)
        if r.case.kernel in SPLIT and set(r.case.features.split("+")) <= PLAIN:
            found += _waves(r)
        if r.tensor_memory > TENSOR_MEMORY:
            found.append(
                f"sm_{r.arch}, {r.case}: {r.tensor_memory} columns of tensor memory, over "
                f"{TENSOR_MEMORY}"
            )
    return found


def _losses(r: Record) -> Iterator[str]:
    """A sentence for each optimisation of such a kernel that the compiler has lost."""
    name = f"sm_{r.arch}, {r.case}"
    if r.loop_spills and not r.adds_queries:
        yield f"{name}: {r.loop_spills} instructions in the loop move spilled registers"
    overlaps = r.case.kernel == "hopper" or r.case.head_dim < WIDE
    if overlaps and not 0 < r.exponentials == r.overlapped:
        yield (
            f"{name}: of {r.exponentials} exponentials in the loop {r.overlapped} are taken while "
            "products are under way"
        )
    if r.columns < LEAST_COLUMNS:
        yield f"{name}: a matrix instruction of the loop has {r.columns} columns"
    if not r.regrouped:
        yield f"{name}: no warps give their registers away"


def _waves(r: Record) -> Iterator[str]:
    """A sentence if the programs that a multiprocessor gets do not fit on it at once."""
    programs = programs_each(r.arch)
    registers = -(-r.registers // 8) * 8 * 32 * r.num_warps * programs
    if registers > REGISTERS or r.shared * programs > SHARED_MEMORY[r.arch]:
        yield (
            f"sm_{r.arch}, {r.case}: {programs} programs take {registers} registers, of "
            f"{REGISTERS}, and {r.shared * programs} bytes of shared memory, of "
            f"{SHARED_MEMORY[r.arch]}"
        )


def table(records: Iterable[Record]) -> str:
    """The records as text, one line each."""
    lines = [
        "arch    kernel   dtype  head_dim  features                   block_m  block_n  warps"
        "  stages  registers  spilled B  shared B  loop  its spills  B  per score  columns"
        "  overlapped"
    ]
    for r in records:
        lines.append(
            f"sm_{r.arch:<4} {r.case.kernel:<8} {r.case.dtype:<6} {r.case.head_dim:>8}"
            f"  {r.case.features or '-':<25}"
            f"  {r.block_m:>8} {r.block_n:>8} {r.num_warps:>6} {r.num_stages:>7} {r.registers:>10}"
            f" {r.spilled:>10} {r.shared:>9} {r.loop_instructions:>5} {r.loop_spills:>11}"
            f" {r.loop_spilled_bytes:>2} {r.issued:>10.1f} {r.columns:>8}"
            f" {f'{r.overlapped}/{r.exponentials}':>11}"
        )
    return "\n".join(lines)


def progress_lines(pace: float) -> Callable[[int, int], None]:
    """A function that prints the progress on stderr, at most one line in `pace` seconds."""
    start = last = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= pace and done < total:
            minutes = (now - start) / done * (total - done) / 60
            print(f"{done} of {total} compiled, about {minutes:.1f} min left", file=sys.stderr)
            last = now

    return show


def main(arguments: list[str] | None = None) -> int:
    """The command line described at the top of this module; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pyimpl.backends.kernels.offline.compile")
    parser.add_argument("--arch", type=int, action="append", choices=ARCHITECTURES)
    parser.add_argument("--quick", action="store_true", help="few, each for one architecture")
    parser.add_argument("--json", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if INTERPRETED.value and given.json is not None:
        raise RuntimeError("Triton interprets although TRITON_INTERPRET is not set")
    if given.json is not None:
        jobs = [(arch, Case(**case)) for arch, case in json.loads(given.json)]
        records = _compile_jobs(jobs, lambda done, total: None)
        print(json.dumps([dataclasses.asdict(record) for record in records]))
        return 0
    records = compile_offline(
        given.arch or ARCHITECTURES,
        cases(given.quick),
        in_turn=given.quick,
        progress=progress_lines(PACE),
    )
    print("$ python -m pyimpl.backends.kernels.offline.compile", *sys.argv[1:])
    print(f"Python {platform.python_version()}, torch {torch.__version__}", end=", ")
    print(f"triton {triton.__version__}")
    print(table(records))
    for sentence in misfits(records):
        print(sentence, file=sys.stderr)
    return 1 if misfits(records) else 0


if __name__ == "__main__":
    sys.exit(main())
