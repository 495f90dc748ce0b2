"""Loops read from the disassembler's output."""

from __future__ import annotations

from pyimpl.backends.kernels.offline.sass import Loop, is_regrouped, is_serialised, loops_of

PRINTED = """
.L_x_0:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/              @!P0 FADD R2, R2, R3 ;
.L_x_2:
        /*0020*/                   MUFU.EX2 R4, R4 ;
        /*0030*/              @P1  LDL R5, [R1] ;
        /*0040*/                   STL [R1+0x4], R5 ;
        /*0050*/              @P2  BRA `(.L_x_2) ;
        /*0060*/                   FADD R2, R2, R3 ;
.L_x_3:
        /*0070*/                   MUFU.EX2 R4, R4 ;
        /*0080*/              @!P3 BRA `(.L_x_3) ;
        /*0090*/              @P4  BRA `(.L_x_1) ;
.L_x_4:
        /*00a0*/                   IADD3 R6, R6, 0x1, RZ ;
        /*00b0*/              @P4  BRA `(.L_x_4) ;
        /*00c0*/              @P5  BRA `(.L_x_5) ;
        /*00d0*/                   MUFU.EX2 R4, R4 ;
.L_x_5:
        /*00e0*/                   EXIT ;
"""


def test_innermost_loops_with_exponentials() -> None:
    # Not the loop around two of them, nor the one without an exponential, nor the instructions
    # between a branch forward and its target.
    assert loops_of(PRINTED) == [Loop(4, 2, 8, 0, 1, 0), Loop(2, 0, 0, 0, 1, 0)]


def test_what_a_loop_moves_multiplies_and_takes_beside_products() -> None:
    body = """
        MUFU.EX2 R1, R1
        WARPGROUP.ARRIVE
        HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24
        MUFU.EX2 R2, R2
        HGMMA.64x32x16.F32.BF16 R24, R8, gdesc[UR4], R24, gsb0
        WARPGROUP.DEPBAR.LE gsb0, 0x1
        MUFU.EX2 R3, R3
        WARPGROUP.DEPBAR.LE gsb0, 0x0
        MUFU.EX2 R4, R4
        STL.S16 [R1+0x50], R4
        LDL.64 R6, [R1]
        LDL.LU R8, [R1+0x128]
        STL.128 [R1], R8
        @P0 BRA `(.L_x_1)
    """
    lines = [x.strip() for x in body.strip().splitlines()]
    text = ".L_x_1:\n" + "".join(f"        /*{n:04x}*/   {x} ;\n" for n, x in enumerate(lines))
    assert loops_of(text) == [Loop(14, 4, 2 + 8 + 4 + 16, 32, 4, 2)]


def test_nothing_to_find() -> None:
    assert loops_of("") == []


FENCE = "        /*0000*/                   WARPGROUP.ARRIVE ;\n"
PRODUCT = "        /*0010*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24 ;\n"


def test_products_behind_a_fence_each_are_serialised() -> None:
    assert is_serialised((FENCE + PRODUCT) * 8)
    # Two products of tiles, four instructions each; and tiles of one instruction each.
    assert not is_serialised((FENCE + PRODUCT * 4) * 2)
    assert not is_serialised((FENCE + PRODUCT) * 2)
    assert not is_serialised("")


def test_warps_that_give_their_registers_away() -> None:
    assert is_regrouped("/*0*/ USETMAXREG.DEALLOC.CTAPOOL 0x18 ;")
    assert not is_regrouped("/*0*/ USETMAXREG.DEALLOC.CTAPOOL 0xa8 ;")
    assert not is_regrouped("/*0*/ USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x18 ;")
