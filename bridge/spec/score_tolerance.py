"""Tolerances of scores.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/ScoreTolerance.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.spec.attention import Mask, mask_to_score_mod, score
from bridge.spec.core import Arithmetic, Value
from bridge.spec.maximum import row_max
from bridge.spec.sum import sum_over
from bridge.spec.tolerance import BoundedKey, Precision, absolute, gamma, numeral, power
from bridge.spec.vector import vec_dot


@dataclass(frozen=True)
class ScoreFormats:
    """In which formats of their own scaled operands and scores are stored: bounds of relative
    errors, and of absolute ones below the normal numbers of the format; 0 for what stays in the
    accumulator.

    operands: of a format in which q or k, multiplied by the scale or a part of it, is stored.

    roundings: how many of the two operands are multiplied before the inner product: 0, 1 or 2.

    scores: of a format in which scores are stored.

    operandsTiny: of storing such a product below the normal numbers of its format: an absolute
    error, η_op.

    reach: at most this part of the scale multiplies that error: √|scale| where both operands
    are multiplied by it, and at least 1.

    scoresTiny: of storing a score below the normal numbers of its format: an absolute error,
    η_s.

    Lean: `Attention.Spec.ScoreFormats`.
    """

    operands: Value
    roundings: int
    scores: Value
    operands_tiny: Value
    reach: Value
    scores_tiny: Value


def magnitude(q: list[Value], k: list[Value], *, d: int, num: Arithmetic) -> Value:
    """|q|ᵀ|k| = Σ |qᵢ| · |kᵢ|.

    Lean: `Attention.Spec.magnitude`.
    """
    return vec_dot(
        [absolute(x, num=num) for x in q], [absolute(x, num=num) for x in k], d=d, zero=num.value(0)
    )


def operand_factor(p: Precision, f: ScoreFormats, *, num: Arithmetic) -> Value:
    """The relative error of the scaled operands of an inner product, each product with the scale
    rounded and stored, is at most this less 1: ((1 + u) (1 + u_op))^r.

    Lean: `Attention.Spec.operandFactor`.
    """
    return power((num.value(1) + p.unit) * (num.value(1) + f.operands), f.roundings, num=num)


def operand_underflow(
    p: Precision,
    f: ScoreFormats,
    additions: int,
    q: list[Value],
    k: list[Value],
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """How far scaled operands below the normal numbers of their format move their inner product,
    where each is off by τ = r η_op at most and meets the other and `reach`: (1 + γ(additions +
    6)) ((1 + u) (1 + u_op))^r τ Σ (reach (|qᵢ| + |kᵢ|) + τ). These errors are rounded with the
    products and sums, with the scale and with the score.

    Lean: `Attention.Spec.operandUnderflow`.
    """
    tiny = numeral(f.roundings, num=num) * f.operands_tiny
    return (
        (num.value(1) + gamma(additions + 6, p.accumulation, num=num))
        * operand_factor(p, f, num=num)
        * (
            tiny
            * sum_over(
                lambda i: f.reach * (absolute(q[i], num=num) + absolute(k[i], num=num)) + tiny,
                list(range(d)),
                zero=num.value(0),
            )
        )
    )


def underflow_formats(
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    additions: int,
    d: int,
    scale: Value,
    cap: Value,
    *,
    num: Arithmetic,
) -> ScoreFormats:
    """The formats of scores where products in the accumulator may be below its normal numbers too,
    each off by `ν` at most, and so may sums be. These errors are rounded with the others: of
    the `d` products and fewer sums of them, which meet the scale or what is left of it, and of
    up to three products, quotients and sums of a score, or with its cap, 0 if it has none. It
    counts where scores are stored: (1 + u_s) (1 + γ(additions + 6)) ν (2 d max (1, |scale|) + 3
    (1 + cap)).

    Lean: `Attention.Spec.underflowFormats`.
    """
    return ScoreFormats(
        operands=f.operands,
        roundings=f.roundings,
        scores=f.scores,
        operands_tiny=f.operands_tiny,
        reach=f.reach,
        scores_tiny=f.scores_tiny
        + (num.value(1) + f.scores)
        * (
            (num.value(1) + gamma(additions + 6, p.accumulation, num=num))
            * (
                nu
                * (
                    numeral(2 * d, num=num) * max(num.value(1), absolute(scale, num=num))
                    + numeral(3, num=num) * (num.value(1) + cap)
                )
            )
        ),
    )


def score_error(
    p: Precision,
    f: ScoreFormats,
    additions: int,
    scale: Value,
    magnitude: Value,
    underflow: Value,
    s: Value,
    below_max: Value,
    *,
    num: Arithmetic,
) -> Value:
    """How far the computed score may be from `s` = scale · ⟨q, k⟩, but for a constant of the row,
    where m is the largest score of the row and `belowMax` is m − s: ((1 + γ(additions + 2)) ·
    ((1 + u) (1 + u_op))^r − 1) · |scale| · |q|ᵀ|k| + 2 u |s| + 3 u (m − s), `underflow` of the
    operands, u_s times all that the score may be, and η_s. A product qᵢ kᵢ goes through at most
    `additions` additions: head_dim − 1, in whatever order they are added. Each score is rounded
    twice: the product with the scale, and a change of base. The scale is rounded up to 3 times,
    alike for all keys; the rounding of a score that is stored is in proportion to the whole
    score, of which nothing cancels.

    Lean: `Attention.Spec.scoreError`.
    """
    relative = (num.value(1) + gamma(additions + 2, p.accumulation, num=num)) * operand_factor(
        p, f, num=num
    ) - num.value(1)
    own = (
        relative * (absolute(scale, num=num) * magnitude)
        + underflow
        + numeral(2, num=num) * p.unit * absolute(s, num=num)
    )
    return (
        own
        + numeral(3, num=num) * p.unit * below_max
        + (
            f.scores
            * (absolute(s, num=num) + own + numeral(3, num=num) * p.unit * absolute(s, num=num))
            + f.scores_tiny
        )
    )


def bounded_key(
    p: Precision,
    f: ScoreFormats,
    additions: int,
    scale: Value,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    V: list[list[Value]],
    i: int,
    t: int,
    m: Value | None,
    j: int,
    *,
    d: int,
    num: Arithmetic,
) -> BoundedKey:
    """Key `j` as the tolerance of component `t` of the output of query `i` sees it, where `m` is
    the largest score of the row.

    Lean: `Attention.Spec.boundedKey`.
    """
    s = score(scale, mask_to_score_mod(mask), Q, K, i, j, d=d, num=num)
    if s is not None and m is not None:
        return BoundedKey(
            score=s,
            error=score_error(
                p,
                f,
                additions,
                scale,
                magnitude(Q[i], K[j], d=d, num=num),
                operand_underflow(p, f, additions, Q[i], K[j], d=d, num=num),
                s,
                m - s,
                num=num,
            ),
            value=V[j][t],
        )
    return BoundedKey(score=None, error=num.value(0), value=V[j][t])


def bounded_keys(
    p: Precision,
    f: ScoreFormats,
    additions: int,
    scale: Value,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    V: list[list[Value]],
    i: int,
    t: int,
    cols: list[int],
    *,
    d: int,
    num: Arithmetic,
) -> list[BoundedKey]:
    """The keys `cols` as the tolerance of component `t` of the output of query `i` sees them.

    Lean: `Attention.Spec.boundedKeys`.
    """
    m = row_max([score(scale, mask_to_score_mod(mask), Q, K, i, j, d=d, num=num) for j in cols])
    return [
        bounded_key(p, f, additions, scale, mask, Q, K, V, i, t, m, j, d=d, num=num) for j in cols
    ]
