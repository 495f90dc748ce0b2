"""Launches of the kernels against attention by its definition: for all inputs of a shape
(`formal`), on random residues (`fields`) or random rational numbers (`rational`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bridge.spec.heads import kv_head
from bridge.spec.masks import Alignment, alignment_shift, mask_window
from bridge.spec.score_mods import distance
from bridge.ttir import definition
from bridge.ttir.domain import LOG2E, Array, Domain, Numbers, single
from bridge.ttir.fields import FieldDomain
from bridge.ttir.formal import FormalDomain
from bridge.ttir.launches import Kernels
from bridge.ttir.memory import Memory
from bridge.ttir.rational import RationalDomain, logarithm
from pyimpl.backends.kernels.parts.sequences import Sequences
from pyimpl.internal.scores import ScoreOptions

Level = Literal["rational", "formal", "fields"]
# A scale that no other number of a launch is near to, for which the domain's own stands.
SCALE = 0.734375019
_SOFTCAP = 30.0


@dataclass(frozen=True)
class Shape:
    """Which attention is asked for.

    window: how many keys each side of a query's place are seen, None: all; causal is (None, 0).
    bias, alibi, softcap: whether there are biases, slopes or a cap. blocks: of tiles of queries and
    keys. lengths: () if each sequence of the batch has q_len queries and kv_len keys, else how many
    queries and keys each has, up to these: then they are packed one after another, without bias, or
    a cache has these lengths (`compare_decode`).
    """

    batch: int = 1
    heads: int = 1
    kv_heads: int = 1
    q_len: int = 5
    kv_len: int = 20
    head_dim: int = 3
    value_dim: int = 3
    window: tuple[int | None, int | None] = (None, None)
    alignment: Alignment = Alignment.TOP_LEFT
    dtype: torch.dtype = torch.float32
    blocks: tuple[int, int] = (16, 16)
    arch: int = 90
    bias: bool = False
    alibi: bool = False
    softcap: bool = False
    lengths: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        most = (self.q_len, self.kv_len)
        if self.lengths and len(self.lengths) != self.batch:
            raise ValueError(
                f"lengths must be () or one pair for each of {self.batch} sequences, "
                f"not {len(self.lengths)}"
            )
        if any(not 0 <= n <= m for pair in self.lengths for n, m in zip(pair, most, strict=True)):
            raise ValueError(f"lengths must be pairs up to {most}, not {self.lengths}")
        if self.lengths and self.bias:
            raise ValueError("lengths must be () where there is a bias")

    def lengths_of(self, b: int) -> tuple[int, int]:
        """The numbers of queries and keys of a sequence."""
        return self.lengths[b] if self.lengths else (self.q_len, self.kv_len)

    def visible(self, b: int) -> Array:
        """Which keys each query of a sequence sees (`bridge.spec.masks.mask_window`)."""
        q_len, kv_len = self.lengths_of(b)
        mask = mask_window(self.alignment, *self.window, q_len=q_len, kv_len=kv_len)
        seen = [[mask(i, j) for j in range(kv_len)] for i in range(q_len)]
        return np.array(seen, bool).reshape(q_len, kv_len)

    def distances(self, b: int) -> Array:
        """How far the queries of a sequence are from its keys (`bridge.spec.score_mods`)."""
        q_len, kv_len = self.lengths_of(b)
        sizes = {"q_len": q_len, "kv_len": kv_len}
        found = [
            [distance(self.alignment, i, j, **sizes) for j in range(kv_len)] for i in range(q_len)
        ]
        return np.array(found, np.int64).reshape(q_len, kv_len)

    @property
    def is_bottom_right(self) -> bool:
        return self.alignment is Alignment.BOTTOM_RIGHT

    @property
    def shift(self) -> int:
        """How far the window is moved, where all sequences are as long as can be."""
        return alignment_shift(self.q_len, self.kv_len, self.alignment)


class Wrong(NamedTuple):
    """An element of an output that is wrong, as formulas. program: the number of the program that
    stored it, −1: none did."""

    name: str
    place: tuple[int, ...]
    program: int
    found: str
    wanted: str


# An output's name, and a place in it.
Place = tuple[str, tuple[int, ...]]
# So many wrong elements are written out.
_SHOWN = 8
# The name of this output in findings.
_LSE = "log-sum-exp"


@dataclass
class Compared:
    """The result of a comparison.

    elements: how many were compared, and wrong_elements, how many of them are wrong; wrong: the
    first of these. assumed: the facts about the inputs that were used; roundings: as of `Machine`.
    only: None, or the name of an output and a place: then only this place is compared.
    """

    elements: int = 0
    wrong_elements: int = 0
    wrong: list[Wrong] = field(default_factory=list)
    assumed: set[str] = field(default_factory=set)
    roundings: set[str] = field(default_factory=set)
    only: Place | None = None

    @property
    def equal(self) -> bool:
        return self.wrong_elements == 0

    def add(
        self,
        domain: Domain,
        name: str,
        place: Any,
        found: Numbers,
        wanted: Numbers,
        programs: Array,
    ) -> None:
        if self.only is not None:
            called, at = self.only
            if called != name or at[: len(place)] != tuple(place):
                return
            row, column = at[len(place) :]
            place = (*place, row)
            found, wanted = (
                domain.each(lambda x: x[row, column : column + 1], tile) for tile in (found, wanted)
            )
            equal, programs = domain.equal(found, wanted), programs[row, column : column + 1]
        else:
            equal = domain.equal(found, wanted)
        self.note(domain, name, place, equal, found, wanted, programs)

    def note(
        self,
        domain: Domain,
        name: str,
        place: Any,
        equal: Array,
        found: Numbers,
        wanted: Any,
        programs: Array,
        written: str = "{}",
    ) -> None:
        """`equal`: which elements are; `place`: that of the tile among all of its name; `programs`:
        which stored the elements; `written`: the wanted value as text, with {} for the formula of
        `wanted`."""
        self.elements += equal.size
        off = np.argwhere(~equal)
        self.wrong_elements += len(off)
        for where in off[: _SHOWN - len(self.wrong)]:
            at = tuple(int(i) for i in where)

            def text(tile: Numbers, at: tuple[int, ...] = at) -> str:
                return domain.text(domain.each(lambda x: x[(*at, ...)], tile))

            program = int(programs[at])
            formulas = text(found), written.format(text(wanted))
            self.wrong.append(Wrong(name, (*place, *at), program, *formulas))


class Inputs:
    """Numbers of a level for a launch: `draw(name, shape)`, `draw_scores` for those that are added
    to scores, and a scale.

    given: the scale that launchers are given, or use. A power of two stands for itself, but for
    rational numbers; any other for a number of which is known, at most, that it is not negative.
    """

    def __init__(self, level: Level, seed: int = 0, given: float = SCALE) -> None:
        random = np.random.default_rng(seed)
        self.domain: Domain
        self.draw: Callable[[str, tuple[int, ...]], Numbers]
        self.draw_scores: Callable[[str, tuple[int, ...]], Numbers]
        if level == "formal":
            formal = FormalDomain()
            self.domain, self.draw = formal, formal.atoms
            self.draw_scores = self.draw
            self.scale: Numbers = single(formal.atom("scale", not_negative=True))
        elif level == "fields":
            fields = FieldDomain()
            self.domain, self.draw = fields, lambda name, shape: fields.draw(shape, random)
            self.draw_scores = self.draw
            self.scale = fields.draw((), random)
        else:
            self.domain = RationalDomain()
            self.scale = single(logarithm(1, 1, 1))

            def small(name: str, shape: tuple[int, ...]) -> Array:
                return np.asarray(random.integers(-3, 4, shape).astype(object), object)

            self.draw = small
            in_base_2 = np.frompyfunc(lambda x: logarithm(x, 1, 1), 1, 1)
            self.draw_scores = lambda name, shape: np.asarray(in_base_2(small(name, shape)), object)
        domain: Domain = self.domain
        whole = level != "rational" and abs(math.frexp(given)[0]) == 0.5
        if whole:
            self.scale = domain.constant(given)
        domain.known.append((given, self.scale))
        # A scale that is a constant of the kernel's text.
        by_log2e = domain.multiply(self.scale, domain.constant(LOG2E))
        domain.literals[float(np.float32(given / math.log(2.0)))] = by_log2e
        if not whole:
            domain.literals[float(np.float32(given))] = self.scale


class Case:
    """Inputs of a level for a shape, the tensors that a launch is given, and attention of them by
    definition.

    Tiles, such as `q`, are `[batch, heads, length, …]`, and so are tensors; those of packed
    sequences are `[1, heads, total, …]`.
    """

    def __init__(
        self, shape: Shape, level: Level, seed: int, scale: float = SCALE, *, packed: bool = False
    ) -> None:
        self.shape = shape
        self.packed = packed
        self.inputs = Inputs(level, seed, scale)
        self.domain = self.inputs.domain
        self.memory = Memory(self.domain)
        self.kernels = Kernels(self.memory, shape.dtype, shape.arch, shape.blocks)
        keys = (shape.batch, shape.kv_heads, shape.kv_len)
        self.q = self.draw("q", shape.batch, shape.heads, shape.q_len, shape.head_dim)
        self.k = self.draw("k", *keys, shape.head_dim)
        self.v = self.draw("v", *keys, shape.value_dim)
        sizes = (shape.batch, shape.heads)
        scores = self.inputs.draw_scores
        self.bias = scores("bias", (*sizes, shape.q_len, shape.kv_len)) if shape.bias else None
        self.slopes = scores("slope", sizes) if shape.alibi else None
        # The places where sequences begin among the packed ones.
        lengths = [shape.lengths_of(b) for b in range(shape.batch)]
        self.begins = tuple([0, *accumulate(pair[i] for pair in lengths)] for i in (0, 1))

    def draw(self, name: str, *shape: int) -> Numbers:
        return self.inputs.draw(name, shape)

    def options(self, shift: int = 0) -> ScoreOptions:
        """shift: 0 where a kernel aligns each sequence itself."""
        shape, memory = self.shape, self.memory
        left, right = shape.window
        return ScoreOptions(
            SCALE, left=left, right=right, shift=shift,
            softcap=_SOFTCAP if shape.softcap else None,
            bias=None if self.bias is None else memory.tensor(self.bias),
            alibi_slopes=None if self.slopes is None else memory.tensor(self.slopes),
        )  # fmt: skip

    def sequences(self) -> Sequences | None:
        if not self.packed:
            return None
        begins = [torch.tensor(begin, dtype=torch.int32) for begin in self.begins]
        sizes = (self.shape.q_len, self.shape.kv_len)
        return Sequences(begins[0], begins[1], *sizes, self.shape.is_bottom_right)

    def tensor(self, tile: Numbers, *, keys: bool = False, wide: bool = False) -> Tensor:
        """keys: along its length are keys, not queries; wide: it is of float32."""
        if self.packed:
            lengths = [self.shape.lengths_of(b)[keys] for b in range(self.shape.batch)]

            def pack(x: Array) -> Array:
                return np.concatenate([x[b, :, :n] for b, n in enumerate(lengths)], 1)[None]

            tile = self.domain.each(pack, tile)
        return self.memory.tensor(tile) if wide else self.kernels.tensor(tile)

    def qkv(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values."""
        return self.tensor(self.q), self.tensor(self.k, keys=True), self.tensor(self.v, keys=True)

    def part(self, tensor: Tensor, b: int, h: int, *, keys: bool = False) -> Tensor:
        """The part of a tensor that belongs to one head of one sequence."""
        length = self.shape.lengths_of(b)[keys]
        if self.packed:
            first = self.begins[keys][b]
            return tensor[0, h, first : first + length]
        return tensor[b, h, :length]

    def at(self, tile: Numbers, b: int, h: int, *, keys: bool = False) -> Numbers:
        """The part of a tile that belongs to one head of one sequence."""
        length = self.shape.lengths_of(b)[keys]
        return self.domain.each(lambda x: x[b, h, :length], tile)

    def stack(self, tiles: list[Numbers], *tail: int) -> Numbers:
        """The tile `[batch, heads, q_len, *tail]` whose parts these are, in the order of
        `heads`."""
        shape = self.shape

        def fill(x: Array, zero: Array) -> Array:
            found = np.empty((shape.q_len, *tail), np.asarray(x).dtype)
            found[...] = zero
            found[: len(x)] = x
            return found

        zero = self.domain.integers(np.zeros((), np.int64))
        rows = [self.domain.each(fill, tile, zero) for tile in tiles]
        whole = (shape.batch, shape.heads, shape.q_len, *tail)
        return self.domain.each(lambda *parts: np.stack(parts).reshape(whole), *rows)

    def heads(self) -> list[tuple[int, int, int]]:
        """Each sequence and head, and its head of keys and values."""
        shape = self.shape
        group = shape.heads // shape.kv_heads
        return [
            (b, h, kv_head(h, group=group)) for b in range(shape.batch) for h in range(shape.heads)
        ]

    def head(self, b: int, h: int, of: int) -> definition.Head:
        domain, shape = self.domain, self.shape
        q_len, kv_len = shape.lengths_of(b)
        added = None
        if self.bias is not None:
            added = domain.each(lambda x: x[b, h, :q_len, :kv_len], self.bias)
        if self.slopes is not None:
            slope = domain.each(lambda x: x[b, h, ...], self.slopes)
            alibi = domain.multiply(slope, domain.integers(-shape.distances(b)))
            added = alibi if added is None else domain.add(added, alibi)
        k, v = self.at(self.k, b, of, keys=True), self.at(self.v, b, of, keys=True)
        return definition.Head(self.at(self.q, b, h), k, v, shape.visible(b), added)

    def rows(self, b: int, h: int, of: int) -> definition.Rows:
        return definition.attend(self.domain, self.head(b, h, of), self.inputs.scale)

    def compare(
        self, found: Compared, name: str, b: int, h: int, part: Tensor, wanted: Numbers
    ) -> None:
        """Compare the elements stored to a tensor's part for one head of one sequence."""
        numbers, programs = self.memory.read(part), self.memory.programs(part)
        found.add(self.domain, name, (b, h), numbers, wanted, programs)

    def compare_attention(self, found: Compared, out: Tensor, lse: Tensor | None) -> None:
        """Compare an output and, if there is one, a log-sum-exp with attention by definition."""
        for b, h, of in self.heads():
            rows = self.rows(b, h, of)
            self.compare(found, "output", b, h, self.part(out, b, h), rows.out)
            if lse is not None:
                self.compare_log_sum_exp(found, b, h, self.part(lse, b, h), rows)

    def compare_log_sum_exp(
        self, found: Compared, b: int, h: int, part: Tensor, rows: definition.Rows
    ) -> None:
        """Compare log-sum-exps, as `compare` does outputs."""
        asked, at = found.only or (_LSE, (b, h))
        if (asked, at[:2]) != (_LSE, (b, h)):
            return
        logs, programs = self.memory.read(part), self.memory.programs(part)
        sums = self.domain.each(lambda x: x[:, 0], rows.denominators)
        equal = rows.has_log_sum_exp(logs)
        if found.only is not None:
            equal = equal | (np.arange(len(equal)) != at[-1])
        found.note(self.domain, _LSE, (b, h), equal, logs, sums, programs, "ln[{}]")

    def name_log_sum_exps(self) -> None:
        """Name the log-sum-exps of attention. A backward pass, which loads those that a forward
        pass stored, computes with these names."""
        for b, h, of in self.heads():
            sums = self.domain.each(lambda x: x[:, 0], self.rows(b, h, of).denominators)
            self.domain.log_sum_exp(f"L{[b, h]}", sums)
        self.memory.settle()

    def compare_gradients(
        self, found: Compared, grad_out: Numbers, gradients: Sequence[Tensor]
    ) -> None:
        """Compare gradients by queries, keys and values with those of attention, which is told of
        gradients by its output alone."""
        by_q, by_k, by_v = gradients
        sums: dict[tuple[int, int], tuple[Numbers, Numbers]] = {}
        for b, h, of in self.heads():
            wanted, *by_keys = definition.tile_gradients(
                self.domain, self.head(b, h, of), self.at(grad_out, b, h), self.inputs.scale
            )
            self.compare(found, "dQ", b, h, self.part(by_q, b, h), wanted)
            before = sums.get((b, of))
            if before is not None:
                by_keys = [self.domain.add(*pair) for pair in zip(before, by_keys, strict=True)]
            sums[b, of] = (by_keys[0], by_keys[1])
        for (b, of), (wanted_k, wanted_v) in sums.items():
            self.compare(found, "dK", b, of, self.part(by_k, b, of, keys=True), wanted_k)
            self.compare(found, "dV", b, of, self.part(by_v, b, of, keys=True), wanted_v)

    def finish(self, found: Compared) -> Compared:
        found.assumed |= getattr(self.domain, "assumed", set())
        found.roundings |= self.kernels.roundings
        return found


def forward(shape: Shape, level: Level, seed: int = 0, found: Compared | None = None) -> Compared:
    """The forward kernel, of packed sequences where `shape` has lengths: its output and its
    log-sum-exp. Raises as `machine.Machine.run` does."""
    case = Case(shape, level, seed, packed=bool(shape.lengths))
    q, k, v = case.qkv()
    sequences = case.sequences()
    if sequences is None:
        out, lse = case.kernels.forward(q, k, v, case.options(shape.shift))
    else:
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
        out, lse = case.kernels.varlen(q, k, v, sequences, case.options())
        out, lse = out.transpose(0, 1)[None], lse[None]
    found = found or Compared()
    case.compare_attention(found, out, lse)
    return case.finish(found)


def backward(
    shape: Shape,
    level: Level,
    seed: int = 0,
    found: Compared | None = None,
    *,
    atomics: bool = False,
) -> Compared:
    """The kernels of the backward pass, of packed sequences where `shape` has lengths, given the
    output and the log-sum-exp of attention: the gradients by queries, keys and values, and by a
    bias. shape: small, since the definition is computed element by element. atomics: as of
    `Kernels.backward`. Raises as `machine.Machine.run` does."""
    case = Case(shape, level, seed, packed=bool(shape.lengths))
    domain = case.domain
    rows = (shape.batch, shape.heads, shape.q_len)
    grad_out = case.draw("dO", *rows, shape.value_dim)
    grad_lse = case.draw("dL", *rows)

    outs, logs = [], []
    for b, h, of in case.heads():
        sums = domain.each(lambda x: x[:, 0], case.rows(b, h, of).denominators)
        logs.append(domain.log_sum_exp(f"L{[b, h]}", sums))
        # Now quotients by these sums are products with their logarithms' powers.
        outs.append(case.rows(b, h, of).out)
    tensors = case.kernels.backward(
        *case.qkv(),
        out=case.tensor(case.stack(outs, shape.value_dim)),
        lse=case.tensor(case.stack(logs), wide=True),
        grad_out=case.tensor(grad_out),
        grad_lse=case.tensor(grad_lse, wide=True),
        options=case.options(0 if case.packed else shape.shift),
        sequences=case.sequences(),
        atomics=atomics,
    )
    found = found or Compared()
    for b in range(shape.batch):
        own = [(h, of) for c, h, of in case.heads() if c == b]
        wanted = definition.gradients(
            domain, [case.head(b, h, of) for h, of in own],
            [(case.at(grad_out, b, h), case.at(grad_lse, b, h)) for h, _ in own],
            case.inputs.scale, kv_heads=shape.kv_heads,
        )  # fmt: skip
        for name, tensor in tensors.items():
            for h, tile in enumerate(wanted[name]):
                part = case.part(tensor, b, h, keys=name in ("key", "value"))
                case.compare(found, name, b, h, part, tile)
    return case.finish(found)
