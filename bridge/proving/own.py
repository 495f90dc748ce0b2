"""The project's own kernels, as `bridge prove` takes them, with the shapes that are run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from bridge.spec.masks import Alignment
from bridge.ttir import compare
from bridge.ttir.compare import Case, Compared, Level, Shape
from bridge.ttir.domain import Domain, Numbers

_CAUSAL = (None, 0)
_BOTTOM = Alignment.BOTTOM_RIGHT
_SMALL = (
    Shape(q_len=1, kv_len=1),
    Shape(q_len=20, kv_len=20, window=_CAUSAL),
    Shape(q_len=5, kv_len=37),
    Shape(q_len=20, kv_len=16, window=_CAUSAL, alignment=_BOTTOM),
    Shape(heads=2, q_len=3, kv_len=17, value_dim=5, window=(2, 1)),
)
_REAL = (
    Shape(batch=2, heads=4, kv_heads=2, q_len=130, kv_len=257, head_dim=64, value_dim=64,
          window=(64, 0), alignment=_BOTTOM, blocks=(64, 32)),
    Shape(heads=2, kv_heads=2, q_len=300, kv_len=300, head_dim=72, value_dim=40,
          window=_CAUSAL, blocks=(64, 64)),
    Shape(q_len=1000, kv_len=1024, head_dim=128, value_dim=128, window=_CAUSAL,
          dtype=torch.bfloat16, blocks=(128, 128)),
)  # fmt: skip
_TALL = tuple(replace(s, q_len=4) for s in _REAL)
_TINY = (
    Shape(q_len=2, kv_len=3, head_dim=2, value_dim=2),
    Shape(q_len=3, kv_len=3, head_dim=1, value_dim=2, window=_CAUSAL),
    Shape(q_len=2, kv_len=17, head_dim=1, value_dim=1),
)
_Run = Callable[[Shape, Level, int, Compared], Compared]


def _sum(domain: Domain, tile: Numbers) -> Numbers:
    """The sum over the first axis."""
    length = len(tile if isinstance(tile, np.ndarray) else tile[0])
    found = domain.each(lambda x: x[0], tile)
    for i in range(1, length):
        found = domain.add(found, domain.each(lambda x, i=i: x[i], tile))
    return found


def _decode(shape: Shape, level: Level, seed: int, found: Compared) -> Compared:
    """The decoding kernel with three splits: outputs o and log-sum-exps L for which Σ e^L and
    Σ o·e^L are the denominator and the numerator of attention."""
    case = Case(shape, level, seed)
    domain, kernels, memory = case.domain, case.kernels, case.memory
    q, k, v = map(kernels.tensor, (case.q, case.k, case.v))
    parts, lses = kernels.decode_splits(q, k, v, case.options(shape.shift), splits=3)
    by_part = memory.programs(parts)[0]
    weights = domain.each(lambda x: x[..., None], domain.exp(memory.read(lses)))
    sums = _sum(domain, weights)
    tops = _sum(domain, domain.multiply(memory.read(parts), weights))
    for b, h, of in case.heads():
        rows = case.rows(b, h, of)
        numerators = domain.multiply(rows.out, rows.denominators)
        programs = by_part[b, h]
        found.add(domain, "Σ output·e^lse", (b, h), case.at(tops, b, h), numerators, programs)
        found.add(domain, "Σ e^lse", (b, h), case.at(sums, b, h), rows.denominators, programs)
    return case.finish(found)


def _combine(shape: Shape, level: Level, seed: int, found: Compared) -> Compared:
    """The kernel that combines outputs o and log-sum-exps L of parts, any numbers, three of each:
    Σ o·e^L / Σ e^L and ln Σ e^L."""
    case = Case(shape, level, seed)
    domain, memory = case.domain, case.memory
    rows = (shape.batch, shape.heads, shape.q_len)
    parts = case.draw("o", 3, *rows, shape.value_dim)
    lses = case.inputs.draw_scores("L", (3, *rows))
    out, lse = case.kernels.combine(memory.tensor(parts), memory.tensor(lses))
    weights = domain.each(lambda x: x[..., None], domain.exp(lses))
    sums = _sum(domain, weights)
    wanted = domain.divide(_sum(domain, domain.multiply(parts, weights)), sums)
    exps = domain.each(lambda x: x[..., None], domain.exp(memory.read(lse)))
    outs, by_out, by_lse = memory.read(out), memory.programs(out), memory.programs(lse)[..., None]
    for b, h, _ in case.heads():
        got, right = case.at(outs, b, h), case.at(wanted, b, h)
        found.add(domain, "output", (b, h), got, right, by_out[b, h])
        got, right = case.at(exps, b, h), case.at(sums, b, h)
        found.add(domain, "e^log-sum-exp", (b, h), got, right, by_lse[b, h])
    return case.finish(found)


def _varlen(shape: Shape, level: Level, seed: int, found: Compared) -> Compared:
    """Compare packed sequences, one more than the shape's batch, each 3 queries and 7 keys shorter
    than the one before."""
    count = shape.batch + 1
    lengths = [(max(0, shape.q_len - 3 * b), max(0, shape.kv_len - 7 * b)) for b in range(count)]
    packed = replace(shape, batch=count, lengths=tuple(lengths))
    return compare.forward(packed, level, seed, found)


@dataclass(frozen=True)
class Own:
    """A kernel of the project, or several that compute one thing together. See `Subject`."""

    name: str
    _run: _Run
    random: tuple[Shape, ...]
    formal: tuple[Shape, ...]

    def shapes(self, level: Level) -> tuple[Shape, ...]:
        return self.random if level == "fields" else self.formal

    def compare(
        self, shape: Shape, level: Level, seed: int = 0, only: compare.Place | None = None
    ) -> Compared:
        return self._run(shape, level, seed, Compared(only=only))

    def program(self, shape: Shape, number: int, output: str) -> tuple[int, ...]:
        return (number,)


SUBJECTS = {
    one.name: one
    for one in (
        Own("forward", compare.forward, (*_SMALL, *_REAL), _SMALL),
        Own("varlen", _varlen, (*_SMALL, *_REAL), _SMALL[1:4]),
        Own("decode", _decode, (*_SMALL, *_TALL), (*_TINY, _SMALL[0])),
        Own("combine", _combine, (*_SMALL[2:], *_TALL), _SMALL[2:]),
        Own(
            "backward", compare.backward,
            (*_TINY, Shape(q_len=17, kv_len=20, head_dim=3, value_dim=2)), _TINY,
        ),
    )
}  # fmt: skip
