"""The shapes of the vectors whose inputs are drawn by rule, of which some rows are judged."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from bridge.vectors.format.shapes import (
    HEADS,
    ROWS,
    SOME,
    Count,
    Enclosed,
    EnclosedMatrices,
    EnclosedRow,
    Length,
    Mask,
    Number,
    Numbers,
    Row,
    Scale,
    Shape,
    Sized,
    Slopes,
    Vector,
    text,
)

_UP_TO = 1 << 24
Places = Annotated[list[Count], ROWS, SOME, Meta(description="places, from 0 on, that rise")]


class Rule(Shape):
    """Numbers that are drawn from a name, as docs/vectors.md says."""

    drawn_from: Annotated[str, text("a path of slugs", "[a-z0-9]+(?:[-/_][a-z0-9]+)*", 120)]
    bound: Annotated[int, Meta(ge=0, le=_UP_TO, description="numerators lie between ± this")]
    one_in: Annotated[int, Meta(ge=1, le=_UP_TO, description="how few are drawn; others are 0")]
    over: Annotated[int, Meta(ge=1, le=_UP_TO, description="a power of 2 that divides them")]


class Sampled(Vector, kw_only=True):
    batch: Length
    num_heads: Length
    num_kv_heads: Length
    q_len: Length
    kv_len: Length
    head_dim: Length
    value_dim: Length
    scale: Scale
    q: Rule
    k: Rule
    v: Rule
    masks: Annotated[
        list[Mask],
        HEADS,
        SOME,
        Meta(description="one for all query heads of all sequences, or one for each"),
    ]
    softcap: Number | UnsetType = UNSET
    alibi: Slopes | UnsetType = UNSET
    bias: Rule | UnsetType = UNSET
    sinks: Numbers | UnsetType = UNSET
    rows: Places


class ExactSampled(Sampled):
    expected: Annotated[list[Annotated[list[Row], ROWS]], HEADS]


class NaturalSampled(Sampled):
    expected: Annotated[list[Annotated[list[EnclosedRow], ROWS]], HEADS]


class SampledGradient(Sized, kw_only=True):
    num_heads: Length
    num_kv_heads: Length
    q: Rule
    k: Rule
    v: Rule
    softcap: Number | UnsetType = UNSET
    alibi: Slopes | UnsetType = UNSET
    sinks: Numbers | UnsetType = UNSET
    grad_output: Rule
    grad_log_sum_exp: Rule
    rows: Places
    keys: Places
    expected_q: EnclosedMatrices
    expected_k: EnclosedMatrices
    expected_v: EnclosedMatrices
    expected_bias: EnclosedMatrices
    expected_slopes: Enclosed | UnsetType = UNSET
    expected_sinks: Enclosed | UnsetType = UNSET
