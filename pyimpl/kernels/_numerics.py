"""Products and dtype conversions that mean the same on a GPU and in Triton's interpreter.

The interpreter (Triton 3.6 to 3.9) keeps bfloat16 as its 16 bits in a uint16 array. `tl.dot` there
multiplies these bits as integers, and conversions to and from float32 truncate and get subnormals
wrong. So every product and every conversion of a kernel goes through this module: interpreted, it
widens the operands to float32 by their bits and rounds to nearest, ties to even, by integer
arithmetic; compiled, it is the plain Triton operation. `INTERPRETED` is a constexpr, so the choice
is made while compiling and leaves nothing in GPU code.

The interpreter of Triton 3.6 needs numpy below 2.4: it converts one-element arrays to integers in a
way that numpy 2.4 refuses ("only 0-dimensional arrays can be converted to Python scalars").
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
# (a kernel's parameters are Triton's own values, which have no Python types to write down)

from __future__ import annotations

import triton
import triton.language as tl

# Triton settles at import, from TRITON_INTERPRET, whether @triton.jit interprets or compiles.
INTERPRETED = tl.constexpr(bool(triton.knobs.runtime.interpret))


@triton.jit
def to_float32(x):
    """x, of float16, bfloat16 or float32, as float32: exact."""
    if INTERPRETED and x.dtype == tl.bfloat16:
        bits = x.to(tl.uint16, bitcast=True).to(tl.uint32) << 16
        y = bits.to(tl.float32, bitcast=True)
    else:
        y = x.to(tl.float32)
    return y


@triton.jit
def round_to(x, dtype: tl.constexpr):
    """x, float32, in `dtype` (float16, bfloat16 or float32): rounded to nearest, ties to even."""
    if INTERPRETED and dtype == tl.bfloat16:
        bits = x.to(tl.uint32, bitcast=True)
        # A NaN is replaced first: rounding its bits up could carry into the sign.
        bits = tl.where(x == x, bits, 0x7FC00000)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        y = bits.to(tl.uint16).to(tl.bfloat16, bitcast=True)
    else:
        y = x.to(dtype)
    return y


@triton.jit
def dot(a, b):
    """a @ b accumulated in float32; operands of one dtype, float32 ones multiplied as IEEE (no
    TF32)."""
    if INTERPRETED:
        y = tl.dot(to_float32(a), to_float32(b), input_precision="ieee")
    else:
        y = tl.dot(a, b, input_precision="ieee")
    return y
