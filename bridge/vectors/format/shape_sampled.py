"""The shapes of the vectors whose inputs are drawn by rule, of which some rows are judged."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from bridge.vectors.format.shapes import (
    HEADS,
    ROWS,
    SOME,
    Count,
    DropoutP,
    DropoutSeed,
    Enclosed,
    EnclosedMatrices,
    EnclosedRow,
    Length,
    Lengths,
    Mask,
    Number,
    Row,
    Rule,
    Scale,
    Slopes,
    Vector,
    with_heads,
)

Places = Annotated[list[Count], ROWS, SOME, Meta(description="places, from 0 on, that rise")]


class Drawn(Vector, kw_only=True):
    """Several heads of several sequences, whose numbers are drawn by rule."""

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
    dropout_p: DropoutP | UnsetType = UNSET
    dropout_seed: DropoutSeed | UnsetType = UNSET
    cu_seqlens_q: (
        Annotated[
            Lengths,
            Meta(description="of sequences packed in each head, of which the mask is that of each"),
        ]
        | UnsetType
    ) = UNSET
    cu_seqlens_k: Lengths | UnsetType = UNSET
    rows: Places


@with_heads()
class ExactSampled(Drawn):
    expected: Annotated[list[Annotated[list[Row], ROWS]], HEADS]


@with_heads()
class NaturalSampled(Drawn):
    expected: Annotated[list[Annotated[list[EnclosedRow], ROWS]], HEADS]


@with_heads(lambda _: Enclosed)
class SampledGradient(Drawn, kw_only=True):
    grad_output: Rule
    grad_log_sum_exp: Rule
    keys: Places
    expected_q: EnclosedMatrices
    expected_k: EnclosedMatrices
    expected_v: EnclosedMatrices
    expected_bias: EnclosedMatrices
    expected_slopes: Enclosed | UnsetType = UNSET
