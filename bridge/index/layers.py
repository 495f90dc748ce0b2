"""Boxes in columns, with arrows that lead from left to right around them: Sugiyama's method.

An arrow that passes a column has a place there as if it were a box. The order within the columns is
that of the fewest crossings found when each is sorted, in turn, by the mean place of its neighbours
(Sugiyama, Tagawa and Toda 1981); then each box comes as near to the mean height of its neighbours
as its column allows. The same boxes and arrows always give the same drawing. igraph does not do
that: given the columns, its version 1.0 drew some graphs in a new way each time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

Point = tuple[float, float]

_ORDERINGS, _ALIGNMENTS = 24, 12


@dataclass(frozen=True)
class Space:
    """Pixels: between the boxes of a column, between columns, at the edge, and for an arrow where
    it passes a column."""

    between: float
    column: float
    margin: float
    passage: float = 10.0


@dataclass(frozen=True)
class Placed:
    """corners: of each box the upper left; curves: of each arrow a path for SVG; width, height: of
    the whole."""

    corners: list[Point]
    curves: list[str]
    width: float
    height: float


def place(
    sizes: Sequence[Point],
    arrows: Sequence[tuple[int, int]],
    space: Space,
    columns: Sequence[int] | None = None,
) -> Placed:
    """Give each box its place.

    sizes: width and height of each box; arrows: from box to box by their numbers, in no circle;
    columns: of each box, arrows lead to the right; None: as far to the left as the arrows allow.
    """
    column = list(_columns(len(sizes), arrows) if columns is None else columns)
    # Boxes, then a stand-in for each arrow in each column that it passes.
    heights = [height + space.between for _, height in sizes]
    chains = []
    for start, end in arrows:
        passed = range(column[start] + 1, column[end])
        chains.append([start, *range(len(column), len(column) + len(passed)), end])
        column += passed
        heights += [space.passage] * len(passed)
    joined: list[list[int]] = [[] for _ in column]
    for a, b in itertools.chain.from_iterable(map(itertools.pairwise, chains)):
        joined[a].append(b)
        joined[b].append(a)
    order = _order([[n for n, c in enumerate(column) if c == k] for k in _all(column)], joined)
    middle = _align(order, joined, heights)
    top = min(middle[n] - heights[n] / 2 for n in range(len(column))) - space.margin
    middle = [y - top for y in middle]
    widths = [max((sizes[n][0] for n in c if n < len(sizes)), default=0.0) for c in order]
    starts = [space.margin]
    for width in widths:
        starts.append(starts[-1] + width + space.column)
    curves = []
    for chain in chains:
        points = [(starts[column[chain[0]]] + sizes[chain[0]][0], middle[chain[0]])]
        for n in chain[1:-1]:
            x = starts[column[n]]
            points += [(x, middle[n]), (x + widths[column[n]], middle[n])]
        curves.append(_curve([*points, (starts[column[chain[-1]]], middle[chain[-1]])]))
    corners = [(starts[column[n]], middle[n] - sizes[n][1] / 2) for n in range(len(sizes))]
    bottom = max(middle[n] + heights[n] / 2 for n in range(len(column)))
    return Placed(corners, curves, starts[-1] - space.column + space.margin, bottom + space.margin)


def _all(column: Sequence[int]) -> range:
    return range(max(column, default=-1) + 1)


def _columns(boxes: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """Each box right of all from which an arrow leads to it; a box to which no arrow leads, next to
    the first that it leads to. Raises ValueError for arrows in a circle."""
    column = [0] * boxes
    left = {box: [start for start, end in arrows if end == box] for box in range(boxes)}
    try:
        for box in TopologicalSorter(left).static_order():
            column[box] = max((column[one] + 1 for one in left[box]), default=0)
    except CycleError as error:
        raise ValueError("arrows lead in a circle") from error
    for box in (box for box, before in left.items() if not before):
        column[box] = min((column[end] for start, end in arrows if start == box), default=1) - 1
    return column


def _order(columns: list[list[int]], joined: Sequence[Sequence[int]]) -> list[list[int]]:
    """The columns, each in the order of the fewest crossings that were found."""
    best, fewest = [list(c) for c in columns], _crossings(columns, joined)
    for turn in range(_ORDERINGS):
        there = list(range(len(columns)))
        for k in there[1:] if turn % 2 == 0 else there[-2::-1]:
            beside = columns[k - 1 if turn % 2 == 0 else k + 1]
            place = {n: at for at, n in enumerate(beside)}
            here = {n: float(at) for at, n in enumerate(columns[k])}
            for n in columns[k]:
                near = [place[m] for m in joined[n] if m in place]
                if near:
                    here[n] = sum(near) / len(near)
            columns[k].sort(key=here.__getitem__)
        crossings = _crossings(columns, joined)
        if crossings < fewest:
            best, fewest = [list(c) for c in columns], crossings
    return best


def _crossings(columns: Sequence[Sequence[int]], joined: Sequence[Sequence[int]]) -> int:
    """How many pairs of arrows between neighbouring columns cross."""
    found = 0
    for left, right in itertools.pairwise(columns):
        place = {n: at for at, n in enumerate(right)}
        ends = [sorted(place[m] for m in joined[n] if m in place) for n in left]
        flat = list(itertools.chain.from_iterable(ends))
        found += sum(b < a for at, a in enumerate(flat) for b in flat[at + 1 :])
    return found


def _align(
    columns: Sequence[Sequence[int]], joined: Sequence[Sequence[int]], heights: Sequence[float]
) -> list[float]:
    """The middle of each box and passage."""
    middle = [0.0] * len(heights)
    for column in columns:
        y = -sum(heights[n] for n in column) / 2
        for n in column:
            middle[n] = y + heights[n] / 2
            y += heights[n]
    for turn in range(_ALIGNMENTS):
        for column in columns if turn % 2 == 0 else reversed(columns):
            wanted = [
                sum(middle[m] for m in joined[n]) / len(joined[n]) if joined[n] else middle[n]
                for n in column
            ]
            for n, y in zip(column, _apart(wanted, [heights[n] for n in column]), strict=True):
                middle[n] = y
    return middle


def _apart(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """The places nearest to those wanted, by the sum of squares, at which things of these heights
    stand one below the other: things that would overlap are moved together as one."""
    offsets = []
    below = 0.0
    for height in heights:
        offsets.append(below + height / 2)
        below += height
    # Each group: the sum of the starts that its members want for it, and how many they are.
    groups: list[tuple[float, int]] = []
    for y, offset in zip(wanted, offsets, strict=True):
        groups.append((y - offset, 1))
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            total, number = groups.pop()
            groups[-1] = (groups[-1][0] + total, groups[-1][1] + number)
    starts = [total / number for total, number in groups for _ in range(number)]
    return [start + offset for start, offset in zip(starts, offsets, strict=True)]


def _curve(points: Sequence[Point]) -> str:
    """A path through the points, flat at each."""
    out = f"M{points[0][0]:.0f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        middle = (x0 + x1) / 2
        out += f" C{middle:.0f} {y0:.1f} {middle:.0f} {y1:.1f} {x1:.0f} {y1:.1f}"
    return out
