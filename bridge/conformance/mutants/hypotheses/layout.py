"""Inputs in a layout of their own, as a function is given them, and the calls of plain attention
that it makes of them: packed sequences, pages, keys in parts whose results are merged, and
sequences that are decoded step by step."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bridge.conformance.decoding.streams import KEY_BEYOND, SPARE, VALUE_BEYOND
from bridge.conformance.mutants.hypotheses.call import Call
from bridge.conformance.tensors.batch import array
from bridge.vectors.model.attention import Matrix, Vector
from bridge.vectors.model.decode import DecodeVector
from bridge.vectors.model.operations import (
    CascadeVector,
    CombineVector,
    PagedVector,
    VarlenVector,
)
from pyimpl.internal.scores import ScoreOptions

# From row to row: first, and the one after the last.
Bounds = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Piece:
    """Rows `start` to `stop` − 1 of the output, or `weight` times this call's summand of them."""

    start: int
    stop: int
    call: Call
    weight: float = 1.0


@dataclass(frozen=True)
class Layout(ABC):
    """query: `[rows, head_dim]`, float64; scale in natural units; wide: the dtype in which the
    function computes."""

    query: Tensor
    scale: float
    wide: torch.dtype

    @property
    @abstractmethod
    def value_dim(self) -> int:
        """Columns of the output."""

    @abstractmethod
    def pieces(self) -> Iterator[Piece]:
        """The parts that the function computes; rows of no piece stay 0."""

    def call(
        self,
        rows: slice,
        key: Tensor,
        value: Tensor,
        options: ScoreOptions | None = None,
        by: frozenset[str] = frozenset(),
    ) -> Call:
        """A call of these rows, over keys `[kv_len, head_dim]` and values `[kv_len, value_dim]`."""
        q, k, v = (x[None, None] for x in (self.query[rows], key, value))
        return Call(q, k, v, options or ScoreOptions(self.scale), by, self.wide)


@dataclass(frozen=True)
class OfRows(Layout):
    """Keys and values as they lie, each a row of tensors of these last sizes: head_dim,
    value_dim."""

    key: Tensor
    value: Tensor

    @property
    def value_dim(self) -> int:
        return self.value.shape[-1]


@dataclass(frozen=True)
class Packed(OfRows):
    """Sequences one after another. key `[total_k, head_dim]`, value `[total_k, value_dim]`; rows,
    keys: of each sequence; left, right: its window; bottom_right: the alignment of that, by the
    sequence's own lengths; moved: by how many keys it is moved besides."""

    rows: Bounds
    keys: Bounds
    left: int | None
    right: int | None
    bottom_right: bool
    moved: tuple[int, ...]

    @property
    def windowed(self) -> bool:
        """Whether the alignment matters."""
        return (self.left, self.right) != (None, None)

    def lengths(self) -> list[tuple[int, int]]:
        """(q_len, kv_len) of each sequence."""
        pairs = zip(self.rows, self.keys, strict=True)
        return [(b - a, max(d - c, 0)) for (a, b), (c, d) in pairs]

    def shifts(self) -> list[int]:
        """The key of each sequence that is aligned with its first query."""
        return [
            moved + (kv_len - q_len if self.bottom_right else 0)
            for moved, (q_len, kv_len) in zip(self.moved, self.lengths(), strict=True)
        ]

    def pieces(self) -> Iterator[Piece]:
        by = frozenset({"is_causal"} if (self.left, self.right) == (None, 0) else {"window"})
        for (a, b), (c, d), shift in zip(self.rows, self.keys, self.shifts(), strict=True):
            options = ScoreOptions(self.scale, left=self.left, right=self.right, shift=shift)
            named = by if self.windowed else frozenset[str]()
            keys, values = self.key[c : max(c, d)], self.value[c : max(c, d)]
            yield Piece(a, b, self.call(slice(a, b), keys, values, options, named))


@dataclass(frozen=True)
class Paged(OfRows):
    """A query for each sequence, over a cache in pages. key `[num_pages, page_size, head_dim]`,
    value the same with value columns; table, of_values: the pages of keys and of values of each
    sequence, all as many, 0 where the sequence has no more; lengths: tokens of each."""

    table: tuple[tuple[int, ...], ...]
    of_values: tuple[tuple[int, ...], ...]
    lengths: tuple[int, ...]

    @property
    def page_size(self) -> int:
        """Tokens of a page."""
        return self.key.shape[1]

    def count_pages(self, sequence: int) -> int:
        """Pages that hold its tokens."""
        return -(-self.lengths[sequence] // self.page_size)

    def pieces(self) -> Iterator[Piece]:
        both = zip(self.table, self.of_values, self.lengths, strict=True)
        for b, (pages, of_values, length) in enumerate(both):
            key = self.key[list(pages)].flatten(0, 1)[:length]
            value = self.value[list(of_values)].flatten(0, 1)[:length]
            yield Piece(b, b + 1, self.call(slice(b, b + 1), key, value))


@dataclass(frozen=True)
class InParts(Layout):
    """Keys in parts, whose results are merged. parts: of each query, keys and values; averaged: the
    mean of the parts' outputs is taken, whatever their weights."""

    parts: tuple[tuple[tuple[Tensor, Tensor], ...], ...]
    averaged: bool = False

    @property
    def value_dim(self) -> int:
        return self.parts[0][0][1].shape[-1]

    def pieces(self) -> Iterator[Piece]:
        for b, parts in enumerate(self.parts):
            whole = [tuple(torch.cat(x) for x in zip(*parts, strict=True))]
            for key, value in parts if self.averaged else whole:
                weight = 1 / len(parts) if self.averaged else 1.0
                yield Piece(b, b + 1, self.call(slice(b, b + 1), key, value), weight)


@dataclass(frozen=True)
class Token:
    """A query of decoding. first: the row of the first key of its sequence and head, of all keys;
    place: its own place in the sequence; prefix: tokens before the first step; call: the places of
    the first and the last token of its call; firsts: as `first`, of all sequences of its stream;
    places: the place in each of these of the token that comes with it; beyond: the row of a key
    that is not filled, as it lies after this token's."""

    first: int
    place: int
    prefix: int
    call: tuple[int, int]
    firsts: tuple[int, ...]
    places: tuple[int, ...]
    beyond: int


@dataclass(frozen=True)
class Decoded(OfRows):
    """Sequences that are decoded: of each a row for each head and token. key `[keys, head_dim]`,
    value with as many rows, of all sequences and heads one after another; seen: of each row the
    keys that it attends to."""

    tokens: tuple[Token, ...]
    seen: tuple[tuple[int, ...], ...]

    def pieces(self) -> Iterator[Piece]:
        for n, keys in enumerate(self.seen):
            rows = list(keys)
            yield Piece(n, n + 1, self.call(slice(n, n + 1), self.key[rows], self.value[rows]))


def _bounds(sums: Sequence[int]) -> Bounds:
    return tuple(itertools.pairwise(sums))


def _numbers(matrix: Matrix, columns: int | None = None) -> Tensor:
    return torch.from_numpy(array(matrix, columns))


def layout_of(vector: Vector, wide: torch.dtype) -> Layout | None:
    """The layout of a vector of packed sequences, pages, a prefix, splits or decoding; None for any
    other."""
    match vector:
        case VarlenVector():
            return _packed_call(vector, wide)
        case PagedVector():
            table = vector.filled_tables()
            k, v = (torch.stack([*map(_numbers, pages)]) for pages in (vector.k, vector.v))
            scale = vector.attentions()[0].natural_scale
            return Paged(_numbers(vector.q), scale, wide, k, v, table, table, vector.lengths)
        case CascadeVector():
            sizes = vector.head_dim, vector.value_dim
            each = (
                tuple(
                    tuple(map(_numbers, pair, sizes))
                    for pair in ((vector.prefix_k, vector.prefix_v), suffix)
                )
                for suffix in zip(vector.suffix_k, vector.suffix_v, strict=True)
            )
            parts = tuple(tuple((k, v) for k, v in one) for one in each)
            scale = vector.attentions()[0].natural_scale
            return InParts(_numbers(vector.q), scale, wide, parts)
        case DecodeVector():
            return _decoding_steps(vector, wide)
        case CombineVector():
            return _parts_of_rows(vector, wide)
    return None


def _packed_call(vector: VarlenVector, wide: torch.dtype) -> Packed:
    window = vector.masks[0].window
    return Packed(
        _numbers(vector.q, vector.head_dim),
        vector.attentions()[0].natural_scale,
        wide,
        _numbers(vector.k, vector.head_dim),
        _numbers(vector.v, vector.value_dim),
        _bounds(vector.cu_seqlens_q),
        _bounds(vector.cu_seqlens_k),
        None if window is None else window.left,
        None if window is None else window.right,
        vector.alignment == "bottom-right",
        (0,) * len(vector.masks),
    )


def _parts_of_rows(vector: CombineVector, wide: torch.dtype) -> InParts:
    """One query 1, and of each split a key that is its log-sum-exp; of an empty one none."""
    parts = []
    for part in vector.parts:
        logs = () if part.log_sum_exp is None else ((part.log_sum_exp,),)
        values = () if part.log_sum_exp is None else (part.output,)
        parts.append((_numbers(logs, 1), _numbers(values, vector.value_dim)))
    return InParts(torch.ones(1, 1, dtype=torch.float64), 1.0, wide, (tuple(parts),))


def _decoding_steps(vector: DecodeVector, wide: torch.dtype) -> Decoded:
    problems = vector.attentions()
    firsts = [0, *itertools.accumulate(x.kv_len for x in problems)]
    calls = vector.calls()
    tokens, seen = [], []
    for s, one in enumerate(vector.sequences):
        number, stream = next((n, x) for n, x in enumerate(vector.streams) if s in x)
        longest = max(vector.sequences[x].kv_len for x in stream) + SPARE
        for h, t in itertools.product(range(vector.heads), range(one.tokens)):
            first, place = firsts[s * vector.heads + h], one.prefix + t
            (call,) = ((a, b) for n, a, b in calls if n == number and a <= t < b)
            odd = (stream.index(s) * longest + place + 1) % 2
            tokens.append(
                Token(
                    first, place, one.prefix, (one.prefix + call[0], one.prefix + call[1] - 1),
                    tuple(firsts[x * vector.heads + h] for x in stream),
                    tuple(vector.sequences[x].prefix + t for x in stream),
                    firsts[-1] + odd,
                )
            )  # fmt: skip
            seen.append(tuple(range(first, first + place + 1)))
    beyond = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    key, value = (
        torch.cat(
            [*(_numbers(getattr(x, name), size) for x in problems), number * beyond.expand(2, size)]
        )
        for name, size, number in (
            ("k", vector.head_dim, KEY_BEYOND), ("v", vector.value_dim, VALUE_BEYOND)
        )
    )  # fmt: skip
    query = torch.cat([_numbers(x.q, vector.head_dim) for x in problems])
    scale = problems[0].natural_scale
    return Decoded(query, scale, wide, key, value, tuple(tokens), tuple(seen))
