"""What the loops of a finished GPU binary issue, read from NVIDIA's disassembler, which comes with
Triton."""

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
# Loads from and stores to local memory: the kernels have no arrays there, so it is what registers
# spill to.
_SPILLS = ("LDL", "STL")
_PRODUCT = re.compile(r"\bHGMMA\.")
_FENCE = re.compile(r"\bWARPGROUP\.ARRIVE\b")
# Tiles so small that one instruction multiplies them have as many fences as instructions.
_SEVERAL = 8


@dataclass(frozen=True)
class Loop:
    """One iteration of an innermost loop: how many instructions a warp issues, and how many of them
    move registers that were spilled."""

    instructions: int
    spills: int


def printed(tool: str, option: str, cubin: bytes) -> str:
    """What one of NVIDIA's tools prints of a binary, which it takes as a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        command = [tool, option, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def disassembled(cubin: bytes) -> str:
    """What NVIDIA's disassembler prints of a binary."""
    return printed(triton.knobs.nvidia.nvdisasm.path, "--print-code", cubin)


def is_serialised(text: str) -> bool:
    """Whether ptxas waits for each of Hopper's asynchronous matrix instructions before it issues
    the next (its warnings C7510 to C7519), by what the disassembler printed.

    A product of tiles is several such instructions behind one fence. Where ptxas serialises them,
    each has a fence of its own.
    """
    products, fences = len(_PRODUCT.findall(text)), len(_FENCE.findall(text))
    return products >= _SEVERAL and 2 * fences > products


def loops_of(text: str) -> list[Loop]:
    """The innermost loops of one kernel that take exponentials, in their order: those over tiles of
    scores; by what the disassembler printed."""
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
        if any(x.startswith("MUFU.EX2") for x in instructions[first:stop])
    ]
    return [
        Loop(stop - first, sum(x.startswith(_SPILLS) for x in instructions[first:stop]))
        for first, stop in with_exponentials
        if not any(
            first <= other and end <= stop and (other, end) != (first, stop)
            for other, end in with_exponentials
        )
    ]
