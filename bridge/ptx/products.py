"""Products of matrices by a warp, and their operands (PTX ISA, "Warp Level Matrix Multiply-
Accumulate Instructions": "mma", "ldmatrix", "stmatrix", with the figures of which thread holds
which elements).

The ISA leaves the order and the precision of the additions in `mma` open. Here the sum over 16
elements and the addend is taken in float64 and rounded to float32 once.
"""

from __future__ import annotations

import numpy as np

from bridge.ptx import kinds
from bridge.ptx.machine import WARP, NotSimulated, Program, parts
from bridge.ptx.operations import Run
from bridge.ptx.syntax import Instruction

# The one shape that is simulated: [16, 16] times [16, 8].
_SHAPE = ("sync", "aligned", "m16n8k16", "row", "col", "f32")


def multiply(program: Program, instruction: Instruction) -> None:
    """mma.sync.aligned.m16n8k16: D = A·B + C, A and B of 16 bits, C and D float32."""
    kind = instruction.modifiers[6] if len(instruction.modifiers) == 9 else ""
    wanted = (*_SHAPE, kind, kind, "f32")
    if kind not in ("f16", "bf16") or instruction.modifiers != wanted:
        raise NotSimulated(instruction)
    program.whole_warps()
    d, a, b, c = (parts(one) for one in instruction.operands)
    warps = len(program.lanes) // WARP
    warp, lane = program.lanes // WARP, program.lanes % WARP
    group, four = lane // 4, lane % 4
    left = np.zeros((warps, 16, 16))
    right = np.zeros((warps, 16, 8))
    total = np.zeros((warps, 16, 8))
    for j, register in enumerate(a):
        for half, bits in enumerate(kinds.halves(program.bits(register, "b32"))):
            column = 2 * four + half + 8 * (j // 2)
            left[warp, group + 8 * (j % 2), column] = kinds.numbers(bits, kind)
    for j, register in enumerate(b):
        for half, bits in enumerate(kinds.halves(program.bits(register, "b32"))):
            right[warp, 2 * four + half + 8 * j, group] = kinds.numbers(bits, kind)
    rows = [group + 8 * (j // 2) for j in range(4)]
    columns = [2 * four + j % 2 for j in range(4)]
    for j, register in enumerate(c):
        total[warp, rows[j], columns[j]] = program.numbers(register, "f32")
    program.demand_known("multiplies a value that was never written")
    total = (left @ right + total).astype(np.float32)
    for j, register in enumerate(d):
        program.put_numbers(register, total[warp, rows[j], columns[j]], "f32")


def _matrices(program: Program, instruction: Instruction) -> int:
    """How many matrices [8, 8] of 16 bits ldmatrix and stmatrix move."""
    sync, aligned, shape, count, *rest = instruction.modifiers
    if (sync, aligned, shape) != ("sync", "aligned", "m8n8") or count not in ("x1", "x2", "x4"):
        raise NotSimulated(instruction)
    if rest not in (["shared", "b16"], ["trans", "shared", "b16"]):
        raise NotSimulated(instruction)
    program.whole_warps()
    return int(count[1:])


def load_matrices(program: Program, instruction: Instruction) -> None:
    """ldmatrix: of each matrix two neighbours of a row a thread, of a column with `.trans`."""
    result, place = instruction.operands
    count, active = _matrices(program, instruction), program.active
    warps = active.reshape(-1, WARP)[:, 0]
    # The addresses of the first 8 · count threads count; the others' need not be aligned.
    program.active = active & (program.lanes % WARP < 8 * count)
    rows = program.load("shared", program.addresses(place, 16), 16)
    program.active = active
    elements = rows.view(np.uint16).reshape(int(warps.sum()), count, 8, 8)
    if "trans" in instruction.modifiers:
        elements = elements.swapaxes(2, 3)
    # Thread 4·row + n has the elements 2n and 2n + 1 of the row.
    pairs = np.ascontiguousarray(elements).view(np.uint32).reshape(len(elements), count, WARP)
    for j, register in enumerate(parts(result)):
        program.put(register, program.each(pairs[:, j].reshape(-1)))


def store_matrices(program: Program, instruction: Instruction) -> None:
    """stmatrix: as `load_matrices`, the other way."""
    place, given = instruction.operands
    count, active = _matrices(program, instruction), program.active
    pairs = np.stack(
        [program.bits(one, "b32")[active].reshape(-1, WARP) for one in parts(given)], axis=1
    )
    elements = np.ascontiguousarray(pairs).view(np.uint16).reshape(len(pairs), count, 8, 8)
    if "trans" in instruction.modifiers:
        elements = elements.swapaxes(2, 3)
    rows = np.ascontiguousarray(elements).view(np.uint8).reshape(-1, 16)
    program.active = active & (program.lanes % WARP < 8 * count)
    program.store("shared", program.addresses(place, 16), rows)
    program.active = active


PRODUCTS: dict[str, Run] = {
    "mma": multiply,
    "ldmatrix": load_matrices,
    "stmatrix": store_matrices,
}
