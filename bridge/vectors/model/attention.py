"""The vectors as Python values: exact integers and fractions, nothing rounded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

Exact = int | Fraction
Matrix = tuple[tuple[Exact, ...], ...]
# Digits of a log-sum-exp: float64 has 17.
_DIGITS = 50
MaskKind = Literal[
    "none",
    "causal",
    "causal-bottom-right",
    "window",
    "key-length",
    "key-padding",
    "document",
    "boolean",
]
Model = Literal["exact", "natural"]
# The bounds of an enclosed result are integers over this.
BOUNDS_UNIT = 1 << 128


class Window(NamedTuple):
    """Query i sees the keys from i + shift − left to i + shift + right; None: no bound."""

    left: int | None
    right: int | None
    shift: int


@dataclass(frozen=True)
class Mask:
    """Which keys a query may attend to.

    rows: of kind "boolean", rows[i][j]. shift: where query 0 stands on the axis of the keys, of
    kinds "causal-bottom-right" and "window"; left, right: of kind "window", how many keys on each
    side are visible, None: all. length: of kind "key-length", how many keys are no padding.
    valid: of kind "key-padding", which keys are none. queries, keys: of kind "document", the
    document of each.
    """

    kind: MaskKind
    rows: tuple[tuple[bool, ...], ...] = ()
    shift: int = 0
    left: int | None = None
    right: int | None = None
    length: int = 0
    valid: tuple[bool, ...] = ()
    queries: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()

    @property
    def window(self) -> Window | None:
        """The mask as a window, if it is one."""
        match self.kind:
            case "causal" | "causal-bottom-right":
                return Window(None, 0, self.shift)
            case "window":
                return Window(self.left, self.right, self.shift)
        return None

    def visible(self, i: int, j: int) -> bool:
        """Whether query i may attend to key j."""
        match self.kind:
            case "none":
                return True
            case "causal":
                return j <= i
            case "causal-bottom-right":
                return j <= i + self.shift
            case "window":
                before = i + self.shift - j
                return (self.left is None or before <= self.left) and (
                    self.right is None or -before <= self.right
                )
            case "key-length":
                return j < self.length
            case "key-padding":
                return self.valid[j]
            case "document":
                return self.queries[i] == self.keys[j]
            case "boolean":
                return self.rows[i][j]


@dataclass(frozen=True)
class Row:
    """The exact result for one query, where exp k = 2^k.

    max: the largest unmasked score, None if every key is masked.
    denominator: Σ 2^(s − max) over the unmasked keys; 0 if there is none.
    output_denominator, numerators: output j is numerators[j] / output_denominator.
    log2_sum_exp: log₂ Σ 2^s, where the vector is about it and it is an integer.
    """

    max: int | None
    denominator: Exact
    output_denominator: int
    numerators: tuple[int, ...]
    log2_sum_exp: int | None = None

    uncertainty = Fraction(0)

    @property
    def masked(self) -> bool:
        """Whether every key is masked."""
        return self.max is None

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


@dataclass(frozen=True)
class EnclosedRow:
    """Bounds of the result for one query, under the natural exponential.

    lower, upper: of each output; lse_bounds: of the log-sum-exp, None if every key is masked. All
    are integers over 2^128.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    lse_bounds: tuple[int, int] | None

    @property
    def masked(self) -> bool:
        """Whether every key is masked."""
        return self.lse_bounds is None

    @cached_property
    def output(self) -> tuple[Fraction, ...]:
        """The middle between the bounds of each output."""
        pairs = zip(self.lower, self.upper, strict=True)
        return tuple(Fraction(lo + hi, 2 * BOUNDS_UNIT) for lo, hi in pairs)

    @cached_property
    def uncertainty(self) -> Fraction:
        """By how much an output or the log-sum-exp may differ from the middle between its
        bounds."""
        pairs = [*zip(self.lower, self.upper, strict=True), self.lse_bounds or (0, 0)]
        return Fraction(max(hi - lo for lo, hi in pairs), 2 * BOUNDS_UNIT)

    @cached_property
    def log_sum_exp(self) -> Decimal:
        """The middle between the bounds of the log-sum-exp to 50 digits; −∞ if every key is
        masked."""
        if self.lse_bounds is None:
            return Decimal("-Infinity")
        with localcontext(prec=_DIGITS):
            return Decimal(sum(self.lse_bounds)) / Decimal(2 * BOUNDS_UNIT)


@dataclass(frozen=True)
class State:
    """The exact state (m, l, o) of one query, where exp k = 2^k: m is the score that weights refer
    to, None before the first; l = Σ 2^(s − m); o = Σ 2^(s − m)·v."""

    m: int | None
    l: Exact
    o: tuple[Exact, ...]


@dataclass(frozen=True)
class Vector:
    """The base of the vectors of all operations: `lean` names the definition that was run,
    `theorem` the theorem about its result. Model "exact": the weight of a score is 2^score, which a
    kernel computes with scale × ln 2. Model "natural": it is e^score."""

    operation: ClassVar[str]

    id: str
    family: str
    lean: str
    theorem: str
    reason: str
    model: Model


@dataclass(frozen=True)
class Alibi:
    """slope·|i + shift − j| is taken from the score of query i and key j."""

    slope: Exact
    shift: int


@dataclass(frozen=True)
class Dropout:
    """After the softmax the weight of query i and key j is divided by 1 − p if keep[i][j], and
    otherwise dropped. keep: [q_len][kv_len]."""

    p: Exact
    keep: tuple[tuple[bool, ...], ...]

    @property
    def largest(self) -> Fraction:
        """The factor of a kept weight; 0 where p = 1, so that none can be kept."""
        return 1 / Fraction(1 - self.p) if self.p != 1 else Fraction(0)

    def factor(self, i: int, j: int) -> Fraction:
        """The factor of the weight."""
        return self.largest if self.keep[i][j] else Fraction(0)


class Scaled:
    """The part of vectors whose scores are scaled; a scale of None is 1/√head_dim."""

    @property
    def natural_scale(self: Any) -> float:
        """The factor of the scores for a kernel whose weights are e^score."""
        if self.scale is None:
            return 1.0 / math.sqrt(self.head_dim)
        return float(self.scale) * (math.log(2.0) if self.model == "exact" else 1.0)


@dataclass(frozen=True)
class OneHead(Scaled, Vector):
    """The inputs of attention of one head, as `AttentionVector` has them."""

    q_len: int
    kv_len: int
    head_dim: int
    value_dim: int
    scale: Exact | None
    q: Matrix
    k: Matrix
    v: Matrix
    mask: Mask


@dataclass(frozen=True)
class AttentionVector(OneHead):
    """One input of attention with its result.

    q: [q_len][head_dim]; k: [kv_len][head_dim]; v: [kv_len][value_dim]; expected: [q_len]. A score
    is scale·⟨q, k⟩, a scale of None being 1/√head_dim; then cap·tanh(score / cap) for a softcap;
    then `alibi`; then the entry of bias, [q_len][kv_len], None masking the pair; then the mask. A
    sink is one more score in every softmax, without a value. Dropout is of the weights; plain
    problems alone have it, to which vectors of the operation dropout come.
    """

    operation: ClassVar[str] = "attention"
    expected: tuple[Row | EnclosedRow, ...]
    softcap: Exact | None = None
    alibi: Alibi | None = None
    bias: tuple[tuple[Exact | None, ...], ...] | None = None
    sink: Exact | None = None
    dropout: Dropout | None = None

    @property
    def options(self) -> frozenset[str]:
        """Which of softcap, alibi, bias and sink are given."""
        names = ("softcap", "alibi", "bias", "sink")
        return frozenset(name for name in names if getattr(self, name) is not None)

    def visible(self, i: int, j: int) -> bool:
        """Whether query i may attend to key j."""
        hidden = self.bias is not None and self.bias[i][j] is None
        return not hidden and self.mask.visible(i, j)


@dataclass(frozen=True)
class Family:
    """The vectors of one file."""

    name: str
    about: str
    operation: str
    model: Model
    vectors: tuple[Vector, ...]
