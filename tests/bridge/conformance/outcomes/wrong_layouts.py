"""Attention of packed sequences, pages and parts that is wrong in one way each, for `likely` to say
in which: pair by pair, which rows may see which, in float32."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from bridge.conformance.adapters.own import PyimplTiled
from bridge.conformance.tensors.batch import Outputs, array
from bridge.vectors.model.attention import Matrix
from bridge.vectors.model.operations import (
    CascadeVector,
    CombineVector,
    ComesToAttention,
    LaidOutVector,
    PagedVector,
    VarlenVector,
)

LN2 = math.log(2.0)


def tensor(matrix: Matrix, columns: int | None = None) -> Tensor:
    return torch.from_numpy(array(matrix, columns)).float()


def _scale(x: LaidOutVector, name: str) -> float:
    natural = LN2 * float(x.scale)
    return natural * natural if name == "doubled-scale" else natural


def attend(scores: Tensor, seen: Any, value: Tensor) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp of scores of some pairs; 0 and −∞ where none is seen."""
    scores = scores.masked_fill(~torch.as_tensor(seen, dtype=torch.bool), -torch.inf)
    if not scores.shape[-1]:
        return scores @ value, scores.new_full(scores.shape[:-1], -torch.inf)
    lse = scores.logsumexp(-1)
    dead = torch.isneginf(lse)[..., None]
    return torch.exp(scores - lse[..., None]).masked_fill(dead, 0.0) @ value, lse


@dataclass(frozen=True)
class Pair:
    """A query and a key among all packed rows; a, c: the first row and key of the query's sequence;
    b, d: those after its last; last: whether no sequence follows."""

    i: int
    j: int
    a: int
    b: int
    c: int
    d: int
    last: bool
    vector: VarlenVector

    @property
    def shift(self) -> int:
        bottom_right = self.vector.alignment == "bottom-right"
        return self.d - self.c - (self.b - self.a) if bottom_right else 0

    def within(self, place: int, key: int) -> bool:
        """Whether the window shows that key to a query at that place."""
        window = self.vector.masks[0].window
        left, right = (None, None) if window is None else (window.left, window.right)
        return (left is None or key >= place - left) and (right is None or key <= place + right)

    def own(self, first: int | None = None, shift: int | None = None) -> bool:
        """By places in the sequence, whose keys begin at `first`."""
        begin = self.c if first is None else first
        return self.within(
            self.i - self.a + (self.shift if shift is None else shift), self.j - begin
        )

    def among(self, c: int, d: int, b: int | None = None) -> bool:
        """With these keys for the sequence's, and this end of its queries, by which it is
        aligned."""
        total = len(self.vector.k)
        c, d = min(max(c, 0), total), min(max(d, c, 0), total)
        bottom_right = self.vector.alignment == "bottom-right"
        shift = d - c - ((self.b if b is None else b) - self.a) if bottom_right else 0
        return c <= self.j < d and self.own(c, shift)

    @property
    def inside(self) -> bool:
        return self.c <= self.j < self.d


def _see_both(p: Pair) -> bool:
    x = p.vector
    return p.within(p.i + (len(x.k) - len(x.q) if x.alignment == "bottom-right" else 0), p.j)


def _longest(sums: Sequence[int]) -> int:
    return max(b - a for a, b in pairwise(sums))


def _by_longest(p: Pair) -> bool:
    x = p.vector
    shift = _longest(x.cu_seqlens_k) - _longest(x.cu_seqlens_q)
    return p.inside and p.own(shift=shift if x.alignment == "bottom-right" else 0)


def _one_short(p: Pair) -> bool | None:
    d = max(p.c, p.d - 1)
    return None if p.i == p.b - 1 else p.among(p.c, d, p.b - 1)


# By the hypothesis that each has to be named as: which pairs are seen; None: the row is left out.
PACKED: dict[str, Callable[[Pair], bool | None]] = {
    "sequences-joined": _see_both,
    "keys-of-other-sequences": lambda p: p.own(),
    "keys-of-earlier-sequences": lambda p: p.among(0, p.d),
    "alignment-of-packed-sequences-swapped": lambda p: p.inside and p.own(shift=0),
    "packed-sequences-aligned-bottom-right": lambda p: (
        p.inside and p.own(shift=p.d - p.c - (p.b - p.a))
    ),
    "packed-sequences-aligned-by-longest": _by_longest,
    "window-by-packed-places": lambda p: p.inside and p.within(p.i + p.shift, p.j),
    "cu-seqlens-one-short": _one_short,
    "cu-seqlens-k-one-short": lambda p: p.among(p.c, p.d - 1),
    "cu-seqlens-one-over": lambda p: p.among(p.c, p.d + 1),
    "cu-seqlens-k-begin-late": lambda p: p.among(p.c + 1, p.d),
    "cu-seqlens-k-begin-early": lambda p: p.among(p.c - 1, p.d),
    "cu-seqlens-q-for-keys": lambda p: p.among(p.a, p.b),
    "cu-seqlens-k-for-queries": lambda p: p.inside and p.own(),
    "q-lengths-for-keys": lambda p: p.among(p.c, p.c + p.b - p.a),
    "keys-of-longest": lambda p: p.among(p.c, p.c + _longest(p.vector.cu_seqlens_k)),
    "last-sequence-dropped": lambda p: None if p.last else p.inside and p.own(),
}


def varlen(x: VarlenVector, name: str) -> list[Outputs]:
    """A mutant of `PACKED`, or right; "strange" is one that no hypothesis has."""
    visible = PACKED.get(name, lambda p: p.inside and p.own())
    total_q, total_k = len(x.q), len(x.k)
    rows = x.cu_seqlens_q
    if name == "cu-seqlens-k-for-queries":
        rows = tuple(min(n, total_q) for n in x.cu_seqlens_k)
    seen = torch.zeros(total_q, total_k, dtype=torch.bool)
    computed = torch.zeros(total_q, dtype=torch.bool)
    bounds = zip(pairwise(rows), pairwise(x.cu_seqlens_k), strict=True)
    for number, ((a, b), (c, d)) in enumerate(bounds):
        for i in range(a, b):
            last = number == len(x.masks) - 1
            found = [visible(Pair(i, j, a, b, c, d, last, x)) for j in range(total_k)]
            computed[i] = None not in found
            seen[i] = torch.tensor([bool(one) for one in found])
    q, k, v = tensor(x.q), tensor(x.k), tensor(x.v)
    out, lse = attend(_scale(x, name) * (q @ k.mT), seen, v)
    out, lse = out * computed[:, None], torch.where(computed, lse, 0.0)
    if name == "strange":
        out = 1.01 * out
    return [
        Outputs(out[None, None, a:b], lse[None, None, a:b]) for a, b in pairwise(x.cu_seqlens_q)
    ]


@dataclass(frozen=True)
class Token:
    """Token t of sequence b, where the sequence has `n`; table: as wide for all, padded with 0."""

    t: int
    b: int
    n: int
    table: list[list[int]]
    size: int
    vector: PagedVector

    def at(self, number: int, row: int | None = None) -> int:
        """The page in that place of the table."""
        return self.table[self.b if row is None else row][number]


def _transpose(p: Token) -> int:
    place = p.t // p.size * len(p.table) + p.b
    return p.table[place // len(p.table[0])][place % len(p.table[0])]


# Which page a token is read from, and how many tokens are read.
PAGES: dict[str, Callable[[Token], int]] = {
    "page-table-ignored": lambda p: p.t // p.size,
    "page-table-contiguous": lambda p: p.b * len(p.table[0]) + p.t // p.size,
    "page-table-transposed": _transpose,
    "page-table-of-first": lambda p: p.at(p.t // p.size, 0),
    "page-order-reversed": lambda p: p.at((p.n - 1) // p.size - p.t // p.size),
}
LENGTHS: dict[str, Callable[[Token], int]] = {
    "page-padding-read": lambda p: math.ceil(p.n / p.size) * p.size,
    "partial-page-dropped": lambda p: p.n // p.size * p.size,
    "lengths-ignored": lambda p: len(p.table[0]) * p.size,
    "kv-lens-one-short": lambda p: max(p.n - 1, 0),
    "kv-lens-one-over": lambda p: min(p.n + 1, len(p.table[0]) * p.size),
    "kv-lens-of-first": lambda p: p.vector.lengths[0],
}
PAGED = (*PAGES, *LENGTHS, "page-table-of-keys-alone")


def run_paged(x: PagedVector, name: str) -> list[Outputs]:
    table = [*map(list, x.filled_tables())]
    k, v = (torch.stack([*map(tensor, pages)]) for pages in (x.k, x.v))
    outputs = []
    for b, n in enumerate(x.lengths):
        one = Token(0, b, n, table, x.page_size, x)
        count = LENGTHS.get(name, lambda p: p.n)(one)
        tokens = [replace(one, t=t) for t in range(count)]
        slots = [t % x.page_size for t in range(count)]

        def pages(tokens: list[Token], name: str) -> list[int]:
            page = PAGES.get(name, lambda p: p.at(p.t // p.size))
            return [min(page(token), x.num_pages - 1) for token in tokens]

        of_values = "page-table-ignored" if name == "page-table-of-keys-alone" else name
        keys = k[pages(tokens, name), slots]
        values = v[pages(tokens, of_values), slots]
        scores = _scale(x, name) * (tensor(x.q)[b : b + 1] @ keys.mT)
        out, lse = attend(scores, True, values)
        out = 1.01 * out if name == "strange" else out
        outputs.append(Outputs(out[None, None], lse[None, None]))
    return outputs


MERGED = ("prefix-left-out", "suffix-left-out", "suffix-of-first")


def cascade(x: CascadeVector, name: str) -> list[Outputs]:
    outputs = []
    for b, query in enumerate(tensor(x.q)):
        own = 0 if name == "suffix-of-first" else b
        kept = slice(len(x.prefix_k) if name == "prefix-left-out" else 0,
                     len(x.prefix_k) if name == "suffix-left-out" else None)  # fmt: skip
        k = tensor((x.prefix_k + x.suffix_k[own])[kept], x.head_dim)
        v = tensor((x.prefix_v + x.suffix_v[own])[kept], x.value_dim)
        scores = _scale(x, name) * (query[None] @ k.mT)
        out, lse = attend(scores, True, v)
        if name == "parts-averaged":
            n = len(x.prefix_k)
            parts = attend(scores[:, :n], True, v[:n]), attend(scores[:, n:], True, v[n:])
            out = (parts[0][0] + parts[1][0]) / 2
        outputs.append(Outputs(out[None, None], lse[None, None]))
    return outputs


def combine(x: CombineVector, name: str) -> list[Outputs]:
    parts = x.parts[:-1] if name == "last-part-dropped" else x.parts
    logs = [-math.inf if part.log_sum_exp is None else float(part.log_sum_exp) for part in parts]
    outs = tensor(tuple(part.output for part in parts), x.value_dim)
    out, lse = attend(torch.tensor([logs]), True, outs)
    if name == "parts-averaged":
        empty = torch.tensor([math.isinf(log) for log in logs])
        out = outs.masked_fill(empty[:, None], 0.0).mean(0, keepdim=True)
    return [Outputs(out[None, None], lse[None, None])]


class WrongLayouts(PyimplTiled):
    """Right for plain attention, and so for all that the mutant of this name is not about."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.mutant = name

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        match vector:
            case VarlenVector():
                return varlen(vector, self.mutant)
            case PagedVector():
                return run_paged(vector, self.mutant)
            case CascadeVector():
                return cascade(vector, self.mutant)
            case CombineVector():
                return combine(vector, self.mutant)
        return super().run_vector(vector, dtype, device)
