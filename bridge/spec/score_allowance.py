"""Error allowances of scores.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/ScoreAllowance.lean`.
"""

from __future__ import annotations

from bridge.spec.allowance import BoundedKey, Precision, absolute, gamma, numeral
from bridge.spec.attention import Mask, mask_to_score_mod, score
from bridge.spec.core import Arithmetic, Value
from bridge.spec.maximum import row_max
from bridge.spec.vector import vec_dot


def magnitude(q: list[Value], k: list[Value], *, d: int, num: Arithmetic) -> Value:
    """|q|ᵀ|k| = Σ |qᵢ| · |kᵢ|.

    Lean: `Attention.Spec.magnitude`.
    """
    return vec_dot(
        [absolute(x, num=num) for x in q], [absolute(x, num=num) for x in k], d=d, zero=num.value(0)
    )


def score_error(
    p: Precision,
    additions: int,
    scale: Value,
    magnitude: Value,
    s: Value,
    below_max: Value,
    *,
    num: Arithmetic,
) -> Value:
    """How far the computed score may be from `s` = scale · ⟨q, k⟩, but for a constant of the row,
    where m is the largest score of the row and `belowMax` is m − s: γ(additions + 2) · |scale|
    · |q|ᵀ|k| + 2 u |s| + 3 u (m − s). A product qᵢ kᵢ goes through at most `additions`
    additions: head_dim − 1, in whatever order they are added. Each score is rounded twice: the
    product with the scale, and a change of base. The scale is rounded up to 3 times, alike for
    all keys.

    Lean: `Attention.Spec.scoreError`.
    """
    return (
        gamma(additions + 2, p.accumulation, num=num) * (absolute(scale, num=num) * magnitude)
        + numeral(2, num=num) * p.unit * absolute(s, num=num)
        + numeral(3, num=num) * p.unit * below_max
    )


def bounded_key(
    p: Precision,
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
    """Key `j` as the allowance of component `t` of the output of query `i` sees it, where `m` is
    the largest score of the row.

    Lean: `Attention.Spec.boundedKey`.
    """
    s = score(scale, mask_to_score_mod(mask), Q, K, i, j, d=d, num=num)
    if s is not None and m is not None:
        return BoundedKey(
            score=s,
            error=score_error(
                p, additions, scale, magnitude(Q[i], K[j], d=d, num=num), s, m - s, num=num
            ),
            value=V[j][t],
        )
    return BoundedKey(score=None, error=num.value(0), value=V[j][t])


def bounded_keys(
    p: Precision,
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
    """The keys `cols` as the allowance of component `t` of the output of query `i` sees them.

    Lean: `Attention.Spec.boundedKeys`.
    """
    m = row_max([score(scale, mask_to_score_mod(mask), Q, K, i, j, d=d, num=num) for j in cols])
    return [bounded_key(p, additions, scale, mask, Q, K, V, i, t, m, j, d=d, num=num) for j in cols]
