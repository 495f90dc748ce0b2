"""The position-wise feed-forward network.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/FeedForward.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.spec.core import Arithmetic, Value
from bridge.spec.linear import Linear, linear_row


@dataclass(frozen=True)
class FeedForward:
    """The parameters of a feed-forward network of width `d` with `d_ff` hidden units.

    hidden: w₁ and b₁.

    output: w₂ and b₂.

    Lean: `Attention.Spec.FeedForward`.
    """

    hidden: Linear
    output: Linear


def relu(x: Value, *, num: Arithmetic) -> Value:
    """The rectified linear unit: max(0, x).

    Lean: `Attention.Spec.relu`.
    """
    return max(num.value(0), x)


def feed_forward_row(
    F: FeedForward, x: list[Value], *, d: int, d_ff: int, num: Arithmetic
) -> list[Value]:
    """The feed-forward network on one row.

    Lean: `Attention.Spec.FeedForward.row`.
    """
    return linear_row(
        F.output,
        [relu(x_1, num=num) for x_1 in linear_row(F.hidden, x, d_in=d, d_out=d_ff, num=num)],
        d_in=d_ff,
        d_out=d,
        num=num,
    )


def feed_forward_rows(
    F: FeedForward, X: list[list[Value]], *, d: int, d_ff: int, num: Arithmetic
) -> list[list[Value]]:
    """The feed-forward network on each row of a matrix.

    Lean: `Attention.Spec.FeedForward.rows`.
    """
    return [feed_forward_row(F, x, d=d, d_ff=d_ff, num=num) for x in X]
