"""A launch of a kernel, compiled without a GPU and run as PTX on its own tensors.

The architecture is 80 unless told otherwise: there products are `mma.sync` and all memory is read
by ordinary loads and `cp.async`. Triton's texts for Hopper have `wgmma` and the tensor memory
accelerator, which this machine does not know. Below PTX lie ptxas and the hardware, about which
nothing is learnt here.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch
import triton
from triton.backends.compiler import GPUTarget

from bridge.ptx.execute import run_program
from bridge.ptx.machine import Program
from bridge.ptx.memory import Buffers
from bridge.ptx.parse import parse
from bridge.ptx.syntax import Kernel
from pyimpl.backends.kernels.offline.compile import specialise
from pyimpl.backends.kernels.parts.launch import Launch

ARCHITECTURE = 80


@dataclass(frozen=True, eq=False)
class Compiled:
    """A kernel, and how many bytes of shared memory a program has."""

    kernel: Kernel
    shared: int


def compile_ptx(launch: Launch, architecture: int = ARCHITECTURE) -> Compiled:
    """The launch's PTX, read.

    Raises:
        ValueError: Triton interprets its kernels in this process.
        triton.CompilationError: it does not compile.
    """
    if not isinstance(launch.kernel, triton.JITFunction):
        raise ValueError(
            "launch must be of a function that Triton compiles, not of "
            f"{type(launch.kernel).__name__} (with TRITON_INTERPRET=1 it compiles none)"
        )
    source = specialise(launch)
    for index, name in enumerate(launch.kernel.arg_names):
        given = launch.arguments.get(name)
        if isinstance(given, torch.Tensor) and given.data_ptr() % 16:
            source.attrs.pop((index,), None)
    options = {"num_warps": launch.num_warps, "num_stages": launch.num_stages}
    target = GPUTarget("cuda", architecture, 32)
    made = triton.compile(source, target=target, options=options)
    return Compiled(_parse(made.asm["ptx"]), int(made.metadata.shared))


@functools.lru_cache(maxsize=64)
def _parse(text: str) -> Kernel:
    return parse(text)


def run(launch: Launch, architecture: int = ARCHITECTURE) -> int:
    """Run all programs of a launch, one after another, on its tensors, which lie on the CPU.
    Returns how many instructions that took. Raises as `compile_ptx` and `run_program` do."""
    if launch.programs == 0:
        return 0
    made = compile_ptx(launch, architecture)
    memory = Buffers()
    parameters = _parameters(launch, made.kernel, memory)
    return sum(
        run_program(Program(made.kernel, memory, parameters, number, launch.programs, made.shared))
        for number in range(launch.programs)
    )


def _parameters(launch: Launch, kernel: Kernel, memory: Buffers) -> dict[str, int]:
    """The bits of the kernel's parameters: the arguments that are no constants, in order, and then
    two pointers to memory of Triton's own, which no kernel here uses."""
    types, _ = launch.specialisation()
    given = [launch.arguments[name] for name, kind in types.items() if kind != "constexpr"]
    own = kernel.parameters[len(given) :]
    found = {parameter.name: 0 for parameter in own}
    for parameter, value in zip(kernel.parameters, given, strict=False):
        if isinstance(value, torch.Tensor):
            found[parameter.name] = memory.address(value)
        elif parameter.kind == "f32":
            found[parameter.name] = int(np.asarray(value, np.float32).view(np.uint32))
        else:
            found[parameter.name] = int(value or 0)
    return found
