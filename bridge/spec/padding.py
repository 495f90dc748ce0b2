"""Padding.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Padding.lean`.
"""

from __future__ import annotations

from bridge.spec.attention import ScoreMod, attention
from bridge.spec.block import vec_append, vec_first
from bridge.spec.core import Arithmetic, Score, Value


def score_mod_pad(r: int, p: int, modify: ScoreMod, *, q_len: int, kv_len: int) -> ScoreMod:
    """The score transformation for `r` more queries and `p` more keys: whatever is beyond the end
    is masked.

    Lean: `Attention.Spec.ScoreMod.pad`.
    """
    return lambda i, j, s: modify(i, j, s) if i < q_len and j < kv_len else None


def attention_padded(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    Q_: list[list[Score]],
    K_: list[list[Score]],
    V_: list[list[Value]],
    *,
    q_len: int,
    kv_len: int,
    d: int,
    d_v: int,
    r: int,
    p: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """Attention of queries, keys and values that are extended by the rows `Q'`, `K'` and `V'`: the
    keys beyond the end are masked, the queries beyond the end are cut from the output.

    Lean: `Attention.Spec.attentionPadded`.
    """
    return vec_first(
        q_len,
        attention(
            scale,
            score_mod_pad(r, p, modify, q_len=q_len, kv_len=kv_len),
            vec_append(Q, Q_),
            vec_append(K, K_),
            vec_append(V, V_),
            q_len=q_len + r,
            kv_len=kv_len + p,
            d=d,
            d_v=d_v,
            num=num,
        ),
    )
