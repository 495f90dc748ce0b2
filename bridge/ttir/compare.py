"""A launch of the forward or backward kernels against attention by its definition: for all inputs
of a shape (`formal`), on random residues (`fields`) or random rational numbers (`rational`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch

from bridge.spec.heads import kv_head
from bridge.spec.masks import Alignment, alignment_shift, mask_window
from bridge.ttir import definition
from bridge.ttir.domain import Array, Domain, Numbers, single
from bridge.ttir.fields import FieldDomain
from bridge.ttir.formal import FormalDomain
from bridge.ttir.launches import Kernels
from bridge.ttir.memory import Memory
from bridge.ttir.rational import RationalDomain, logarithm
from pyimpl._scores import ScoreOptions

Level = Literal["rational", "formal", "fields"]
# A scale that no other number of a launch is near to, for which the domain's own stands.
_SCALE = 0.734375019


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


@dataclass
class Compared:
    """What a comparison found.

    wrong: by the name of an output the places that are not what they should be, and there as
    formulas what was found and what was wanted. elements: how many were compared. assumed: what
    was used about the inputs.
    """

    elements: int = 0
    wrong: list[tuple[str, tuple[int, ...], str, str]] = field(default_factory=list)
    assumed: set[str] = field(default_factory=set)

    @property
    def equal(self) -> bool:
        return not self.wrong

    def add(self, domain: Domain, name: str, place: Any, found: Numbers, wanted: Numbers) -> None:
        equal = domain.equal(found, wanted)
        self.note(domain, name, place, equal, found, wanted)

    def note(
        self, domain: Domain, name: str, place: Any, equal: Array, found: Numbers, wanted: Any
    ) -> None:
        """`equal`: which elements are; `place`: that of the tile among all of its name."""
        self.elements += equal.size
        for where in np.argwhere(~equal):
            at = tuple(int(i) for i in where)
            texts = [
                domain.text(domain.each(lambda x, at=at: x[(*at, ...)], tile))
                for tile in (found, wanted)
            ]
            self.wrong.append((name, (*place, *at), *texts))


class Inputs:
    """Numbers of a level for a launch: `draw(name, shape)`, and a scale."""

    def __init__(self, level: Level, seed: int = 0) -> None:
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
        self.domain.known.append((_SCALE, self.scale))


class _Case:
    def __init__(self, shape: Shape, level: Level, seed: int) -> None:
        self.shape = shape
        self.inputs = Inputs(level, seed)
        self.domain = self.inputs.domain
        self.memory = Memory(self.domain)
        self.kernels = Kernels(self.memory, shape.dtype, shape.arch, shape.blocks)
        self.visible = shape.visible()
        keys = (shape.batch, shape.kv_heads, shape.kv_len)
        self.q = self.draw("q", shape.batch, shape.heads, shape.q_len, shape.head_dim)
        self.k = self.draw("k", *keys, shape.head_dim)
        self.v = self.draw("v", *keys, shape.value_dim)
        left, right = shape.window
        self.options = ScoreOptions(_SCALE, left=left, right=right, shift=shape.shift)

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
        return found


def forward(shape: Shape, level: Level, seed: int = 0) -> Compared:
    """The forward kernel: its output and its log-sum-exp. Raises as `machine.Machine.run` does."""
    case = _Case(shape, level, seed)
    domain, kernels = case.domain, case.kernels
    out, lse = kernels.forward(*map(kernels.tensor, (case.q, case.k, case.v)), case.options)
    outs, lses = case.memory.read(out), case.memory.read(lse)
    found = Compared()
    for b, h, of in case.heads():
        rows = case.rows(b, h, of)
        found.add(domain, "output", (b, h), case.at(outs, b, h), rows.out)
        logs = case.at(lses, b, h)
        sums = domain.each(lambda x: x[:, 0], rows.denominators)
        found.note(domain, "log-sum-exp", (b, h), rows.has_log_sum_exp(logs), logs, sums)
    return case.done(found)


def backward(shape: Shape, level: Level, seed: int = 0) -> Compared:
    """The kernels of the backward pass, given the output and the log-sum-exp of attention: the
    gradients by queries, keys and values. heads must be kv_heads, and small: the definition is
    computed element by element. Raises as `machine.Machine.run` does."""
    if shape.heads != shape.kv_heads:
        raise ValueError(f"heads must be kv_heads, {shape.kv_heads}, not {shape.heads}")
    case = _Case(shape, level, seed)
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
    found = Compared()
    for b, h, of in case.heads():
        wanted = definition.gradients(
            domain, case.at(case.q, b, h), case.at(case.k, b, of), case.at(case.v, b, of),
            case.at(grad_out, b, h), case.at(grad_lse, b, h), case.inputs.scale, case.visible,
        )  # fmt: skip
        for name, tile in tiles.items():
            found.add(domain, name, (b, h), case.at(tile, b, h), wanted[name])
    return case.done(found)
