"""The JSON Schemas that are published: as strict as the loader is on shapes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import committed
import jsonschema
import pytest
from vector_edits import Vector, document, drop, put, refusal_of

from bridge.vectors.format import shape_check
from bridge.vectors.format.fields import VectorError
from bridge.vectors.format.read import READERS
from bridge.vectors.load import default_directory, family_of

FOLDER = default_directory().parents[1] / "bridge" / "vectors"
# One small family of each operation and model.
SMALL = {(e["operation"], e["model"]): e["family"] for e in reversed(committed.ENTRIES)}


@cache
def validator(name: str = "schema.json") -> Any:
    schema = json.loads((FOLDER / name).read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_every_operation_has_a_shape_and_a_reader() -> None:
    assert shape_check.VECTORS.keys() == READERS.keys()
    assert set(SMALL) <= {(o, m) for o, models in shape_check.VECTORS.items() for m in models}


def test_the_schema_of_the_index_accepts_the_index() -> None:
    text = (default_directory() / "index.json").read_text("utf-8")
    validator("index_schema.json").validate(json.loads(text))


@pytest.mark.parametrize("name", SMALL.values())
def test_the_schema_accepts_what_the_loader_accepts(name: str) -> None:
    validator().validate(document(name, 0))


DAMAGE: dict[str, tuple[str, int, Callable[[Vector], Any], str]] = {
    "a field too few": ("window", 0, lambda v: v.pop("scale"), "lacks field scale."),
    "a field too many": ("window", 0, put("note", "x"), "field note: is not known."),
    "a number for a string": ("window", 0, put("q", 0, 0, 1), "q[0][0]: 1 is not a string."),
    "a leading zero": (
        "window", 0, put("q", 0, 0, "01"), 'q[0][0]: "01" is not an integer or a fraction p/q',
    ),
    "a long number": ("window", 0, put("q", 0, 0, "1" * 4001), "4001 characters, more than 4000."),
    "a size of 0": ("window", 0, put("q_len", 0), "field q_len: 0 is below 1."),
    "a kind of mask": (
        "window", 0, put("mask", "kind", "sliding"),
        'field mask.kind: "sliding" is not one of none, causal, causal-bottom-right, window,',
    ),
    "no kind of mask": ("window", 0, lambda v: v["mask"].pop("kind"), "lacks field mask.kind."),
    "a mask that is none": ("window", 0, put("mask", "causal"), 'mask: "causal" is not an object.'),
    "another alignment": (
        "window", 0, put("mask", "alignment", "centre"), "is not one of bottom-right, top-left.",
    ),
    "a row of bounds": (
        "window", 0, put("expected", 0, {"log_sum_exp": None, "output": {}}),
        "expected[0]: is a row of the natural model in a file of the exact one.",
    ),
    "an edit of another kind": (
        "cache-edits", 4, put("edits", 0, "kind", "insert"),
        'field edits[0].kind: "insert" is not one of append, delete, replace, slide.',
    ),
    "a tree of three": ("merge", 0, put("tree", [0, 1, 1]), "field tree: has 3 trees, but 2 are"),
    "a tree of a text": ("merge", 0, put("tree", [0, "1"]), "field tree[1]: is neither the number"),
    "a tree of true": ("merge", 0, put("tree", True), "field tree: true is not an integer or a l"),
    "gradients of a text": (
        "gradient", 0, put("expected_q", "0"), 'expected_q: "0" is not an object or a list.',
    ),
    "dropout without a seed": (
        "gradient-dropout", 0, lambda v: v.pop("dropout_seed"),
        "field dropout_seed: is missing, but dropout_p, dropout_seed, keep are given together.",
    ),
    "a counter of three words": ("philox", 0, drop("counters", 0), "has 3 entries, less than 4."),
    "a word of 33 bits": ("philox", 0, put("key", 0, 1 << 32), "is above 4294967295."),
    "a layer of another kind": (
        "linear", 0, put("layer", "convolution"), 'layer: "convolution" is not one of linear, lay',
    ),
    "a layer without a kind": ("linear", 0, lambda v: v.pop("layer"), "lacks field layer."),
    "no rows": ("linear", 0, put("x", []), "field x: has 0 entries, less than 1."),
    "a row of nothing": ("linear", 0, put("x", 0, []), "field x[0]: has 0 entries, less than 1."),
    "no layers": ("encoder-layer", 0, put("parameters", []), "parameters: has 0 entries, less"),
    "true for a text": ("encoder-layer", 0, put("norm_first", "true"), "is not true or false."),
    "no normalisation": (
        "decoder-layer", 0, lambda v: v["parameters"][0].pop("cross_norm"),
        "lacks field parameters[0].cross_norm.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_the_loader_and_the_schema_refuse_the_same_shapes(name: str) -> None:
    family, n, edit, sentence = DAMAGE[name]
    damaged = document(family, n)
    edit(damaged["vectors"][0])
    assert sentence in refusal_of(family, n, edit)
    assert not validator().is_valid(damaged)


def test_a_name_like_a_place_is_only_a_name() -> None:
    strange = document("window", 0) | {"x - at `$.vectors[7].q": 1}
    with pytest.raises(VectorError, match=r"field x - at `\$\.vectors\[7\]\.q: is not known\.$"):
        family_of(strange, "window.json")
