"""Tolerances of scores that are changed.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/ScoreChangeTolerance.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.spec.attention import Mask, attention, mask_to_score_mod, score
from bridge.spec.core import Arithmetic, Value
from bridge.spec.dropout import WeightFactor, dropped_values
from bridge.spec.maximum import row_max
from bridge.spec.score_mods import score_mod_and_then, score_mod_bias, score_mod_softcap, tanh
from bridge.spec.score_tolerance import (
    ScoreFormats,
    magnitude,
    operand_underflow,
    score_error,
    underflow_formats,
)
from bridge.spec.sink import attention_sink
from bridge.spec.tolerance import BoundedKey, Precision, absolute, numeral
from bridge.spec.vector import vec_dot


@dataclass(frozen=True)
class ScoreChange:
    """The changes of the score of a query and a key before the softmax, in this order.

    cap: the score is squeezed into (−cap, cap) by softcap.

    added: a number that is added, of a bias or of ALiBi.

    Lean: `Attention.Spec.ScoreChange`.
    """

    cap: Value | None
    added: Value | None


def score_change_apply(change: ScoreChange, s: Value, *, num: Arithmetic) -> Value:
    """The score after its changes.

    Lean: `Attention.Spec.ScoreChange.apply`.
    """
    s_1 = s if change.cap is None else change.cap * tanh(s / change.cap, num=num)
    return s_1 if change.added is None else s_1 + change.added


def softcap_error(
    p: Precision, f: ScoreFormats, cap: Value, error: Value, *, num: Arithmetic
) -> Value:
    """How far a score may be off after softcap, where it is off by `error` before. The slope of
    tanh is at most 1; a quotient by the cap, a tanh and a product with the cap are off by 8
    roundings of the cap together, and the result is stored, as a score is.

    Lean: `Attention.Spec.softcapError`.
    """
    return error + (numeral(8, num=num) * p.unit + f.scores) * cap + f.scores_tiny


def added_error(
    p: Precision, f: ScoreFormats, a: Value, s: Value, error: Value, *, num: Arithmetic
) -> Value:
    """How far a score may be off after `a` is added, where `s` is the exact score before and
    `error` how far off that one is: both numbers, with their errors, and their sum are rounded
    twice and stored, each by (1 + u)² (1 + u_s) at most and by η_s.

    Lean: `Attention.Spec.addedError`.
    """
    growth = (num.value(1) + p.unit) * (num.value(1) + p.unit) * (
        num.value(1) + f.scores
    ) - num.value(1)
    return (
        (error + growth * absolute(a, num=num) + f.scores_tiny) * (num.value(1) + growth)
        + growth * absolute(s + a, num=num)
        + f.scores_tiny
    )


def sink_error(p: Precision, f: ScoreFormats, sink: Value, *, num: Arithmetic) -> Value:
    """How far the score of a sink may be off, a number that is given and rounded twice, with what
    underflows of a score: ((1 + u)² − 1) |sink| + η_s.

    Lean: `Attention.Spec.sinkError`.
    """
    return ((num.value(1) + p.unit) * (num.value(1) + p.unit) - num.value(1)) * absolute(
        sink, num=num
    ) + f.scores_tiny


def changed_error(
    p: Precision, f: ScoreFormats, change: ScoreChange, s: Value, error: Value, *, num: Arithmetic
) -> Value:
    """How far a score may be off after its changes, where `s` is the exact score before them and
    `error` how far off that one is.

    Lean: `Attention.Spec.changedError`.
    """
    if change.cap is None:
        error_1 = error
    else:
        error_1 = softcap_error(p, f, change.cap, error, num=num)
    if change.added is None:
        return error_1
    return added_error(
        p,
        f,
        change.added,
        score_change_apply(ScoreChange(cap=change.cap, added=None), s, num=num),
        error_1,
        num=num,
    )


@dataclass(frozen=True)
class ScoreChanges:
    """The changes of the scores of whole matrices before the softmax, in this order.

    cap: each score is squeezed into (−cap, cap) by softcap.

    added: numbers that are added, of a bias or of ALiBi; `none` masks the pair.

    sink: one more score in each row, the value of which is 0.

    Lean: `Attention.Spec.ScoreChanges`.
    """

    cap: Value | None
    added: list[list[Value | None]] | None
    sink: Value | None


def score_changes_pair(changes: ScoreChanges, i: int, j: int) -> ScoreChange:
    """The changes of the score of query `i` and key `j`.

    Lean: `Attention.Spec.ScoreChanges.pair`.
    """
    return ScoreChange(
        cap=changes.cap, added=None if changes.added is None else changes.added[i][j]
    )


def score_changes_modify(
    changes: ScoreChanges, mask: Mask, *, num: Arithmetic
) -> Callable[[int, int, Value], Value | None]:
    """The changes and the mask as a transformation of scores.

    Lean: `Attention.Spec.ScoreChanges.modify`.
    """
    if changes.cap is None:
        capped = mask_to_score_mod(mask)
    else:
        capped = score_mod_and_then(
            mask_to_score_mod(mask), score_mod_softcap(changes.cap, num=num)
        )
    if changes.added is None:
        return capped
    return score_mod_and_then(capped, score_mod_bias(changes.added))


def score_changes_attention(
    changes: ScoreChanges,
    scale: Value,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    V: list[list[Value]],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """Attention of whole matrices with changed scores, and with a sink where there is one.

    Lean: `Attention.Spec.ScoreChanges.attention`.
    """
    if changes.sink is None:
        return attention(
            scale,
            score_changes_modify(changes, mask, num=num),
            Q,
            K,
            V,
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num,
        )
    return attention_sink(
        scale,
        score_changes_modify(changes, mask, num=num),
        changes.sink,
        Q,
        K,
        V,
        q_len=q_len,
        kv_len=kv_len,
        d=d,
        d_v=d_v,
        num=num,
    )


def score_changes_attention_dropout(
    changes: ScoreChanges,
    scale: Value,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    V: list[list[Value]],
    Z: WeightFactor,
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """The same with dropout: each row is that of the values times their factors.

    Lean: `Attention.Spec.ScoreChanges.attentionDropout`.
    """
    return [
        score_changes_attention(
            changes,
            scale,
            mask,
            Q,
            K,
            dropped_values(V, Z, i, kv_len=kv_len),
            q_len=q_len,
            kv_len=kv_len,
            d=d,
            d_v=d_v,
            num=num,
        )[i]
        for i in range(q_len)
    ]


def score_changes_score(
    changes: ScoreChanges,
    scale: Value,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    i: int,
    col: int | None,
    *,
    d: int,
    num: Arithmetic,
) -> Value | None:
    """The changed score of a column of query `i`: of a key, or (`none`) of the sink.

    Lean: `Attention.Spec.ScoreChanges.score`.
    """
    if col is None:
        return changes.sink
    return score(scale, score_changes_modify(changes, mask, num=num), Q, K, i, col, d=d, num=num)


def column_value(V: list[list[Value]], t: int, col: int | None, *, num: Arithmetic) -> Value:
    """One component of the value of a column; 0 is that of the sink.

    Lean: `Attention.Spec.columnValue`.
    """
    return num.value(0) if col is None else V[col][t]


def score_changes_error(
    p: Precision,
    f: ScoreFormats,
    additions: int,
    changes: ScoreChanges,
    whole: bool,
    scale: Value,
    Q: list[list[Value]],
    K: list[list[Value]],
    i: int,
    m: Value,
    col: int | None,
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """How far the computed score of a column may be off, where `m` is the largest score of the
    row. A common relative error of the products shows in full (`whole`) in a log-sum-exp, and
    in an output where scores are changed or a sink stands beside them.

    Lean: `Attention.Spec.ScoreChanges.error`.
    """
    if col is None:
        if changes.sink is None:
            return num.value(0)
        return sink_error(p, f, changes.sink, num=num)
    s = scale * vec_dot(Q[i], K[col], d=d, zero=num.value(0))
    if not whole and changes.cap is None and (changes.added is None) and (changes.sink is None):
        below = m - s
    else:
        below = absolute(s, num=num)
    return changed_error(
        p,
        f,
        score_changes_pair(changes, i, col),
        s,
        score_error(
            p,
            f,
            additions,
            scale,
            magnitude(Q[i], K[col], d=d, num=num),
            operand_underflow(p, f, additions, Q[i], K[col], d=d, num=num),
            s,
            below,
            num=num,
        ),
        num=num,
    )


def score_changes_formats(
    changes: ScoreChanges,
    p: Precision,
    f: ScoreFormats,
    nu: Value,
    additions: int,
    d: int,
    scale: Value,
    *,
    num: Arithmetic,
) -> ScoreFormats:
    """The formats of these scores where products and quotients in the accumulator may be below its
    normal numbers too, each off by `ν` at most.

    Lean: `Attention.Spec.ScoreChanges.formats`.
    """
    return underflow_formats(
        p, f, nu, additions, d, scale, num.value(0) if changes.cap is None else changes.cap, num=num
    )


def changed_key(
    p: Precision,
    f: ScoreFormats,
    additions: int,
    changes: ScoreChanges,
    whole: bool,
    scale: Value,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    V: list[list[Value]],
    i: int,
    t: int,
    m: Value | None,
    col: int | None,
    *,
    d: int,
    num: Arithmetic,
) -> BoundedKey:
    """A column of query `i` as the tolerance of component `t` of its output sees it, where `m` is
    the largest score of the row.

    Lean: `Attention.Spec.changedKey`.
    """
    s = score_changes_score(changes, scale, mask, Q, K, i, col, d=d, num=num)
    if s is not None and m is not None:
        return BoundedKey(
            score=s,
            error=score_changes_error(
                p, f, additions, changes, whole, scale, Q, K, i, m, col, d=d, num=num
            ),
            value=column_value(V, t, col, num=num),
        )
    return BoundedKey(score=None, error=num.value(0), value=column_value(V, t, col, num=num))


def changed_keys(
    p: Precision,
    f: ScoreFormats,
    additions: int,
    changes: ScoreChanges,
    whole: bool,
    scale: Value,
    mask: Mask,
    Q: list[list[Value]],
    K: list[list[Value]],
    V: list[list[Value]],
    i: int,
    t: int,
    cols: list[int | None],
    *,
    d: int,
    num: Arithmetic,
) -> list[BoundedKey]:
    """The columns `cols` as the tolerance of component `t` of the output of query `i` sees them.

    Lean: `Attention.Spec.changedKeys`.
    """
    m = row_max(
        [score_changes_score(changes, scale, mask, Q, K, i, col, d=d, num=num) for col in cols]
    )
    return [
        changed_key(
            p, f, additions, changes, whole, scale, mask, Q, K, V, i, t, m, col, d=d, num=num
        )
        for col in cols
    ]


def score_changes_columns(changes: ScoreChanges, *, kv_len: int) -> list[int | None]:
    """All columns of a row: the sink, where there is one, and the keys.

    Lean: `Attention.Spec.ScoreChanges.columns`.
    """
    if changes.sink is None:
        return [x for x in range(kv_len)]
    return [None, *[x for x in range(kv_len)]]
