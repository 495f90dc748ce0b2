"""Compile the kernels for GPUs that are not there, and report what each of them needs.

    python -m pyimpl.kernels.compile                       # every case, as a table
    python -m pyimpl.kernels.compile --arch 90 --quick     # few cases, one architecture

The exit status is 1 if a case spills too much or does not fit into shared memory.

Triton compiles to PTX and calls the `ptxas` that comes with it; no driver and no device are needed.
Registers and spilled bytes are read from the finished binary with the `cuobjdump` beside it, what
the loop over tiles issues with `nvdisasm` (`_sass`).
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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from pyimpl._scores import ScoreOptions
from pyimpl.dropout import Dropout
from pyimpl.kernels import (
    _sass,
    backward,
    backward_bias,
    backward_keys,
    backward_queries,
    combine,
    decode,
    forward,
    varlen,
)
from pyimpl.kernels._backward_launch import Given, Sequences
from pyimpl.kernels._launch import Launch
from pyimpl.kernels._numerics import INTERPRETED

ARCHITECTURES = (80, 90, 100)
# Shared memory that one block may use, in bytes (CUDA C++ Programming Guide, compute capabilities).
SHARED_MEMORY = {80: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024}
# Columns of Blackwell's tensor memory; what needs more Triton compiles to nothing, and refuses to
# launch.
TENSOR_MEMORY = 512
# What may be spilled, in bytes per thread, by a kernel without a loop over tiles of scores: 8
# registers.
SPILL_LIMIT = 32
# In such a loop: the share of its instructions that move spilled registers.
SPILL_SHARE = 0.05
_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
_TYPES = {
    torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.uint8: "u8",
    torch.int32: "i32", torch.int64: "i64",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One specialisation of a kernel; both head sizes are `head_dim`.

    kernel: a name out of `KERNELS`. features: names out of `FEATURES`, joined by "+". single: one
    head, one query and one key; Triton makes constants of most arguments that are 1.
    """

    kernel: str
    dtype: str
    head_dim: int
    features: str = ""
    single: bool = False


@dataclass(frozen=True)
class Record:
    """What one compiled case uses: `registers` per thread, `spilled` bytes of local memory per
    thread, `shared` bytes of shared memory per block, `tensor_memory` columns of Blackwell's tensor
    memory. Block sizes that a kernel lacks are 0.

    Of the loop over tiles that most tiles take, the one without masks if there is one:
    instructions, and how many of them move spilled registers; 0 of a kernel without such a loop.
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

    @property
    def issued(self) -> float:
        """Instructions for each score: what a warp issues in an iteration, over the scores that one
        of its threads has."""
        scores = self.block_m * self.block_n / (32 * self.num_warps)
        return self.loop_instructions / scores if self.loop_instructions else 0.0


def _empty(*size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(size, dtype=dtype, device="meta")


def _options(case: Case, batch: int, heads: int, q_len: int, kv_len: int) -> ScoreOptions:
    """The options that the case's features mean; tensors without memory."""
    pairs = (batch, heads, q_len, kv_len)
    settings: dict[str, dict[str, object]] = {
        "": {},
        "causal": {"right": 0},
        "window": {"left": 100, "right": 0},
        "mask": {"mask": _empty(*pairs, dtype=torch.bool)},
        "bias": {"bias": _empty(*pairs, dtype=_DTYPES[case.dtype])},
        "softcap": {"softcap": 30.0},
        "alibi": {"alibi_slopes": _empty(batch, heads)},
        "sink": {"sinks": _empty(heads)},
        "dropout": {"dropout": Dropout(0.1, _empty(dtype=torch.int64))},
        "packed": {},
    }
    chosen: dict[str, Any] = {}
    for feature in case.features.split("+"):
        chosen |= settings[feature]
    return ScoreOptions(0.125, **chosen)


def _forward(case: Case, arch: int) -> Launch:
    batch, heads, kv_heads, q_len, kv_len = (1,) * 5 if case.single else (2, 8, 2, 1000, 1024)
    dtype = _DTYPES[case.dtype]
    query = _empty(batch, heads, q_len, case.head_dim, dtype=dtype)
    key = _empty(batch, kv_heads, kv_len, case.head_dim, dtype=dtype)
    options = _options(case, batch, heads, q_len, kv_len)
    lse = _empty(batch, heads, q_len)
    return forward.launch(query, key, key, query, lse, options, capability=arch)


def _decode(case: Case, arch: int) -> Launch:
    batch, heads, kv_heads, q_len, kv_len = (1,) * 5 if case.single else (2, 16, 2, 2, 4096)
    dtype = _DTYPES[case.dtype]
    query = _empty(batch, heads, q_len, case.head_dim, dtype=dtype)
    lens = _empty(batch, dtype=torch.int32)
    table = None
    key = _empty(batch, kv_heads, kv_len, case.head_dim, dtype=dtype)
    if case.kernel == "paged":
        key = _empty(512, 16, kv_heads, case.head_dim, dtype=dtype).transpose(1, 2)
        table = _empty(batch, kv_len // 16, dtype=torch.int32)
    parts = _empty(4, batch, heads, q_len, case.head_dim)
    return decode.launch(
        query, key, key, parts, parts[..., 0].contiguous(),
        _options(case, batch, heads, q_len, kv_len), kv_lens=lens, page_table=table,
        bottom_right=not case.single, capability=arch,
    )  # fmt: skip


def _varlen(case: Case, arch: int) -> Launch:
    dtype = _DTYPES[case.dtype]
    query = _empty(3000, 8, case.head_dim, dtype=dtype)
    key = _empty(4000, 2, case.head_dim, dtype=dtype)
    cu_seqlens = _empty(5, dtype=torch.int32)
    return varlen.launch(
        query, key, key, cu_seqlens, cu_seqlens, query, _empty(3000, 8),
        _options(case, 4, 8, 3000, 4000), max_q_len=1000, bottom_right=True, capability=arch,
    )  # fmt: skip


def _given(case: Case) -> Given:
    """What the kernels of the backward pass read; "packed": four sequences."""
    batch, heads, kv_heads, q_len, kv_len = (1,) * 5 if case.single else (2, 8, 2, 1000, 1024)
    dtype = _DTYPES[case.dtype]
    query = _empty(batch, heads, q_len, case.head_dim, dtype=dtype)
    key = _empty(batch, kv_heads, kv_len, case.head_dim, dtype=dtype)
    rows = _empty(batch, heads, q_len)
    options = _options(case, batch, heads, q_len, kv_len)
    sequences = None
    if "packed" in case.features.split("+"):
        cu_seqlens = _empty(5, dtype=torch.int32)
        sequences = Sequences(cu_seqlens, cu_seqlens, 500, 500, True)
        options = dataclasses.replace(options, alibi_slopes=None)
    return Given(query, key, key, query, rows, rows, options, sequences)


def _backward_rows(case: Case, arch: int) -> Launch:
    given = _given(case)
    rows = given.lse
    return backward.row_numbers_launch(given.query, given.query, rows, rows, rows, given.delta)


def _backward_keys(case: Case, arch: int) -> Launch:
    given = _given(case)
    return backward_keys.launch(given, given.key, given.value, capability=arch)


def _backward_queries(case: Case, arch: int) -> Launch:
    given = _given(case)
    slopes = given.delta if given.options.alibi_slopes is not None else None
    return backward_queries.launch(given, given.query, slopes, capability=arch)


def _backward_bias(case: Case, arch: int) -> Launch:
    given = _given(case)
    bias = given.options.bias
    assert bias is not None
    return backward_bias.launch(given, _empty(*bias.shape), capability=arch)


def _combine(case: Case, arch: int) -> Launch:
    parts = _empty(4, 2, 16, 2, case.head_dim)
    out = _empty(2, 16, 2, case.head_dim, dtype=_DTYPES[case.dtype])
    return combine.launch(parts, parts[..., 0].contiguous(), out, out[..., 0].float())


KERNELS: dict[str, Callable[[Case, int], Launch]] = {
    "forward": _forward,
    "decode": _decode,
    "paged": _decode,
    "varlen": _varlen,
    "rows": _backward_rows,
    "keys": _backward_keys,
    "queries": _backward_queries,
    "bias": _backward_bias,
    "combine": _combine,
}


def cases(quick: bool = False) -> list[Case]:
    """The representative cases of each kernel: dtypes, head sizes, and what is asked of the scores.

    80 stands for the head sizes that are no power of two, 100 and 250 for those whose rows are
    loaded element by element.
    `quick`: a few cases that between them take every branch of the kernels.
    """
    if quick:
        return [
            Case("forward", "bf16", 64, "causal"),
            Case("forward", "fp16", 80, "window+mask+bias"),
            Case("forward", "fp32", 64, "softcap+alibi+sink", single=True),
            Case("decode", "bf16", 128, "window+mask+bias"),
            Case("paged", "fp16", 64, "window+softcap+alibi+sink"),
            Case("varlen", "bf16", 64, "causal+sink"),
            Case("combine", "bf16", 64),
            Case("rows", "bf16", 80),
            Case("keys", "fp16", 80, "window+mask+bias"),
            Case("keys", "fp32", 64, "softcap+alibi+sink", single=True),
            Case("keys", "bf16", 256, "window"),
            Case("queries", "bf16", 64, "causal+packed"),
            Case("bias", "bf16", 64, "causal+bias"),
            Case("forward", "bf16", 64, "causal+dropout"),
            Case("varlen", "fp32", 64, "window+dropout"),
            Case("keys", "bf16", 64, "packed+causal+dropout"),
            Case("keys", "bf16", 256, "window+mask+bias+dropout"),
            Case("varlen", "fp32", 250, "window+dropout"),
            Case("queries", "bf16", 64, "window+mask+bias+dropout"),
            Case("bias", "fp32", 64, "causal+bias+dropout"),
        ]
    every = ("", "causal", "window", "mask", "window+mask+bias", "causal+softcap+alibi+sink")
    few = ("window+mask+bias", "causal+softcap+alibi+sink")
    dropping = tuple(f"{features}+dropout" for features in ("causal", few[0]))
    heads = (64, 80, 100, 128, 250, 256)
    # The backward pass fills up the others with zeros.
    even = tuple(size for size in heads if size % 16 == 0)
    backward_features = (
        "", "window", "packed+causal", *few, "packed+causal+dropout", dropping[1],
    )  # fmt: skip
    return [
        *(
            Case("forward", *rest)
            for rest in itertools.product(_DTYPES, heads, (*every, *dropping))
        ),
        *(Case("decode", *rest) for rest in itertools.product(("fp32", "bf16"), heads, few)),
        *(Case("paged", *rest) for rest in itertools.product(("fp32", "bf16"), heads, few)),
        *(
            Case("varlen", *rest)
            for rest in itertools.product(
                ("fp32", "bf16"), heads, ("window", few[1], "window+dropout")
            )
        ),
        *(Case("combine", "bf16", head_dim) for head_dim in (64, 256)),
        *(Case("rows", dtype, 64) for dtype in _DTYPES),
        *(
            Case(kernel, *rest)
            for kernel in ("keys", "queries")
            for rest in itertools.product(("fp32", "bf16"), even, backward_features)
        ),
        *(
            Case("bias", *rest)
            for rest in itertools.product(("fp32", "bf16"), even, (few[0], dropping[1]))
        ),
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
    launch = KERNELS[case.kernel](case, arch)
    options = {"num_warps": launch.num_warps, "num_stages": launch.num_stages}
    compiled = triton.compile(
        _specialised(launch), target=GPUTarget("cuda", arch, 32), options=options
    )
    registers, spilled = _resources(compiled.asm["cubin"])
    block_m, block_n = (int(launch.constants.get(name) or 0) for name in ("BLOCK_M", "BLOCK_N"))
    # Without masks an iteration is shortest. Without tiles of keys there are no scores.
    loops = _sass.loops(compiled.asm["cubin"]) if block_n else []
    main = min(loops, key=lambda loop: loop.instructions, default=_sass.Loop(0, 0))
    return Record(
        arch, case, block_m, block_n, **options,
        registers=registers, spilled=spilled, shared=compiled.metadata.shared,
        tensor_memory=compiled.metadata.tmem_size,
        loop_instructions=main.instructions, loop_spills=main.spills,
    )  # fmt: skip


def _specialised(launch: Launch) -> ASTSource:
    """The kernel as this launch specialises it: None and 1 are constants, and what is known of
    addresses (as PyTorch allocates them) and of numbers is whether 16 divides them."""
    signature: dict[str, str] = {}
    constants: dict[str, object] = dict(launch.constants)
    hints: dict[tuple[int], list[list[object]]] = {}
    for index, parameter in enumerate(launch.kernel.params):
        name, kind = parameter.name, "constexpr"
        if name not in constants:
            given = launch.arguments[name]
            free = parameter.do_not_specialize
            if given is None or (isinstance(given, int) and given == 1 and not free):
                constants[name] = given
            elif isinstance(given, float):
                kind = "fp32"
            elif isinstance(given, int):
                kind = "i32" if abs(given) < 2**31 else "i64"
            else:
                kind = "*" + _TYPES[given.dtype]
            if isinstance(given, Tensor) or (
                isinstance(given, int) and not given % 16 and not free
            ):
                hints[index,] = [["tt.divisibility", 16]]
        signature[name] = kind
    return ASTSource(launch.kernel, signature, constants, hints)


def _resources(cubin: bytes) -> tuple[int, int]:
    """Registers per thread and bytes of stack per thread of the one kernel in the binary.

    The kernel has no arrays of its own in local memory: its stack is what registers spill to.
    """
    text = _sass.printed(triton.knobs.nvidia.cuobjdump.path, "--dump-resource-usage", cubin)
    found = re.search(r"REG:(\d+) STACK:(\d+)", text)
    if found is None:
        raise RuntimeError(f"cuobjdump printed no resource usage:\n{text}")
    return int(found[1]), int(found[2])


def misfits(records: Iterable[Record]) -> list[str]:
    """One sentence for each way in which a record spills too much or is over its `SHARED_MEMORY` or
    `TENSOR_MEMORY`."""
    found = []
    for r in records:
        if not r.loop_instructions and r.spilled > SPILL_LIMIT:
            found.append(f"sm_{r.arch}, {r.case}: {r.spilled} bytes spilled, over {SPILL_LIMIT}")
        if r.loop_spills > SPILL_SHARE * r.loop_instructions:
            found.append(
                f"sm_{r.arch}, {r.case}: {r.loop_spills} of {r.loop_instructions} instructions in "
                f"the loop move spilled registers, over {SPILL_SHARE:.0%}"
            )
        if r.shared > SHARED_MEMORY[r.arch]:
            limit = SHARED_MEMORY[r.arch]
            found.append(f"sm_{r.arch}, {r.case}: {r.shared} bytes of shared memory, over {limit}")
        if r.tensor_memory > TENSOR_MEMORY:
            found.append(
                f"sm_{r.arch}, {r.case}: {r.tensor_memory} columns of tensor memory, over "
                f"{TENSOR_MEMORY}"
            )
    return found


def table(records: Iterable[Record]) -> str:
    """The records as text, one line each."""
    lines = [
        "arch    kernel   dtype  head_dim  features                   block_m  block_n  warps"
        "  stages  registers  spilled B  shared B  loop  its spills  per score"
    ]
    for r in records:
        lines.append(
            f"sm_{r.arch:<4} {r.case.kernel:<8} {r.case.dtype:<6} {r.case.head_dim:>8}"
            f"  {r.case.features or '-':<25}"
            f"  {r.block_m:>8} {r.block_n:>8} {r.num_warps:>6} {r.num_stages:>7} {r.registers:>10}"
            f" {r.spilled:>10} {r.shared:>9} {r.loop_instructions:>5} {r.loop_spills:>11}"
            f" {r.issued:>10.1f}"
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
