"""The export in hex, read back with `json` and `struct` alone."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import committed
import pytest
import torch

from bridge.conformance.judging.judge import judge
from bridge.conformance.requests.exported import fields
from bridge.conformance.tensors.batch import Outputs, stack
from bridge.conformance.tolerances.rounding_model import CHOICES
from bridge.vectors import export
from bridge.vectors.format import files, index
from bridge.vectors.format.fields import VectorError
from bridge.vectors.load import default_directory
from bridge.vectors.model.attention import AttentionVector
from bridge.vectors.model.operations import CacheVector
from bridge.vectors.model.tangents import TangentVector

# One of each operation, and of each model.
NAMES = (
    "bias", "cache-edits", "cascade", "combine", "fully-masked", "grouped-query", "merge", "paged",
    "shards-uneven", "softcap", "tile-bounds", "varlen",
)  # fmt: skip
LAYERS = ("linear", "decoder-layer", "transformer")
VECTORS = default_directory()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hex") / "new"
    names = [*NAMES, *LAYERS]
    assert [path.stem for path in export.write(folder, names)] == names
    return folder


def numbers(array: dict[str, Any], name: str) -> list[float]:
    code = {"float64": "d", "float64_low": "d", "float32": "f", "float16": "e", "bfloat16": "f"}
    pad = "0000" if name == "bfloat16" else ""
    return [struct.unpack(f">{code[name]}", bytes.fromhex(x + pad))[0] for x in array[name]]


def arrays(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict) and "shape" in data:
        yield data
    elif isinstance(data, (dict, list)):
        for x in data.values() if isinstance(data, dict) else data:
            yield from arrays(x)


def leaves(data: Any) -> list[Any]:
    return [y for x in data for y in leaves(x)] if isinstance(data, list) else [data]


def entries(folder: Path, name: str) -> list[dict[str, Any]]:
    document = json.loads((folder / f"{name}.json").read_text("utf-8"))
    found: list[dict[str, Any]] = document["vectors"]
    return found


def each(folder: Path, name: str) -> Iterator[tuple[dict[str, Any], Any, dict[str, Any]]]:
    """The vectors of a family: as they stand in its file, read, and exported."""
    family = committed.family(name)
    return zip(entries(VECTORS, name), family.vectors, entries(folder, name), strict=True)


def check_sums_of_two(arrays: list[dict[str, Any]], wanted: list[Any]) -> None:
    """In these arrays the nearest number to each stands, and the rest."""
    highs = [x for array in arrays for x in numbers(array, "float64")]
    assert highs == [float(x) for x in wanted]
    lows = [x for array in arrays for x in numbers(array, "float64_low")]
    assert lows == [float(x - Fraction(high)) for x, high in zip(wanted, highs, strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_exact_in_every_format(folder: Path, name: str) -> None:
    for given, _, made in each(folder, name):
        for field in ("q", "k", "v", "prefix_k", "suffix_v", "bias", "softcap"):
            if field not in given:
                continue
            wanted = [-math.inf if x is None else Fraction(x) for x in leaves(given[field])]
            found = list(arrays(made[field]))
            for format in ("float64", "float32", "bfloat16"):
                assert [x for a in found for x in numbers(a, format)] == wanted
            for array in found:
                assert math.prod(array["shape"]) == len(array["float64"])
                if "float16" in array:
                    assert numbers(array, "float16") == numbers(array, "float64")


def result_parts(expected: Any) -> list[Any]:
    """Results by device, partial ones before the merged one, or all in one."""
    if isinstance(expected, list):
        return [part for device in expected for part in (*device["partials"], device["merged"])]
    return [expected]


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("tile-bounds", "cache-edits")])
def test_results_are_sums_of_two(folder: Path, name: str) -> None:
    for _, vector, made in each(folder, name):
        if name == "merge":
            check_sums_of_two([made["expected"]["l"]], [vector.expected.l])
            continue
        rows = [r for problem in attentions(vector) for r in problem.expected]
        parts = result_parts(made["expected"])
        outputs = [x for row in rows for x in row.output]
        check_sums_of_two([part["output"] for part in parts], outputs)
        logs = [x for part in parts for x in numbers(part["log_sum_exp"], "float64")]
        assert logs == [float(row.log_sum_exp) for row in rows]
        uncertain = parts[0].get("uncertainty")
        if uncertain is not None:
            pairs = zip(numbers(uncertain, "float64"), rows, strict=True)
            assert all(x >= row.uncertainty for x, row in pairs)
        assert (uncertain is not None) == any(row.uncertainty for row in rows)


def test_rates_are_exact_and_tangents_sums_of_two(tmp_path: Path) -> None:
    names = ["tangent", "tangent-score-mods"]
    export.write(tmp_path, names)
    for name in names:
        for given, vector, made in each(tmp_path, name):
            assert isinstance(vector, TangentVector)
            for field in (field for field in given if field.startswith("tangent_")):
                rates = given[field] if isinstance(given[field], list) else [given[field]]
                found = [x for a in arrays(made[field]) for x in numbers(a, "bfloat16")]
                assert found == [Fraction(x) for x in leaves(rates)]
            outputs = [x for row in vector.expected for x in row.output]
            check_sums_of_two([made["expected"]["output"]], outputs)
            # Of a query that sees nothing it stays −∞.
            assert numbers(made["expected"]["log_sum_exp"], "float64") == [
                0.0 if row.masked else float(row.log_sum_exp) for row in vector.expected
            ]


def parameters(data: Any) -> Iterator[Any]:
    """The fields of numbers in a vector's entry as it is in the file, with their places."""
    if isinstance(data, dict):
        for name, part in data.items():
            for place, numbers_ in parameters(part):
                yield (name, *place), numbers_
    elif isinstance(data, list) and data and isinstance(data[0], dict):
        for n, part in enumerate(data):
            for place, numbers_ in parameters(part):
                yield (n, *place), numbers_
    else:
        yield (), data


@pytest.mark.parametrize("name", LAYERS)
def test_parameters_are_exact_and_their_results_sums_of_two(folder: Path, name: str) -> None:
    for given, vector, made in each(folder, name):
        count = 0
        for place, wanted in parameters({k: given[k] for k in ("x", "parameters") if k in given}):
            found: Any = made
            for key in place:
                found = found[key]
            assert numbers(found, "bfloat16") == [Fraction(x) for x in leaves(wanted)], place
            count += 1
        assert count > 2
        parts: Any = {"": (made["expected"], getattr(vector, "expected", None))}
        if name == "transformer":
            named = ("logits", "probabilities")
            parts = {n: (made["expected"][n], getattr(vector, f"expected_{n}")) for n in named}
            assert made["expected"]["tokens"] == given["expected_tokens"]
        for got, want in parts.values():
            check_sums_of_two([got["result"]], [x for row in want.middle for x in row])
            assert numbers(got["uncertainty"], "float64")[0] >= want.uncertainty
        assert ("score_factor" in made) == (name != "linear")


def attentions(vector: Any) -> Any:
    return vector.attentions() if hasattr(vector, "attentions") else (vector,)


def test_states_and_factors_are_natural(folder: Path) -> None:
    for _, vector, made in each(folder, "cache-edits"):
        assert isinstance(vector, CacheVector)
        ms = [-math.inf if s.m is None else s.m * math.log(2) for s in vector.expected]
        for got, low, want in zip(
            numbers(made["expected"]["m"], "float64"),
            numbers(made["expected"]["m"], "float64_low"),
            ms,
            strict=True,
        ):
            assert abs(got - want) <= math.ulp(want) if math.isfinite(want) else got == want
            assert math.isfinite(low)
        (high,), (low,) = (numbers(made["score_factor"], n) for n in ("float64", "float64_low"))
        with localcontext(prec=60):
            error = abs(Decimal(high) + Decimal(low) - Decimal(2).ln())
        assert high == math.log(2)
        assert error < Decimal(2) ** -105


def test_what_is_not_exact_in_a_format_is_absent() -> None:
    assert "float16" not in export.inputs([["1", "131072"]])
    assert "bfloat16" in export.inputs([["1", "131072"]])
    assert "bfloat16" not in export.inputs(["257/256"])
    assert export.inputs([]) == {
        "shape": [0], "float64": [], "float32": [], "float16": [], "bfloat16": [],
    }  # fmt: skip
    assert set(export.inputs("1/3")) == {"shape"}
    assert [x["shape"] for x in export.inputs([["1"], ["1", "2"]])] == [[1], [2]]


def test_masks_are_what_they_mean(folder: Path) -> None:
    for _, vector, made in each(folder, "bias"):
        seen = made["visible"]
        assert [[c == "1" for c in row] for row in seen] == [
            [vector.visible(i, j) for j in range(made["kv_len"])] for i in range(made["q_len"])
        ]


def test_it_names_what_it_is_made_from_and_is_the_same_every_time(folder: Path) -> None:
    source = VECTORS / "merge.json"
    document = json.loads((folder / "merge.json").read_text("utf-8"))
    assert document["format"] == "attention-vectors-hex-1"
    assert document["made_from"] == {
        "file": "merge.json", "sha256": files.sha256(source.read_bytes()),
    }  # fmt: skip
    (listed,) = (e for e in index.entries_of(source.parent) if e["family"] == "merge")
    assert export.text(source, listed) == (folder / "merge.json").read_text("utf-8")
    with pytest.raises(VectorError, match=r"merge\.json: its SHA-256 is not that of index\.json"):
        export.text(source, dict(listed, sha256="0" * 64))


def test_the_vectors_themselves_are_not_overwritten() -> None:
    with pytest.raises(VectorError, match="vectors themselves are in this folder"):
        export.write(VECTORS, ["one-key"])


def test_those_of_another_checkout_are_not_overwritten_either(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text("{}")
    (tmp_path / "one-key.json").write_text("kept")
    with pytest.raises(VectorError, match="vectors themselves are in this folder"):
        export.write(tmp_path, ["one-key"])
    assert (tmp_path / "one-key.json").read_text() == "kept"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rounding_model", ["generous", "flash"])
def test_tolerances_are_those_of_the_judge(dtype: str, rounding_model: str, tmp_path: Path) -> None:
    names = ["fully-masked", "softcap", "varlen"]
    more = fields(dtype, rounding_model)
    *some, varlen = export.write(tmp_path, names, more=more)
    assert "tolerance" not in varlen.read_text("utf-8")
    for path in some:
        for _, vector, entry in each(tmp_path, path.stem):
            assert isinstance(vector, AttentionVector)
            batch = stack((vector,), dtype, "cpu")
            # Of NaN, which fails, so that the judge tells all that it compares with.
            nothing = torch.full_like(batch.value[..., :1, :], torch.nan)
            outputs = Outputs(
                nothing.expand(1, 1, vector.q_len, -1), nothing[..., 0].expand(1, 1, vector.q_len)
            )
            (result,) = judge(CHOICES[rounding_model](dtype), batch, outputs, [None], True)
            assert result.detail is not None
            said = entry["tolerance"]
            assert (said["dtype"], said["rounding_model"]) == (dtype, rounding_model)
            assert said["output"]["shape"] == [vector.q_len, vector.value_dim]
            rows = [x for row in result.detail.tolerance for x in row]
            assert numbers(said["output"], "float64") == rows
            assert said["log_sum_exp"]["shape"] == [vector.q_len]
            assert numbers(said["log_sum_exp"], "float64") == [*result.detail.lse_tolerance]
