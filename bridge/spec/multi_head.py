"""Multi-head attention with its projections.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/MultiHead.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.spec.attention import Mask, mask_to_score_mod
from bridge.spec.core import Arithmetic, Value
from bridge.spec.heads import multi_head
from bridge.spec.linear import Linear, linear_rows


def head_column(h: int, c: int, *, d: int) -> int:
    """Component `c` of head `h` among those of all heads.

    Lean: `Attention.Spec.headColumn`.
    """
    return h * d + c


def split_heads(X: list[list[Value]], *, n: int, num_heads: int, d: int) -> list[list[list[Value]]]:
    """The columns of a matrix split to the heads: a matrix for each head.

    Lean: `Attention.Spec.splitHeads`.
    """
    return [
        [[X[i][head_column(h, c, d=d)] for c in range(d)] for i in range(n)]
        for h in range(num_heads)
    ]


def concat_heads(heads: list[list[list[Value]]], *, n: int) -> list[list[Value]]:
    """The outputs of all heads side by side: row i is row i of the first head, then of the second,
    and so on.

    Lean: `Attention.Spec.concatHeads`.
    """
    return [[x for head in heads for x in head[i]] for i in range(n)]


@dataclass(frozen=True)
class MultiHead:
    """The parameters of multi-head attention between vectors of length `d_model`.

    query: the queries' projection.

    key: the keys' projection.

    value: the values' projection.

    output: the projection of the heads' outputs.

    Lean: `Attention.Spec.MultiHead`.
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear


def multi_head_attend(
    scale: Value,
    mask: Mask,
    W: MultiHead,
    Q: list[list[Value]],
    K: list[list[Value]],
    V: list[list[Value]],
    *,
    q_len: int,
    kv_len: int,
    num_heads: int,
    d: int,
    d_model: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """Attention of all heads between projected queries, keys and values, and the projection of
    what they give.

    Lean: `Attention.Spec.MultiHead.attend`.
    """
    return linear_rows(
        W.output,
        concat_heads(
            multi_head(
                scale,
                lambda _x, i, j, x: mask_to_score_mod(mask)(i, j, x),
                split_heads(Q, n=q_len, num_heads=num_heads, d=d),
                split_heads(K, n=kv_len, num_heads=num_heads, d=d),
                split_heads(V, n=kv_len, num_heads=num_heads, d=d),
                q_len=q_len,
                kv_len=kv_len,
                d=d,
                d_v=d,
                num_heads=num_heads,
                num=num,
            ),
            n=q_len,
        ),
        d_in=num_heads * d,
        d_out=d_model,
        num=num,
    )


def multi_head_rows(
    scale: Value,
    mask: Mask,
    W: MultiHead,
    Q: list[list[Value]],
    K: list[list[Value]],
    V: list[list[Value]],
    *,
    q_len: int,
    kv_len: int,
    num_heads: int,
    d: int,
    d_model: int,
    num: Arithmetic,
) -> list[list[Value]]:
    """Multi-head attention with its projections: self-attention for Q = K = V, cross-attention for
    K = V.

    Lean: `Attention.Spec.MultiHead.rows`.
    """
    return multi_head_attend(
        scale,
        mask,
        W,
        linear_rows(W.query, Q, d_in=d_model, d_out=num_heads * d, num=num),
        linear_rows(W.key, K, d_in=d_model, d_out=num_heads * d, num=num),
        linear_rows(W.value, V, d_in=d_model, d_out=num_heads * d, num=num),
        q_len=q_len,
        kv_len=kv_len,
        num_heads=num_heads,
        d=d,
        d_model=d_model,
        num=num,
    )
