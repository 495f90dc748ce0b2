"""Fresh vectors: inputs that no function has seen, drawn from a seed, with exact results.

They are ordinary vectors, made in memory and judged like those of the files. Number n is the same
for a seed whatever their count is. `docs/conform.md` lists the features that they cover.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bridge.conformance.decoding import draw as decoding
from bridge.conformance.drawing.draw import TURN, Draw
from bridge.conformance.flashinfer import draw as definitions
from bridge.conformance.functions.operation import Operation
from bridge.vectors.model.attention import (
    Family,
    Vector,
)

if TYPE_CHECKING:
    from bridge.conformance.flashinfer.bench import Bench

# How many there are by default: less than a second of processor time to draw and answer.
COUNT = 24
MOST = 1000
_ABOUT = {
    "fresh": "Sizes, scale, mask and numbers drawn for this run: no answer can be known before.",
    "fresh-natural": "Natural exponentials, most with the default scale, drawn for this run.",
    "fresh-options": "A softcap, slopes, a bias or a sink, drawn for this run.",
    "fresh-grouped": "Grouped heads, drawn for this run.",
    "fresh-precise": "Numbers of 24 bits, drawn for this run: rounding an input to 16 bits shows.",
    "fresh-gradient": "Gradients, of a batch, with masks, a softcap or a bias, drawn for this run.",
    "fresh-batch": "Several heads of a batch in one call, drawn for this run.",
    "fresh-tiles": "Masks, grouped heads or options past several tiles, drawn for this run.",
    "fresh-tiles-gradient": "Gradients past several tiles, drawn for this run.",
    "fresh-large": "Real sizes, drawn for this run, of which sampled rows are judged.",
    "fresh-large-tiles": "Masks, grouped heads or options at real sizes, drawn for this run.",
    "fresh-large-gradient": "Gradients at real sizes, drawn for this run.",
    "fresh-problem": "The sizes of the problem, drawn for this run; sampled rows are judged.",
    "fresh-operation": "The problem's operation at other sizes, drawn for this run.",
    definitions.FAMILY: "Sequences with the heads and columns of a definition, drawn for this run.",
    decoding.FAMILY: "Sequences of several streams decoded in turns, drawn for this run.",
}
FAMILIES = tuple(_ABOUT)
# The families that replace others where real sizes are asked for.
_AT_REAL_SIZES = {
    "fresh-batch": "fresh-large", "fresh-tiles": "fresh-large-tiles",
    "fresh-tiles-gradient": "fresh-large-gradient",
}  # fmt: skip
# The families in turn with a problem.
_TURN_OF_PROBLEM = ("fresh-problem", *("fresh-operation",) * 5)


@dataclass(frozen=True)
class Fresh:
    """Which to draw: those of numbers 0 to count − 1, large ones among them or not. names, ids: of
    families and vectors, those alone; both empty: all. problem: those of the operation of a
    problem, and no others, which are drawn once it is known; decode: those of decoding, and no
    others; definition: those of a definition, which are drawn once it is known (bench). multiple:
    the lengths of ten in turn are multiples of this, of the next ten any, and so on."""

    seed: int
    count: int = COUNT
    large: bool = False
    names: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    problem: bool = False
    operation: Operation | None = None
    decode: bool = False
    definition: bool = False
    bench: Bench | None = None
    multiple: int = 1

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """The vectors, with their results."""
        drawn: dict[str, list[Vector]] = {}
        for n, (family, id) in enumerate(self.list_names()):
            if family in self.names or id in self.ids or not (self.names or self.ids):
                multiple = 1 if n // len(TURN) % 2 else self.multiple
                draw = Draw(self.seed, n, family, id, multiple)
                own = self.operation
                if self.bench is not None:
                    sizes = self.bench.sizes
                    size = sizes[n % len(sizes)] if sizes else None
                    stated = self.bench.operation
                    vector: Vector = definitions.draw(draw.random, id, stated, size)
                else:
                    vector = draw.vector() if own is None else draw.of_operation(own)
                drawn.setdefault(family, []).append(vector)
        return tuple(
            Family(name, about, drawn[name][0].operation, "exact", tuple(drawn[name]))
            for name, about in _ABOUT.items()
            if name in drawn
        )

    def list_names(self) -> list[tuple[str, str]]:
        """Family and id of each that the seed and the count mean; nothing is drawn for it."""
        turn: tuple[str, ...] = _TURN_OF_PROBLEM if self.problem else TURN
        if self.decode:
            turn = (decoding.FAMILY,)
        elif self.definition or self.bench is not None:
            turn = (definitions.FAMILY,)
        names = (turn[n % len(turn)] for n in range(self.count))
        large = (_AT_REAL_SIZES.get(x, x) if self.large else x for x in names)
        return [(name, f"{name}-{n:03d}") for n, name in enumerate(large)]

    def options(self) -> list[str]:
        """The options of the command that draw the same."""
        words = ["--fresh", str(self.seed), "--count", str(self.count)]
        return [*words, "--large"] if self.large else words

    def to_json(self) -> dict[str, int | bool]:
        return {"seed": self.seed, "count": self.count, "large": self.large}
