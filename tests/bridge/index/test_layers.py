"""Where boxes and arrows stand."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from bridge.index.layers import Placed, Space, place

SPACE = Space(between=6.0, column=40.0, margin=5.0)
SIZE = (50.0, 20.0)


def draw(
    boxes: int, arrows: list[tuple[int, int]], columns: list[int] | None = None
) -> tuple[Placed, list[list[int]]]:
    """The placed boxes, and those of each column from top to bottom."""
    placed = place([SIZE] * boxes, arrows, SPACE, columns)
    at = sorted(range(boxes), key=placed.corners.__getitem__)
    by_x = itertools.groupby(at, key=lambda n: placed.corners[n][0])
    return placed, [list(some) for _, some in by_x]


def ends(curve: str) -> list[float]:
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", curve)]
    return [*numbers[:2], *numbers[-2:]]


def test_a_chain_is_a_straight_line() -> None:
    placed, columns = draw(3, [(0, 1), (1, 2)])
    assert columns == [[0], [1], [2]]
    assert {y for _, y in placed.corners} == {5.0 + 3.0}
    assert [x for x, _ in placed.corners] == [5.0, 95.0, 185.0]
    assert ends(placed.curves[0]) == [55.0, 18.0, 95.0, 18.0]
    assert (placed.width, placed.height) == (240.0, 36.0)


def test_an_arrow_that_passes_a_column_goes_around_what_stands_there() -> None:
    placed, columns = draw(3, [(0, 1), (1, 2), (0, 2)])
    assert columns == [[0], [1], [2]]
    around = placed.curves[2]
    # It is flat between the edges of the column, beside the box.
    flat = re.findall(r"C120 ([\d.]+) 120 ([\d.]+) 145", around)
    assert len(flat) == 1
    top = placed.corners[1][1]
    assert not top < float(flat[0][0]) < top + SIZE[1]


def test_crossings_that_need_not_be_are_not() -> None:
    _, columns = draw(6, [(0, 5), (1, 4), (2, 3)])
    left, right = columns
    joined = {0: 5, 1: 4, 2: 3}
    assert [joined[n] for n in left] == right


def test_columns_are_those_given_or_as_far_left_as_arrows_allow() -> None:
    _, columns = draw(4, [(0, 1), (1, 2), (3, 2)])
    assert columns[1] in ([1, 3], [3, 1])
    _, columns = draw(4, [(0, 1), (1, 2), (3, 2)], [0, 1, 2, 0])
    assert sorted(columns[0]) == [0, 3]


def test_arrows_in_a_circle_are_refused() -> None:
    with pytest.raises(ValueError, match="circle"):
        draw(2, [(0, 1), (1, 0)])


def test_boxes_never_overlap_and_a_drawing_is_the_same_every_time() -> None:
    numbers = random.Random(0)
    for _ in range(20):
        arrows = [(a, b) for a in range(14) for b in range(a) if numbers.random() < 0.15]
        arrows = [(b, a) for a, b in arrows]
        placed, columns = draw(14, arrows)
        assert placed == draw(14, arrows)[0]
        assert all(placed.corners[a][0] < placed.corners[b][0] for a, b in arrows)
        for column in columns:
            for above, below in itertools.pairwise(column):
                gap = placed.corners[below][1] - placed.corners[above][1] - SIZE[1]
                assert gap > SPACE.between - 1e-6
        for x, y in placed.corners:
            assert 0 < x < placed.width - SIZE[0]
            assert 0 < y < placed.height - SIZE[1]
