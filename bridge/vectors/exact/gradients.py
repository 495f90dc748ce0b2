"""Gradients by the quotient rule: a second derivation, in exact arithmetic where exp k = 2^k, and
to 70 digits where it is the natural exponential.

An output is N / Z with N = Σ w·f·v and Z = Σ w, f being dropout's factor of the weight, and a sink
a term of Z alone. By a score in base e its derivative is w·(f·v·Z − N) / Z², that of the
log-sum-exp w / Z, and by a value w·f / Z. Nothing here knows of P, D or dP, which the Lean
definitions are about; the derivative of cap·tanh(x / cap) is 4·e / (e + 1)² with e = exp(2x / cap).
"""

from __future__ import annotations

from decimal import localcontext
from fractions import Fraction
from typing import Any, NamedTuple

from bridge.vectors.exact.decimals import decimal_of, scale_of, soften
from bridge.vectors.model.attention import Exact
from bridge.vectors.model.gradients import Gradients, GradientVector

_DIGITS = 70
# Fraction in the exact model, Decimal in the natural one.
Rows = list[list[Any]]


class _Score(NamedTuple):
    """weight: exp of a score; rate: of the score, by temperature·scale·⟨q, k⟩."""

    weight: Any
    rate: Any


class _Found(NamedTuple):
    """The sums so far, head by head."""

    q: list[Rows]
    k: list[Rows]
    v: list[Rows]
    bias: list[Rows]
    slopes: list[Any]
    sinks: list[Any]
    temperature: list[Any]


def gradients(vector: GradientVector) -> Gradients:
    """The gradients from the inputs alone: exact ones, or to about 65 digits.

    Raises ValueError where a score of the exact model is not an integer: 2^s would be irrational.
    """
    with localcontext(prec=_DIGITS):
        zero = _number(vector, 0)

        def zeros(heads: int, rows: int, columns: int) -> list[Rows]:
            return [[[zero] * columns for _ in range(rows)] for _ in range(heads)]

        bias_heads, bias_rows = vector.num_heads, vector.q_len
        if vector.bias is not None:
            bias_heads, bias_rows = len(vector.bias), len(vector.bias[0])
        found = _Found(
            zeros(vector.num_heads, vector.q_len, vector.head_dim),
            zeros(vector.num_kv_heads, vector.kv_len, vector.head_dim),
            zeros(vector.num_kv_heads, vector.kv_len, vector.value_dim),
            zeros(bias_heads, bias_rows, vector.kv_len),
            [zero] * vector.num_heads,
            [zero] * vector.num_heads,
            [zero] * vector.num_heads,
        )
        for h in range(vector.num_heads):
            for i in range(vector.q_len):
                _add_row(vector, h, i, found)
    return Gradients(
        _tuples(found.q),
        _tuples(found.k),
        _tuples(found.v),
        _tuples(found.bias),
        tuple(found.slopes) if vector.alibi is not None else None,
        tuple(found.sinks) if vector.sinks is not None else None,
        tuple(found.temperature) if vector.temperature is not None else None,
    )


def _add_row(vector: GradientVector, h: int, i: int, found: _Found) -> None:
    """Add the contributions of query i of head h."""
    of = h // (vector.num_heads // vector.num_kv_heads)
    query = [_number(vector, x) for x in vector.q[h][i]]
    keys, values = vector.k[of], vector.v[of]
    wanted = [_number(vector, g) for g in vector.grad_output[h][i]]
    by_lse = _number(vector, vector.grad_log_sum_exp[h][i])
    seen = [j for j in range(vector.kv_len) if vector.visible(h, i, j)]
    scores = {j: _score(vector, h, i, j) for j in seen}
    total = sum((score.weight for score in scores.values()), _number(vector, 0))
    sink = None
    if vector.sinks is not None:
        sink = _number(vector, vector.sinks[h]).exp()
        total += sink
    kept = {j: _number(vector, vector.factor(h, i, j)) for j in seen}
    sums = [
        sum(scores[j].weight * kept[j] * _number(vector, values[j][c]) for j in seen)
        for c in range(vector.value_dim)
    ]
    scale, temperature = _scale(vector), _temperature(vector, h)
    head, row = vector.place_in_bias(h, i)
    for j in seen:
        weight, slope = scores[j]
        quotient = sum(
            g * (kept[j] * _number(vector, v) * total - n)
            for g, v, n in zip(wanted, values[j], sums, strict=True)
        )
        rate = weight * (quotient / total**2 + by_lse / total)
        found.bias[head][row][j] += rate
        if vector.alibi is not None:
            found.slopes[h] -= rate * abs(i + vector.alibi.shift - j)
        for c, g in enumerate(wanted):
            found.v[of][j][c] += g * weight * kept[j] / total
        for c in range(vector.head_dim):
            key = _number(vector, keys[j][c])
            found.q[h][i][c] += rate * slope * temperature * scale * key
            found.k[of][j][c] += rate * slope * temperature * scale * query[c]
            found.temperature[h] += rate * slope * scale * query[c] * key
    if sink is not None:
        quotient = -sum(g * n for g, n in zip(wanted, sums, strict=True))
        found.sinks[h] += sink * (quotient / total**2 + by_lse / total)


def _number(vector: GradientVector, x: Exact) -> Any:
    if vector.model == "exact":
        return Fraction(x)
    return decimal_of(x)


def _scale(vector: GradientVector) -> Any:
    return scale_of(vector) if vector.scale is None else _number(vector, vector.scale)


def _temperature(vector: GradientVector, h: int) -> Any:
    return _number(vector, 1 if vector.temperature is None else vector.temperature[h])


def _score(vector: GradientVector, h: int, i: int, j: int) -> _Score:
    key = vector.k[h // (vector.num_heads // vector.num_kv_heads)][j]
    product = sum((a * b for a, b in zip(vector.q[h][i], key, strict=True)), Fraction(0))
    score = _temperature(vector, h) * _scale(vector) * _number(vector, product)
    if vector.model == "exact":
        if score.denominator != 1 or abs(score) > 1 << 20:
            raise ValueError(
                f"{vector.id}: the score {score} is not an integer, or beyond any use."
            )
        return _Score(Fraction(2) ** score.numerator, Fraction(1))
    score, rate = soften(score, vector.softcap)
    if vector.alibi is not None:
        distance = abs(i + vector.alibi.shift - j)
        score -= _number(vector, vector.alibi.slopes[h]) * distance
    score += _number(vector, vector.bias_at(h, i, j) or 0)
    return _Score(score.exp(), rate)


def _tuples(part: list[Rows]) -> tuple[tuple[tuple[Any, ...], ...], ...]:
    return tuple(tuple(map(tuple, rows)) for rows in part)
