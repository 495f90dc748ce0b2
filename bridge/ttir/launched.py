"""A launch of a kernel, run as its TTIR over a memory of exact numbers."""

from __future__ import annotations

import functools

from bridge.ttir.machine import Machine
from bridge.ttir.memory import Memory
from bridge.ttir.parse import parse
from bridge.ttir.source import Source, of_launch
from bridge.ttir.syntax import Function
from pyimpl.backends.kernels.parts.launch import Launch


def run(launch: Launch, memory: Memory, arch: int = 90) -> Machine:
    """Run all programs of a launch whose float tensors are of `memory`; a launch of none does
    nothing. Raises as `Machine.run` and `Memory.region` do."""
    source = of_launch(launch, arch)
    machine = Machine(kernel_of(source), memory, list(source.arguments.values()))
    machine.run((launch.programs,))
    return machine


def kernel_of(source: Source) -> Function:
    """The kernel in a text of TTIR, parsed once for each text."""
    return _parse(source.text)


@functools.lru_cache(maxsize=64)
def _parse(text: str) -> Function:
    return parse(text).kernel
