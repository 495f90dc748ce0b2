"""Traits that all vectors with a symptom have, and no other has."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Set

from bridge.findings.symptoms import problems_of, sees_nothing
from bridge.vectors.model.attention import AttentionVector, Vector, Window
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import GroupedQueryVector


def _traits_of(problem: AttentionVector) -> set[str]:
    empty = [sees_nothing(problem, i) for i in range(problem.q_len)]
    causal = problem.mask.window == Window(None, 0, 0) and problem.bias is None
    scale = problem.natural_scale
    found = {
        "a query that sees no key": any(empty),
        "no query that sees a key": all(empty),
        "a causal mask": causal,
        "a mask": problem.mask.kind != "none",
        "a scale that is not positive": scale <= 0,
        "a negative scale": scale < 0,
        "the scale 0": scale == 0,
        "a softcap": problem.softcap is not None,
        "a bias": problem.bias is not None,
        "more queries than keys": problem.q_len > problem.kv_len,
        "more keys than queries": problem.q_len < problem.kv_len,
        "value_dim = head_dim": problem.value_dim == problem.head_dim,
        "value_dim ≠ head_dim": problem.value_dim != problem.head_dim,
    }
    return {name for name, holds in found.items() if holds}


def traits(vector: Vector) -> frozenset[str]:
    """The traits of a vector's inputs, in the words of a condition."""
    found = set().union(*(_traits_of(problem) for problem in problems_of(vector)))
    if isinstance(vector, GroupedQueryVector) or (
        isinstance(vector, GradientVector) and vector.num_heads != vector.num_kv_heads
    ):
        found.add("grouped heads")
    return frozenset(found)


def condition(vectors: Iterable[Vector], showing: Set[str]) -> str | None:
    """The fewest traits, at most three, that just those of the vectors have whose ids are in
    `showing`; None where there are none."""
    having: dict[str, set[str]] = {}
    for vector in vectors:
        for name in traits(vector):
            having.setdefault(name, set()).add(vector.id)
    # A trait that one of them lacks is not common to all.
    names = sorted(name for name, ids in having.items() if ids >= showing)
    for count in (1, 2, 3):
        for chosen in itertools.combinations(names, count):
            if set.intersection(*(having[name] for name in chosen)) == showing:
                return ", ".join(chosen)
    return None
