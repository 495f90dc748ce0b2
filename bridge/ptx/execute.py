"""A program run to its end: its instructions, one after another (PTX ISA, "Control Flow
Instructions", "bar, barrier")."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bridge.ptx.machine import NotSimulated, Program
from bridge.ptx.moves import MOVES
from bridge.ptx.operations import OPERATIONS, Run
from bridge.ptx.products import PRODUCTS
from bridge.ptx.syntax import Constant, Instruction, Symbol


def _jump(program: Program, instruction: Instruction) -> None:
    (label,) = instruction.operands
    if not isinstance(label, Symbol):
        raise NotSimulated(instruction)
    program.jump(label.name)


def _end(program: Program, instruction: Instruction) -> None:
    program.end()


def _barrier(program: Program, instruction: Instruction) -> None:
    """`bar.sync 0` of all threads; `bar.warp.sync`: a warp's threads go together anyway."""
    if instruction.modifiers == ("warp", "sync"):
        program.whole_warps()
    elif instruction.modifiers == ("sync",) and instruction.operands == (Constant(0),):
        program.barrier()
    else:
        raise NotSimulated(instruction)


_CONTROL: dict[str, Run] = {"bra": _jump, "ret": _end, "exit": _end, "bar": _barrier}
INSTRUCTIONS: Mapping[str, Run] = {**OPERATIONS, **MOVES, **PRODUCTS, **_CONTROL}


def run_program(program: Program) -> int:
    """Run it to its end. Returns how many instructions that took.

    Raises:
        Fault: it does something that no program may do.
        NotSimulated: an instruction is not known.
    """
    steps = 0
    with np.errstate(all="ignore"):
        while program.step():
            steps += 1
            instruction = program.now
            execute = INSTRUCTIONS.get(instruction.operation)
            if execute is None:
                raise NotSimulated(instruction)
            if program.active.any():
                execute(program, instruction)
    return steps
