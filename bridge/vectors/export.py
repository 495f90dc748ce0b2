"""The vectors as bits of floating-point numbers, in hex: for kernels that are not called from
Python. `docs/vectors.md` explains the files.

Inputs are exact in every format that they are written in; results are sums of two float64. Inputs
that are drawn by a rule stay rules.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bridge.files import write_whole
from bridge.vectors.format import files, index
from bridge.vectors.format.fields import VectorError
from bridge.vectors.load import default_directory, listed_family
from bridge.vectors.model.attention import AttentionVector, EnclosedRow, Exact, Row, State, Vector
from bridge.vectors.model.dropout import DropoutVector, PhiloxVector
from bridge.vectors.model.gradients import PER_HEAD, GradientVector
from bridge.vectors.model.operations import (
    CacheVector,
    CascadeVector,
    CombineVector,
    GroupedQueryVector,
    LaidOutVector,
    MergeVector,
    PagedVector,
    TileBoundsVector,
    VarlenVector,
)
from bridge.vectors.model.sampled import SampledVector
from bridge.vectors.model.shards import DeviceRows, ShardsVector
from bridge.vectors.model.tangents import TangentVector
from bridge.vectors.model.transformers import Enclosed, LayerVector, TransformerVector

HEX_FORMAT = "attention-vectors-hex-1"
# The fields of an entry that hold numbers, at any depth; null in them is −∞.
_NUMBERS = {
    "q", "k", "v", "prefix_k", "prefix_v", "suffix_k", "suffix_v", "bias", "softcap", "sink",
    "slope", "slopes", *PER_HEAD, "score", "value", "log_sum_exp", "output", "grad_output",
    "grad_log_sum_exp", "x", "context", "values", "weight", "gain", "eps", "positions", "source",
    "target", "tangent_q", "tangent_k", "tangent_v", "tangent_slope", "tangent_bias",
    "tangent_sink",
}  # fmt: skip
_DIGITS = 60

Array = dict[str, Any]
Number = Exact | Decimal
# Facts about a vector beside its own fields.
More = Callable[[Vector], Mapping[str, Any]]


def _bits(code: str, x: float) -> str:
    return struct.pack(f">{code}", x).hex()


def _value(code: str, bits: str) -> float:
    (value,) = struct.unpack(f">{code}", bytes.fromhex(bits))
    return float(value)


def _float64(x: float) -> str:
    return _bits("d", x)


# By the name of a format: its code in `struct`, and how many digits of hex it has. A bfloat16 is a
# float32 without the last four.
_FORMATS = {"float64": ("d", 16), "float32": ("f", 8), "float16": ("e", 4), "bfloat16": ("f", 4)}


def _exactly(name: str, numbers: Sequence[Fraction | None]) -> list[str] | None:
    """The bits of the numbers, None being −∞, or None if one is not exact in the format."""
    code, digits = _FORMATS[name]
    found = []
    for x in numbers:
        try:
            whole = _bits(code, float("-inf") if x is None else float(x))
        except OverflowError:
            return None
        bits = whole[:digits]
        if x is not None and Fraction(_value(code, bits.ljust(len(whole), "0"))) != x:
            return None
        found.append(bits)
    return found


def inputs(data: Any) -> Array | list[Any]:
    """Nested lists of numbers as strings: shape, and the bits row by row in each format in which
    all of them are exact; a list of such where the lists are ragged."""
    whole = np.array(data, dtype=object)
    if any(isinstance(x, list) for x in whole.flat):
        return [inputs(x) for x in data]
    numbers = [None if x is None else Fraction(x) for x in whole.flat]
    bits = {name: _exactly(name, numbers) for name in _FORMATS}
    return {
        "shape": list(whole.shape),
        **{name: each for name, each in bits.items() if each is not None},
    }


def _two(x: Number) -> tuple[str, str]:
    """The nearest float64, and the float64 nearest to the rest."""
    if isinstance(x, Decimal) and not x.is_finite():
        return _float64(float(x)), _float64(0.0)
    with localcontext(prec=_DIGITS):
        high = float(x)
        rest = x - Decimal(high) if isinstance(x, Decimal) else Fraction(x) - Fraction(high)
        return _float64(high), _float64(float(rest))


def results(shape: list[int], numbers: Sequence[Number]) -> Array:
    """Sums of two float64."""
    pairs = [_two(x) for x in numbers]
    return {
        "shape": shape,
        "float64": [high for high, _ in pairs],
        "float64_low": [low for _, low in pairs],
    }


def _rows(rows: Sequence[Row | EnclosedRow], shape: list[int], value_dim: int) -> Array:
    found = {
        "output": results([*shape, value_dim], [x for row in rows for x in row.output]),
        "log_sum_exp": results(shape, [row.log_sum_exp for row in rows]),
    }
    if any(row.uncertainty for row in rows):
        # Rounded up: a bound of an error must not be too small.
        found["uncertainty"] = {
            "shape": shape,
            "float64": [_float64(float(row.uncertainty) * (1 + 2**-52)) for row in rows],
        }
    return found


def _states(states: Sequence[State], value_dim: int) -> Array:
    with localcontext(prec=_DIGITS):
        ln2 = Decimal(2).ln()
        m = [Decimal("-Infinity") if s.m is None else ln2 * s.m for s in states]
    count = len(states)
    return {
        "m": results([count], m),
        "l": results([count], [s.l for s in states]),
        "o": results([count, value_dim], [x for s in states for x in s.o]),
    }


def _gradients(vector: GradientVector) -> dict[str, Any]:
    """The gradients for a kernel with weights e^score: in the exact model those by queries and keys
    are multiplied by ln 2."""
    found = {}
    with localcontext(prec=_DIGITS):
        for name, part in vector.expected.by_name().items():
            exact = np.array(part, dtype=object)
            by_score = vector.model == "exact" and name in ("q", "k")
            factor = Decimal(2).ln() if by_score else Decimal(1)
            numbers = [factor * x.numerator / Decimal(x.denominator) for x in exact.flat]
            found[name] = results(list(exact.shape), numbers)
    if vector.bounds is not None:
        found["uncertainty"] = _uncertainty(vector.uncertainty)
    return found


def _uncertainty(largest: Fraction) -> Array:
    """One number for all results, rounded up, as that of rows."""
    return {"shape": [], "float64": [_float64(float(largest) * (1 + 2**-52))]}


def _enclose(part: Enclosed) -> Array:
    """A matrix, and by how much each number may be off."""
    shape = [len(part.lower), len(part.lower[0])]
    numbers = results(shape, [x for row in part.middle for x in row])
    return {"result": numbers, "uncertainty": _uncertainty(part.uncertainty)}


def _device(found: DeviceRows, value_dim: int) -> dict[str, Any]:
    return {
        "partials": [_rows(rows, [len(rows)], value_dim) for rows in found.partials],
        "merged": _rows(found.merged, [len(found.merged)], value_dim),
    }


def _export_expected(vector: Vector) -> Any:
    match vector:
        case AttentionVector():
            return _rows(vector.expected, [vector.q_len], vector.value_dim)
        case DropoutVector():
            rows = [row for head in vector.expected for row in head]
            return _rows(rows, [vector.batch, vector.num_heads, vector.q_len], vector.value_dim)
        case PhiloxVector():
            return [list(words) for words in vector.expected]
        case GroupedQueryVector():
            rows = [row for head in vector.expected for row in head]
            return _rows(rows, [vector.num_heads, vector.q_len], vector.value_dim)
        case SampledVector():
            results_of = [result for head in vector.given or () for result in head]
            shape = [*vector.q.shape[:2], len(vector.rows)]
            return _rows(results_of, shape, vector.v.shape[3])
        case ShardsVector():
            return [_device(found, vector.value_dim) for found in vector.expected]
        case VarlenVector() | PagedVector() | CascadeVector():
            return _rows(vector.expected, [len(vector.expected)], vector.value_dim)
        case CombineVector():
            return _rows([vector.expected], [1], vector.value_dim)
        case MergeVector():
            return _states([vector.expected], vector.value_dim)
        case CacheVector():
            return _states(vector.expected, vector.value_dim)
        case TileBoundsVector():
            return list(vector.expected)
        case GradientVector():
            return _gradients(vector)
        case TangentVector():
            # The log-sum-exp of a query that sees no key stays −∞.
            tangents = [replace(x, lse_bounds=x.lse_bounds or (0, 0)) for x in vector.expected]
            return _rows(tangents, [vector.q_len], vector.value_dim)
        case LayerVector():
            return _enclose(vector.expected)
        case TransformerVector():
            return {
                "logits": _enclose(vector.expected_logits),
                "probabilities": _enclose(vector.expected_probabilities),
                "tokens": list(vector.expected_tokens),
            }
    raise TypeError(f"there is no export of a {type(vector).__name__}")


def _score_factor(vector: Vector) -> Decimal:
    """The factor of products, or of given scores, for a kernel with weights e^score."""
    with localcontext(prec=_DIGITS):
        factor = Decimal(2).ln() if vector.model == "exact" else Decimal(1)
        own = (
            AttentionVector, GradientVector, LayerVector, SampledVector, TangentVector,
            TransformerVector,
        )  # fmt: skip
        if isinstance(vector, own) and vector.scale is None:
            return factor / Decimal(vector.head_dim or 1).sqrt()
        if isinstance(vector, (LaidOutVector, *own)):
            scale = Fraction(vector.scale or 0)
            return factor * Decimal(scale.numerator) / Decimal(scale.denominator)
        return factor


def _convert(data: Any) -> Any:
    if isinstance(data, list):
        return [_convert(x) for x in data]
    if isinstance(data, dict):
        return {k: inputs(x) if _holds_numbers(k, x) else _convert(x) for k, x in data.items()}
    return data


def _holds_numbers(field: str, data: Any) -> bool:
    """Parameters have names that fields of numbers have."""
    return field in _NUMBERS and not isinstance(data, dict)


def convert(entry: dict[str, Any], vector: Vector) -> dict[str, Any]:
    """One vector: `entry` as it is in its file, and `vector` made of it."""
    given = [name for name in entry if not name.startswith("expected")]
    found = {name: _convert({name: entry[name]})[name] for name in given}
    if not isinstance(vector, LayerVector) or vector.head_dim is not None:
        found["score_factor"] = results([], [_score_factor(vector)])
    plain = vector.attention() if isinstance(vector, TangentVector) else vector
    if isinstance(plain, AttentionVector):
        found["visible"] = [
            "".join("01"[plain.visible(i, j)] for j in range(plain.kv_len))
            for i in range(plain.q_len)
        ]
    found["expected"] = _export_expected(vector)
    return found


def doubles(shape: Sequence[int], numbers: Sequence[float]) -> Array:
    """Numbers that are float64 as they are."""
    return {"shape": list(shape), "float64": [_float64(x) for x in numbers]}


def text(path: Path, listed: index.Entry, more: More | None = None) -> str:
    """The export of one vector file, a vector a line; `listed` is its entry in the index; more:
    further fields of each vector."""
    content, document = files.read(path)
    family = listed_family(content, listed)
    head = {
        "format": HEX_FORMAT,
        "made_from": {"file": path.name, "sha256": files.sha256(content)},
        **{name: document[name] for name in ("family", "about", "operation", "model")},
    }
    lines = [
        json.dumps(convert(entry, vector) | dict(more(vector) if more else {}), ensure_ascii=False)
        for entry, vector in zip(document["vectors"], family.vectors, strict=True)
    ]
    start = json.dumps(head, ensure_ascii=False).removesuffix("}")
    return start + ',\n "vectors": [\n  ' + ",\n  ".join(lines) + "]}\n"


def write(
    folder: Path,
    families: Sequence[str] = (),
    source: Path | None = None,
    more: More | None = None,
) -> list[Path]:
    """Write the export of these families, default all, into a folder, made if there is none; the
    files.

    source: where the vectors are, default `default_directory()`; more: further fields of each
    vector. Raises VectorError for vectors
    that cannot be used and for a family that is not there, OSError where nothing can be written.
    """
    source = default_directory() if source is None else source
    known = {entry["family"]: entry for entry in index.entries_of(source)}
    listed = [index.entry_named(known, name) for name in families or known]
    if (folder / index.INDEX).exists():
        raise VectorError(f"{folder}: vectors themselves are in this folder.")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for entry in listed:
        path = folder / entry["file"]
        write_whole(path, text(source / entry["file"], entry, more))
        written.append(path)
    return written
