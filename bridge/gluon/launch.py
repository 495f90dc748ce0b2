"""Run a launch of a Gluon kernel: its programs one after another, each in a schedule that the seed
chooses."""

from __future__ import annotations

import inspect
import random
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
import torch

from bridge.gluon.clocks import Clock
from bridge.gluon.faults import Fault
from bridge.gluon.program import Program, enter
from bridge.gluon.rounded import FLOAT32
from bridge.gluon.schedule import Partition
from bridge.gluon.tensors import Descriptor, Pointer
from bridge.gluon.tiles import Int, Tile
from bridge.ttir.memory import Memory
from pyimpl.backends.kernels.parts.launch import Launch


def run(
    launch: Launch, module: ModuleType, memory: Memory, seed: int = 0, *, in_order: bool = True
) -> None:
    """Run all programs of a launch over the numbers of `memory`, by the function of the kernel's
    name in `module`, which `load` made. in_order: as in `Program`.

    Raises:
        Fault: the kernel does something that no kernel may do.
        ValueError: a tensor is none of this memory.
    """
    function = getattr(module, launch.kernel.__name__)
    memory.begin_launch()
    given = {**launch.arguments, **launch.constants}
    arguments = {
        name: given[name] if name in launch.constants else _value(name, given[name], memory)
        for name in inspect.signature(function).parameters
    }
    for number in range(launch.programs):
        rng = random.Random(f"{seed} {number}")
        program = Program(memory.domain, number, launch.programs, rng, in_order)
        _program(program, function, arguments)


def _program(program: Program, function: Any, arguments: Mapping[str, Any]) -> None:
    who = Partition(f"program {program.number}", Clock())

    def body() -> None:
        enter(program, who)
        function(**arguments)
        left = who.under_way()
        if left is not None:
            raise Fault("never awaited", f"{who.name} ends while {left} may run")
        for copy in program.unawaited.values() if program.in_order else ():
            raise Fault("never awaited", f"{who.name} ends, and nothing waited for {copy}")

    program.scheduler.run([(who, body)])


def _value(name: str, given: Any, memory: Memory) -> Any:
    """An argument as the kernel sees it: numbers are known when it runs."""
    if isinstance(given, torch.Tensor):
        region = memory.region(name, given)
        return Pointer(region, np.asarray(region.first, np.int64))
    if hasattr(given, "block_shape"):
        region = memory.region(name, given.base)
        return Descriptor(region, given.shape, given.strides, given.block_shape, given.layout)
    if isinstance(given, bool) or given is None:
        return given
    if isinstance(given, int):
        return Int(given)
    return Tile(FLOAT32, memory.domain.scalar(float(given)))
