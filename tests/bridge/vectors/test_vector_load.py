"""The loader accepts the committed vectors and rejects every kind of damage with one sentence."""

from __future__ import annotations

import contextlib
import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import vector_edits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.vectors.format import files, index
from bridge.vectors.format.fields import VectorError
from bridge.vectors.load import default_directory, family_of, load, load_file

Document = dict[str, Any]

GOOD: Document = {
    "format": "attention-vectors-2",
    "family": "two-keys",
    "about": "Made up for the tests of the loader.",
    "operation": "attention",
    "model": "exact",
    "vectors": [
        {
            "id": "two-keys-001",
            "lean": "Attention.Spec.attention",
            "theorem": "flash-eq-attention",
            "reason": "The smallest that has everything.",
            "q_len": 2,
            "kv_len": 2,
            "head_dim": 1,
            "value_dim": 1,
            "scale": "1",
            "q": [["1"], ["2"]],
            "k": [["0"], ["1"]],
            "v": [["3"], ["-1/2"]],
            "mask": {"kind": "boolean", "rows": ["11", "00"]},
            "expected": [
                {
                    "max": "1",
                    "denominator": "3/2",
                    "output": {"denominator": "3", "numerators": ["2"]},
                },
                {
                    "max": None,
                    "denominator": "0",
                    "output": {"denominator": "1", "numerators": ["0"]},
                },
            ],
        }
    ],
}


def natural() -> Document:
    """The same two keys under the natural exponential: weights 1/(1 + e) and e/(1 + e)."""
    document = copy.deepcopy(GOOD)
    document["model"] = "natural"
    vector = document["vectors"][0]
    vector["scale"] = "default"
    unit = 1 << 128
    out = int((3 - 0.5 * math.e) / (1 + math.e) * 2**60) << 68
    lse = int(math.log(1 + math.e) * 2**60) << 68
    slack = unit >> 70
    vector["expected"] = [
        {
            "log_sum_exp": {"lower": str(lse - slack), "upper": str(lse + slack)},
            "output": {"lower": [str(out - slack)], "upper": [str(out + slack)]},
        },
        {"log_sum_exp": None, "output": {"lower": ["0"], "upper": ["0"]}},
    ]
    return document


def damage(edit: Callable[[Document, Document], object], good: Document = GOOD) -> Document:
    document = copy.deepcopy(good)
    edit(document, document["vectors"][0])
    return document


def put(*path: Any) -> Callable[[Document, Document], None]:
    """An edit of the first vector: keys, then the new value."""
    edit = vector_edits.put(*path)
    return lambda _document, vector: edit(vector)


def test_a_good_document_becomes_exact_numbers() -> None:
    family = family_of(GOOD, "two-keys.json")
    (vector,) = family.vectors
    assert (vector.q, vector.v) == (((1,), (2,)), ((3,), (Fraction(-1, 2),)))
    assert vector.expected[0].output == (Fraction(2, 3),)
    assert float(vector.expected[0].log_sum_exp) == pytest.approx(1.0986122886681098, abs=1e-15)
    assert float(vector.expected[1].log_sum_exp) == float("-inf")
    assert [vector.mask.visible(i, 1) for i in (0, 1)] == [True, False]


def refusal_of(document: Document) -> str:
    return vector_edits.refusal(lambda: family_of(document, "two-keys.json"))


# Errors that a schema sees as well are in `test_shapes`.
DAMAGE: dict[str, tuple[Callable[[Document, Document], object], str]] = {
    "other format": (
        lambda d, _v: d.update(format="attention-vectors-3"),
        "two-keys.json: field format: is attention-vectors-3, but this version reads "
        "attention-vectors-2.",
    ),
    "unknown field": (
        lambda d, _v: d.update(extra=1),
        "two-keys.json: field extra: is not known.",
    ),
    "no vectors": (
        lambda d, _v: d.update(vectors=[]),
        "two-keys.json: field vectors: has 0 entries, less than 1.",
    ),
    "file and family differ": (
        lambda d, _v: d.update(family="three-keys"),
        "two-keys.json: field family: says three-keys, but the file is two-keys.json.",
    ),
    "id used twice": (
        lambda d, v: d["vectors"].append(v),
        "two-keys.json: two-keys-001: field id: is already used in this file.",
    ),
    "id of another family": (
        put("id", "one-key-001"),
        "field id: is not the family's name two-keys",
    ),
    "trailing newline": (put("k", 1, 0, "1\n"), "field k[1][0]:"),
    "other digits": (put("k", 1, 0, "١"), "field k[1][0]:"),
    "zero denominator": (put("v", 0, 0, "1/0"), 'field v[0][0]: "1/0" is not an integer'),
    "not lowest terms": (put("v", 0, 0, "2/4"), "field v[0][0]: 2/4 is not in lowest terms."),
    "not exact in bfloat16": (put("v", 0, 0, "257"), "v[0][0]: 257 is not exact in bfloat16."),
    "no binary fraction": (put("v", 0, 0, "1/3"), "field v[0][0]: 1/3 is not exact in bfloat16."),
    "too large for bfloat16": (put("v", 0, 0, str(2**130)), "is not exact in bfloat16."),
    "huge number": (put("v", 0, 0, "9" * 5000), "field v[0][0]: "),
    "rows missing": (put("k", [["0"]]), "field k: has 1 rows, but kv_len is 2."),
    "row too long": (put("q", 1, ["2", "3"]), "field q[1]: has 2 numbers, but head_dim is 1."),
    "length is no integer": (put("q_len", "2"), 'field q_len: "2" is not an integer.'),
    "mask row missing": (put("mask", "rows", ["11"]), "mask.rows: has 1 rows, but q_len is 2."),
    "mask row short": (
        put("mask", "rows", ["11", "0"]),
        "field mask.rows[1]: has 1 characters, but kv_len is 2.",
    ),
    "mask character": (put("mask", "rows", ["11", "02"]), 'field mask.rows[1]: "02" is not'),
    "window without a bound": (
        put("mask", {"kind": "window", "alignment": "top-left", "left": 1}),
        "two-keys-001: lacks field mask.right.",
    ),
    "window with a negative bound": (
        put("mask", {"kind": "window", "alignment": "top-left", "left": -1, "right": None}),
        "field mask.left: -1 is below 0.",
    ),
    "documents of other keys": (
        put("mask", {"kind": "document", "queries": [0, 1], "keys": [0]}),
        "field mask.keys: has 1 numbers, but kv_len is 2.",
    ),
    "rows with a causal mask": (put("mask", "kind", "causal"), "two-keys-001: field mask"),
    "result missing": (
        lambda _d, v: v["expected"].pop(),
        "field expected: has 1 rows, but q_len is 2.",
    ),
    "denominator below 1": (
        put("expected", 0, "denominator", "1/2"),
        "field expected[0].denominator: is below 1, but the largest weight alone is 1.",
    ),
    "output denominator 0": (
        put("expected", 0, "output", "denominator", "0"),
        "field expected[0].output.denominator: is not positive.",
    ),
    "output denominator negative": (
        put("expected", 0, "output", "denominator", "-3"),
        "field expected[0].output.denominator: is not positive.",
    ),
    "output column missing": (
        put("expected", 0, "output", "numerators", []),
        "field expected[0].output.numerators: has 0 numbers, but value_dim is 1.",
    ),
    "masked row with a denominator": (
        put("expected", 1, "denominator", "1"),
        "field expected[1].denominator: is not 0, but max is null (no key).",
    ),
    "masked row with an output": (
        put("expected", 1, "output", "numerators", ["1"]),
        "field expected[1].output.numerators: are not 0, but max is null (no key).",
    ),
    "maximum of a masked row": (
        put("mask", "rows", ["00", "00"]),
        "field expected[0].max: does not agree with the mask.",
    ),
    "output beyond every value": (
        put("expected", 0, "output", "numerators", ["10"]),
        "field expected[0].output.numerators[0]: makes an output larger than every value, of",
    ),
    "output beyond float64": (
        put("expected", 0, "output", "numerators", ["-1" + "0" * 400]),
        "field expected[0].output.numerators[0]: makes an output larger than every value, of",
    ),
    "default scale": (
        put("scale", "default"),
        "field scale: is the default, which the exact model cannot hold.",
    ),
    "scale beyond float64": (put("scale", "1" + "0" * 400), "field scale: is beyond 2^64."),
    "maximum is a fraction": (put("expected", 0, "max", "1/2"), "field expected[0].max:"),
}


@pytest.mark.parametrize(
    ("mask", "rows"),
    [
        ({"kind": "causal-bottom-right"}, ["10", "11"]),
        ({"kind": "window", "alignment": "bottom-right", "left": 0, "right": None}, ["11", "01"]),
        ({"kind": "key-length", "length": 1}, ["10", "10"]),
        ({"kind": "document", "queries": [1, 0], "keys": [0, 1]}, ["01", "10"]),
    ],
)
def test_masks_by_their_names(mask: Document, rows: list[str]) -> None:
    def edit(_document: Document, vector: Document) -> None:
        vector["mask"] = mask
        vector["expected"][1] = vector["expected"][0]

    (vector,) = family_of(damage(edit), "two-keys.json").vectors
    seen = ["".join("01"[vector.mask.visible(i, j)] for j in range(2)) for i in range(2)]
    assert seen == rows


def test_a_good_document_of_the_natural_model() -> None:
    (vector,) = family_of(natural(), "two-keys.json").vectors
    first, second = vector.expected
    assert float(first.output[0]) == pytest.approx((3 - 0.5 * math.e) / (1 + math.e), abs=1e-15)
    assert float(first.log_sum_exp) == pytest.approx(math.log(1 + math.e), abs=1e-15)
    assert first.uncertainty == Fraction(1, 1 << 70)
    assert (first.masked, second.masked) == (False, True)
    assert (second.output, float(second.log_sum_exp)) == ((Fraction(0),), float("-inf"))
    assert (vector.scale, vector.natural_scale) == (None, 1.0)


NATURAL_DAMAGE: dict[str, tuple[Callable[[Document, Document], object], str]] = {
    "row of the other model": (
        lambda _d, v: v["expected"].__setitem__(0, GOOD["vectors"][0]["expected"][0]),
        "field expected[0]: is a row of the exact model in a file of the natural one.",
    ),
    "file of the other model": (
        lambda d, v: (d.update(model="exact"), v.update(scale="1")),
        "field expected[0]: is a row of the natural model in a file of the exact one.",
    ),
    "bounds the wrong way round": (
        lambda _d, v: v["expected"][0]["output"].update(
            lower=v["expected"][0]["output"]["upper"], upper=v["expected"][0]["output"]["lower"]
        ),
        "field expected[0]: has a lower bound above the upper one.",
    ),
    "bounds far apart": (
        put("expected", 0, "output", "lower", ["0"]),
        "field expected[0]: has bounds that are further apart than 2^-60.",
    ),
    "bound missing": (
        put("expected", 0, "output", "upper", []),
        "field expected[0].output.upper: has 0 numbers, but value_dim is 1.",
    ),
    "masked row with an output": (
        put("expected", 1, "output", {"lower": ["1"], "upper": ["1"]}),
        "field expected[1].output: is not 0, but log_sum_exp is null (no key).",
    ),
    "log-sum-exp of a masked row": (
        put("mask", "rows", ["00", "00"]),
        "field expected[0].log_sum_exp: does not agree with the mask.",
    ),
    "bound that is a fraction": (
        put("expected", 0, "output", "lower", ["1/2"]),
        'field expected[0].output.lower[0]: "1/2" is not a decimal integer',
    ),
}


@pytest.mark.parametrize("name", NATURAL_DAMAGE)
def test_damage_of_bounds_is_refused_in_one_sentence(name: str) -> None:
    edit, sentence = NATURAL_DAMAGE[name]
    assert sentence in refusal_of(damage(edit, natural()))


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_refused_in_one_sentence(name: str) -> None:
    edit, sentence = DAMAGE[name]
    message = refusal_of(damage(edit))
    assert sentence in message
    assert message.startswith("two-keys.json: ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "bad.json: is not JSON: "),
        ('{"format": ', "bad.json: is not JSON: "),
        ('{"a": 1, "a": 2}', "bad.json: field a: occurs twice in one object."),
        ("[" * 100_000, "bad.json: is nested more than 64 deep."),
        ("[]", "bad.json: is not an object with the fields of this format."),
        ("null", "bad.json: is not an object with the fields of this format."),
        ("\ufeff{}", "bad.json: is not JSON: "),
    ],
)
def test_files_that_are_no_vector_files(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "bad.json").write_text(text, "utf-8")
    found = vector_edits.refusal(lambda: load_file(tmp_path / "bad.json"))
    assert found.startswith(sentence)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(VectorError, match=r"bad\.json: is not UTF-8 text"):
        load_file(tmp_path / "bad.json")


def test_an_id_in_two_files(tmp_path: Path) -> None:
    (tmp_path / "two-keys.json").write_text(json.dumps(GOOD))
    other = dict(GOOD, family="two")
    (tmp_path / "two.json").write_text(json.dumps(other))
    listed = [
        index.entry(
            replace(family_of(GOOD, "two-keys.json"), name=name),
            files.sha256((tmp_path / f"{name}.json").read_bytes()),
        )
        for name in ("two-keys", "two")
    ]
    (tmp_path / "index.json").write_text(index.text(listed))
    with pytest.raises(VectorError, match=r"two\.json: two-keys-001: field id"):
        load(tmp_path)


def test_an_empty_directory(tmp_path: Path) -> None:
    with pytest.raises(VectorError, match="there is no vector file"):
        load(tmp_path)


def test_the_committed_vectors_load() -> None:
    families = load()
    names = [family.name for family in families]
    assert names == sorted(names)
    assert sum(len(family.vectors) for family in families) >= 200
    listed = index.entries_of(default_directory())
    for entry, family in zip(listed, families, strict=True):
        assert index.ids(entry) == [vector.id for vector in family.vectors]
    first = default_directory() / f"{names[0]}.json"
    assert load_file(first) == families[0]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_one_value_replaced_loads_or_is_refused(data: st.DataObject) -> None:
    """No damage of one place escapes as another exception."""
    document = copy.deepcopy(GOOD)
    target: Any = document
    while True:
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        key = data.draw(st.sampled_from(keys))
        inner = target[key]
        if not isinstance(inner, (dict, list)) or not inner or data.draw(st.booleans()):
            break
        target = inner
    target[key] = data.draw(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats() | st.just([])
    )
    with contextlib.suppress(VectorError):
        family_of(document, "two-keys.json")
