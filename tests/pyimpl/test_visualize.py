"""The contents of the pictures, and that they are drawn."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pyimpl import visualize
from pyimpl.state import finish
from pyimpl.visualize import MASKED, SKIPPED, WHOLE, visited_tiles

pytest.importorskip("matplotlib")


def visible_pairs(q_len: int, kv_len: int, **options: Any) -> Tensor:
    """Which pairs a mask lets through, by the definition in words: [q_len, kv_len]."""
    left, right = options["window"]
    shift = kv_len - q_len if options["causal_alignment"] == "bottom-right" else 0
    places, keys = torch.arange(q_len)[:, None] + shift, torch.arange(kv_len)
    found = torch.ones(q_len, kv_len, dtype=torch.bool)
    for hidden in (
        options["is_causal"] and keys > places,
        left is not None and keys < places - (left or 0),
        right is not None and keys > places + (right or 0),
    ):
        found &= ~torch.as_tensor(hidden)
    return found


sides = st.none() | st.integers(0, 30)


@given(
    st.tuples(*[st.integers(1, 40)] * 2),
    st.tuples(*[st.integers(1, 12)] * 2),
    st.booleans(),
    st.sampled_from(["top-left", "bottom-right"]),
    st.tuples(sides, sides),
)
def test_tiles_are_what_the_pairs_in_them_say(
    lengths: tuple[int, int],
    blocks: tuple[int, int],
    is_causal: bool,
    alignment: Any,
    window: tuple[int | None, int | None],
) -> None:
    options: dict[str, Any] = {
        "is_causal": is_causal, "causal_alignment": alignment, "window": window,
    }  # fmt: skip
    pairs = visible_pairs(*lengths, **options)
    tiles = visited_tiles(*lengths, block_m=blocks[0], block_n=blocks[1], **options)
    for t, rows in enumerate(pairs.split(blocks[0])):
        for n, tile in enumerate(rows.split(blocks[1], dim=1)):
            if tiles[t, n] == SKIPPED:
                assert not tile.any()
            elif tiles[t, n] == WHOLE:
                assert tile.all()
            else:
                assert tiles[t, n] == MASKED
                assert tile.any()
                assert not tile.all()


def texts(figure: Any) -> list[str]:
    figure.canvas.draw()
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_picture_of_tiles_has_their_numbers() -> None:
    options: dict[str, Any] = {"block_m": 10, "block_n": 20, "is_causal": True}
    figure = visualize.draw_tiles(40, 60, **options)
    tiles = visited_tiles(40, 60, **options)
    (axes,) = figure.axes
    (image,) = axes.get_images()
    assert torch.equal(torch.from_numpy(image.get_array().data), tiles)
    assert tiles.tolist() == [[1, 0, 0], [1, 0, 0], [2, 1, 0], [2, 1, 0]]
    assert axes.get_title() == "6 of 12 tiles visited"
    assert texts(figure) == [
        "not visited: 6", "visited, with a mask: 4", "visited, without one: 2",
    ]  # fmt: skip


def test_errors_beyond_their_tolerance_are_told_from_others() -> None:
    got = torch.tensor([1.0, 2.0, torch.nan, 4.5, torch.inf, torch.inf], dtype=torch.float64)
    expected = torch.tensor([1.0, 2.25, 3.0, 4.0, 5.0, torch.inf], dtype=torch.float64)
    allowed = torch.tensor([0.0, 0.25, 1.0, 0.25, 1.0, 1.0], dtype=torch.float64)
    figure = visualize.draw_errors(got, expected, allowed)
    assert texts(figure) == ["tolerance", "error, within it: 3", "error, beyond it: 3"]
    within, beyond = figure.axes[0].get_lines()
    low, high = figure.axes[0].get_ylim()
    assert within.get_xydata().tolist() == [[0, low], [1, 0.25], [5, low]]
    assert beyond.get_xydata().tolist() == [[2, high], [3, 0.5], [4, high]]


@pytest.mark.parametrize("exact", [0.0, torch.nan])
def test_errors_without_a_number_above_0_are_drawn(exact: float) -> None:
    row = torch.tensor([1.0])
    figure = visualize.draw_errors(row * exact, row * exact, row * 0)
    assert texts(figure)[0] == "tolerance"


@pytest.mark.parametrize("block_n", [1, 3, 7, 20])
def test_the_states_end_in_attention(block_n: int) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(7, generator=generator, dtype=torch.float64)
    scores[[0, 4]] = -torch.inf
    values = torch.randn(7, 2, generator=generator, dtype=torch.float64)
    states = visualize.states_by_block(scores, values, block_n)
    assert len(states) == 1 + -(-7 // block_n)
    torch.testing.assert_close(finish(states[-1])[0], torch.softmax(scores, 0) @ values)
    assert all(bool(a.m <= b.m) for a, b in pairwise(states))
    tops, sums, outs = visualize.draw_states(scores, values, block_n).axes
    ends = [min(n * block_n, 7) for n in range(len(states))]
    dots, maxima = tops.get_lines()[:2]
    assert dots.get_ydata().tolist() == scores.tolist()
    assert maxima.get_xydata().tolist() == [
        [end, float(s.m)] for end, s in zip(ends, states, strict=True)
    ]
    assert sums.get_lines()[0].get_ydata().tolist() == [float(s.l) for s in states]
    for column in range(2):
        drawn = outs.get_lines()[column].get_ydata().tolist()
        assert drawn == [float(finish(s)[0, column]) for s in states]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: visited_tiles(0, 1), "q_len must be a whole number of at least 1, not 0"),
        (lambda: visited_tiles(2, 2, block_n=1.5), "block_n must be a whole number of at least"),
        (lambda: visited_tiles(2, 2, window=(-1, 0)), "the left of window must be at least 0"),
        (lambda: visualize.draw_tiles(2, 2, causal_alignment="middle"), "causal_alignment must be"),
        (
            lambda: visualize.draw_errors(torch.ones(2), torch.ones(3), torch.ones(2)),
            r"expected must have the length of got, at least 1, not \[3\]",
        ),
        (
            lambda: visualize.draw_errors(torch.ones(2), torch.ones(2), -torch.ones(2)),
            "tolerance must be 0 or more everywhere",
        ),
        (
            lambda: visualize.draw_states(torch.ones(2), torch.ones(3, 1), 1),
            "values must have the 2 rows of scores, not 3",
        ),
        (
            lambda: visualize.states_by_block(torch.ones(2), torch.ones(2, 1), 0),
            "block_n must be a whole number of at least 1, not 0",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(wrong: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        wrong()


def test_without_matplotlib_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"matplotlib, which is not installed: pip install"):
        visualize.draw_tiles(2, 2)
    assert visited_tiles(2, 2).tolist() == [[WHOLE]]
