"""Attention from its mathematical definition, in exact arithmetic: a second derivation.

Nothing here knows of maxima, tiles or rescaling, which is what the Lean definitions are about. With
weight 2^(scale·⟨q, k⟩) for each unmasked key, the output is Σ weight·v / Σ weight.
"""

from __future__ import annotations

import math
from fractions import Fraction

from bridge.vectors.model import Row, Vector


def attention_row(vector: Vector, i: int) -> Row:
    """The exact result for query i of a vector, from its inputs alone.

    Raises ValueError where a score is not an integer: 2^s would be irrational.
    """
    keys = [j for j in range(vector.kv_len) if vector.mask.visible(i, j)]
    if not keys:
        return Row(None, 0, 1, (0,) * vector.value_dim)
    scores: dict[int, int] = {}
    for j in keys:
        product = sum(a * b for a, b in zip(vector.q[i], vector.k[j], strict=True))
        score = Fraction(vector.scale * product)
        if score.denominator != 1:
            raise ValueError(f"{vector.id}: the score of query {i} and key {j} is not an integer.")
        scores[j] = score.numerator
    # Integer weights: every weight times one power of two, which cancels.
    lowest, largest = min(scores.values()), max(scores.values())
    weights = {j: 1 << (s - lowest) for j, s in scores.items()}
    total = sum(weights.values())
    outputs = [
        Fraction(sum(weights[j] * vector.v[j][c] for j in keys)) / total
        for c in range(vector.value_dim)
    ]
    bottom = math.lcm(*(x.denominator for x in outputs))
    return Row(
        largest,
        Fraction(total, 1 << (largest - lowest)),
        bottom,
        tuple(x.numerator * (bottom // x.denominator) for x in outputs),
    )


def attention(vector: Vector) -> tuple[Row, ...]:
    """The exact result for every query."""
    return tuple(attention_row(vector, i) for i in range(vector.q_len))


def disagreements(vector: Vector) -> list[str]:
    """One sentence for every number of the vector that is not what the definition gives."""
    found = []
    for i, (row, right) in enumerate(zip(vector.expected, attention(vector), strict=True)):
        pairs: list[tuple[str, object, object]] = [
            ("max", row.max, right.max),
            ("denominator", row.denominator, right.denominator),
        ]
        outputs = zip(row.output, right.output, strict=True)
        pairs += [(f"output[{c}]", got, want) for c, (got, want) in enumerate(outputs)]
        found += [
            f"{vector.id}: expected[{i}].{name} is {got}, should be {want}."
            for name, got, want in pairs
            if got != want
        ]
    return found
