"""Compile the kernels for GPUs that are not there, and report what each of them needs.

    python -m pyimpl.kernels.compile                       # every case, as a table
    python -m pyimpl.kernels.compile --arch 90 --quick     # few cases, one architecture

The exit status is 1 if a case spills too much or does not fit into shared memory.

Triton compiles to PTX and calls the `ptxas` that comes with it; no driver and no device are needed.
Registers and spilled bytes are read from the finished binary with the `cuobjdump` beside it.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from pyimpl.kernels import forward
from pyimpl.kernels._numerics import INTERPRETED

ARCHITECTURES = (80, 90, 100)
# Shared memory that one block may use, in bytes (CUDA C++ Programming Guide, compute capabilities).
SHARED_MEMORY = {80: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024}
# What a launch may spill, in bytes per thread: 8 registers.
SPILL_LIMIT = 32
_TYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}


@dataclass(frozen=True)
class Case:
    """One specialisation of the forward kernel; both head sizes are `head_dim`.

    `single`: one head, one query and one key; Triton makes constants of arguments that are 1.
    """

    dtype: str
    head_dim: int
    is_causal: bool
    has_mask: bool
    single: bool = False


@dataclass(frozen=True)
class Record:
    """What one compiled case uses: `registers` per thread, `spilled` bytes of local memory per
    thread, `shared` bytes of shared memory per block."""

    arch: int
    case: Case
    block_m: int
    block_n: int
    num_warps: int
    num_stages: int
    registers: int
    spilled: int
    shared: int


def cases(quick: bool = False) -> list[Case]:
    """The representative cases: each dtype and head size, causal, with a mask and with neither.

    80 stands for the head sizes that are no power of two, 100 and 250 for those whose rows are
    loaded element by element.
    `quick`: a few cases that between them take every branch of the kernel.
    """
    if quick:
        return [
            Case("bf16", 64, True, False),
            Case("bf16", 128, False, False),
            Case("fp16", 80, False, True),
            Case("fp32", 64, True, False),
            Case("bf16", 64, True, True, single=True),
        ]
    kinds = ((False, False), (True, False), (False, True))
    return [
        Case(dtype, head_dim, *kind)
        for dtype, head_dim, kind in itertools.product(
            ("fp32", "fp16", "bf16"), (64, 80, 100, 128, 250, 256), kinds
        )
    ]


def compile_offline(archs: Iterable[int], which: Iterable[Case] | None = None) -> list[Record]:
    """Compile the cases (default: all) for each compute capability, such as 90.

    Where this process interprets Triton (TRITON_INTERPRET=1) a second one is started that does not.

    Raises:
        RuntimeError: a case does not compile; the message is the compiler's.
    """
    archs, which = list(archs), list(cases() if which is None else which)
    if INTERPRETED.value:
        return _in_another_process(archs, which)
    return [_compile(arch, case) for arch, case in itertools.product(archs, which)]


def _in_another_process(archs: list[int], which: list[Case]) -> list[Record]:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    wanted = json.dumps({"archs": archs, "cases": [dataclasses.asdict(case) for case in which]})
    done = subprocess.run(
        [sys.executable, "-m", "pyimpl.kernels.compile", "--json", wanted],
        env=environment,
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"offline compilation failed:\n{done.stderr}")
    return [Record(**{**r, "case": Case(**r["case"])}) for r in json.loads(done.stdout)]


def _compile(arch: int, case: Case) -> Record:
    dtype = next(t for t, name in _TYPES.items() if name == case.dtype)
    options = forward.launch_options(dtype, case.head_dim, case.head_dim, case.has_mask, arch)
    block_m, block_n = options.pop("block_m"), options.pop("block_n")
    dim = forward.padded(case.head_dim)
    constants: dict[str, object] = {
        "BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_D": dim, "BLOCK_V": dim,
        "EVEN_D": dim == case.head_dim, "EVEN_V": dim == case.head_dim,
        "IS_CAUSAL": case.is_causal, "HAS_MASK": case.has_mask,
    }  # fmt: skip
    signature: dict[str, str] = {}
    hints: dict[tuple[int], list[list[object]]] = {}
    # As a launch on contiguous tensors specialises: last strides are the constant 1; addresses are
    # divisible by 16, and so are head sizes and the other strides where the head size is.
    aligned: list[list[object]] = [["tt.divisibility", 16]]
    ones = ["stride_qd", "stride_kd", "stride_vd", "stride_mn", "stride_od", "stride_lm"]
    if case.single:
        ones += ["num_heads", "q_len", "kv_len"]
    kernel = forward._forward_kernel
    for index, name in enumerate(kernel.arg_names):
        if name in constants:
            signature[name] = "constexpr"
        elif name == "mask_ptr" and not case.has_mask:
            signature[name], constants[name] = "constexpr", None
        elif name in ones:
            signature[name], constants[name] = "constexpr", 1
        elif name == "scale_log2":
            signature[name] = "fp32"
        elif name.endswith("_ptr"):
            kinds = {"mask_ptr": "u8", "lse_ptr": "fp32"}
            signature[name] = "*" + kinds.get(name, case.dtype)
            hints[index,] = aligned
        else:
            signature[name] = "i32"
            if name.startswith(("stride_", "head_dim", "value_dim")) and case.head_dim % 16 == 0:
                hints[index,] = aligned
    compiled = triton.compile(
        ASTSource(kernel, signature, constants, hints),
        target=GPUTarget("cuda", arch, 32),
        options=options,
    )
    registers, spilled = _resources(compiled.asm["cubin"])
    return Record(
        arch, case, block_m, block_n, **options,
        registers=registers, spilled=spilled, shared=compiled.metadata.shared,
    )  # fmt: skip


def _resources(cubin: bytes) -> tuple[int, int]:
    """Registers per thread and bytes of stack per thread of the one kernel in the binary.

    The kernel has no arrays of its own in local memory: its stack is what registers spill to.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        tool = triton.knobs.nvidia.cuobjdump.path
        text = subprocess.run(
            [tool, "--dump-resource-usage", str(path)], capture_output=True, text=True, check=True
        ).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", text)
    if found is None:
        raise RuntimeError(f"cuobjdump printed no resource usage:\n{text}")
    return int(found[1]), int(found[2])


def misfits(records: Iterable[Record]) -> list[str]:
    """One sentence for each record over `SPILL_LIMIT` or over its `SHARED_MEMORY`."""
    found = []
    for r in records:
        if r.spilled > SPILL_LIMIT:
            found.append(f"sm_{r.arch}, {r.case}: {r.spilled} bytes spilled, over {SPILL_LIMIT}")
        if r.shared > SHARED_MEMORY[r.arch]:
            limit = SHARED_MEMORY[r.arch]
            found.append(f"sm_{r.arch}, {r.case}: {r.shared} bytes of shared memory, over {limit}")
    return found


def table(records: Iterable[Record]) -> str:
    """The records as text, one line each."""
    lines = [
        "arch    dtype  head_dim  causal  mask   block_m  block_n  warps  stages  registers"
        "  spilled B  shared B"
    ]
    for r in records:
        yes_no = ["no" if flag is False else "yes" for flag in (r.case.is_causal, r.case.has_mask)]
        lines.append(
            f"sm_{r.arch:<4} {r.case.dtype:<6} {r.case.head_dim:>8}  {yes_no[0]:<6}  {yes_no[1]:<4}"
            f"  {r.block_m:>8} {r.block_n:>8} {r.num_warps:>6} {r.num_stages:>7} {r.registers:>10}"
            f" {r.spilled:>10} {r.shared:>9}"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command line described at the top of this module; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pyimpl.kernels.compile")
    parser.add_argument("--arch", type=int, action="append", choices=ARCHITECTURES)
    parser.add_argument("--quick", action="store_true", help="few cases")
    parser.add_argument("--json", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if INTERPRETED.value and given.json is not None:
        raise RuntimeError("Triton interprets although TRITON_INTERPRET is not set")
    if given.json is not None:
        wanted = json.loads(given.json)
        records = compile_offline(wanted["archs"], [Case(**case) for case in wanted["cases"]])
        print(json.dumps([dataclasses.asdict(record) for record in records]))
        return 0
    records = compile_offline(given.arch or ARCHITECTURES, cases(given.quick))
    print("$ python -m pyimpl.kernels.compile", *sys.argv[1:])
    print(f"Python {platform.python_version()}, torch {torch.__version__}", end=", ")
    print(f"triton {triton.__version__}")
    print(table(records))
    for sentence in misfits(records):
        print(sentence, file=sys.stderr)
    return 1 if misfits(records) else 0


if __name__ == "__main__":
    sys.exit(main())
