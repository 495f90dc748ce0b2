"""Each operation of the machine, in kernels of a few lines."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_cases import bits, execute

from bridge.ptx import kinds
from bridge.ptx.machine import NotSimulated

INTEGERS = st.integers(-(2**31), 2**31 - 1)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
STORE = "st.global.b32 [%rd1], %r10;"
LOAD = "".join(f"ld.global.b32 %r{20 + i}, [%rd2+{4 * i}];\n" for i in range(3))


def one(body: str, *numbers: int) -> int:
    """The number that thread 0 stores from %r10, of numbers in %r20 and up."""
    return int(execute(LOAD + body + STORE, (*numbers, 0, 0, 0))[0, 0])


def wrap(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


@settings(max_examples=15, deadline=None)
@given(INTEGERS, INTEGERS)
def test_integers_wrap_and_divide_toward_zero(a: int, b: int) -> None:
    assert one("add.s32 %r10, %r20, %r21;", a, b) == wrap(a + b)
    assert one("sub.s32 %r10, %r20, %r21;", a, b) == wrap(a - b)
    assert one("mul.lo.s32 %r10, %r20, %r21;", a, b) == wrap(a * b)
    assert one("mul.hi.u32 %r10, %r20, %r21;", a, b) == wrap((a % 2**32 * (b % 2**32)) >> 32)
    assert one("mad.wide.s32 %rd5, %r20, %r21, 5; cvt.u32.u64 %r10, %rd5;", a, b) == wrap(a * b + 5)
    assert one("min.s32 %r10, %r20, %r21;", a, b) == min(a, b)
    if b not in (0, -1):
        quotient = math.trunc(Fraction(a, b))
        assert one("div.s32 %r10, %r20, %r21;", a, b) == quotient
        assert one("rem.s32 %r10, %r20, %r21;", a, b) == a - quotient * b


@settings(max_examples=15, deadline=None)
@given(INTEGERS, st.integers(0, 40), st.integers(0, 32))
def test_shifts_and_fields(a: int, by: int, length: int) -> None:
    unsigned = a % 2**32
    assert one("shl.b32 %r10, %r20, %r21;", a, by) == wrap(unsigned << by)
    assert one("shr.u32 %r10, %r20, %r21;", a, by) == wrap(unsigned >> by)
    assert one("shr.s32 %r10, %r20, %r21;", a, by) == a >> by
    field = (a >> by) & ((1 << length) - 1)
    if by < 32:
        inside = (unsigned >> by) & ((1 << length) - 1)
        assert one("bfe.u32 %r10, %r20, %r21, %r22;", a, by, length) == wrap(inside)
    if length and field >> (length - 1):
        field -= 1 << length
    assert one("bfe.s32 %r10, %r20, %r21, %r22;", a, by, length) == field


def test_bytes_are_permuted_and_signs_repeated() -> None:
    a, b = 0x80112233, 0x44556677
    assert one("prmt.b32 %r10, %r20, %r21, 0x6543;", a, b) == 0x55667780
    assert one("prmt.b32 %r10, %r20, %r21, 0xb30b;", a, b) == wrap(0xFF8033FF)


@settings(max_examples=20, deadline=None)
@given(FLOATS, FLOATS, FLOATS)
def test_fused_sums_are_rounded_once(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    (found,) = kinds.multiply_add(*(np.array([x], np.float32) for x in (a, b, c)))
    if not np.isfinite(found):
        assert abs(exact) > np.finfo(np.float32).max
        return
    error = abs(Fraction(float(found)) - exact)
    for toward in (np.inf, -np.inf):
        other = np.nextafter(found, np.float32(toward))
        if np.isfinite(other):
            assert error <= abs(Fraction(float(other)) - exact)


def test_a_tie_that_is_none_in_float64() -> None:
    """2⁻⁶⁰ above the middle of two neighbours: two roundings, each to the nearest, go down."""
    a, b, c = (1 + 2.0**-12), (1 + 2.0**-12), 2.0**-60
    (found,) = kinds.multiply_add(*(np.array([x], np.float32) for x in (a, b, c)))
    assert found == np.float32(1 + 2.0**-11 + 2.0**-23)
    assert np.float32(a * b + c) == np.float32(1 + 2.0**-11)


@pytest.mark.parametrize(
    ("relation", "holds"),
    [("lt", False), ("ltu", True), ("neu", True), ("ne", False), ("nan", True), ("num", False)],
)
def test_comparisons_with_nan(relation: str, holds: bool) -> None:
    body = f"setp.{relation}.f32 %p1, %r20, %r21; selp.b32 %r10, 1, 0, %p1;"
    assert one(body, *bits(math.nan, 1.0)) == holds


def test_two_packed_numbers_are_compared_at_once() -> None:
    body = "setp.neu.bf16x2 %p1|%p2, %r20, %r21; selp.b32 %r10, 1, 0, %p2;"
    assert one(body, 0x3F800000, 0x40000000) == 1
    assert one(body.replace("%p2;", "%p1;"), 0x3F800000, 0x40000000) == 0


def test_maxima_pass_numbers_over_nan() -> None:
    assert one("max.f32 %r10, %r20, %r21;", *bits(math.nan, 2.0)) == bits(2.0)[0]
    got = one("max.NaN.f32 %r10, %r20, %r21;", *bits(math.nan, 2.0))
    assert np.isnan(np.int32(got).view(np.float32))


def test_conversions_round_as_torch_does() -> None:
    x = 1.00390625 + 2.0**-20
    body = "cvt.rn.{0}x2.f32 %r10, %r20, %r21;"
    for name, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16)):
        halves = torch.tensor([-3.3, x]).to(dtype).view(torch.int32)
        assert one(body.format(name), *bits(x, -3.3)) == int(halves)
    assert one("cvt.rzi.s32.f32 %r10, %r20;", *bits(-2.7)) == -2
    assert one("cvt.rni.s32.f32 %r10, %r20;", *bits(2.5)) == 2
    assert one("cvt.s64.s32 %rd5, %r20; shr.u64 %rd5, %rd5, 32; cvt.u32.u64 %r10, %rd5;", -5) == -1


def test_subnormal_numbers_are_flushed_where_asked() -> None:
    assert one("ex2.approx.ftz.f32 %r10, %r20;", *bits(-130.0)) == 0
    assert one("ex2.approx.f32 %r10, %r20;", *bits(-130.0)) == bits(2.0**-130)[0]
    assert one("mul.ftz.f32 %r10, %r20, %r21;", *bits(2.0**-100, -(2.0**-40))) == wrap(2**31)


def test_narrow_loads_are_widened_by_their_sign() -> None:
    assert one("ld.global.u8 %r10, [%rd2];", 0xFE) == 0xFE
    assert one("ld.global.s8 %r10, [%rd2];", 0xFE) == -2
    assert one("ld.global.v2.b16 {%rs1, %rs2}, [%rd2]; cvt.u32.u16 %r10, %rs2;", 0x70001) == 7


def test_threads_take_numbers_from_each_other() -> None:
    for mode, by, last, sources in (
        ("bfly", 3, 31, [i ^ 3 for i in range(32)]),
        ("idx", 5, 31, [5] * 32),
        ("down", 2, 31, [min(i + 2, 31) if i < 30 else i for i in range(32)]),
        ("up", 1, 0, [max(i - 1, 0) for i in range(32)]),
    ):
        found = execute(f"shfl.sync.{mode}.b32 %r10, %r1, {by}, {last}, -1;{STORE}")
        assert found[:, 0].tolist() == sources, mode


def test_a_product_of_tiles() -> None:
    """A [16, 16] by thread and register as the ISA's figures have it, with C = 1."""
    rng = np.random.default_rng(0)
    a = torch.from_numpy(rng.integers(-8, 9, (16, 16))).half()
    b = torch.from_numpy(rng.integers(-8, 9, (16, 8))).half()
    words = []
    for lane in range(32):
        row, two = lane // 4, 2 * (lane % 4)
        pairs = [a[row + 8 * (j % 2), two + 8 * (j // 2) :][:2] for j in range(4)]
        pairs += [b[two + 8 * j : two + 8 * j + 2, row] for j in range(2)]
        words += [int(pair.contiguous().view(torch.int32)) for pair in pairs]
    body = "mad.wide.u32 %rd3, %r1, 24, %rd2;\n"
    body += "".join(f"ld.global.b32 %r{20 + j}, [%rd3+{4 * j}];\n" for j in range(6))
    body += "mov.b32 %r30, 0f3F800000;\n"
    body += (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r10, %r11, %r12, %r13}, "
        "{%r20, %r21, %r22, %r23}, {%r24, %r25}, {%r30, %r30, %r30, %r30};\n"
        "st.global.v4.b32 [%rd1], {%r10, %r11, %r12, %r13};"
    )
    found = execute(body, words).view(torch.float32)
    wanted = a.float() @ b.float() + 1
    for lane in range(32):
        row, two = lane // 4, 2 * (lane % 4)
        expected = [*wanted[row, two : two + 2].tolist(), *wanted[row + 8, two : two + 2].tolist()]
        assert found[lane].tolist() == expected


@pytest.mark.parametrize("transposed", [False, True])
def test_a_matrix_goes_to_shared_memory_and_back(transposed: bool) -> None:
    """Thread n stores row n, with 8·n … 8·n + 7; then has two neighbours, of a row or a column."""
    row = ", ".join(f"%r{10 + j}" for j in range(4))
    body = "shl.b32 %r5, %r1, 3;\n" + "".join(
        f"add.s32 %r6, %r5, {2 * j}; add.s32 %r7, %r5, {2 * j + 1};"
        f"shl.b32 %r7, %r7, 16; or.b32 %r{10 + j}, %r6, %r7;\n"
        for j in range(4)
    )
    body += f"st.shared.v4.b32 [%r2], {{{row}}};\nbar.sync 0;\n"
    trans = ".trans" if transposed else ""
    body += f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{{row}}}, [%r2];\n"
    body += f"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r2+1024], {{{row}}};\n"
    body += "ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r2+1024];\n"
    found = execute(body + "st.global.v4.b32 [%rd1], {%r20, %r21, %r22, %r23};")
    got = found.view(torch.int16).reshape(4, 8, 8)
    matrices = torch.arange(256, dtype=torch.int16).reshape(4, 8, 8)
    assert torch.equal(got, matrices.mT if transposed else matrices)


def test_numbers_are_added_in_memory_one_after_another() -> None:
    body = "mov.b32 %r10, 0f3F800000; atom.global.add.f32 %r11, [%rd0], %r10;"
    found = execute(body + "st.global.b32 [%rd1+4], %r11;").view(torch.float32)
    assert found[0, 0] == 32
    assert found[:, 1].tolist() == list(range(32))


@pytest.mark.parametrize(
    "text",
    [
        "wgmma.fence.sync.aligned;",
        "add.rz.f32 %r10, %r1, %r1;",
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r10}, {%r1}, {%r1}, {%r1};",
        "bar.sync 1;",
        "ld.local.b32 %r10, [%rd1];",
        "atom.global.cas.b32 %r10, [%rd1], %r1, %r1;",
    ],
)
def test_an_operation_that_is_not_simulated_is_named_with_its_line(text: str) -> None:
    named = f"line 22, `{text[:-1]}` is not simulated"
    with pytest.raises(NotSimulated) as raised:
        execute(text)
    assert str(raised.value) == named
