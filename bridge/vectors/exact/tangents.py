"""The derivative forwards by the quotient rule of whole rows: a second derivation, to 70 digits.

An output is N / Z with N = Σ w·v and Z = Σ w, a sink being a term of Z alone; where scores change
at the rates s' and values at v', N' = Σ w·(s'·v + v') and Z' = Σ w·s'. The output changes at the
rate (N'·Z − N·Z') / Z², and the log-sum-exp at Z' / Z. Nothing here knows of dual numbers, which
the Lean definition is about; the derivative of cap·tanh(x / cap) is 4·e / (e + 1)² with
e = exp(2x / cap).
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import NamedTuple

from bridge.vectors.exact.decimals import decimal_of, scale_of, soften
from bridge.vectors.model.attention import Exact, Matrix
from bridge.vectors.model.tangents import TangentVector

_DIGITS = 70


class _Score(NamedTuple):
    value: Decimal
    rate: Decimal


def tangent_row(vector: TangentVector, i: int) -> tuple[list[Decimal], Decimal | None]:
    """The rates of the output and of the log-sum-exp, None for a query that sees nothing, for query
    i, to about 65 digits."""
    attention = vector.attention()
    keys = [j for j in range(vector.kv_len) if attention.visible(i, j)]
    with localcontext(prec=_DIGITS):
        scores = {j: _score(vector, i, j) for j in keys}
        weights = {j: score.value.exp() for j, score in scores.items()}
        total = sum(weights.values(), Decimal(0))
        rate = sum((weights[j] * scores[j].rate for j in keys), Decimal(0))
        if vector.sink is not None:
            weight = decimal_of(vector.sink).exp()
            total += weight
            rate += weight * decimal_of(vector.tangent_sink or 0)
        if total == 0:
            return [Decimal(0)] * vector.value_dim, None
        outputs = []
        for c in range(vector.value_dim):
            values = {j: decimal_of(vector.v[j][c]) for j in keys}
            n = sum((weights[j] * values[j] for j in keys), Decimal(0))
            moved = {j: scores[j].rate * values[j] + decimal_of(vector.tangent_v[j][c])
                     for j in keys}  # fmt: skip
            changes = sum((weights[j] * moved[j] for j in keys), Decimal(0))
            outputs.append((changes * total - n * rate) / total**2)
        return outputs, rate / total


def _dot(a: Matrix, i: int, b: Matrix, j: int) -> Decimal:
    products: Exact = sum(x * y for x, y in zip(a[i], b[j], strict=True))
    return decimal_of(products)


def _score(vector: TangentVector, i: int, j: int) -> _Score:
    """The score of query i and a visible key j, with its rate."""
    scale = scale_of(vector)
    value = scale * _dot(vector.q, i, vector.k, j)
    rate = scale * (_dot(vector.tangent_q, i, vector.k, j) + _dot(vector.q, i, vector.tangent_k, j))
    value, slope = soften(value, vector.softcap)
    rate *= slope
    if vector.alibi is not None:
        distance = abs(i + vector.alibi.shift - j)
        value -= decimal_of(vector.alibi.slope) * distance
        rate -= decimal_of(vector.tangent_slope or 0) * distance
    if vector.bias is not None:
        value += decimal_of(vector.bias[i][j] or 0)
        rate += decimal_of(vector.rate_of_bias(i, j))
    return _Score(value, rate)
