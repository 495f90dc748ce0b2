"""The vectors of the backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from bridge.vectors.model.attention import (
    BOUNDS_UNIT,
    Alibi,
    AttentionVector,
    Dropout,
    Exact,
    Mask,
    Matrix,
    Scaled,
    Vector,
)
from bridge.vectors.model.operations import problem


class PerHead(NamedTuple):
    """Numbers, one for each query head, that a vector may have, with the gradient by them. exact:
    whether the exact model can hold them, where that gradient is divided by ln 2; lean: the
    definition that gives it, of the Spec; meaning: as the schema and the page say it."""

    exact: bool
    lean: str
    meaning: str


PER_HEAD = {
    "sinks": PerHead(
        False,
        "sinkVjp",
        "for each head one more score in every softmax, without a value; the log-sum-exp counts it",
    ),
    "temperature": PerHead(
        True, "temperatureVjp", "for each head a factor of its scores, before other changes"
    ),
}


@dataclass(frozen=True)
class Gradients:
    """The gradients, head by head. In the exact model those by queries and keys are divided by
    ln 2, and sinks are 0. bias: of the shape of the vector's bias, or by a bias of 0 that each
    query head has of its own. slopes and `PER_HEAD`: by those of each query head; None: the vector
    has none."""

    q: tuple[Matrix, ...]
    k: tuple[Matrix, ...]
    v: tuple[Matrix, ...]
    bias: tuple[Matrix, ...]
    slopes: tuple[Exact, ...] | None = None
    sinks: tuple[Exact, ...] | None = None
    temperature: tuple[Exact, ...] | None = None

    def by_name(self) -> dict[str, Any]:
        """The gradients that there are, by the name of the input, as nested tuples."""
        return {name: part for name, part in vars(self).items() if part is not None}

    def numbers(self) -> Iterator[tuple[str, Exact]]:
        """Every number with its place, as in `k[0][1][2]`."""

        def within(place: str, part: Any) -> Iterator[tuple[str, Exact]]:
            if not isinstance(part, tuple):
                yield place, part
                return
            for n, some in enumerate(part):
                yield from within(f"{place}[{n}]", some)

        for name, part in self.by_name().items():
            yield from within(name, part)


def middle_of(bounds: tuple[Gradients, Gradients]) -> Gradients:
    """The gradients between lower and upper bounds, integers over 2^128."""

    def middle(lower: Any, upper: Any) -> Any:
        if isinstance(lower, tuple):
            return tuple(middle(*pair) for pair in zip(lower, upper, strict=True))
        return Fraction(lower + upper, 2 * BOUNDS_UNIT)

    lower, upper = bounds
    return Gradients(
        **{name: middle(x, getattr(upper, name)) for name, x in lower.by_name().items()}
    )


@dataclass(frozen=True)
class Slopes:
    """slopes[h]·|i + shift − j| is taken from the score of query i and key j of head h."""

    slopes: tuple[Exact, ...]
    shift: int


@dataclass(frozen=True)
class GradientVector(Scaled, Vector):
    """The gradients of a loss by the inputs of attention, from those by its outputs.

    The inputs as for grouped-query; a scale of None is 1/√head_dim. batch: how many entries of a
    batch the heads belong to, one after another; num_heads and num_kv_heads count those of all.
    masks: one for all heads, or one for each. Scores are changed as in `AttentionVector`: by the
    temperature of the head, [num_heads], by which they are multiplied, then softcap, then `alibi`,
    then bias, then the mask. bias: [num_heads or 1][q_len or 1][kv_len], shared by all heads or
    queries where there is one; None masks. sinks: [num_heads]. grad_output:
    [num_heads][q_len][value_dim]; grad_log_sum_exp: [num_heads][q_len], by the log-sum-exp in
    base e. dropout: of each head, where there is any, drawn from the seed. expected: of the shapes
    of q, k, v and bias, which is [num_heads][q_len][kv_len] without one. bounds, in the natural
    model: the lower and the upper bound of each gradient, integers over 2^128; expected is the
    middle between them.
    """

    operation: ClassVar[str] = "gradient"
    num_heads: int
    num_kv_heads: int
    q_len: int
    kv_len: int
    head_dim: int
    value_dim: int
    scale: Exact | None
    q: tuple[Matrix, ...]
    k: tuple[Matrix, ...]
    v: tuple[Matrix, ...]
    masks: tuple[Mask, ...]
    grad_output: tuple[Matrix, ...]
    grad_log_sum_exp: Matrix
    expected: Gradients
    softcap: Exact | None = None
    alibi: Slopes | None = None
    bias: tuple[tuple[tuple[Exact | None, ...], ...], ...] | None = None
    sinks: tuple[Exact, ...] | None = None
    temperature: tuple[Exact, ...] | None = None
    bounds: tuple[Gradients, Gradients] | None = None
    dropout: tuple[Dropout, ...] = ()
    dropout_seed: int = 0
    batch: int = 1

    @property
    def mask(self) -> Mask:
        """The mask of every head. Raises ValueError where they differ."""
        (mask,) = self.masks
        return mask

    def mask_of(self, h: int) -> Mask:
        """The mask of head h."""
        return self.masks[0 if len(self.masks) == 1 else h]

    @property
    def options(self) -> frozenset[str]:
        """Which of softcap, alibi, bias, those of `PER_HEAD`, and dropout are given."""
        names = ("softcap", "alibi", "bias", *PER_HEAD)
        found = {name for name in names if getattr(self, name) is not None}
        return frozenset(found | {"dropout"} if self.dropout else found)

    @cached_property
    def uncertainty(self) -> Fraction:
        """By how much a gradient may differ from the middle between its bounds."""
        if self.bounds is None:
            return Fraction(0)
        pairs = zip(*(part.numbers() for part in self.bounds), strict=True)
        return Fraction(max(hi - lo for (_, lo), (_, hi) in pairs), 2 * BOUNDS_UNIT)

    def place_in_bias(self, h: int, i: int) -> tuple[int, int]:
        """Which row of the bias, or of the gradient by it, belongs to head h and query i."""
        if self.bias is None:
            return h, i
        return h if len(self.bias) > 1 else 0, i if len(self.bias[0]) > 1 else 0

    @property
    def shares_bias(self) -> bool:
        """Whether several heads or queries have one row of the bias."""
        if self.bias is None:
            return False
        return (len(self.bias), len(self.bias[0])) != (self.num_heads, self.q_len)

    def bias_at(self, h: int, i: int, j: int) -> Exact | None:
        """The number added to a score; None masks the pair."""
        if self.bias is None:
            return 0
        head, row = self.place_in_bias(h, i)
        return self.bias[head][row][j]

    def visible(self, h: int, i: int, j: int) -> bool:
        """Whether query i of head h may attend to key j."""
        return self.mask_of(h).visible(i, j) and self.bias_at(h, i, j) is not None

    def factor(self, h: int, i: int, j: int) -> Fraction:
        """The factor by which dropout multiplies a weight of head h."""
        return self.dropout[h].factor(i, j) if self.dropout else Fraction(1)

    def judged_part(self, name: str, whole: NDArray[Any]) -> NDArray[Any]:
        """The judged part of an array of the shape of the input of this name: all of it."""
        return whole

    def judged_gradients(self, whole: Gradients) -> Gradients:
        """The judged ones of all gradients: all."""
        return whole

    @property
    def by_log_sum_exp(self) -> bool:
        """Whether the loss depends on the log-sum-exp."""
        return any(x != 0 for row in self.grad_log_sum_exp for x in row)

    def attentions(self, *, biased: bool = False) -> tuple[AttentionVector, ...]:
        """The inputs of each query head, without results. biased: with a bias of 0 if the vector
        has none."""
        return self._biased if biased else self._as_given

    @cached_property
    def _as_given(self) -> tuple[AttentionVector, ...]:
        return tuple(self._attention(h, biased=False) for h in range(self.num_heads))

    @cached_property
    def _biased(self) -> tuple[AttentionVector, ...]:
        return tuple(self._attention(h, biased=True) for h in range(self.num_heads))

    def _attention(self, h: int, biased: bool) -> AttentionVector:
        of = h // (self.num_heads // self.num_kv_heads)
        rows, columns = range(self.q_len), range(self.kv_len)
        bias = None
        if biased or self.bias is not None:
            bias = tuple(tuple(self.bias_at(h, i, j) for j in columns) for i in rows)
        mask = self.mask_of(h)
        if len(self.masks) > 1:
            # Given in one call, they have to be of one kind.
            seen = tuple(tuple(mask.visible(i, j) for j in columns) for i in rows)
            mask = Mask("boolean", seen)
        t = 1 if self.temperature is None else self.temperature[h]
        return problem(
            self,
            f"{self.id}[{h}]",
            q_len=self.q_len,
            kv_len=self.kv_len,
            head_dim=self.head_dim,
            value_dim=self.value_dim,
            scale=self.scale,
            # Queries that are multiplied by it are as good as scores.
            q=tuple(tuple(t * x for x in row) for row in self.q[h]),
            k=self.k[of],
            v=self.v[of],
            mask=mask,
            expected=(),
            softcap=self.softcap,
            alibi=None if self.alibi is None else Alibi(self.alibi.slopes[h], self.alibi.shift),
            bias=bias,
            sink=None if self.sinks is None else self.sinks[h],
            dropout=self.dropout[h] if self.dropout else None,
        )
