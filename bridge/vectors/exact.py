"""Attention from its mathematical definition, in exact arithmetic: a second derivation.

Nothing here knows of maxima, tiles or rescaling, which is what the Lean definitions are about. With
weight 2^(scale·⟨q, k⟩) for each unmasked key, the output is Σ weight·v / Σ weight.
"""

from __future__ import annotations

from fractions import Fraction

from bridge.vectors.model import Exact, Vector


def attention_row(vector: Vector, i: int) -> tuple[Exact | None, Fraction, tuple[Fraction, ...]]:
    """(largest score or None, Σ 2^(s − largest), outputs) for query i of a vector.

    Raises ValueError where a score is not an integer: 2^s would be irrational.
    """
    keys = [j for j in range(vector.kv_len) if vector.mask.visible(i, j)]
    if not keys:
        return None, Fraction(0), (Fraction(0),) * vector.value_dim
    scores: dict[int, int] = {}
    for j in keys:
        score = Fraction(
            vector.scale * sum(a * b for a, b in zip(vector.q[i], vector.k[j], strict=True))
        )
        if score.denominator != 1:
            raise ValueError(f"{vector.id}: the score of query {i} and key {j} is not an integer.")
        scores[j] = score.numerator
    # Integer weights: every weight times one power of two, which cancels.
    lowest, largest = min(scores.values()), max(scores.values())
    weights = {j: 1 << (s - lowest) for j, s in scores.items()}
    total = sum(weights.values())
    outputs = tuple(
        Fraction(sum(weights[j] * Fraction(vector.v[j][c]) for j in keys)) / total
        for c in range(vector.value_dim)
    )
    return largest, Fraction(total, 1 << (largest - lowest)), outputs


def disagreements(vector: Vector) -> list[str]:
    """One sentence for every number of the vector that is not what the definition gives."""
    found = []
    for i, row in enumerate(vector.expected):
        largest, denominator, outputs = attention_row(vector, i)
        if row.max != largest:
            found.append(f"{vector.id}: expected[{i}].max is {row.max}, should be {largest}.")
        if row.denominator != denominator:
            found.append(
                f"{vector.id}: expected[{i}].denominator is {row.denominator}, should be "
                f"{denominator}."
            )
        for c, (got, want) in enumerate(zip(row.output, outputs, strict=True)):
            if got != want:
                found.append(f"{vector.id}: expected[{i}].output[{c}] is {got}, should be {want}.")
    return found
