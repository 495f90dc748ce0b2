"""The vectors of layers and of a transformer: refusals, in one sentence each, and the second
derivation by hand."""

from __future__ import annotations

import copy
import json
import math
import operator
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import committed
import pytest
from vector_edits import Vector, at, document, drop, put, read_committed, refusal_of

from bridge.vectors.exact import attention as exact
from bridge.vectors.exact import transformers as exact_transformers
from bridge.vectors.format.fields import VectorError
from bridge.vectors.load import family_of
from bridge.vectors.model.attention import Mask
from bridge.vectors.model.transformers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    LayerVector,
    Linear,
    MultiHead,
    TransformerVector,
    keys_of_decoder,
)

LAYERED = [
    "linear", "layer-norm", "feed-forward", "multi-head-layer", "encoder-layer", "decoder-layer",
    "encoder-stack", "decoder-stack", "cached-decoding", "transformer", "transformer-tied",
    "transformer-positions",
]  # fmt: skip


def number_of(name: str, suits: Callable[[Vector], bool]) -> int:
    """The first vector of a family that suits."""
    vectors = json.loads(read_committed(name))["vectors"]
    return next(n for n, v in enumerate(vectors) if suits(v))


def swap(*path: Any) -> Callable[[Vector], None]:
    """An edit: lower and upper bounds change places."""

    def edit(vector: Vector) -> None:
        bounds = at(vector, path)
        bounds["lower"], bounds["upper"] = bounds["upper"], bounds["lower"]

    return edit


def widen(vector: Vector) -> None:
    row = vector["expected"]["upper"][0]
    row[0] = str(int(row[0]) + (1 << 70))


def without_diagonal(vector: Vector) -> None:
    """A target sees the one behind it."""
    size = len(vector["x"])
    vector["mask"] = {"kind": "boolean", "rows": ["1" * size] * size}


def cross(vector: Vector) -> bool:
    return "context" in vector and len(vector["context"]) > 1


ANY: Callable[[Vector], bool] = lambda vector: True  # noqa: E731

DAMAGE: dict[str, tuple[str, Callable[[Vector], bool], Callable[[Vector], None], str]] = {
    "a weight too narrow": (
        "linear", ANY, drop("parameters", "weight", 0), "field parameters.weight[0]: has ",
    ),
    "a bias too short": (
        "linear", ANY, drop("parameters", "bias"), "the number of rows of parameters.weight is ",
    ),
    "a result too short": ("linear", ANY, drop("expected", "upper"), "field expected.upper: has "),
    "a row of a result too short": (
        "linear", ANY, drop("expected", "upper", 0), "field expected.upper[0]: has ",
    ),
    "bounds that are exchanged": (
        "layer-norm", ANY, swap("expected"),
        "field expected[0][0]: has a lower bound above the upper one.",
    ),
    "bounds far apart": (
        "layer-norm", ANY, widen, "field expected: has bounds that are further apart than 2^-60.",
    ),
    "a bound that is a fraction": (
        "layer-norm", ANY, put("expected", "lower", 0, 0, "1/2"), "field expected.lower[0][0]: ",
    ),
    "no number is taken from a row": (
        "layer-norm", ANY, put("x", 0, []), "field x[0]: has 0 entries, less than 1.",
    ),
    "eps of 0": ("layer-norm", ANY, put("eps", "0"), "field eps: is not positive."),
    "eps that is not exact": (
        "layer-norm", ANY, put("eps", "1/100000"), "field eps: 1/100000 is not exact in bfloat16.",
    ),
    "a number that is not in lowest terms": (
        "feed-forward", ANY, put("parameters", "hidden", "bias", 0, "2/4"),
        "field parameters.hidden.bias[0]: 2/4 is not in lowest terms.",
    ),
    "hidden units that nothing reads": (
        "feed-forward", ANY, drop("parameters", "output", "weight", 0),
        "but the number of rows of parameters.hidden.weight is ",
    ),
    "heads that do not divide": (
        "multi-head-layer", ANY, put("num_heads", 1024), "no multiple of num_heads, 1024.",
    ),
    "a key wider than the query": (
        "multi-head-layer", ANY, drop("parameters", "key", "weight"),
        "but the number of rows of parameters.query.weight is ",
    ),
    "values without a context": (
        "multi-head-layer", lambda v: "context" not in v, put("values", [["0"]]),
        "field values",
    ),
    "values of other keys": (
        "multi-head-layer", lambda v: "values" in v, drop("values"),
        "field values: has ",
    ),
    "a mask of other keys": (
        "multi-head-layer", cross, put("mask", {"kind": "key-padding", "valid": "1"}),
        "field mask.valid: has 1 characters, but the number of rows of context is ",
    ),
    "a layer without its normalisation": (
        "encoder-layer", ANY,
        lambda v: v["parameters"][0].pop("attention_norm"),
        "lacks field parameters[0].attention_norm.",
    ),
    "a causal encoder": (
        "encoder-layer", ANY, put("mask", {"kind": "causal"}),
        "field mask.kind: is causal, none of none, key-padding, key-length.",
    ),
    "an encoder with a context": (
        "encoder-layer", ANY, put("context", [["0"]]), "field context: is not known.",
    ),
    "a normalisation behind layers that are normalised before": (
        "encoder-stack", lambda v: not v["norm_first"] and "norm" in v, put("norm_first", True),
        "field norm: is given, but norm_first is true.",
    ),
    "layers of other widths": (
        "encoder-stack", lambda v: len(v["parameters"]) > 1,
        lambda v: v["parameters"].__setitem__(1, wider(v["parameters"][1], v["num_heads"])),
        "field parameters[1].attention.query.weight: has ",
    ),
    "no layers": (
        "decoder-stack", ANY, put("parameters", []),
        "field parameters: has 0 entries, less than 1.",
    ),
    "a decoder without a context": (
        "decoder-layer", ANY, lambda v: v.pop("context"), "lacks field context.",
    ),
    "a decoder that sees what comes": (
        "decoder-layer", lambda v: len(v["x"]) > 1, without_diagonal,
        "field mask: is not the causal one less some keys.",
    ),
    "a decoder whose context has another mask": (
        "decoder-layer", ANY, put("context_mask", {"kind": "causal"}),
        "field context_mask.kind: is causal, none of",
    ),
    "another kind of layer": (
        "decoder-layer", ANY, put("layer", "pooling"),
        'field layer: "pooling" is not one of linear',
    ),
    "a kind without its fields": (
        "linear", ANY, put("layer", "layer-norm"), "parameters.weight: is not known.",
    ),
    "a token that is not there": (
        "transformer", ANY, put("source_tokens", 0, 4096), "field source_tokens[0]: is 4096, but ",
    ),
    "a result that is no token": (
        "transformer", ANY, put("expected_tokens", 0, 4096), "field expected_tokens[0]: is 4096, ",
    ),
    "a result too many": (
        "transformer", ANY, lambda v: v["expected_tokens"].append(0),
        "field expected_tokens: has ",
    ),
    "a place too few": (
        "transformer", lambda v: len(v["positions"]) > 1, drop("positions"),
        "the larger number of tokens is ",
    ),
    "probabilities too wide": (
        "transformer", ANY, drop("expected_probabilities", "lower", 0),
        "field expected_probabilities.lower[0]: has ",
    ),
    "an output that is not tied": (
        "transformer-tied", ANY, put("parameters", "output", "bias", 0, "1"),
        "field parameters.output.bias: is not 0, but tied is true.",
    ),
    "an embedding that is not tied": (
        "transformer-tied", ANY, put("parameters", "target", 0, 0, "99"),
        "field parameters.target: is not parameters.source, but tied is true.",
    ),
    "positions that are not those turns": (
        "transformer-positions", ANY, put("positions", 0, 0, "1/2"),
        "field positions[0]: is not what quarter_turns[0] makes.",
    ),
    "turns of other places": (
        "transformer-positions", ANY, drop("quarter_turns"),
        "field quarter_turns: has ",
    ),
}  # fmt: skip


def wider(layer: Vector, heads: int) -> Vector:
    """The layer with heads that are one wider."""
    found = copy.deepcopy(layer)
    width = len(found["attention_norm"]["gain"])
    for name in ("query", "key", "value"):
        part = found["attention"][name]
        part["weight"] += [["0"] * width] * heads
        part["bias"] += ["0"] * heads
    for row in found["attention"]["output"]["weight"]:
        row += ["0"] * heads
    return found


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_refused_in_one_sentence(name: str) -> None:
    family, suits, edit, sentence = DAMAGE[name]
    assert sentence in refusal_of(family, number_of(family, suits), edit)


@pytest.mark.parametrize("name", ["linear", "transformer"])
def test_the_exact_model_is_refused(name: str) -> None:
    exact_model = document(name, 0) | {"model": "exact"}
    with pytest.raises(VectorError, match=rf"{name}\.json: field model: is exact"):
        family_of(exact_model, f"{name}.json")


def test_the_keys_of_a_decoder() -> None:
    rows = ((False, False, False), (False, True, False), (False, True, True))
    assert keys_of_decoder(Mask("boolean", rows), 3) == (False, True, True)
    assert keys_of_decoder(Mask("causal"), 3) == (True, True, True)
    assert keys_of_decoder(Mask("boolean", ((True, True), (True, True))), 2) is None
    assert keys_of_decoder(Mask("boolean", ((True, False), (False, True))), 2) is None


def parameters_of(vector: Any) -> list[tuple[str, Any]]:
    """A larger bias in each part of the parameters: its name, and the vector with it."""

    def changes(part: Any) -> list[tuple[str, Any]]:
        if isinstance(part, (Linear, LayerNorm)):
            return [("bias", replace(part, bias=tuple(b + 1 + c for c, b in enumerate(part.bias))))]
        if isinstance(part, tuple):
            return [
                (f"[{n}]{name}", (*part[:n], changed, *part[n + 1 :]))
                for n, one in enumerate(part)
                for name, changed in changes(one)
            ]
        assert isinstance(part, (FeedForward, MultiHead, EncoderLayer, DecoderLayer))
        return [
            (f".{field}{name}", replace(part, **{field: changed}))
            for field, one in vars(part).items()
            for name, changed in changes(one)
        ]

    return [(name, replace(vector, parameters=p)) for name, p in changes(vector.parameters)]


@pytest.mark.parametrize("name", [n for n in LAYERED if not n.startswith("transformer")])
def test_every_parameter_counts(name: str) -> None:
    """A larger bias is found, but for that of a key, which adds the same to all scores of a
    query."""
    vectors: Any = committed.family(name).vectors
    seen, blind = set(), set()
    for vector in vectors:
        assert exact.disagreements(vector) == []
        for place, changed in parameters_of(vector):
            part = re.sub(r"\[\d+\]", "", place)
            (seen if exact.disagreements(changed) else blind).add(part)
    assert blind - seen == {place for place in seen | blind if place.endswith(".keybias")}


def test_inputs_of_a_transformer_count() -> None:
    """Another token, place, mask or scale gives another result."""
    for family in ("transformer", "transformer-positions"):
        for vector in committed.family(family).vectors:
            assert isinstance(vector, TransformerVector)
            first, *others = vector.positions
            moved = ((first[0] + 1, *first[1:]), *others)
            assert exact.disagreements(replace(vector, positions=moved, quarter_turns=None))
            other = tuple((n + 1) % len(vector.parameters.source) for n in vector.source_tokens)
            found = exact.disagreements(replace(vector, source_tokens=other))
            sees = vector.context_mask != Mask("key-length", length=0)
            assert bool(found) == (sees and len(set(vector.parameters.source)) > 1)


def test_a_likelier_token_is_found() -> None:
    vector: Any = committed.family("transformer").vectors[0]
    wrong = tuple((n + 1) % len(vector.parameters.target) for n in vector.expected_tokens)
    found = exact.disagreements(replace(vector, expected_tokens=wrong))
    assert len(found) == len(wrong)
    assert all(f"expected_tokens[{i}]" in sentence for i, sentence in enumerate(found))


def decimals(rows: list[list[float]]) -> list[list[Decimal]]:
    return [[Decimal(x) for x in row] for row in rows]


def test_parts_by_hand() -> None:
    x = decimals([[3, 1]])
    assert exact_transformers.linear(Linear(((2, -1), (0, 4)), (1, 0)), x) == decimals([[6, 4]])
    # Mean 2, variance 1, with ε = 3 a deviation of 2.
    norm = LayerNorm((4, 2), (0, 1))
    assert exact_transformers.layer_norm(norm, 3, x) == decimals([[2, 0]])
    network = FeedForward(Linear(((1, 0), (-1, 0)), (0, 0)), Linear(((1, 5),), (7,)))
    assert exact_transformers.feed_forward(network, x) == decimals([[10]])


def test_attention_by_hand() -> None:
    """Two heads of one number: each column of the output by its own head."""
    same = Linear(((1, 0), (0, 1)), (0, 0))
    part = MultiHead(same, same, same, Linear(((1, 0), (0, 2)), (0, 1)))
    x, keys = decimals([[1, 2]]), decimals([[0, 0], [1, 1]])
    (row,) = exact_transformers.multi_head(part, 2, None, Mask("none"), x, keys, keys)
    shares = [1 / (1 + math.exp(-s)) for s in (1, 2)]
    assert [float(a) for a in row] == pytest.approx([shares[0], 2 * shares[1] + 1], rel=1e-15)
    hidden = Mask("key-length", length=0)
    assert exact_transformers.multi_head(part, 2, None, hidden, x, keys, keys) == [[0, 1]]


def test_the_committed_vectors_are_of_every_kind() -> None:
    vectors = [v for family in committed.families(*LAYERED) for v in family.vectors]
    layers = [v for v in vectors if isinstance(v, LayerVector)]
    kinds = {"linear", "layer-norm", "feed-forward", "multi-head", "encoder", "decoder"}
    assert {v.layer for v in layers} == kinds
    for kind in ("encoder", "decoder"):
        found = {
            (v.norm_first, len(v.layers) > 1, v.norm is None) for v in layers if v.layer == kind
        }
        assert found >= {(True, False, True), (True, True, True), (False, False, True)}
        assert any(norm is False for _, _, norm in found)
    decoders = [v for v in layers if v.layer == "decoder"]
    assert any(not all(keys_of_decoder(v.mask, len(v.x)) or ()) for v in decoders)
    assert any(v.context_mask.kind != "none" for v in decoders)
    models = [v for v in vectors if isinstance(v, TransformerVector)]
    assert {v.tied for v in models} == {True, False}
    assert {v.quarter_turns is None for v in models} == {True, False}


# Where by the reason of the vector all hidden units are on, or all off.
IN_ONE_STATE = ("every unit is off", "every unit is on", "sums that cancel")


def test_a_hidden_unit_is_on_in_a_row_and_off_in_another() -> None:
    """Otherwise its weights, or the rectifier before them, are without influence; in a single row
    there are units of either state."""
    for vector in committed.family("feed-forward").vectors:
        assert isinstance(vector, LayerVector)
        if vector.reason.startswith(IN_ONE_STATE):
            continue
        part = vector.parameters
        assert isinstance(part, FeedForward)
        on = [
            [sum(map(operator.mul, weights, x)) + bias > 0 for x in vector.x]
            for weights, bias in zip(part.hidden.weight, part.hidden.bias, strict=True)
        ]
        columns = on if len(vector.x) > 1 else [[one for (one,) in on]]
        assert all(set(states) == {False, True} for states in columns), vector.id
