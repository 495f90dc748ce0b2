"""The committed results against a second derivation, from the mathematical definition."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args

import committed
import pytest

from bridge.vectors.exact import attention as exact
from bridge.vectors.model.attention import (
    BOUNDS_UNIT,
    Alibi,
    AttentionVector,
    EnclosedRow,
    Mask,
    MaskKind,
    Row,
    State,
    Vector,
)
from bridge.vectors.model.dropout import DropoutVector, PhiloxVector
from bridge.vectors.model.gradients import Gradients, GradientVector
from bridge.vectors.model.operations import (
    CacheVector,
    CombineVector,
    Edit,
    GroupedQueryVector,
    Key,
    LaidOutVector,
    MergeVector,
    TileBoundsVector,
)
from bridge.vectors.model.sampled import SampledVector
from bridge.vectors.model.shards import ShardsVector
from bridge.vectors.model.tangents import TangentVector
from bridge.vectors.model.transformers import Enclosed, LayerVector, TransformerVector


def attention() -> list[AttentionVector]:
    return committed.vectors("attention")


def vector(**changes: object) -> AttentionVector:
    """Scores 0 and 1 for one query, values 3 and −1/2; without a result."""
    base = AttentionVector(
        "hand-1", "hand", "Attention.Spec.attention", "flash-eq-attention", "By hand.", "exact",
        1, 2, 1, 1, 1, ((1,),), ((0,), (1,)), ((3,), (Fraction(-1, 2),)), Mask("none"), (),
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "most", "denominator", "output"),
    [
        # Weights 1 and 2: (3 − 1)/3.
        ({}, 1, Fraction(3, 2), Fraction(2, 3)),
        # Weights 1 and 1/4: (3 − 1/8)·4/5.
        ({"scale": -2}, 0, Fraction(5, 4), Fraction(23, 10)),
        ({"mask": Mask("boolean", ((False, False),))}, None, 0, Fraction(0)),
        # Top-left.
        ({"mask": Mask("causal")}, 0, 1, Fraction(3)),
    ],
)
def test_by_hand(changes: Any, most: int | None, denominator: Any, output: Fraction) -> None:
    (row,) = exact.attention(vector(**changes))
    assert (row.max, row.denominator, row.output) == (most, denominator, (output,))


def test_a_score_that_is_no_integer() -> None:
    with pytest.raises(ValueError, match="query 0 and key 1 is not an integer"):
        exact.attention(vector(scale=Fraction(1, 2)))


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.thorough)])
def test_committed_vectors_agree(step: int) -> None:
    """Every third of each family, or all."""
    vectors = [v for name in committed.names() for v in committed.family(name).vectors[::step]]
    wrong = [w for v in vectors for w in exact.disagreements(v)]
    assert wrong == []


@pytest.mark.parametrize("field", ["max", "denominator", "numerators"])
def test_one_changed_number_is_found(field: str) -> None:
    family = committed.family("small-random")
    good = family.vectors[-1]
    row = good.expected[0]
    assert isinstance(row, Row)
    assert row.max is not None
    changed = {
        "max": replace(row, max=row.max + 1),
        "denominator": replace(row, denominator=row.denominator + 1),
        "numerators": replace(row, numerators=(row.numerators[0] + 1, *row.numerators[1:])),
    }[field]
    bad = replace(good, expected=(changed, *good.expected[1:]))
    assert len(exact.disagreements(bad)) == 1


@pytest.mark.parametrize("field", ["lower", "upper", "lse_bounds", "no key"])
def test_a_bound_on_the_wrong_side_is_found(field: str) -> None:
    family = committed.family("default-scale")
    good = family.vectors[-1]
    row = good.expected[0]
    assert isinstance(row, EnclosedRow)
    assert row.lse_bounds is not None
    low, high = row.lse_bounds
    changed = {
        "lower": replace(row, lower=(row.upper[0] + 1, *row.lower[1:])),
        "upper": replace(row, upper=(row.lower[0] - 1, *row.upper[1:])),
        "lse_bounds": replace(row, lse_bounds=(high + 1, high + (high - low) + 1)),
        "no key": replace(row, lse_bounds=None),
    }[field]
    bad = replace(good, expected=(changed, *good.expected[1:]))
    assert len(exact.disagreements(bad)) == 1


def test_the_natural_exponential_by_hand() -> None:
    # Weights e^0 and e^(1/√4 · 2): (3 − e/2)/(1 + e).
    one = vector(model="natural", scale=None, head_dim=4, q=((1, 0, 0, 0),), k=((0,) * 4, (2,) * 4))
    (out,), lse = exact.natural_row(one, 0)
    assert float(out) == pytest.approx((3 - math.e / 2) / (1 + math.e), abs=1e-15)
    assert float(lse) == pytest.approx(math.log(1 + math.e), abs=1e-15)


SEEN = {
    # Which of 4 keys each of 2 queries sees, from the definitions by hand.
    "causal": (Mask("causal"), ["1000", "1100"]),
    "causal-bottom-right": (Mask("causal-bottom-right", shift=2), ["1110", "1111"]),
    "window top-left": (Mask("window", left=0, right=1), ["1100", "0110"]),
    "window bottom-right": (Mask("window", shift=2, left=1, right=0), ["0110", "0011"]),
    "no bound before": (Mask("window", shift=1, left=None, right=0), ["1100", "1110"]),
    "no bound after": (Mask("window", left=0, right=None), ["1111", "0111"]),
    "key-length": (Mask("key-length", length=3), ["1110", "1110"]),
    "document": (Mask("document", queries=(1, 0), keys=(0, 0, 1, 1)), ["0011", "1100"]),
}


@pytest.mark.parametrize("name", SEEN)
def test_what_each_mask_shows(name: str) -> None:
    mask, rows = SEEN[name]
    assert ["".join("01"[mask.visible(i, j)] for j in range(4)) for i in range(2)] == rows


def test_softcap_alibi_bias_and_sink_by_hand() -> None:
    # Scores 0 and 1 with the scale 1 become: 2·tanh(1/2) for the second; −3 for its distance of 1
    # (query 0 stands at key 0); + 1/2; beside a sink of 1/4.
    given = vector(
        model="natural",
        softcap=2,
        alibi=Alibi(3, 0),
        bias=((Fraction(1, 4), Fraction(1, 2)),),
        sink=Fraction(1, 4),
    )
    second = 2 * math.tanh(0.5) - 3 + 0.5
    weights = [math.exp(0.25), math.exp(second), math.exp(0.25)]
    outputs, lse = exact.natural_row(given, 0)
    wanted = (3 * weights[0] - 0.5 * weights[1]) / sum(weights)
    assert float(outputs[0]) == pytest.approx(wanted, rel=1e-14)
    assert float(lse) == pytest.approx(math.log(sum(weights)), rel=1e-14)


def test_a_bias_of_none_masks_and_a_sink_is_left() -> None:
    bare = vector(model="natural", bias=((None, None),))
    assert exact.natural_row(bare, 0)[1] == Decimal("-Infinity")
    outputs, lse = exact.natural_row(replace(bare, sink=2), 0)
    assert (outputs, lse) == ([0], 2)


def test_a_sink_of_the_exact_model_by_hand() -> None:
    # Weights 1 and 2, and 1 of the sink: (3 − 1)/4; the sink alone where no key is left.
    (row,) = exact.attention(vector(sink=0))
    assert (row.max, row.denominator, row.output) == (1, 2, (Fraction(1, 2),))
    (row,) = exact.attention(vector(sink=0, mask=Mask("boolean", ((False, False),))))
    assert (row.max, row.denominator, row.output) == (0, 1, (0,))
    with pytest.raises(ValueError, match="hand-1: the sink is not an integer"):
        exact.attention(vector(sink=Fraction(1, 2)))


def test_tile_letters_by_hand() -> None:
    # Five queries and keys in tiles of two, causal: the last tile has one real query and key.
    bounds = TileBoundsVector(
        "hand-2", "hand", "Attention.Spec.visitedTiles", "tile-bounds", "By hand.", "exact",
        5, 5, 2, 2, Mask("window", right=0), (),
    )  # fmt: skip
    assert exact.tile_letters(bounds) == ["m--", "um-", "uuu"]


def test_states_by_hand() -> None:
    two, one = Key(2, (8,)), Key(1, (Fraction(1, 2),))
    cache = CacheVector(
        "hand-3", "hand", "Attention.Spec.Online.edit", "kv-edits", "By hand.", "exact",
        1, (two, one), (Edit("delete", index=0), Edit("slide", Key(None, (5,)), window=1)), (),
    )  # fmt: skip
    assert exact.cache_states(cache) == [
        State(2, Fraction(3, 2), (Fraction(33, 4),)),
        State(2, Fraction(1, 2), (Fraction(1, 4),)),
        State(2, 0, (0,)),
    ]


def change(vector: Vector) -> Vector:
    """The same vector with one number of its result changed."""
    if isinstance(vector, TransformerVector):
        return replace(vector, expected_logits=worse_bounds(vector.expected_logits))
    if isinstance(vector, SampledVector):
        return replace(vector, given=(*vector.given[:-1], worse_rows(vector.given[-1])))
    expected: Any = vector.expected  # type: ignore[attr-defined]
    if isinstance(vector, PhiloxVector):
        return replace(vector, expected=(*expected[:-1], expected[-1][::-1]))
    if isinstance(vector, (GroupedQueryVector, DropoutVector)):
        return replace(vector, expected=(*expected[:-1], worse_rows(expected[-1])))
    if isinstance(vector, MergeVector):
        return replace(vector, expected=replace(expected, l=expected.l + 1))
    if isinstance(vector, CacheVector):
        last = replace(expected[-1], o=(expected[-1].o[0] + 1, *expected[-1].o[1:]))
        return replace(vector, expected=(*expected[:-1], last))
    if isinstance(vector, CombineVector):
        return replace(vector, expected=worse_rows((expected,))[0])
    if isinstance(vector, TileBoundsVector):
        flipped = expected[-1][:-1] + ("m" if expected[-1][-1] != "m" else "u")
        return replace(vector, expected=(*expected[:-1], flipped))
    if isinstance(vector, GradientVector):
        if vector.bounds is not None:
            wrong = [worse_gradients(part, 1 << 80) for part in vector.bounds]
            return replace(vector, bounds=(wrong[0], wrong[1]))
        return replace(vector, expected=worse_gradients(expected, 1))
    if isinstance(vector, LayerVector):
        return replace(vector, expected=worse_bounds(expected))
    if isinstance(vector, ShardsVector):
        # A device may have no queries.
        n = max(range(len(expected)), key=lambda i: len(expected[i].merged))
        (*others, last) = expected[n].partials
        wrong = replace(expected[n], partials=(*others, worse_rows(last)))
        return replace(vector, expected=(*expected[:n], wrong, *expected[n + 1 :]))
    assert isinstance(vector, (AttentionVector, LaidOutVector, TangentVector))
    return replace(vector, expected=worse_rows(expected))


def worse_bounds(expected: Enclosed) -> Enclosed:
    def worse(rows: Any) -> Any:
        return (*rows[:-1], (*rows[-1][:-1], rows[-1][-1] + (1 << 80)))

    return Enclosed(worse(expected.lower), worse(expected.upper))


def worse_gradients(expected: Gradients, by: int) -> Gradients:
    first, *others = expected.bias[0][0]
    bias = (((first + by, *others), *expected.bias[0][1:]), *expected.bias[1:])
    return replace(expected, bias=bias)


def worse_rows(rows: Any) -> Any:
    last = rows[-1]
    if isinstance(last, EnclosedRow):
        wrong = replace(
            last,
            lower=tuple(x + (1 << 80) for x in last.lower),
            upper=tuple(x + (1 << 80) for x in last.upper),
        )
    else:
        wrong = replace(last, numerators=(last.numerators[0] + 1, *last.numerators[1:]))
    return (*rows[:-1], wrong)


@pytest.mark.parametrize("name", committed.names())
def test_one_changed_number_of_each_family_is_found(name: str) -> None:
    vector = committed.family(name).vectors[:4][-1]
    assert exact.disagreements(vector) == []
    (problem, *_) = exact.disagreements(change(vector))
    assert vector.id in problem


def test_outputs_are_enclosed_to_2_to_the_minus_60_of_their_terms() -> None:
    widest = Fraction(0)
    for v in attention():
        if v.model == "natural":
            sizes = replace(v, v=tuple(tuple(abs(x) for x in row) for row in v.v))
            for i, row in enumerate(v.expected):
                assert isinstance(row, EnclosedRow)
                terms, _ = exact.natural_row(sizes, i)
                for lo, hi, size in zip(row.lower, row.upper, terms, strict=True):
                    if hi > lo:
                        widest = max(widest, Fraction(hi - lo, BOUNDS_UNIT) / Fraction(size))
    assert 0 < widest <= Fraction(1, 1 << 60)


def test_gradients_are_enclosed_to_2_to_the_minus_60() -> None:
    enclosed = [v for v in committed.vectors("gradient") if v.bounds is not None]
    assert 0 < max(v.uncertainty for v in enclosed) <= Fraction(1, 1 << 90)


@pytest.mark.parametrize("name", ["q", "k", "v", "bias", "slopes", "sinks"])
def test_a_changed_bound_of_each_gradient_is_found(name: str) -> None:
    """By one part in 2^40 of 1, in the last element."""

    def worse(part: Any) -> Any:
        if not isinstance(part, tuple):
            return part + (1 << 88)
        return (*part[:-1], worse(part[-1]))

    vector = committed.vector("gradient-score-mods-000")
    assert vector.bounds is not None
    lower, upper = (replace(part, **{name: worse(getattr(part, name))}) for part in vector.bounds)
    (problem,) = exact.disagreements(replace(vector, bounds=(lower, upper)))
    assert f"expected_{name}[" in problem
    assert "not between its bounds" in problem


def test_every_operation_of_the_spec_has_ten_vectors() -> None:
    counts = Counter(v.lean.removeprefix("Attention.Spec.") for v in committed.vectors())
    wanted = {
        "attention", "attentionSink", "flash", "flashWindow", "flashSchedule", "splitKV", "ring",
        "attentionPadded", "groupedQuery", "groupedQueryPacked", "attentionVarlen",
        "attentionSliced", "attendPaged", "cascade", "combine", "visitedTiles", "Online.merge",
        "Online.edit", "Online.slide", "Online.stepBlockDivided", "safeSoftmax", "onlineSink",
        "RingNet.outputs", "flashSink", "multiHead", "groupedQueryVjp", "sinkVjp", "flashBackward",
        "flashBackwardOneLoop", "attentionDropout", "flashDropout", "flashDrawn", "philox",
        "vjpDropout", "jvp", "Linear.rows", "LayerNorm.rows", "FeedForward.rows", "MultiHead.rows",
        "Transformer.probabilities",
    }  # fmt: skip
    # Layers in each order, stacks with and without a normalisation behind them.
    layers = {
        "EncoderLayer.preNorm", "EncoderLayer.postNorm", "DecoderLayer.preNorm",
        "DecoderLayer.postNorm", "encode", "encodePostNorm", "decode", "decodePostNorm",
        "decodeCached",
    }  # fmt: skip
    assert min(counts[name] for name in layers) >= 3
    for name in layers:
        del counts[name]
    assert counts.keys() >= wanted
    assert min(counts.values()) >= 10
    masks = Counter(v.mask.kind for v in attention())
    assert masks.keys() == set(get_args(MaskKind))
    assert min(masks.values()) >= 10
    options = Counter(name for v in attention() for name in v.options)
    assert options.keys() == {"softcap", "alibi", "bias", "sink"}
    assert min(options.values()) >= 10
