"""The shapes of the vectors of the operations beside attention and its gradients."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from bridge.vectors.format.shapes import (
    COLUMNS,
    HEADS,
    ROWS,
    SOME,
    Alignment,
    Bound,
    Count,
    DropoutP,
    DropoutSeed,
    EnclosedRow,
    Integer,
    KeptHeads,
    Length,
    Lengths,
    Letters,
    Mask,
    Matrices,
    Matrix,
    Number,
    Numbers,
    Rows,
    Rule,
    Scale,
    Shape,
    Sized,
    Vector,
    Word,
    Words,
)


class GroupedQuery(Sized):
    num_heads: Length
    num_kv_heads: Length
    q: Matrices
    k: Matrices
    v: Matrices
    expected: Annotated[list[Rows], HEADS]


class Dropout(GroupedQuery):
    batch: Length
    dropout_p: DropoutP
    dropout_seed: DropoutSeed
    keep: KeptHeads


class Philox(Vector):
    rounds: Annotated[int, Meta(ge=0, le=16)]
    key: Annotated[list[Word], Meta(min_length=2, max_length=2)]
    counters: Annotated[list[Words], ROWS, SOME]
    expected: Annotated[list[Words], ROWS]


class LaidOut(Vector):
    """Attention of inputs in a layout of their own."""

    head_dim: Length
    value_dim: Length
    scale: Scale
    q: Matrix | Rule
    expected: Rows


class Varlen(LaidOut):
    cu_seqlens_q: Lengths
    cu_seqlens_k: Lengths
    k: Matrix | Rule
    v: Matrix | Rule
    mask: Mask


class Paged(LaidOut):
    page_size: Length
    num_pages: Length
    k: Matrices | Rule
    v: Matrices | Rule
    tables: Annotated[list[Lengths], HEADS]
    lengths: Lengths


class Cascade(LaidOut):
    q: Matrix
    prefix_k: Matrix
    prefix_v: Matrix
    suffix_k: Matrices
    suffix_v: Matrices


class Device(Shape):
    queries: Annotated[Lengths, Meta(description="the places that it holds")]
    keys: Lengths
    arrivals: Annotated[
        Lengths, Meta(description="whose keys it computes with, in order of their arrival")
    ]


class DeviceRows(Shape):
    partials: Annotated[
        list[Rows], HEADS, Meta(description="for each arrival, over these keys alone")
    ]
    merged: Annotated[Rows, Meta(description="over all keys")]


class Shards(Sized):
    q: Matrix
    k: Matrix
    v: Matrix
    layout: Literal["contiguous", "zigzag", "striped", "places"]
    devices: Annotated[list[Device], Meta(min_length=1, max_length=64)]
    expected: Annotated[list[DeviceRows], HEADS]


class Key(Shape):
    score: Integer | None
    value: Numbers


Keys = Annotated[list[Key], ROWS]


class State(Shape):
    m: Annotated[
        Integer | None,
        Meta(description="the score that weights refer to; null before the first"),
    ]
    l: Annotated[Number, Meta(description="Σ 2^(s − m)")]
    o: Annotated[list[Number], COLUMNS, Meta(description="Σ 2^(s − m)·v")]


class Merge(Vector):
    value_dim: Length
    blocks: Annotated[list[Keys], HEADS, SOME]
    # Trees in a tree: the reader goes down them, since a type that names itself can only be a
    # struct. `shape_check` has its schema.
    tree: int | list[Any]
    expected: State


class Append(Key, tag_field="kind", tag="append"):
    pass


class Delete(Shape, tag_field="kind", tag="delete"):
    index: Count


class Replace(Key, tag_field="kind", tag="replace"):
    index: Count


class Slide(Key, tag_field="kind", tag="slide"):
    window: Length


class Cache(Vector):
    value_dim: Length
    keys: Keys
    edits: Annotated[list[Append | Delete | Replace | Slide], HEADS]
    expected: Annotated[list[State], Meta(max_length=1025)]


class Partial(Shape):
    log_sum_exp: Number | None
    output: Numbers


class Combine(Vector):
    value_dim: Length
    parts: Annotated[list[Partial], HEADS, SOME]
    expected: EnclosedRow


class TileBounds(Vector):
    q_len: Length
    kv_len: Length
    block_m: Length
    block_n: Length
    alignment: Alignment
    left: Bound
    right: Bound
    expected: Annotated[
        list[Letters],
        ROWS,
        Meta(
            description="for each query tile a letter for each key tile: - not visited, u every "
            "pair visible, m otherwise"
        ),
    ]
