"""The inputs of a vector in the exact model, as the Spec in Python takes them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from bridge.source.excerpt import SourceError
from bridge.spec.attention import ScoredValue, ScoreMod, scored
from bridge.spec.core import EXACT
from bridge.vectors.model.attention import AttentionVector, Exact, Family, Row, Vector


def find(family: Family, vector: str) -> Vector:
    """A vector of the exact model by its id. Raises SourceError if there is none."""
    found = next((v for v in family.vectors if v.id == vector), None)
    if found is None or found.model != "exact":
        raise SourceError(f"{vector} is no vector of {family.name} in exact numbers")
    return found


def find_attention(family: Family, vector: str) -> AttentionVector:
    """A vector of plain attention. Raises SourceError if there is none of that id."""
    found = find(family, vector)
    if not isinstance(found, AttentionVector):
        raise SourceError(f"{vector} is no vector of attention in {family.name}")
    return found


def scores(of: Sequence[Sequence[Exact]]) -> list[list[int]]:
    """Queries or keys, which are whole numbers."""
    return [[int(x) for x in row] for row in of]


def values(of: Sequence[Sequence[Exact]]) -> list[list[Fraction]]:
    """Values, or gradients by outputs."""
    return [[Fraction(x) for x in row] for row in of]


def mask_of(v: AttentionVector) -> ScoreMod:
    """The mask of a vector as a change of scores."""
    return lambda i, j, s: s if v.visible(i, j) else None


def inputs(v: AttentionVector) -> tuple[Any, ...]:
    """scale, modify, Q, K and V."""
    return int(v.scale or 0), mask_of(v), scores(v.q), scores(v.k), values(v.v)


def keys_seen(v: AttentionVector, query: int, cols: Sequence[int]) -> list[ScoredValue]:
    """These keys as a query sees them."""
    return scored(*(*inputs(v), query, cols), d=v.head_dim, num=EXACT)


def sizes(v: AttentionVector) -> dict[str, Any]:
    """The lengths and dimensions, and the numbers."""
    return {
        "q_len": v.q_len,
        "kv_len": v.kv_len,
        "d": v.head_dim,
        "d_v": v.value_dim,
        "num": EXACT,
    }


def output(v: AttentionVector, query: int) -> list[Fraction]:
    """The output that Lean computed for a query. Raises SourceError if there is no such query."""
    row = v.expected[query] if 0 <= query < len(v.expected) else None
    if not isinstance(row, Row):
        raise SourceError(f"{v.id} has no query {query}")
    return list(row.output)


def same(found: object, lean: object, what: str) -> None:
    """Raises SourceError unless the worked result is the one that Lean computed."""
    if found != lean:
        raise SourceError(f"{what} does not end in Lean's numbers")
