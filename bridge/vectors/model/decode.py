"""Vectors of decoding: sequences whose last tokens come step by step, each with a query, a key and
a value, and whose keys and values a function keeps from step to step.

They are made of existing vectors: the last queries of causal attention aligned bottom-right, and
the single queries of attention without a mask, are a decoder's results, step by step.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from bridge.vectors.model.attention import (
    AttentionVector,
    EnclosedRow,
    Exact,
    Family,
    Mask,
    Matrix,
    Row,
    Vector,
)
from bridge.vectors.model.operations import (
    ComesToAttention,
    GroupedQueryVector,
    PagedVector,
    problem,
)

# Tokens that come step by step, of a vector that has more queries; those before are there already.
_MOST_TOKENS = 12


@dataclass(frozen=True)
class Sequence:
    """One sequence. q: [heads][tokens][head_dim], of the tokens that come step by step; k:
    [kv_heads][kv_len][head_dim], of all; v: as k, with value_dim; expected: [heads][tokens]."""

    q: tuple[Matrix, ...]
    k: tuple[Matrix, ...]
    v: tuple[Matrix, ...]
    expected: tuple[tuple[Row | EnclosedRow, ...], ...]

    @property
    def tokens(self) -> int:
        """How many tokens come step by step."""
        return len(self.q[0])

    @property
    def kv_len(self) -> int:
        """How many keys there are after the last step."""
        return len(self.k[0])

    @property
    def prefix(self) -> int:
        """How many keys there are before the first step."""
        return self.kv_len - self.tokens


@dataclass(frozen=True)
class SequencesVector(ComesToAttention):
    """Sequences whose last tokens attend to all before and to themselves, as in one call of a
    decoder or of a prefill. A scale of None is 1/√head_dim."""

    operation: ClassVar[str] = "sequences"
    head_dim: int
    value_dim: int
    scale: Exact | None
    sequences: tuple[Sequence, ...]

    @property
    def heads(self) -> int:
        """How many heads the queries have."""
        return len(self.sequences[0].q)

    @property
    def kv_heads(self) -> int:
        """How many heads the keys and values have."""
        return len(self.sequences[0].k)

    def attentions(self) -> tuple[AttentionVector, ...]:
        """The plain problems: one for each sequence and query head, with the rows of its tokens."""
        group = self.heads // self.kv_heads
        return tuple(
            problem(
                self, f"{self.id}[{n}, {h}]",
                q_len=one.tokens, kv_len=one.kv_len, head_dim=self.head_dim,
                value_dim=self.value_dim, scale=self.scale,
                q=one.q[h], k=one.k[h // group], v=one.v[h // group],
                mask=Mask("causal-bottom-right", shift=one.prefix), expected=one.expected[h],
            )
            for n, one in enumerate(self.sequences)
            for h in range(self.heads)
        )  # fmt: skip


@dataclass(frozen=True)
class DecodeVector(SequencesVector):
    """Sequences that are decoded. streams: which of them are decoded together, in one call for each
    step, all with as many tokens; order: the stream of each call: streams are decoded in turns;
    chunk: tokens in a call (fewer in a stream's last one), each of which sees the keys up to its
    own; pages: whether the keys and values lie in pages, if the function has these."""

    operation: ClassVar[str] = "decode"
    streams: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    chunk: int = 1
    pages: bool = False

    def calls(self) -> list[tuple[int, int, int]]:
        """Stream, first token and the one after the last, of each call."""
        done = dict.fromkeys(range(len(self.streams)), 0)
        found = []
        for stream in self.order:
            start = done[stream]
            tokens = self.sequences[self.streams[stream][0]].tokens
            done[stream] = min(start + self.chunk, tokens)
            found.append((stream, start, done[stream]))
        return found


def in_turns(steps: Iterable[int]) -> tuple[int, ...]:
    """The order of the calls of streams with so many steps each, one after the other in turn."""
    turns = itertools.zip_longest(*([n] * count for n, count in enumerate(steps)))
    return tuple(n for turn in turns for n in turn if n is not None)


def as_decoding(vector: Vector) -> DecodeVector | None:
    """The vector as one of decoding; None for one that no decoder's result is compared with."""
    match vector:
        case AttentionVector():
            one = _of_heads(vector, (vector,))
            return None if one is None or vector.options else _make(vector, (one,), vector.scale)
        case GroupedQueryVector():
            one = _of_heads(vector, vector.attentions(), vector.k, vector.v)
            return None if one is None else _make(vector, (one,), vector.scale)
        case PagedVector():
            sequences = (_of_heads(vector, (x,)) for x in vector.attentions())
            some = tuple(x for x in sequences if x is not None)
            return replace(_make(vector, some, vector.scale), pages=True) if some else None
    return None


def _of_heads(
    vector: Vector,
    heads: tuple[AttentionVector, ...],
    k: tuple[Matrix, ...] = (),
    v: tuple[Matrix, ...] = (),
) -> Sequence | None:
    """A sequence of heads that are alike but for their numbers; k, v: those of the heads that they
    share; none: each has its own."""
    first = heads[0]
    q_len, kv_len = first.q_len, first.kv_len
    alone = first.mask.kind == "none" and q_len == 1
    window = first.mask.window
    causal = window is not None and window == (None, 0, kv_len - q_len)
    if not (alone or causal) or not 0 < q_len <= kv_len:
        return None
    last = slice(max(0, q_len - _MOST_TOKENS), None)
    return Sequence(
        tuple(x.q[last] for x in heads),
        k or tuple(x.k for x in heads),
        v or tuple(x.v for x in heads),
        tuple(x.expected[last] for x in heads),
    )


def _make(vector: Vector, sequences: tuple[Sequence, ...], scale: Exact | None) -> DecodeVector:
    named: dict[str, Any] = {
        name: getattr(vector, name)
        for name in ("id", "family", "lean", "theorem", "reason", "model", "head_dim", "value_dim")
    }
    order = in_turns([sequences[0].tokens])
    together = tuple(range(len(sequences)))
    return DecodeVector(**named, scale=scale, sequences=sequences, streams=(together,), order=order)


def decoded_families(families: Iterable[Family]) -> list[Family]:
    """The vectors that decoding has, in their families; those of decoding stay as they are."""
    found = []
    for family in families:
        each = (x if isinstance(x, DecodeVector) else as_decoding(x) for x in family.vectors)
        vectors = tuple(vector for vector in each if vector is not None)
        if vectors:
            operation = DecodeVector.operation
            found.append(replace(family, operation=operation, vectors=vectors))
    return found


def as_one_call(vector: DecodeVector, *, last_alone: bool) -> SequencesVector:
    """The vector's sequences in one call; last_alone: with the last token of each alone."""
    sequences = vector.sequences
    if last_alone:
        sequences = tuple(
            replace(
                one,
                q=tuple(q[-1:] for q in one.q),
                expected=tuple(rows[-1:] for rows in one.expected),
            )
            for one in sequences
        )
    return SequencesVector(
        vector.id, vector.family, vector.lean, vector.theorem, vector.reason, vector.model,
        vector.head_dim, vector.value_dim, vector.scale, sequences,
    )  # fmt: skip
