"""Helpers of the tests of `bridge.ptx`: kernels of a few lines."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import torch

from bridge.ptx.execute import run_program
from bridge.ptx.machine import Program
from bridge.ptx.memory import Buffers
from bridge.ptx.parse import parse
from bridge.ptx.syntax import Kernel

# %rd1: the address of a thread's own 16 bytes of the result. %rd2: that of the input. %r1: the
# thread's number; %r2: where its own 16 bytes of shared memory are.
_TEXT = """
.version 8.7
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry kernel(
    .param .u64 .ptr .global .align 1 kernel_param_0,
    .param .u64 .ptr .global .align 1 kernel_param_1
)
.reqntid {threads}
{{
    .reg .pred %p<20>;
    .reg .b16 %rs<20>;
    .reg .b32 %r<40>;
    .reg .b64 %rd<20>;
    mov.u32 %r1, %tid.x;
    mov.b32 %r2, memory;
    mad.lo.s32 %r2, %r1, 16, %r2;
    ld.param.b64 %rd0, [kernel_param_0];
    ld.param.b64 %rd2, [kernel_param_1];
    mad.wide.u32 %rd1, %r1, 16, %rd0;
{body}
    ret;
}}
"""


def kernel_of(body: str, threads: int = 32) -> Kernel:
    """The kernel with this body."""
    return parse(_TEXT.format(threads=threads, body=textwrap.indent(body, "    ")))


def execute(body: str, given: Sequence[int] = (0,) * 64, threads: int = 32) -> torch.Tensor:
    """The result, int32 `[threads, 4]`, of a program with this body, given 32-bit numbers."""
    result = torch.zeros(threads, 4, dtype=torch.int32)
    source = torch.from_numpy(np.asarray(given, np.int64).astype(np.uint32).view(np.int32).copy())
    memory = Buffers()
    parameters = {
        "kernel_param_0": memory.address(result), "kernel_param_1": memory.address(source)
    }  # fmt: skip
    kernel = kernel_of(body, threads)
    run_program(Program(kernel, memory, parameters, 0, 1, 4096))
    return result


def bits(*values: float) -> list[int]:
    """The bits of these numbers in float32."""
    return [int(x) for x in np.asarray(values, np.float32).view(np.uint32)]
