"""Small problems of attention for the simulated kernels, with the Spec's answers."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import Any

import committed

from bridge.gluon.vectors import differences, not_run
from bridge.vectors.exact.gradients import gradients
from bridge.vectors.model.attention import Mask, Matrix
from bridge.vectors.model.by_spec import grouped_rows
from bridge.vectors.model.gradients import Gradients, GradientVector
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
    bare = GroupedQueryVector(
        "case-0", "case", "Attention.Spec.groupedQuery", "", "Drawn.", "exact",
        num_heads=heads[0], num_kv_heads=heads[1], q_len=q_len, kv_len=kv_len,
        head_dim=2, value_dim=2, scale=1, mask=mask, expected=(),
        **_inputs(q_len, kv_len, heads, random.Random(seed)),
    )  # fmt: skip
    return replace(bare, expected=grouped_rows(bare))


def gradient_case(
    q_len: int,
    kv_len: int,
    mask: Mask = FULL,
    heads: tuple[int, int] = (2, 1),
    seed: int = 0,
) -> GradientVector:
    """The same with gradients of outputs and log-sum-exps."""
    rng = random.Random(seed)
    nothing = Gradients((), (), (), ())
    bare = GradientVector(
        "case-0", "case", "Attention.Spec.attentionBackward", "", "Drawn.", "exact",
        num_heads=heads[0], num_kv_heads=heads[1], q_len=q_len, kv_len=kv_len,
        head_dim=2, value_dim=2, scale=1, masks=(mask,), expected=nothing,
        **_inputs(q_len, kv_len, heads, rng),
        grad_output=tuple(_matrix(q_len, 5, rng) for _ in range(heads[0])),
        grad_log_sum_exp=tuple(
            tuple(rng.randint(-3, 3) if any(mask.visible(i, j) for j in range(kv_len)) else 0
                  for i in range(q_len))
            for _ in range(heads[0])
        ),
    )  # fmt: skip
    return replace(bare, expected=gradients(bare))


# Those with vectors that the kernels take: `taken_families`, which reads them all.
FAMILIES = [
    *("causal", "causal-bottom-right", "divided-updates", "drawn", "equal-scores"),
    *("grouped-query", "grouped-query-drawn", "grouped-query-packed", "hidden-scores"),
    *("large-spread", "log-sum-exp", "long-keys", "maximum-moves", "multi-head", "one-key"),
    *("padding", "ragged-tiles", "ring", "scales", "small-random", "softmax-weights", "split-kv"),
    *("unequal-lengths", "wide-heads", "wide-tiles", "window", "window-tiles"),
]
GRADIENT_FAMILIES = [
    *("gradient", "gradient-drawn", "gradient-grouped", "gradient-hidden-scores"),
    *("gradient-one-loop", "gradient-tiles"),
]


def taken_families(*, of_gradients: bool) -> list[str]:
    """The families with vectors that the kernels take."""
    return [
        name
        for name in committed.names()
        if (name in committed.names("gradient")) == of_gradients
        if any(not_run(vector) is None for vector in committed.family(name).vectors)
    ]


def check_family(name: str, most: int | None = None) -> None:
    """Those of its vectors that the kernels take, at most so many, have no difference."""
    taken = [vector for vector in committed.family(name).vectors if not_run(vector) is None]
    assert taken
    for vector in taken[:most]:
        assert list(differences(vector)) == [], vector.id


def _matrix(rows: int, most: int, rng: random.Random) -> Matrix:
    return tuple((rng.randint(-most, most), rng.randint(-most, most)) for _ in range(rows))


def _inputs(q_len: int, kv_len: int, heads: tuple[int, int], rng: random.Random) -> dict[str, Any]:
    return {
        "q": tuple(_matrix(q_len, 3, rng) for _ in range(heads[0])),
        "k": tuple(_matrix(kv_len, 3, rng) for _ in range(heads[1])),
        "v": tuple(_matrix(kv_len, 9, rng) for _ in range(heads[1])),
    }


# Made when a test asks for them: every worker collects all tests.
@cache
def windowed() -> GroupedQueryVector:
    return case(40, 70, WINDOW)


@cache
def ragged() -> GroupedQueryVector:
    """A part of a tile of queries and of one of keys is none."""
    return case(20, 40)


@cache
def backward_case() -> GradientVector:
    """Several tiles of queries, and keys of two programs."""
    return gradient_case(40, 130, Mask("window", left=40, right=90), (2, 1))


@cache
def queries_case() -> GradientVector:
    """Several tiles of queries and of keys, ragged, with hidden pairs at both edges."""
    return gradient_case(20, 76, Mask("window", left=5, right=40), (2, 1))


@cache
def grid_case() -> GradientVector:
    """Four tiles of keys of 128 in two heads, ragged, with hidden pairs at both edges."""
    return gradient_case(20, 130, Mask("window", left=5, right=120), (2, 2))
