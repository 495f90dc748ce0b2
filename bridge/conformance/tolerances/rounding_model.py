"""Rounding models: which numbers an implementation rounds, and to which formats.

A rounding model is a declaration, not a measurement: it says which intermediate results of an
attention function are stored in which floating-point format. `tolerances.tolerance` turns it into a
bound on the error. The terms are explained in `docs/tolerances.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

Denominator = Literal["rounded", "unrounded", "either"]


@dataclass(frozen=True)
class Format:
    """A binary floating-point format, rounding to nearest.

    `unit` is the unit roundoff (half the distance from 1 to the next number), `smallest_normal`
    and `smallest_subnormal` are positive numbers of the format.
    """

    name: str
    unit: float
    smallest_normal: float
    smallest_subnormal: float

    def underflow(self, flush_to_zero: bool) -> float:
        """Largest absolute error of storing a number below `smallest_normal`."""
        return self.smallest_normal if flush_to_zero else self.smallest_subnormal / 2


FLOAT64 = Format("float64", 2.0**-53, 2.0**-1022, 2.0**-1074)
FLOAT32 = Format("float32", 2.0**-24, 2.0**-126, 2.0**-149)
FLOAT16 = Format("float16", 2.0**-11, 2.0**-14, 2.0**-24)
BFLOAT16 = Format("bfloat16", 2.0**-8, 2.0**-126, 2.0**-133)

FORMATS: dict[str, Format] = {f.name: f for f in (FLOAT64, FLOAT32, FLOAT16, BFLOAT16)}


WHOLE_ROW = 1 << 62


@dataclass(frozen=True)
class RoundingModel:
    """The roundings of an implementation of attention.

    name: for reports.
    input, output: formats of q, k, v and of the result; inputs are taken as exact.
    accumulator: format of the softmax arithmetic (scores, exponentials, sums).
    accumulation_unit: unit roundoff of one addition inside a dot product; larger than that of
        `accumulator` where a matrix unit truncates instead of rounding.
    operands, operand_roundings: format to which `scale·q` (1 rounding) or `√scale·q` and
        `√scale·k` (2 roundings) are rounded before the dot product.
    scores: format in which scores are stored, or None where they stay in the accumulator.
    weights: format to which exp(s − m) is rounded before the product with v, or None.
    weights_normalized: the weights are divided by their sum before they are rounded.
    denominator: whether the sum of weights adds rounded weights, unrounded ones, or either.
    exp_error: relative error of one exponential, in units of the accumulator's unit roundoff.
    block_n: keys in one tile; None where the tiling is unknown (then as if one key each);
        WHOLE_ROW where there are no tiles.
    flush_to_zero: stored numbers below the smallest normal one become 0.
    gradient_rows: queries in a tile, where each tile's part of the gradients of keys and values
        (of keys, to those of queries) is added in the format of the output; None: gradients are
        added up in the accumulator and rounded once.
    """

    name: str
    input: Format
    output: Format
    accumulator: Format
    accumulation_unit: float
    operands: Format | None = None
    operand_roundings: int = 0
    scores: Format | None = None
    weights: Format | None = None
    weights_normalized: bool = False
    denominator: Denominator = "either"
    exp_error: float = 4.0
    block_n: int | None = None
    flush_to_zero: bool = False
    gradient_rows: int | None = None

    def with_name(self, name: str) -> RoundingModel:
        """This rounding model under another name."""
        return replace(self, name=name)

    @classmethod
    def float64(cls, block_n: int | None = None) -> RoundingModel:
        """Everything in float64, in any order, `scale` applied to either operand or both."""
        return cls("float64", FLOAT64, FLOAT64, FLOAT64, FLOAT64.unit, FLOAT64, 2, block_n=block_n)

    @classmethod
    def float32(cls, block_n: int | None = None) -> RoundingModel:
        """Everything in IEEE float32 (no TF32), `scale` applied to either operand or both."""
        return cls("float32", FLOAT32, FLOAT32, FLOAT32, FLOAT32.unit, FLOAT32, 2, block_n=block_n)

    @classmethod
    def widened(
        cls, dtype: str, *, accumulator: str = "float32", block_n: int | None = None
    ) -> RoundingModel:
        """Inputs are widened to `accumulator`, everything is done there, the result is rounded."""
        wide = FORMATS[accumulator]
        return cls(
            f"{accumulator}-inside-{dtype}",
            FORMATS[dtype],
            FORMATS[dtype],
            wide,
            wide.unit,
            wide,
            2,
            block_n=block_n,
        )

    @classmethod
    def flash(
        cls,
        dtype: str,
        *,
        block_n: int | None = None,
        denominator: Denominator = "either",
        truncating: bool = False,
    ) -> RoundingModel:
        """A flash kernel: softmax in float32, weights rounded to the input's format.

        dtype: "float16" or "bfloat16"; "float32" and "float64" give the plain rounding models.
        truncating: the matrix unit truncates additions (tensor cores): twice the unit roundoff.
        """
        if dtype == "float64":
            return cls.float64(block_n)
        if dtype == "float32":
            return cls.float32(block_n)
        low = FORMATS[dtype]
        return cls(
            f"flash-{dtype}",
            low,
            low,
            FLOAT32,
            (2 if truncating else 1) * FLOAT32.unit,
            operands=FLOAT32,
            operand_roundings=1,
            weights=low,
            denominator=denominator,
            block_n=block_n,
        )

    @classmethod
    def sdpa_math(cls, dtype: str, *, reduced: bool = False) -> RoundingModel:
        """PyTorch's math backend. It scales q and k by √scale each and normalises before p·v.

        By default it widens float16 and bfloat16 inputs to float32 and rounds the result only.
        reduced: as after `allow_fp16_bf16_reduction_math_sdp(True)`: the scaled operands, the
        scores and the normalised weights are each rounded to the input's format.
        """
        if dtype == "float64":
            return cls.float64(WHOLE_ROW).with_name("sdpa-math-float64")
        if not reduced or dtype == "float32":
            return cls.widened(dtype, block_n=WHOLE_ROW).with_name(f"sdpa-math-{dtype}")
        low = FORMATS[dtype]
        return cls(
            f"sdpa-math-reduced-{dtype}",
            low,
            low,
            FLOAT32,
            FLOAT32.unit,
            operands=low,
            operand_roundings=2,
            scores=low,
            weights=low,
            weights_normalized=True,
            denominator="unrounded",
            block_n=WHOLE_ROW,
        )

    @classmethod
    def sdpa_flash(cls, dtype: str) -> RoundingModel:
        """PyTorch's flash backend on a CPU.

        For float16 and bfloat16 it uses a fast vectorised exponential where the processor has
        AVX-512. Its relative error was measured to reach 1.0e-4 (torch 2.13), so 2⁻¹³ is declared.
        Its backward pass adds the parts of tiles, of 32 queries or more each, in those formats.
        """
        # Its tiles hold 512 keys, whatever the lengths.
        base = cls.flash(dtype, block_n=512, denominator="unrounded")
        named = base.with_name(f"sdpa-flash-{dtype}")
        if dtype not in ("float16", "bfloat16"):
            return named
        return replace(named, exp_error=2.0**-13 / FLOAT32.unit, gradient_rows=32)


def generous(dtype: str) -> RoundingModel:
    """The roundings of a function of unknown make: at each place the most that kernels in use do.

    For float16 and bfloat16: √scale·q and √scale·k, the scores and the weights each rounded to the
    input's format, the sum of either kind of weights, tensor cores that truncate, an exponential
    and sums of gradients as in `sdpa_flash`, tiles of one key. Each of these makes every tolerance
    larger or leaves it, so a result within any other rounding model of this dtype is within this
    one. For float32 and float64: everything in that format, in any order and tiling.
    """
    if dtype in ("float64", "float32"):
        plain = RoundingModel.float64() if dtype == "float64" else RoundingModel.float32()
        return replace(plain, name="generous", accumulation_unit=2 * plain.accumulation_unit)
    low = FORMATS[dtype]
    return RoundingModel(
        "generous",
        low,
        low,
        FLOAT32,
        2 * FLOAT32.unit,
        operands=low,
        operand_roundings=2,
        scores=low,
        weights=low,
        weights_normalized=True,
        denominator="either",
        exp_error=2.0**-13 / FLOAT32.unit,
        gradient_rows=32,
    )


def _eager(dtype: str) -> RoundingModel:
    base = replace(RoundingModel.sdpa_math(dtype, reduced=True), block_n=None, denominator="either")
    return base.with_name("eager")


def _inside(wide: str) -> Callable[[str], RoundingModel]:
    def make(dtype: str) -> RoundingModel:
        accumulator = "float64" if dtype == "float64" else wide
        return RoundingModel.widened(dtype, accumulator=accumulator).with_name(f"{wide}-inside")

    return make


# The choices of `conform --rounding-model`, for any function.
CHOICES: dict[str, Callable[[str], RoundingModel]] = {
    "generous": generous,
    "flash": lambda dtype: RoundingModel.flash(dtype, truncating=True).with_name("flash"),
    "eager": _eager,
    "float32-inside": _inside("float32"),
    "float64-inside": _inside("float64"),
}
