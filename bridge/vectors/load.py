"""Load vector files: strict JSON Schema first, then what a schema cannot say.

Every complaint is one sentence that names the file, the vector and the field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, cast

import jsonschema
from jsonschema.exceptions import ValidationError

from bridge.vectors.model import (
    EnclosedRow,
    Exact,
    Family,
    Mask,
    Matrix,
    Model,
    Row,
    Vector,
)

# Far above any file of this project; a larger one is a mistake or an attack on memory.
_MAX_BYTES = 64 * 1024 * 1024
# A number with at most this many significant bits and a moderate exponent is exact in bfloat16.
_BF16_BITS = 8
_BF16_EXPONENT = 120
# Scales are numbers that a kernel is given: well within float32.
_LARGEST_SCALE = 1 << 64
# Half the largest distance between bounds: nothing beside the rounding of any kernel.
_LARGEST_UNCERTAINTY = Fraction(1, 1 << 61)


class VectorError(ValueError):
    """A vector file that is not what it should be. The message is one sentence."""


def default_directory() -> Path:
    """Where the vectors are: package data in an installed wheel, `tests/vectors` in a checkout."""
    packaged = Path(str(resources.files("bridge.vectors"))) / "data"
    if any(packaged.glob("*.json")):
        return packaged
    return Path(__file__).resolve().parents[2] / "tests" / "vectors"


def load(directory: Path | None = None) -> list[Family]:
    """All families of a directory, sorted by name.

    Raises VectorError for a missing or empty directory, a damaged file, and an id that occurs
    twice.
    """
    folder = default_directory() if directory is None else Path(directory)
    files = sorted(folder.glob("*.json"), key=lambda path: path.stem)
    if not files:
        raise VectorError(f"{folder}: there is no vector file (*.json) here.")
    families = [load_file(path) for path in files]
    seen: dict[str, str] = {}
    for family in families:
        for vector in family.vectors:
            if vector.id in seen:
                raise VectorError(
                    f"{family.name}.json: {vector.id}: field id: is already used in "
                    f"{seen[vector.id]}.json."
                )
            seen[vector.id] = family.name
    return families


def load_file(path: Path) -> Family:
    """One family. Raises VectorError with a sentence that names the file, the vector and field."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise VectorError(f"{path.name}: is larger than {_MAX_BYTES} bytes.")
        document = json.loads(path.read_text("utf-8"), object_pairs_hook=_unique_keys)
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise VectorError(f"{path.name}: cannot be read: {_short(str(error))}.") from error
    except VectorError as error:
        message = str(error)
        raise VectorError(
            message if message.startswith(path.name) else f"{path.name}: {message}"
        ) from None
    except ValueError as error:
        raise VectorError(f"{path.name}: is not JSON: {_short(str(error))}.") from error
    return family_of(document, path.name)


def family_of(document: Any, filename: str) -> Family:
    """The family in a parsed document; `filename` is for messages and must match the family."""
    error = next(_validator().iter_errors(document), None)
    if error is not None:
        raise VectorError(_sentence(error, document, filename))
    name = document["family"]
    if filename != f"{name}.json":
        raise VectorError(f"{filename}: field family: says {name}, but the file is {filename}.")
    ids: set[str] = set()
    vectors = []
    for entry in document["vectors"]:
        if entry["id"] in ids:
            raise VectorError(f"{filename}: {entry['id']}: field id: is already used in this file.")
        ids.add(entry["id"])
        vectors.append(_Reader(filename, name, document["model"], entry).vector())
    return Family(name, document["about"], document["operation"], document["model"], tuple(vectors))


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise VectorError(f"field {twice}: occurs twice in one object.")
    return result


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a vector file."""
    text = (resources.files("bridge.vectors") / "schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def _validator() -> Any:
    """A validator of the schema that goes through long lists of strings in one loop.

    The plain one takes 20 µs for each number of a matrix, ten seconds for a few megabytes; the
    result is the same, since a string that fails here is handed to the plain check.
    """
    plain = jsonschema.Draft202012Validator
    definitions = schema()["$defs"]

    def items(validator: Any, items_: Any, instance: Any, whole: Any) -> Iterator[Any]:
        leaf = definitions.get(str(items_.get("$ref", "")).removeprefix("#/$defs/"), items_)
        if leaf.get("type") == "string" and isinstance(instance, list):
            matches = re.compile(leaf["pattern"]).fullmatch
            limit = leaf["maxLength"]
            if all(isinstance(x, str) and len(x) <= limit and matches(x) for x in instance):
                return
        yield from plain.VALIDATORS["items"](validator, items_, instance, whole)

    def pattern(validator: Any, pattern_: Any, instance: Any, whole: Any) -> Iterator[Any]:
        yield from plain.VALIDATORS["pattern"](validator, pattern_, instance, whole)
        # Python's $ also matches before a newline at the end; JSON Schema's does not.
        if isinstance(instance, str) and instance.endswith("\n"):
            yield ValidationError(f"{instance!r} does not match {pattern_!r}")

    extend: Any = jsonschema.validators.extend
    return extend(plain, {"items": items, "pattern": pattern})(schema())


def _short(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _field(path: list[str | int]) -> str:
    out = ""
    for part in path:
        out += f"[{part}]" if isinstance(part, int) else (f".{part}" if out else part)
    return out


def _sentence(error: ValidationError, document: Any, filename: str) -> str:
    # Of the branches of oneOf the one was meant whose kind it is; without kinds, the one that fails
    # deepest.
    while error.context:
        wrong = {e.schema_path[0] for e in error.context if list(e.path)[-1:] == ["kind"]}
        meant = [e for e in error.context if e.schema_path[0] not in wrong] or error.context
        error = max(meant, key=lambda e: len(e.absolute_path))
    path = list(error.absolute_path)
    where = filename
    if path[:1] == ["vectors"] and len(path) > 1:
        entry = document["vectors"][path[1]]
        name = entry.get("id") if isinstance(entry, dict) else None
        where += f": {name if isinstance(name, str) else f'vectors[{path[1]}]'}"
        path = path[2:]
    field = _field(path)
    # Keywords have values of many shapes, and the validator's types name all of them.
    rule, keywords = str(error.validator), cast(dict[str, Any], error.schema)
    instance = cast(Any, error.instance)
    value = _short(json.dumps(instance, ensure_ascii=False), 60)
    if rule == "required":
        missing = next(key for key in keywords["required"] if key not in instance)
        return f"{where}: lacks field {_field([*path, missing])}."
    if rule == "additionalProperties":
        extra = next(key for key in instance if key not in keywords["properties"])
        return f"{where}: field {_field([*path, extra])}: is not known."
    if rule == "pattern":
        meant = keywords.get("description", f"of the form {keywords['pattern']}")
        return f"{where}: field {field}: {value} is not {meant}."
    if not path:
        return f"{where}: is not an object with the fields of a vector file."
    return f"{where}: field {field}: {_short(error.message)}."


class _Reader:
    """Turns one entry, which passed the schema, into a Vector, checking what remains."""

    def __init__(self, filename: str, family: str, model: Model, entry: dict[str, Any]) -> None:
        self.filename = filename
        self.family = family
        self.model = model
        self.entry = entry

    def fail(self, field: str, problem: str) -> VectorError:
        return VectorError(f"{self.filename}: {self.entry['id']}: field {field}: {problem}.")

    def number(self, text: str, field: str) -> Exact:
        top, _, bottom = text.partition("/")
        if not bottom:
            return int(top)
        value = Fraction(int(top), int(bottom))
        if value.denominator != int(bottom):
            raise self.fail(field, f"{_short(text, 40)} is not in lowest terms")
        return value

    def matrix(self, field: str, rows: int, columns: int, sizes: str) -> Matrix:
        data = self.entry[field]
        if len(data) != rows:
            raise self.fail(field, f"has {len(data)} rows, but {sizes.split()[0]} is {rows}")
        out = []
        for i, line in enumerate(data):
            if len(line) != columns:
                raise self.fail(
                    f"{field}[{i}]",
                    f"has {len(line)} numbers, but {sizes.split()[1]} is {columns}",
                )
            numbers = tuple(self.number(x, f"{field}[{i}][{j}]") for j, x in enumerate(line))
            for j, x in enumerate(numbers):
                if not _bf16_exact(x):
                    raise self.fail(f"{field}[{i}][{j}]", f"{line[j]} is not exact in bfloat16")
            out.append(numbers)
        return tuple(out)

    def mask(self) -> Mask:
        data = self.entry["mask"]
        q_len, kv_len = self.entry["q_len"], self.entry["kv_len"]
        match data["kind"]:
            case "causal-bottom-right":
                return Mask("causal-bottom-right", shift=kv_len - q_len)
            case "window":
                shift = kv_len - q_len if data["alignment"] == "bottom-right" else 0
                return Mask("window", shift=shift, left=data["left"], right=data["right"])
            case "key-length":
                return Mask("key-length", length=data["length"])
            case "document":
                for name, count in (("queries", q_len), ("keys", kv_len)):
                    if len(data[name]) != count:
                        raise self.fail(
                            f"mask.{name}", f"has {len(data[name])} numbers, not {count}"
                        )
                return Mask("document", queries=tuple(data["queries"]), keys=tuple(data["keys"]))
            case "none" | "causal":
                return Mask(data["kind"])
        if len(data["rows"]) != q_len:
            raise self.fail("mask.rows", f"has {len(data['rows'])} rows, but q_len is {q_len}")
        for i, row in enumerate(data["rows"]):
            if len(row) != kv_len:
                raise self.fail(
                    f"mask.rows[{i}]", f"has {len(row)} characters, but kv_len is {kv_len}"
                )
        return Mask("boolean", tuple(tuple(c == "1" for c in row) for row in data["rows"]))

    def enclosed_row(self, i: int) -> EnclosedRow:
        data = self.entry["expected"][i]
        field = f"expected[{i}]"
        if "log_sum_exp" not in data:
            raise self.fail(field, "is a row of the exact model in a file of the natural one")
        value_dim = self.entry["value_dim"]
        bounds = {}
        for name in ("lower", "upper"):
            bounds[name] = tuple(int(x) for x in data["output"][name])
            if len(bounds[name]) != value_dim:
                raise self.fail(
                    f"{field}.output.{name}",
                    f"has {len(bounds[name])} numbers, but value_dim is {value_dim}",
                )
        lse = data["log_sum_exp"]
        row = EnclosedRow(
            bounds["lower"],
            bounds["upper"],
            None if lse is None else (int(lse["lower"]), int(lse["upper"])),
        )
        pairs = list(zip(row.lower, row.upper, strict=True))
        if row.masked and any(pair != (0, 0) for pair in pairs):
            raise self.fail(f"{field}.output", "is not 0, but log_sum_exp is null (no key)")
        if any(lo > hi for lo, hi in [*pairs, row.lse_bounds or (0, 0)]):
            raise self.fail(field, "has a lower bound above the upper one")
        if row.uncertainty > _LARGEST_UNCERTAINTY:
            raise self.fail(field, "has bounds that are further apart than 2^-60")
        return row

    def row(self, i: int) -> Row:
        data = self.entry["expected"][i]
        field = f"expected[{i}]"
        if "log_sum_exp" in data:
            raise self.fail(field, "is a row of the natural model in a file of the exact one")
        denominator = self.number(data["denominator"], f"{field}.denominator")
        bottom = int(data["output"]["denominator"])
        numerators = tuple(int(x) for x in data["output"]["numerators"])
        value_dim = self.entry["value_dim"]
        if len(numerators) != value_dim:
            raise self.fail(
                f"{field}.output.numerators",
                f"has {len(numerators)} numbers, but value_dim is {value_dim}",
            )
        if bottom <= 0:
            raise self.fail(f"{field}.output.denominator", "is not positive")
        if data["max"] is None:
            if denominator != 0:
                raise self.fail(f"{field}.denominator", "is not 0, but max is null (no key)")
            if any(numerators):
                raise self.fail(f"{field}.output.numerators", "are not 0, but max is null (no key)")
            return Row(None, denominator, bottom, numerators)
        if denominator < 1:
            raise self.fail(f"{field}.denominator", "is below 1, but the largest weight alone is 1")
        return Row(int(data["max"]), denominator, bottom, numerators)

    def vector(self) -> Vector:
        entry = self.entry
        if not re.fullmatch(re.escape(self.family) + r"-[0-9]+", entry["id"]):
            raise self.fail("id", f"is not the family's name {self.family}, a hyphen and a number")
        q_len, kv_len = entry["q_len"], entry["kv_len"]
        head_dim, value_dim = entry["head_dim"], entry["value_dim"]
        scale = None if entry["scale"] == "default" else self.number(entry["scale"], "scale")
        if scale is None and self.model == "exact":
            raise self.fail("scale", "is the default, which the exact model cannot hold")
        if scale is not None and abs(Fraction(scale)) > _LARGEST_SCALE:
            raise self.fail("scale", "is beyond 2^64")
        q = self.matrix("q", q_len, head_dim, "q_len head_dim")
        k = self.matrix("k", kv_len, head_dim, "kv_len head_dim")
        v = self.matrix("v", kv_len, value_dim, "kv_len value_dim")
        mask = self.mask()
        if len(entry["expected"]) != q_len:
            raise self.fail("expected", f"has {len(entry['expected'])} rows, but q_len is {q_len}")
        expected: tuple[Row | EnclosedRow, ...]
        if self.model == "exact":
            expected = tuple(self.row(i) for i in range(q_len))
        else:
            expected = tuple(self.enclosed_row(i) for i in range(q_len))
        largest = max(abs(Fraction(x)) for line in v for x in line)
        for i, row in enumerate(expected):
            for c, output in enumerate(row.output):
                if abs(output) > largest + row.uncertainty:
                    name = "numerators" if isinstance(row, Row) else "upper"
                    raise self.fail(
                        f"expected[{i}].output.{name}[{c}]",
                        "makes an output larger than every value, of which it is a mean",
                    )
            if row.masked == any(mask.visible(i, j) for j in range(kv_len)):
                name = "max" if isinstance(row, Row) else "log_sum_exp"
                raise self.fail(f"expected[{i}].{name}", "does not agree with the mask")
        return Vector(
            id=entry["id"],
            family=self.family,
            lean=entry["lean"],
            theorem=entry["theorem"],
            reason=entry["reason"],
            model=self.model,
            q_len=q_len,
            kv_len=kv_len,
            head_dim=head_dim,
            value_dim=value_dim,
            scale=scale,
            q=q,
            k=k,
            v=v,
            mask=mask,
            expected=expected,
        )


def _bf16_exact(x: Exact) -> bool:
    numerator, denominator = abs(x.numerator), x.denominator
    if numerator == 0:
        return True
    if denominator & (denominator - 1):
        return False
    odd = numerator // (numerator & -numerator)
    exponent = numerator.bit_length() - denominator.bit_length()
    return odd.bit_length() <= _BF16_BITS and abs(exponent) <= _BF16_EXPONENT
