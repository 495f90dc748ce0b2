"""Small problems of attention for the simulated kernels, with the Spec's answers."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from bridge.vectors.by_spec import grouped_rows
from bridge.vectors.model.attention import Mask, Matrix
from bridge.vectors.model.operations import GroupedQueryVector

FULL = Mask("none")
WINDOW = Mask("window", left=20, right=7)


def causal(q_len: int, kv_len: int, bottom_right: bool = False) -> Mask:
    if not bottom_right:
        return Mask("causal")
    return Mask("causal-bottom-right", shift=kv_len - q_len)


def case(
    q_len: int,
    kv_len: int,
    mask: Mask = FULL,
    heads: tuple[int, int] = (2, 1),
    seed: int = 0,
) -> GroupedQueryVector:
    """Heads of queries, and of keys and values, of two columns each."""
    rng = random.Random(seed)

    def matrix(rows: int, most: int) -> Matrix:
        return tuple((rng.randint(-most, most), rng.randint(-most, most)) for _ in range(rows))

    given: dict[str, Any] = {
        "q": tuple(matrix(q_len, 3) for _ in range(heads[0])),
        "k": tuple(matrix(kv_len, 3) for _ in range(heads[1])),
        "v": tuple(matrix(kv_len, 9) for _ in range(heads[1])),
    }
    bare = GroupedQueryVector(
        "case-0", "case", "Attention.Spec.groupedQuery", "", "Drawn.", "exact",
        num_heads=heads[0], num_kv_heads=heads[1], q_len=q_len, kv_len=kv_len,
        head_dim=2, value_dim=2, scale=1, mask=mask, expected=(), **given,
    )  # fmt: skip
    return replace(bare, expected=grouped_rows(bare))


WINDOWED = case(40, 70, WINDOW)
# A part of a tile of queries and of one of keys is none.
RAGGED = case(20, 40)
