"""A launch of the forward or backward kernels against attention by its definition: for all inputs
of a shape (`formal`), on random residues (`fields`) or random rational numbers (`rational`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from bridge.spec.heads import kv_head
from bridge.spec.masks import Alignment, alignment_shift, mask_window
from bridge.ttir import definition
from bridge.ttir.domain import LOG2E, Array, Domain, Numbers, single
from bridge.ttir.fields import FieldDomain
from bridge.ttir.formal import FormalDomain
from bridge.ttir.launches import Kernels
from bridge.ttir.memory import Memory
from bridge.ttir.rational import RationalDomain, logarithm
from pyimpl._scores import ScoreOptions

Level = Literal["rational", "formal", "fields"]
# A scale that no other number of a launch is near to, for which the domain's own stands.
SCALE = 0.734375019


@dataclass(frozen=True)
class Shape:
    """Which attention is asked for. window: how many keys each side of a query's place are seen,
    None: all; causal is (None, 0). blocks: of tiles of queries and keys."""

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

    def visible(self) -> Array:
        """Which keys each query sees (`bridge.spec.masks.mask_window`)."""
        sizes = {"q_len": self.q_len, "kv_len": self.kv_len}
        mask = mask_window(self.alignment, *self.window, **sizes)
        seen = [[mask(i, j) for j in range(self.kv_len)] for i in range(self.q_len)]
        return np.array(seen, bool).reshape(self.q_len, self.kv_len)

    @property
    def shift(self) -> int:
        return alignment_shift(self.q_len, self.kv_len, self.alignment)


class Wrong(NamedTuple):
    """An element of an output that is not what it should be, as formulas. program: the number of
    the program that stored it, −1: none did."""

    name: str
    place: tuple[int, ...]
    program: int
    found: str
    wanted: str


# An output's name, and a place in it.
Place = tuple[str, tuple[int, ...]]
# So many wrong elements are written out.
_SHOWN = 8


@dataclass
class Compared:
    """What a comparison found.

    elements: how many were compared, and wrong_elements, how many of them are wrong; wrong: the
    first of these. assumed: what was used about the inputs; roundings: as of `Machine`. only: None,
    or the name of an output and a place, where alone it is looked.
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
    ) -> None:
        """`equal`: which elements are; `place`: that of the tile among all of its name; `programs`:
        which stored the elements."""
        self.elements += equal.size
        off = np.argwhere(~equal)
        self.wrong_elements += len(off)
        for where in off[: _SHOWN - len(self.wrong)]:
            at = tuple(int(i) for i in where)
            texts = [
                domain.text(domain.each(lambda x, at=at: x[(*at, ...)], tile))
                for tile in (found, wanted)
            ]
            self.wrong.append(Wrong(name, (*place, *at), int(programs[at]), *texts))


class Inputs:
    """Numbers of a level for a launch: `draw(name, shape)`, and a scale.

    given: the scale that launchers are given, or use. A power of two stands for itself, but for
    rational numbers; any other for a number of which is known, at most, that it is not negative.
    """

    def __init__(self, level: Level, seed: int = 0, given: float = SCALE) -> None:
        random = np.random.default_rng(seed)
        self.domain: Domain
        self.draw: Callable[[str, tuple[int, ...]], Numbers]
        if level == "formal":
            formal = FormalDomain()
            self.domain, self.draw = formal, formal.atoms
            self.scale: Numbers = single(formal.atom("scale", not_negative=True))
        elif level == "fields":
            fields = FieldDomain()
            self.domain, self.draw = fields, lambda name, shape: fields.draw(shape, random)
            self.scale = fields.draw((), random)
        else:
            self.domain = RationalDomain()
            self.scale = single(logarithm(1, 1, 1))

            def small(name: str, shape: tuple[int, ...]) -> Array:
                return np.asarray(random.integers(-3, 4, shape).astype(object), object)

            self.draw = small
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
    """Inputs of a level for a shape, and attention of them by definition."""

    def __init__(self, shape: Shape, level: Level, seed: int, scale: float = SCALE) -> None:
        self.shape = shape
        self.inputs = Inputs(level, seed, scale)
        self.domain = self.inputs.domain
        self.memory = Memory(self.domain)
        self.kernels = Kernels(self.memory, shape.dtype, shape.arch, shape.blocks)
        self.visible = shape.visible()
        keys = (shape.batch, shape.kv_heads, shape.kv_len)
        self.q = self.draw("q", shape.batch, shape.heads, shape.q_len, shape.head_dim)
        self.k = self.draw("k", *keys, shape.head_dim)
        self.v = self.draw("v", *keys, shape.value_dim)
        left, right = shape.window
        self.options = ScoreOptions(SCALE, left=left, right=right, shift=shape.shift)

    def draw(self, name: str, *shape: int) -> Numbers:
        return self.inputs.draw(name, shape)

    def at(self, tile: Numbers, *place: int) -> Numbers:
        return self.domain.each(lambda x: x[place], tile)

    def heads(self) -> list[tuple[int, int, int]]:
        """Each batch and head, and its head of keys and values."""
        shape = self.shape
        group = shape.heads // shape.kv_heads
        return [
            (b, h, kv_head(h, group=group)) for b in range(shape.batch) for h in range(shape.heads)
        ]

    def rows(self, b: int, h: int, of: int) -> definition.Rows:
        q, k, v = self.at(self.q, b, h), self.at(self.k, b, of), self.at(self.v, b, of)
        return definition.attend(self.domain, q, k, v, self.inputs.scale, self.visible)

    def done(self, found: Compared) -> Compared:
        found.assumed |= getattr(self.domain, "assumed", set())
        found.roundings |= self.kernels.roundings
        return found

    def compare_attention(
        self,
        found: Compared,
        outs: Numbers,
        lses: Numbers | None,
        programs: tuple[Array, Array | None],
    ) -> None:
        """Compare an output `[batch, heads, q_len, value_dim]` and, if there is one, a log-sum-exp
        `[batch, heads, q_len]` with attention; `programs`: which stored their elements."""
        domain = self.domain
        for b, h, of in self.heads():
            rows = self.rows(b, h, of)
            found.add(domain, "output", (b, h), self.at(outs, b, h), rows.out, programs[0][b, h])
            if lses is None or programs[1] is None or found.only is not None:
                continue
            logs = self.at(lses, b, h)
            sums = domain.each(lambda x: x[:, 0], rows.denominators)
            equal = rows.has_log_sum_exp(logs)
            found.note(domain, "log-sum-exp", (b, h), equal, logs, sums, programs[1][b, h])


def forward(shape: Shape, level: Level, seed: int = 0, found: Compared | None = None) -> Compared:
    """The forward kernel: its output and its log-sum-exp. Raises as `machine.Machine.run` does."""
    case = Case(shape, level, seed)
    kernels = case.kernels
    out, lse = kernels.forward(*map(kernels.tensor, (case.q, case.k, case.v)), case.options)
    memory, found = case.memory, found or Compared()
    programs = memory.programs(out), memory.programs(lse)
    case.compare_attention(found, memory.read(out), memory.read(lse), programs)
    return case.done(found)


def backward(shape: Shape, level: Level, seed: int = 0, found: Compared | None = None) -> Compared:
    """The kernels of the backward pass, given the output and the log-sum-exp of attention: the
    gradients by queries, keys and values. heads must be kv_heads, and small: the definition is
    computed element by element. Raises as `machine.Machine.run` does."""
    if shape.heads != shape.kv_heads:
        raise ValueError(f"heads must be kv_heads, {shape.kv_heads}, not {shape.heads}")
    case = Case(shape, level, seed)
    domain, kernels, memory = case.domain, case.kernels, case.memory
    rows = (shape.batch, shape.heads, shape.q_len)
    grad_out = case.draw("dO", *rows, shape.value_dim)
    grad_lse = case.draw("dL", *rows)

    parts = []
    for b, h, of in case.heads():
        sums = case.rows(b, h, of).denominators
        logs = domain.log_sum_exp(f"L{[b, h]}", domain.each(lambda x: x[:, 0], sums))
        # Now quotients by these sums are products with their logarithms' powers.
        parts.append((case.rows(b, h, of).out, logs))

    def stacked(tiles: list[Numbers], tail: tuple[int, ...]) -> Numbers:
        def stack(*arrays: Array) -> Array:
            return np.stack([np.broadcast_to(x, rows[2:] + tail) for x in arrays]).reshape(
                rows + tail
            )

        return domain.each(stack, *tiles)

    outs = stacked([out for out, _ in parts], (shape.value_dim,))
    logs = stacked([log for _, log in parts], ())
    tensors = kernels.backward(
        *map(kernels.tensor, (case.q, case.k, case.v, outs)), memory.tensor(logs),
        kernels.tensor(grad_out), memory.tensor(grad_lse), case.options,
    )  # fmt: skip
    tiles = {name: memory.read(tensor) for name, tensor in tensors.items()}
    found = found or Compared()
    for b, h, of in case.heads():
        wanted = definition.gradients(
            domain, case.at(case.q, b, h), case.at(case.k, b, of), case.at(case.v, b, of),
            case.at(grad_out, b, h), case.at(grad_lse, b, h), case.inputs.scale, case.visible,
        )  # fmt: skip
        for name, tile in tiles.items():
            programs = memory.programs(tensors[name])[b, h]
            found.add(domain, name, (b, h), case.at(tile, b, h), wanted[name], programs)
    return case.done(found)
