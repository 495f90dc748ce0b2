"""The chapters' worked examples: by other means here, and refused where they differ from Lean's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from committed import family as committed
from committed import vector

from bridge.conformance.tolerances.module_tolerance import encoder_layer, exactly
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.conformance.tolerances.tolerance import EVALUATION, attention_tolerance, explain
from bridge.pages.worked import gradients, heads, layer, masks, tiles, tolerance
from bridge.pages.worked.shown import show, show_all
from bridge.source.excerpt import SourceError
from bridge.vectors.model.attention import AttentionVector, Family, Row
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import GroupedQueryVector, TileBoundsVector
from pyimpl.modules import EncoderLayer

# The unit roundoff of float64.
_UNIT = 2.0**-53


def numbers(text: str) -> list[Fraction | None]:
    """A list of numbers as a page shows it."""
    parts = text.strip("()").split(", ")
    return [None if part == "−∞" else Fraction(part.replace("−", "-")) for part in parts]


def change(vector: Any, **fields: Any) -> Family:
    """The family of this vector with it changed."""
    found = committed(vector.family)
    vectors = [replace(v, **fields) if v is vector else v for v in found.vectors]
    return replace(found, vectors=tuple(vectors))


def spoil(rows: tuple[Row, ...], query: int) -> tuple[Row, ...]:
    """Expected rows of which one is wrong."""
    found = list(rows)
    first, *rest = found[query].numerators
    found[query] = replace(found[query], numerators=(first + 1, *rest))
    return tuple(found)


def test_numbers_are_shown_as_a_reader_writes_them() -> None:
    assert show_all([Fraction(-1, 2), None, 3]) == "(−1/2, −∞, 3)"
    assert show(Fraction(4, 2)) == "2"
    assert [tolerance.number(x) for x in (0.0, -3.6765, 0.0422, 1.92e-5)] == [
        "0", "−3.68", "0.0422", "1.92·10⁻⁵",
    ]  # fmt: skip


# --- tiles ----------------------------------------------------------------------------------------


def test_the_states_of_a_tile_are_those_of_the_keys_seen() -> None:
    """By the definition of m, l and o over all keys up to there, not by updates."""
    v: AttentionVector = vector("tile-loop-000")
    cells = tiles.worked_tiles(committed("tile-loop"), v.id, 2, 3).states(1)
    seen: dict[str, list[Fraction | None]] = {"2": [], "3": []}
    for tile, query, scores, m, l, o in cells[:-2]:
        seen[query] += numbers(scores)
        pairs = [
            (s, Fraction(value[0]))
            for s, value in zip(seen[query], v.v, strict=False)
            if s is not None
        ]
        top = max(s for s, _ in pairs)
        weights = [Fraction(2) ** int(s - top) for s, _ in pairs]
        assert (numbers(m), numbers(l)) == ([top], [sum(weights)])
        assert numbers(o)[0] == sum(w * x for w, (_, x) in zip(weights, pairs, strict=True))
        assert int(tile) == (len(seen[query]) - 1) // 3
    assert [len(each) for each in seen.values()] == [7, 7]
    assert [row[1] for row in cells[-2:]] == ["2", "3"]


def test_letters_of_tiles_follow_from_the_pairs() -> None:
    """Of each row of the page, by looking at every pair of the window."""
    v: TileBoundsVector = vector("tile-bounds-007")
    for t, row in enumerate(tiles.bounds(committed("tile-bounds"), v.id)):
        rows = range(t * v.block_m, min((t + 1) * v.block_m, v.q_len))
        assert row[1] == (f"{rows[0]} … {rows[-1]}" if len(rows) > 1 else f"{rows[0]}")
        letters = ""
        for u in range(-(-v.kv_len // v.block_n)):
            cols = range(u * v.block_n, min((u + 1) * v.block_n, v.kv_len))
            pairs = [v.mask.visible(i, j) for i in rows for j in cols]
            letters += "u" if all(pairs) else "m" if any(pairs) else "-"
        assert row[-1] == f"`{letters}`"


# --- masks and heads ------------------------------------------------------------------------------


def test_visible() -> None:
    found = masks.visible(committed("causal"), "causal-002")
    assert found == [[True, False, False], [True, True, False], [True, True, True]]


def test_masked_rows() -> None:
    rows = masks.masked_rows(committed("causal-bottom-right"), "causal-bottom-right-006")
    dead, first, second, *_ = rows
    assert dead == ["0", "(−∞, −∞, −∞, −∞, −∞)", "0", "(0, 0, 0, 0, 0)", "(0, 0)"]
    # One key, of score −1, has all the weight; then 2^0 and 2^1.
    assert (first[2:4], second[2:4]) == (
        ["1/2", "(1, 0, 0, 0, 0)"],
        ["3", "(1/3, 2/3, 0, 0, 0)"],
    )


def test_heads_by_another_way() -> None:
    v: GroupedQueryVector = vector("grouped-query-003")
    one = heads.worked_heads(committed("grouped-query"), v.id)
    for row, a in zip(one.by_head(0), v.attentions(), strict=True):
        scores = [sum(x * y for x, y in zip(a.q[0], k, strict=True)) for k in a.k]
        weights = [Fraction(2) ** int(s) for s in scores]
        total = sum(weights)
        assert numbers(row[2]) == scores
        assert numbers(row[3]) == [w / total for w in weights]
        assert numbers(row[4]) == list(a.expected[0].output)
    assert [row[1] for row in one.by_head(0)] == ["0", "0", "1", "1"]
    # The remainder is right for the first and the last head alone.
    assert [row[4] == row[6] for row in one.by_head(0)] == [True, False, False, True]
    (row, *_) = one.side_by_side()
    assert numbers(row[1]) == [x for a in v.attentions() for x in a.expected[0].output]


# --- backwards ------------------------------------------------------------------------------------


def test_a_gradient_is_a_difference_quotient() -> None:
    """dS of the page, by moving a score: over floats, with e^(s ln 2) for 2^s."""
    v: GradientVector = vector("gradient-003")
    one = gradients.worked_gradients(committed("gradient"), v.id)
    cells = one.by_key(0)
    s0 = np.array([float(numbers(row[2])[0] or 0) for row in cells]) * math.log(2)
    values = np.array(v.v[0], dtype=float)
    d_o, d_l = np.array(v.grad_output[0][0], dtype=float), float(v.grad_log_sum_exp[0][0])

    def loss(s: Any) -> float:
        weights = np.exp(s)
        return float(d_o @ (weights @ values) / weights.sum() + d_l * np.log(weights.sum()))

    for j, row in enumerate(cells):
        step = np.zeros_like(s0)
        step[j] = 1e-6
        moved = (loss(s0 + step) - loss(s0 - step)) / 2e-6
        assert math.isclose(moved, float(numbers(row[6])[0] or 0), rel_tol=1e-6)
    assert one.sum_of_scores(0) == one.grad_lse(0) == "−7/4"
    assert numbers(one.delta(0))[0] == numbers(one.plain_delta(0))[0] - v.grad_log_sum_exp[0][0]  # type: ignore[operator]
    *parts, last = one.shares(0)
    for column in (3, 4):
        rows = [numbers(row[column]) for row in parts]
        assert [sum(x) for x in zip(*rows, strict=True)] == numbers(last[column])  # type: ignore[arg-type]


# --- a layer --------------------------------------------------------------------------------------


def test_the_layer_is_that_of_the_module() -> None:
    """In float64, with e^(s ln 2) for 2^s: the query's projection is multiplied by ln 2 · √d."""
    base = math.log(2) * math.sqrt(layer.HEAD_DIM)
    module = EncoderLayer(
        layer.D_MODEL, layer.NUM_HEADS, layer.D_FF, 0.0, layer_norm_eps=0.0, dtype=torch.float64
    )
    attention, forward = layer.LAYER.attention, layer.LAYER.feed_forward
    with torch.no_grad():
        for linear, of, factor in (
            (module.self_attn.q_proj, attention.query, base),
            (module.self_attn.k_proj, attention.key, 1.0),
            (module.self_attn.v_proj, attention.value, 1.0),
            (module.self_attn.out_proj, attention.output, 1.0),
            (module.feed_forward.linear1, forward.hidden, 1.0),
            (module.feed_forward.linear2, forward.output, 1.0),
        ):
            linear.weight.copy_(factor * tensor(of.weight))
            linear.bias.copy_(factor * tensor([of.bias])[0])
        causal = torch.ones(layer.TOKENS, layer.TOKENS, dtype=torch.bool).tril()
        found = module(tensor(layer.INPUT)[None], attn_mask=causal)[0]
    _, allowed = encoder_layer(exactly(tensor(layer.INPUT)[None]), module, causal)
    # Twice: the query's weights are rounded once more, by no more than the error that is counted
    # for their products.
    assert bool(((found - tensor(layer.output())).abs() <= 2 * allowed[0]).all())
    assert layer.steps()[-1] == ["y + feed-forward", *map(show_all, layer.output())]


def tensor(rows: Any) -> torch.Tensor:
    return torch.tensor([[float(x) for x in row] for row in rows], dtype=torch.float64)


def test_a_later_token_does_not_change_an_earlier_row() -> None:
    other = [layer.INPUT[0], *layer.rows("7 9 7 9")]
    assert layer.output(other)[0] == layer.output()[0]
    assert layer.output(other)[1] != layer.output()[1]


def test_what_is_not_exact_is_refused() -> None:
    with pytest.raises(SourceError, match="the variance 2 of the worked layer is no square"):
        layer.root(Fraction(2))
    with pytest.raises(SourceError, match="the score 1/2 of the worked layer is no whole number"):
        layer.power(Fraction(1, 2))


# --- tolerances -----------------------------------------------------------------------------------


def test_the_parts_of_an_tolerance() -> None:
    one = tolerance.worked_tolerance(committed("tile-loop"), "tile-loop-000", 3, 0, 3)
    assert (one.num_keys, one.blocks) == (6, 3)
    for dtype in tolerance.DTYPES:
        # Sums of six numbers and one product, in two orders.
        whole = sum(one.parts(dtype)) * EVALUATION
        assert math.isclose(whole, one.tolerance(dtype), rel_tol=8 * _UNIT)
    shared, stored, sums, result = one.parts("bfloat16")
    # The output is rounded to 8 bits: 2⁻⁸ of its size, and of the other errors.
    size = float(abs(one.vector.expected[3].output[0]))
    assert math.isclose(result, 2.0**-8 * (size + shared + stored + sums), rel_tol=16 * _UNIT)
    # Each weight is off by 2⁻⁸ of its share.
    keys = one.by_key("bfloat16")
    assert [row[0] for row in keys] == ["0", "1", "2", "3", "4", "6"]
    assert one.shown_output == "377/30 ≈ 12.6"


def test_what_explains_a_tolerance_adds_up_everywhere() -> None:
    rng = np.random.default_rng(5)
    q, k, v = (rng.normal(size=(7, 4)) for _ in range(3))
    mask = rng.random((7, 7)) < 0.7
    mask[:, 0] = True
    for rounding in (RoundingModel.flash("bfloat16", block_n=2), RoundingModel.float32()):
        given: dict[str, Any] = {"scale": 0.5, "mask": mask, "rounding": rounding}
        found = explain(q, k, v, **given)
        whole = attention_tolerance(q, k, v, **given)
        assert np.array_equal(found.terms.total * EVALUATION, whole)
        assert (found.share[~mask] == 0).all()
        assert (found.errors[mask] > 0).all()
        assert (found.rounding <= found.share).all()


# --- refusals -------------------------------------------------------------------------------------


def test_numbers_that_are_not_leans_make_no_page() -> None:
    tile = vector("tile-loop-000")
    masked = vector("causal-bottom-right-006")
    grouped: GroupedQueryVector = vector("grouped-query-003")
    gradient: GradientVector = vector("gradient-003")
    (first, *rest) = grouped.expected
    wrong_heads = (spoil(first, 0), *rest)
    (row, *others) = gradient.expected.v[0]
    wrong = replace(gradient.expected, v=(((row[0] + 1, *row[1:]), *others),))
    bounds = vector("tile-bounds-007")
    tile_family = change(tile, expected=spoil(tile.expected, 0))
    letters = change(bounds, expected=("u" * 9, *bounds.expected[1:]))
    blind = change(masked, expected=spoil(masked.expected, 0))
    of_heads = change(grouped, expected=wrong_heads)
    of_gradients = change(gradient, expected=wrong)
    for work, said in (
        (
            lambda: tiles.worked_tiles(tile_family, tile.id, 2, 3).states(1),
            "tile-loop-000, query 0, in tiles does not end in Lean's numbers",
        ),
        (lambda: tiles.bounds(letters, bounds.id), "tile-bounds-007, tile 0, does not end"),
        (
            lambda: masks.masked_rows(blind, masked.id),
            "causal-bottom-right-006, query 0, does not end",
        ),
        (
            lambda: heads.worked_heads(of_heads, grouped.id).outputs(),
            "grouped-query-003, head 0, does not end",
        ),
        (
            lambda: gradients.worked_gradients(of_gradients, gradient.id),
            "gradient-003: dV does not end",
        ),
    ):
        with pytest.raises(SourceError, match=said):
            work()


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (
            lambda: tiles.worked_tiles(committed("merge"), "merge-000", 2, 3),
            "merge-000 is no vector of attention in merge",
        ),
        (
            lambda: tiles.worked_tiles(committed("natural-scores"), "natural-scores-000", 2, 3),
            "natural-scores-000 is no vector of natural-scores in exact numbers",
        ),
        (lambda: tiles.bounds(committed("causal"), "causal-000"), "no vector of tile bounds"),
        (lambda: masks.visible(committed("merge"), "merge-000"), "no vector of attention"),
        (
            lambda: masks.flood(committed("causal"), "causal-002", 0),
            "causal-002: query 0 sees a key",
        ),
        (
            lambda: heads.worked_heads(committed("grouped-query-drawn"), "grouped-query-drawn-005"),
            "is no vector of heads without a mask",
        ),
        (
            lambda: heads.worked_heads(committed("multi-head"), "multi-head-000").cut(0),
            "multi-head-000: a reshape does no harm to head 0",
        ),
        (
            lambda: gradients.worked_gradients(committed("gradient-bias"), "gradient-bias-000"),
            "gradient-bias-000 is no vector of gradient-bias in exact numbers",
        ),
        (
            lambda: gradients.worked_gradients(committed("gradient"), "gradient-none"),
            "gradient-none is no vector of gradient in exact numbers",
        ),
        (
            lambda: gradients.worked_gradients(
                committed("gradient-grouped"), "gradient-grouped-000"
            ),
            "no vector of gradients of one head without options",
        ),
        (
            lambda: tolerance.worked_tolerance(committed("tile-loop"), "tile-loop-000", 9, 0, 3),
            "tile-loop-000 has no query 9",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_worked_is_said(work: Callable[[], Any], said: str) -> None:
    with pytest.raises(SourceError, match=said):
        work()
