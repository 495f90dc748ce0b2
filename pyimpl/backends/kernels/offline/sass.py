"""The instructions in the loops of a finished GPU binary, read from NVIDIA's disassembler, which
comes with Triton."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import triton

_LABEL = re.compile(r"\s*(\.L_x_\d+):")
_INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]+\*/\s+(.*?)\s*;")
_PREDICATE = re.compile(r"^@!?U?P\w+\s+")
_BRANCH = re.compile(r"BRA.*`\((\.L_x_\d+)\)")
# Loads from and stores to local memory: the kernels have no arrays there, so these are spilled
# registers.
_SPILLS = ("LDL", "STL")
_PRODUCT = re.compile(r"\bHGMMA\.")
# Rows, columns and depth of one of Hopper's matrix instructions.
_SHAPE = re.compile(r"HGMMA\.\d+x(\d+)x\d+")
# All products of a warp group are finished.
_WAIT = "WARPGROUP.DEPBAR.LE gsb0, 0x0"
_EXPONENTIAL = "MUFU.EX2"
# Bits of one access, 32 where the instruction does not say.
_WIDTH = re.compile(r"\.[US]?(8|16|64|128)\b")
_FENCE = re.compile(r"\bWARPGROUP\.ARRIVE\b")
_GIVEN_AWAY = re.compile(r"\bUSETMAXREG\.DEALLOC\.CTAPOOL 0x([0-9a-f]+)")
# That a thread can have once its warps give some away.
_LEAST_REGISTERS = 24
# Tiles so small that one instruction multiplies them have as many fences as instructions.
_SEVERAL = 8


@dataclass(frozen=True)
class Loop:
    """One iteration of an innermost loop: how many instructions a warp issues, and how many of them
    move registers that were spilled.

    spilled_bytes: that these move, of each thread. columns: the fewest of a matrix instruction of
    Hopper's warp groups, whose rate is lower with less than 64; 0: there is none. exponentials: how
    many are taken; overlapped: of these how many while products of the same warp group are under
    way.
    """

    instructions: int
    spills: int
    spilled_bytes: int = 0
    columns: int = 0
    exponentials: int = 0
    overlapped: int = 0


def tool_output(tool: str, option: str, cubin: bytes) -> str:
    """The output of one of NVIDIA's tools on a binary, which it takes as a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        command = [tool, option, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def disassemble(cubin: bytes) -> str:
    """The output of NVIDIA's disassembler on a binary."""
    return tool_output(triton.knobs.nvidia.nvdisasm.path, "--print-code", cubin)


def is_serialised(text: str) -> bool:
    """Whether ptxas waits for each of Hopper's asynchronous matrix instructions before it issues
    the next (its warnings C7510 to C7519), by the disassembler's text.

    A product of tiles is several such instructions behind one fence. Where ptxas serialises them,
    each has a fence of its own.
    """
    products, fences = len(_PRODUCT.findall(text)), len(_FENCE.findall(text))
    return products >= _SEVERAL and 2 * fences > products


def is_regrouped(text: str) -> bool:
    """Whether some warps give all registers but the least number away, by the disassembler's text:
    those that copy, for those that compute."""
    return any(int(found, 16) <= _LEAST_REGISTERS for found in _GIVEN_AWAY.findall(text))


def loops_of(text: str) -> list[Loop]:
    """The innermost loops of one kernel that take exponentials, in their order: those over tiles of
    scores; by the disassembler's text."""
    instructions: list[str] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif found := _INSTRUCTION.match(line):
            instructions.append(_PREDICATE.sub("", found[1]))
    backward = []
    for stop, instruction in enumerate(instructions):
        branch = _BRANCH.match(instruction)
        if branch and labels.get(branch[1], stop + 1) <= stop:
            backward.append((labels[branch[1]], stop + 1))
    with_exponentials = [
        (first, stop)
        for first, stop in backward
        if any(x.startswith(_EXPONENTIAL) for x in instructions[first:stop])
    ]
    return [
        _loop(instructions[first:stop])
        for first, stop in with_exponentials
        if not any(
            first <= other and end <= stop and (other, end) != (first, stop)
            for other, end in with_exponentials
        )
    ]


def _loop(instructions: list[str]) -> Loop:
    spills = [x for x in instructions if x.startswith(_SPILLS)]
    columns = [int(found[1]) for x in instructions if (found := _SHAPE.match(x))]
    exponentials = overlapped = 0
    under_way = False
    for x in instructions:
        if _PRODUCT.match(x):
            under_way = True
        elif x.startswith(_WAIT):
            under_way = False
        elif x.startswith(_EXPONENTIAL):
            exponentials += 1
            overlapped += under_way
    return Loop(
        len(instructions), len(spills), sum(_bytes(x) for x in spills), min(columns, default=0),
        exponentials, overlapped,
    )  # fmt: skip


def _bytes(access: str) -> int:
    width = _WIDTH.search(access.split()[0])
    return int(width[1]) // 8 if width else 4
