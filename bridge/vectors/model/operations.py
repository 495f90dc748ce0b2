"""The vectors of the operations beside attention.

Those that compute attention from inputs of another layout say, by `attentions`, to which plain
problems of attention they come: by the definition of the layout alone, so that their results can be
recomputed, and a kernel's errors judged, as for attention itself.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

from bridge.vectors.model.attention import (
    AttentionVector,
    Dropout,
    EnclosedRow,
    Exact,
    Mask,
    Matrix,
    Row,
    Scaled,
    State,
    Vector,
)

_ALL = Mask("none")


def problem(vector: Vector, name: str, **fields: Any) -> AttentionVector:
    """A plain problem of the vector, named so."""
    shared = {one.name: getattr(vector, one.name) for one in dataclasses.fields(Vector)}
    return AttentionVector(**{**shared, "id": name}, **fields)


class ComesToAttention(Vector, ABC):
    """A vector whose results are those of plain attention."""

    @abstractmethod
    def attentions(self) -> tuple[AttentionVector, ...]:
        """The plain problems that this comes to, whose rows are those of `expected`, in order."""

    def problems(self) -> tuple[AttentionVector, ...]:
        """The plain problems that a function computes for this vector, of which `attentions` are
        judged: their sizes, scales and masks say whether it takes them."""
        return self.attentions()


@dataclass(frozen=True)
class LaidOutVector(Scaled, ComesToAttention):
    """Attention of inputs in a layout of their own; a score is scale·⟨q, k⟩."""

    head_dim: int
    value_dim: int
    scale: Exact

    def _attention(
        self,
        number: int,
        q: Matrix,
        k: Matrix,
        v: Matrix,
        mask: Mask,
        expected: Sequence[Row],
        dropout: Dropout | None = None,
    ) -> AttentionVector:
        return problem(
            self,
            f"{self.id}[{number}]",
            q_len=len(q),
            kv_len=len(k),
            head_dim=self.head_dim,
            value_dim=self.value_dim,
            scale=self.scale,
            q=q,
            k=k,
            v=v,
            mask=mask,
            expected=tuple(expected),
            dropout=dropout,
        )


@dataclass(frozen=True)
class GroupedQueryVector(LaidOutVector):
    """Query heads that share heads of keys and values: head h uses head h // group, group =
    num_heads / num_kv_heads.

    q: [num_heads][q_len][head_dim]; k: [num_kv_heads][kv_len][head_dim]; v: as k, with
    value_dim; expected: [num_heads][q_len]. The mask is that of every head.
    """

    operation: ClassVar[str] = "grouped-query"
    num_heads: int
    num_kv_heads: int
    q_len: int
    kv_len: int
    q: tuple[Matrix, ...]
    k: tuple[Matrix, ...]
    v: tuple[Matrix, ...]
    mask: Mask
    expected: tuple[tuple[Row, ...], ...]

    def attentions(self) -> tuple[AttentionVector, ...]:
        """The plain problems: one for each query head."""
        group = self.num_heads // self.num_kv_heads
        return tuple(
            self._attention(h, q, self.k[h // group], self.v[h // group], self.mask, rows)
            for h, (q, rows) in enumerate(zip(self.q, self.expected, strict=True))
        )


@dataclass(frozen=True)
class VarlenVector(LaidOutVector):
    """Sequences of different lengths, packed one after another.

    Sequence b has the queries cu_seqlens_q[b] to cu_seqlens_q[b + 1] − 1, and its keys by
    cu_seqlens_k in the same way.
    q: [total_q][head_dim]; k: [total_k][head_dim]; v: [total_k][value_dim]; masks: one for each
    sequence, on its own positions, which are aligned top-left or bottom-right; expected: [total_q].
    """

    operation: ClassVar[str] = "varlen"
    cu_seqlens_q: tuple[int, ...]
    cu_seqlens_k: tuple[int, ...]
    q: Matrix
    k: Matrix
    v: Matrix
    masks: tuple[Mask, ...]
    alignment: Literal["top-left", "bottom-right"]
    expected: tuple[Row, ...]

    def attentions(self) -> tuple[AttentionVector, ...]:
        """The plain problems: one for each sequence."""
        out = []
        for b, mask in enumerate(self.masks):
            rows = slice(self.cu_seqlens_q[b], self.cu_seqlens_q[b + 1])
            keys = slice(self.cu_seqlens_k[b], self.cu_seqlens_k[b + 1])
            expected = self.expected[rows]
            out.append(self._attention(b, self.q[rows], self.k[keys], self.v[keys], mask, expected))
        return tuple(out)


@dataclass(frozen=True)
class PagedVector(LaidOutVector):
    """One query for each sequence, over a cache in pages: token t of sequence b lies in slot
    t % page_size of page tables[b][t // page_size].

    k: [num_pages][page_size][head_dim]; v: as k, with value_dim; q: [batch][head_dim]; tables:
    [batch][…]; lengths: [batch], the number of tokens; expected: [batch].
    """

    operation: ClassVar[str] = "paged"
    page_size: int
    num_pages: int
    k: tuple[Matrix, ...]
    v: tuple[Matrix, ...]
    q: Matrix
    tables: tuple[tuple[int, ...], ...]
    lengths: tuple[int, ...]
    expected: tuple[Row, ...]

    def attentions(self) -> tuple[AttentionVector, ...]:
        """The plain problems: one for each sequence."""
        out = []
        for b, (table, length) in enumerate(zip(self.tables, self.lengths, strict=True)):
            places = [(table[t // self.page_size], t % self.page_size) for t in range(length)]
            k = tuple(self.k[page][slot] for page, slot in places)
            v = tuple(self.v[page][slot] for page, slot in places)
            out.append(self._attention(b, (self.q[b],), k, v, _ALL, (self.expected[b],)))
        return tuple(out)

    def filled_tables(self) -> tuple[tuple[int, ...], ...]:
        """The tables, each filled up with page 0 to the length of the longest."""
        longest = max(map(len, self.tables))
        return tuple((*pages, *[0] * (longest - len(pages))) for pages in self.tables)


@dataclass(frozen=True)
class CascadeVector(LaidOutVector):
    """One query for each request: the keys of a prefix that all share, then the request's own.

    q: [batch][head_dim]; prefix_k: [prefix_len][head_dim]; suffix_k: [batch][…][head_dim];
    prefix_v, suffix_v: as these, with value_dim; expected: [batch].
    """

    operation: ClassVar[str] = "cascade"
    q: Matrix
    prefix_k: Matrix
    prefix_v: Matrix
    suffix_k: tuple[Matrix, ...]
    suffix_v: tuple[Matrix, ...]
    expected: tuple[Row, ...]

    def attentions(self) -> tuple[AttentionVector, ...]:
        """The plain problems: one for each request."""
        suffixes = zip(self.suffix_k, self.suffix_v, strict=True)
        return tuple(
            self._attention(
                b, (self.q[b],), self.prefix_k + k, self.prefix_v + v, _ALL, (self.expected[b],)
            )
            for b, (k, v) in enumerate(suffixes)
        )


def _one_query(
    vector: Vector,
    value_dim: int,
    keys: Sequence[tuple[Exact | None, tuple[Exact, ...]]],
    expected: Row | EnclosedRow,
) -> AttentionVector:
    """One query over keys with these scores and values."""
    scores = [score for score, _ in keys]
    return problem(
        vector,
        vector.id,
        q_len=1,
        kv_len=len(keys),
        head_dim=1,
        value_dim=value_dim,
        scale=1,
        q=((1,),),
        k=tuple((0 if s is None else s,) for s in scores),
        v=tuple(value for _, value in keys),
        mask=Mask("boolean", (tuple(s is not None for s in scores),)),
        expected=(expected,),
    )


@dataclass(frozen=True)
class Key:
    """A key by its score, None: masked, and its value."""

    score: int | None
    value: tuple[Exact, ...]


# The number of a block, or two trees whose states are merged.
Tree = int | tuple["Tree", "Tree"]


@dataclass(frozen=True)
class MergeVector(ComesToAttention):
    """States of blocks of keys, merged as a tree says; a block may be left out or taken twice."""

    operation: ClassVar[str] = "merge"
    value_dim: int
    blocks: tuple[tuple[Key, ...], ...]
    tree: Tree
    expected: State

    def keys(self) -> tuple[Key, ...]:
        """The keys of all leaves."""

        def below(tree: Tree) -> tuple[Key, ...]:
            return self.blocks[tree] if isinstance(tree, int) else below(tree[0]) + below(tree[1])

        return below(self.tree)

    def attentions(self) -> tuple[AttentionVector, ...]:
        """The plain problem: one query over the keys of all leaves."""
        m, l, o = self.expected.m, self.expected.l, self.expected.o
        outputs = [Fraction(0) if m is None else Fraction(x) / Fraction(l) for x in o]
        bottom = math.lcm(*(x.denominator for x in outputs))
        row = Row(m, l, bottom, tuple(int(x * bottom) for x in outputs))
        pairs = [(key.score, key.value) for key in self.keys()]
        return (_one_query(self, self.value_dim, pairs, row),)


@dataclass(frozen=True)
class Edit:
    """One change of the keys of a row. append: `key` at the end; delete: the key at `index`;
    replace: that key by `key`; slide: `key` at the end, and if there are then more than `window`,
    the first is deleted."""

    kind: Literal["append", "delete", "replace", "slide"]
    key: Key | None = None
    index: int = 0
    window: int = 0

    def apply(self, keys: list[Key]) -> list[Key]:
        """The keys afterwards. Raises IndexError where there is none at the index."""
        changed = list(keys)
        if self.kind == "delete":
            del changed[self.index]
        elif self.key is not None and self.kind == "replace":
            changed[self.index] = self.key
        elif self.key is not None:
            changed.append(self.key)
            if self.kind == "slide" and len(changed) > self.window:
                del changed[0]
        return changed


@dataclass(frozen=True)
class CacheVector(Vector):
    """The keys of a row and changes of them; expected: the state at the beginning and after each
    change, which refers to the largest score that there has been so far."""

    operation: ClassVar[str] = "cache"
    value_dim: int
    keys: tuple[Key, ...]
    edits: tuple[Edit, ...]
    expected: tuple[State, ...]


@dataclass(frozen=True)
class Partial:
    """The results of a split: its output, and its log-sum-exp, None: −∞."""

    log_sum_exp: Exact | None
    output: tuple[Exact, ...]


@dataclass(frozen=True)
class CombineVector(ComesToAttention):
    """Results of splits, from which the result over all their keys is computed."""

    operation: ClassVar[str] = "combine"
    value_dim: int
    parts: tuple[Partial, ...]
    expected: EnclosedRow

    def attentions(self) -> tuple[AttentionVector, ...]:
        """The splits as keys: log-sum-exps for scores, outputs for values."""
        pairs = [(part.log_sum_exp, part.output) for part in self.parts]
        return (_one_query(self, self.value_dim, pairs, self.expected),)


@dataclass(frozen=True)
class TileBoundsVector(Vector):
    """Which tiles of keys a tile of queries visits under a window.

    mask: of kind "window". expected: for each tile of queries a letter for each tile of keys: "-"
    not visited, "u" visited and every pair visible, "m" visited with mask code.
    """

    operation: ClassVar[str] = "tile-bounds"
    q_len: int
    kv_len: int
    block_m: int
    block_n: int
    mask: Mask
    expected: tuple[str, ...]
