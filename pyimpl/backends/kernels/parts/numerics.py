"""Kernels, and products, conversions, offsets and tanh that mean the same on a GPU and in the
interpreter.

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

import inspect
import math

import triton
import triton.language as tl

from pyimpl.internal.implements import implements

# Triton settles from TRITON_INTERPRET, at its import for its own functions and later for kernels,
# whether it interprets or compiles. A kernel needs both alike: so its own functions are asked.
INTERPRETED = tl.constexpr(not isinstance(tl.sum, triton.JITFunction))
LOG2E = tl.constexpr(1.0 / math.log(2.0))
LN2 = tl.constexpr(math.log(2.0))


def device_function(function):
    """`triton.jit` for a function that kernels call. Interpreted it stays a plain function: the
    kernel around it has set Triton's interpreter up, and to do so again takes a millisecond."""
    return function if INTERPRETED else triton.jit(function)


def kernel(function):
    """`triton.jit` for a kernel whose text does not depend on the numbers that it is given.

    Triton makes a constant of an integer that is 1, and notes of one that 16 divides that it does.
    Of all parameters but pointers, whose names end in `_ptr`, this is switched off; where it saves
    work the launch says it explicitly: by None for a stride of 1 (`or_one`) and by a compile-time
    ALIGNED (`offsets`, `within`). That is why numbers are parameters of their own: Triton 3.6 and
    3.7 cannot switch it off for the members of a tuple.
    """
    return triton.jit(function, do_not_specialize=numbers_of(function))


def numbers_of(function) -> list[str]:
    """The parameters of a kernel that are numbers: no constants of its text, no pointers (`…_ptr`)
    and no descriptors of tensors (`…_desc`)."""
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.annotation is parameter.empty and not name.endswith(("_ptr", "_desc"))
    ]


@device_function
def to_float32(x):
    """x, of float16, bfloat16 or float32, as float32: exact."""
    if INTERPRETED and x.dtype == tl.bfloat16:
        bits = x.to(tl.uint16, bitcast=True).to(tl.uint32) << 16
        y = bits.to(tl.float32, bitcast=True)
    else:
        y = x.to(tl.float32)
    return y


@device_function
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


@device_function
def dot(a, b):
    """a @ b accumulated in float32; operands of one dtype, float32 ones multiplied as IEEE (no
    TF32)."""
    if INTERPRETED:
        y = tl.dot(to_float32(a), to_float32(b), input_precision="ieee")
    else:
        y = tl.dot(a, b, input_precision="ieee")
    return y


@device_function
def indices(size: tl.constexpr, FAR: tl.constexpr):
    """0, 1, …, size − 1, to be multiplied by a stride: 64-bit if FAR, that is if an offset inside
    of a tile can pass 2³¹ (`launch.is_far`). Where it cannot, 32 bits take half the registers."""
    i = tl.arange(0, size)
    if FAR:
        i = i.to(tl.int64)
    return i


@device_function
def or_one(number):
    """The number, 1 for None. Of a stride along vectors of 1 Triton makes loads and stores of
    several elements, of one turn no loop."""
    found = number
    if number is None:
        found = 1
    return found


@device_function
def offsets(i, stride, ALIGNED: tl.constexpr):
    """i · stride, i a number or a vector of them. ALIGNED: 16 divides the stride."""
    found = i * stride
    if ALIGNED:
        found = tl.multiple_of(found, 16)
    return found


@device_function
def head_of(ptr, batch, stride_b, head, stride_h, first, stride_n, ALIGNED: tl.constexpr):
    """A pointer to the first element of a head of a batch, or to that of its row `first` in packed
    sequences, which have no axis of batches: its stride is None. ALIGNED as in `offsets`."""
    found = ptr
    if stride_b is not None:
        found = found + offsets(batch, stride_b, ALIGNED)
    found = found + offsets(head, stride_h, ALIGNED)
    if first is not None:
        found = found + offsets(tl.cast(first, tl.int64), stride_n, ALIGNED)
    return found


@device_function
def row_pointers(base, rows, dims, stride_n, stride_d, ALIGNED: tl.constexpr):
    """Where the elements of the vectors `rows` of `base` lie, `[rows, dims]`. ALIGNED as in
    `offsets`."""
    return base + offsets(rows, stride_n, ALIGNED)[:, None] + dims[None, :] * stride_d


@device_function
def within(i, size, ALIGNED: tl.constexpr):
    """Which of 0, 1, …, i, are below the size. ALIGNED: 16 divides it, and the length of i."""
    found = i < size
    if ALIGNED:
        found = tl.max_constancy(found, 16)
    return found


@implements("Attention.Spec.safeTanh")
@device_function
def tanh(x):
    """The hyperbolic tangent of float32 numbers, to about 2 units in the last place.

    1 − 2e/(1 + e) with e = exp(−2|x|) loses digits as x nears 0; below 5/8 the polynomial of
    Cephes' `tanhf` (Moshier) stands in for it.
    """
    size = tl.abs(x)
    is_small = size < 0.625
    y = tl.where(is_small, x, 0.0)
    z = y * y
    small = -5.70498872745e-3 * z + 2.06390887954e-2
    small = small * z - 5.37397155531e-2
    small = small * z + 1.33314422036e-1
    small = small * z - 3.33332819422e-1
    e = tl.exp2(size * (-2.0 * LOG2E))
    large = 1.0 - 2.0 * e / (1.0 + e)
    large = tl.where(x < 0.0, -large, large)
    return tl.where(is_small, y * (1.0 + z * small), large)
