"""The plots of `conform --html`: the positions of marks. `templates/plots.html.jinja` draws them.

Both axes of numbers are logarithmic; a number that is 0 or below the axis stands at its lower end,
one above it, infinity or NaN at its upper one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bridge.conformance.judging.judge import VectorResult

# Of the plot of families: its axis of error/tolerance.
_LEAST, _MOST = 1e-5, 1e5
# Decades of an axis; more of them are cut off below.
_DECADES = 12
_TICKS = 6
# Sizes in pixels; the names of families stand left, the numbers of errors too.
LEFT, RIGHT, ROW, WIDTH = 190, 660, 16, 680
ERRORS_LEFT, TOP, BOTTOM = 60, 12, 180


@dataclass(frozen=True)
class Scale:
    """From numbers between low and high, both above 0, to pixels between start and stop."""

    low: float
    high: float
    start: float
    stop: float

    def at(self, number: float) -> float:
        """Where it stands."""
        if not number > self.low:
            share = 1.0 if math.isnan(number) else 0.0
        elif number >= self.high:
            share = 1.0
        else:
            low = math.log(self.low)
            share = (math.log(number) - low) / (math.log(self.high) - low)
        return round(self.start + share * (self.stop - self.start), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Powers of ten, not too many, where they stand and how they are written."""
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        every = max(1, math.ceil((last - first + 1) / _TICKS))
        # So that 1 is one of them.
        chosen = range(first + -first % every, last + 1, every)
        return [(self.at(10.0**n), "1" if n == 0 else f"1e{n}") for n in chosen]


@dataclass(frozen=True)
class Dot:
    """A number: its position, its value, and whether it is within its tolerance."""

    x: float
    y: float
    text: str
    ok: bool


@dataclass(frozen=True)
class Families:
    """error/tolerance of each vector that was judged, a row for each family: its name and where it
    stands, its dots. limit: where 1 stands."""

    names: tuple[tuple[float, str], ...]
    dots: tuple[Dot, ...]
    ticks: tuple[tuple[float, str], ...]
    limit: float
    height: int


def families(results: Iterable[VectorResult]) -> Families | None:
    """The plot of these results; None where none was judged. A vector whose result was none that
    could be judged counts as ∞."""
    judged: dict[str, list[tuple[float, VectorResult]]] = {}
    for result in results:
        if result.status != "unsupported":
            found = [x for x in (result.ratio, result.lse_ratio) if x is not None]
            ratio = max(found, key=_order, default=math.inf if result.status == "failed" else 0.0)
            judged.setdefault(result.family, []).append((ratio, result))
    if not judged:
        return None
    scale = Scale(_LEAST, _MOST, LEFT, RIGHT)
    names, dots = [], []
    for n, (family, some) in enumerate(judged.items()):
        y = TOP + ROW * (n + 0.5)
        names.append((y, family))
        dots += [
            Dot(scale.at(ratio), y, f"{one.id}: {ratio:.3g}", one.status == "passed")
            for ratio, one in some
        ]
    # Those that fail are drawn last, above the others.
    dots.sort(key=lambda dot: not dot.ok)
    height = TOP + ROW * len(judged)
    return Families(
        tuple(names), tuple(dots), tuple(scale.ticks()), scale.at(1.0), height
    )  # fmt: skip


def _order(ratio: float) -> float:
    return math.inf if math.isnan(ratio) else ratio


@dataclass(frozen=True)
class Errors:
    """The errors of some elements of a result and their tolerances. path: of the tolerances, as SVG
    has it; ticks: of the errors."""

    of: str
    dots: tuple[Dot, ...]
    path: str
    ticks: tuple[tuple[float, str], ...]


def errors(of: str, error: Sequence[float], tolerance: Sequence[float]) -> Errors:
    """The plot of these errors, at least one, beside their tolerances. of: a name of the
    elements."""
    # Nothing near the smallest numbers that there are, of which a part would be 0.
    numbers = [x for x in (*error, *tolerance) if 1e-280 < x < math.inf] or [1.0]
    high = min(max(numbers), 1e300) * 4
    scale = Scale(max(min(numbers) / 4, high * 10.0**-_DECADES), high, BOTTOM, TOP)
    step = (RIGHT - ERRORS_LEFT) / len(error)
    dots: list[Dot] = []
    path: list[str] = []
    for n, (one, allowed) in enumerate(zip(error, tolerance, strict=True)):
        left, right = ERRORS_LEFT + n * step, ERRORS_LEFT + (n + 1) * step
        y = scale.at(allowed)
        path.append(f"{'L' if path else 'M'}{left:.1f} {y}H{right:.1f}")
        text = f"{n}: error {one:.3g}, tolerance {allowed:.3g}"
        dots.append(Dot(round((left + right) / 2, 1), scale.at(one), text, one <= allowed))
    return Errors(of, tuple(dots), "".join(path), tuple(scale.ticks()))
