"""The vectors as Python values: exact integers and fractions, nothing rounded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Literal

Exact = int | Fraction
Matrix = tuple[tuple[Exact, ...], ...]
# Digits of a log-sum-exp: float64 has 17.
_DIGITS = 50
MaskKind = Literal["none", "causal", "boolean"]


@dataclass(frozen=True)
class Mask:
    """Which keys a query may attend to. `rows[i][j]` for kind "boolean", otherwise None."""

    kind: MaskKind
    rows: tuple[tuple[bool, ...], ...] | None = None

    def visible(self, i: int, j: int) -> bool:
        """Whether query i may attend to key j. Causal: j ≤ i (top-left alignment)."""
        if self.kind == "causal":
            return j <= i
        return True if self.rows is None else self.rows[i][j]


@dataclass(frozen=True)
class Row:
    """The exact result for one query.

    max: the largest unmasked score, None if every key is masked.
    denominator: Σ 2^(s − max) over the unmasked keys; 0 if there is none.
    output_denominator, numerators: output j is numerators[j] / output_denominator.
    """

    max: int | None
    denominator: Exact
    output_denominator: int
    numerators: tuple[int, ...]

    @cached_property
    def output(self) -> tuple[Fraction, ...]:
        """The exact output of this query: value_dim fractions."""
        return tuple(Fraction(n, self.output_denominator) for n in self.numerators)

    @cached_property
    def log_sum_exp(self) -> Decimal:
        """The log-sum-exp in base e to 50 digits, ln 2·max + ln denominator; −∞ if every key is
        masked."""
        if self.max is None:
            return Decimal("-Infinity")
        ratio = Fraction(self.denominator)
        with localcontext(prec=_DIGITS):
            log = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
            return Decimal(2).ln() * self.max + log

    @property
    def lse(self) -> float:
        """The log-sum-exp in base e, rounded to float64."""
        return float(self.log_sum_exp)


@dataclass(frozen=True)
class Vector:
    """One input of attention with its exact result, and why it exists.

    q: [q_len][head_dim]; k: [kv_len][head_dim]; v: [kv_len][value_dim]; expected: [q_len]. A score
    is scale·⟨q, k⟩ and its weight 2^score: a kernel computes the same with scale × ln 2.
    """

    id: str
    family: str
    lean: str
    theorem: str
    reason: str
    q_len: int
    kv_len: int
    head_dim: int
    value_dim: int
    scale: Exact
    q: Matrix
    k: Matrix
    v: Matrix
    mask: Mask
    expected: tuple[Row, ...]

    @property
    def natural_scale(self) -> float:
        """The factor of the scores for a kernel whose weights are e^score: scale × ln 2."""
        return float(self.scale) * math.log(2.0)


@dataclass(frozen=True)
class Family:
    """The vectors of one file."""

    name: str
    about: str
    operation: str
    model: str
    vectors: tuple[Vector, ...]
