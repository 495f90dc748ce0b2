"""Gradients by the quotient rule: a second derivation, in exact arithmetic where exp k = 2^k.

An output is N / Z with N = Σ w·f·v and Z = Σ w, where w = 2^s = e^(s·ln 2) and f is what dropout
multiplies the weight by. By a score in base e its derivative is w·(f·v·Z − N) / Z², that of the
log-sum-exp w / Z, and by a value w·f / Z. Nothing here knows of P, D or dP, which is what the Lean
definitions are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from bridge.vectors.gradients import Gradients, GradientVector
from bridge.vectors.model import Exact, Matrix

Rows = list[list[Fraction]]


def gradients(vector: GradientVector) -> Gradients:
    """The exact gradients from the inputs alone.

    Raises ValueError where a score is not an integer: 2^s would be irrational.
    """
    group = vector.num_heads // vector.num_kv_heads
    q, bias = [], []
    k = [_zeros(vector.kv_len, vector.head_dim) for _ in range(vector.num_kv_heads)]
    v = [_zeros(vector.kv_len, vector.value_dim) for _ in range(vector.num_kv_heads)]
    for h in range(vector.num_heads):
        by_query, by_score = _head(vector, h, k[h // group], v[h // group])
        q.append(by_query)
        bias.append(by_score)
    return Gradients(*(tuple(map(_matrix, part)) for part in (q, k, v, bias)))


def _head(vector: GradientVector, h: int, by_key: Rows, by_value: Rows) -> tuple[Rows, Rows]:
    """The gradients by the queries and scores of one head; those by its keys and values added."""
    of = h // (vector.num_heads // vector.num_kv_heads)
    queries, keys, values = vector.q[h], vector.k[of], vector.v[of]
    by_query = _zeros(vector.q_len, vector.head_dim)
    by_score = _zeros(vector.q_len, vector.kv_len)
    for i, query in enumerate(queries):
        visible = [j for j in range(vector.kv_len) if vector.mask.visible(i, j)]
        weights = {j: _weight(vector, query, keys[j]) for j in visible}
        total = sum(weights.values(), Fraction(0))
        wanted = vector.grad_output[h][i]
        factors = {j: vector.factor(h, i, j) for j in visible}
        sums = [
            sum(weights[j] * factors[j] * values[j][c] for j in visible)
            for c in range(vector.value_dim)
        ]
        for j in visible:
            quotient = sum(
                (
                    g * (factors[j] * v * total - n)
                    for g, v, n in zip(wanted, values[j], sums, strict=True)
                ),
                Fraction(0),
            )
            rate = weights[j] * (quotient / total**2 + vector.grad_log_sum_exp[h][i] / total)
            by_score[i][j] = rate
            for c, g in enumerate(wanted):
                by_value[j][c] += g * weights[j] * factors[j] / total
            for c in range(vector.head_dim):
                by_query[i][c] += rate * vector.scale * keys[j][c]
                by_key[j][c] += rate * vector.scale * query[c]
    return by_query, by_score


def _weight(vector: GradientVector, query: Sequence[Exact], key: Sequence[Exact]) -> Fraction:
    score = Fraction(vector.scale * sum(a * b for a, b in zip(query, key, strict=True)))
    if score.denominator != 1 or abs(score) > 1 << 20:
        raise ValueError(f"{vector.id}: the score {score} is not an integer, or beyond any use.")
    return Fraction(2) ** score.numerator


def _zeros(rows: int, columns: int) -> Rows:
    return [[Fraction(0)] * columns for _ in range(rows)]


def _matrix(rows: Rows) -> Matrix:
    return tuple(map(tuple, rows))
