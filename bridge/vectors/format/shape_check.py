"""Documents against the shapes of their format: one sentence on the first thing that is wrong, and
the JSON Schemas for readers of other languages."""

from __future__ import annotations

import json
import re
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Literal

import msgspec

from bridge.vectors.format import shape_layers as layers
from bridge.vectors.format import shape_operations as operations
from bridge.vectors.format import shape_sampled as large
from bridge.vectors.format import shapes
from bridge.vectors.format.fields import VectorError, short
from bridge.vectors.format.index import INDEX_FORMAT, VECTORS_FORMAT
from bridge.vectors.format.read_gradients import DROPPED
from bridge.vectors.format.shape_index import Index

# The structs of vectors, by operation and model.
VECTORS: dict[str, dict[str, Any]] = {
    "attention": {"exact": shapes.ExactAttention, "natural": shapes.NaturalAttention},
    "gradient": dict.fromkeys(("exact", "natural"), shapes.Gradient),
    "tangent": {"natural": shapes.Tangent},
    "sampled": {"exact": large.ExactSampled, "natural": large.NaturalSampled},
    "sampled-gradient": {"natural": large.SampledGradient},
    "grouped-query": {"exact": operations.GroupedQuery},
    "varlen": {"exact": operations.Varlen},
    "paged": {"exact": operations.Paged},
    "cascade": {"exact": operations.Cascade},
    "shards": {"exact": operations.Shards},
    "merge": {"exact": operations.Merge},
    "cache": {"exact": operations.Cache},
    "dropout": {"exact": operations.Dropout},
    "philox": {"exact": operations.Philox},
    "combine": {"natural": operations.Combine},
    "layer": {"natural": layers.AnyLayer},
    "transformer": {"natural": layers.Transformer},
    "tile-bounds": dict.fromkeys(("exact", "natural"), operations.TileBounds),
}


@cache
def _file(operation: str, model: str) -> Any:
    """The shape of a file of this operation and model."""
    return msgspec.defstruct(
        "".join(part.capitalize() for part in f"{model}-{operation}-file".split("-")),
        [
            ("format", Literal[VECTORS_FORMAT]),
            ("family", shapes.Slug),
            ("about", shapes.Sentence),
            ("operation", Literal[operation]),
            ("model", Literal[model]),
            (
                "vectors",
                Annotated[
                    GenericAlias(list, VECTORS[operation][model]),
                    msgspec.Meta(min_length=1, max_length=10000),
                ],
            ),
        ],
        forbid_unknown_fields=True,
    )


def check_vectors(document: dict[str, Any], filename: str) -> None:
    """Raises VectorError for a document that is no vector file; it is plain (`check_plain`)."""
    for name, accepted in (("operation", list(VECTORS)), ("model", ["exact", "natural"])):
        if name not in document:
            raise VectorError(f"{filename}: lacks field {name}.")
        if document[name] not in accepted:
            raise VectorError(f"{filename}: field {name}: {_none_of(document[name], accepted)}.")
    operation, model = document["operation"], document["model"]
    models = VECTORS[operation]
    if model not in models:
        raise VectorError(
            f"{filename}: field model: is {model}, but vectors of this operation are of the "
            f"{next(iter(models))} one."
        )
    _check(document, _file(operation, model), filename)


def check_index(document: dict[str, Any], filename: str) -> None:
    """Raises VectorError for a document that is no index."""
    _check(document, Index, filename)


def _check(document: dict[str, Any], shape: Any, filename: str) -> None:
    try:
        msgspec.convert(document, shape)
    except msgspec.ValidationError as error:
        raise VectorError(_sentence(str(error), document, shape, filename)) from None


# --- sentences ------------------------------------------------------------------------------------

_TYPES = {
    "array": "a list", "bool": "true or false", "int": "an integer", "null": "null",
    "object": "an object", "str": "a string",
}  # fmt: skip
_ROWS = {"exact": "natural", "natural": "exact"}


def _sentence(message: str, document: dict[str, Any], shape: Any, filename: str) -> str:
    """msgspec's message, with the name of the vector and the value that is wrong."""
    said, _, place = message.rpartition(" - at `$")
    # A name may look like a place.
    if not said or any(message.endswith(f" unknown field `{name}`") for name in document):
        said, place = message, ""
    path = [int(part) if part.isdigit() else part for part in re.findall(r"\w+", place)]
    found: Any = document
    for part in path:
        found = found[part]
    where, shown = filename, path
    if path[:1] == ["vectors"] and len(path) > 1:
        vector = document["vectors"][path[1]]
        name = vector.get("id") if isinstance(vector, dict) else None
        where += f": {short(name, 60) if isinstance(name, str) else f'vectors[{path[1]}]'}"
        shown = path[2:]
    missing = re.fullmatch(r"Object missing required field `(.*)`", said)
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", said, re.DOTALL)
    if (missing or unknown) and _of_the_other_model(document, shown, found):
        here, other = document["model"], _ROWS[document["model"]]
        said = f"is a row of the {other} model in a file of the {here} one"
    elif missing:
        return f"{where}: lacks field {_field([*shown, missing[1]])}."
    elif unknown:
        return f"{where}: field {_field([*shown, short(unknown[1], 40)])}: is not known."
    else:
        said = _problem(said, found, shape, path, document)
    field = f"field {_field(shown)}: " if shown else ""
    return f"{where}: {field}{said}."


def _of_the_other_model(document: dict[str, Any], path: list[Any], found: Any) -> bool:
    """Whether this is a row where rows of the other model belong."""
    marks = {"exact": "log_sum_exp", "natural": "max"}
    return path[:1] == ["expected"] and len(path) == 2 and marks[document["model"]] in found


def _problem(said: str, value: Any, shape: Any, path: list[Any], document: Any) -> str:
    """The fault of the value, from msgspec's message."""
    size = re.fullmatch(r"Expected `(\w+)` of length (<=|>=) (\d+)", said)
    if size:
        what = "characters" if size[1] == "str" else "entries"
        return f"has {len(value)} {what}, {'more' if size[2] == '<=' else 'less'} than {size[3]}"
    text = short(json.dumps(value, ensure_ascii=False), 60)
    kinds = re.fullmatch(r"Expected `([\w |]+)`, got `\w+`", said)
    if kinds:
        names = [_TYPES[kind] for kind in kinds[1].split(" | ")]
        return f"{text} is not {' or '.join(names)}"
    limit = re.fullmatch(r"Expected `int` (<=|>=) (-?\d+)", said)
    if limit:
        return f"{text} is {'above' if limit[1] == '<=' else 'below'} {limit[2]}"
    accepted = _schema_at(shape, path, document)
    if "enum" in accepted:
        return _none_of(value, accepted["enum"])
    return f"{text} is not {accepted.get('description', 'accepted here')}"


def _none_of(value: Any, accepted: list[str]) -> str:
    return f"{short(json.dumps(value, ensure_ascii=False), 60)} is not one of {', '.join(accepted)}"


def _field(path: list[str | int]) -> str:
    out = ""
    for part in path:
        out += f"[{part}]" if isinstance(part, int) else (f".{part}" if out else part)
    return out


@cache
def _schema_of(shape: Any) -> dict[str, Any]:
    return msgspec.json.schema(shape)


def _schema_at(shape: Any, path: list[Any], document: Any) -> dict[str, Any]:
    """The schema's part for the value at the path."""
    schema = _schema_of(shape)
    part: dict[str, Any] = schema
    value = document
    for key in [*path, None]:
        while "$ref" in part or "anyOf" in part:
            if "$ref" in part:
                part = schema["$defs"][part["$ref"].rpartition("/")[2]]
            elif "discriminator" in part:
                tag = part["discriminator"]
                kinds = tag["mapping"]
                if value.get(tag["propertyName"]) not in kinds:
                    return {"enum": list(kinds)}
                part = {"$ref": kinds[value[tag["propertyName"]]]}
            else:
                kind = "array" if isinstance(value, list) else "object"
                kind = "string" if isinstance(value, str) else kind
                part = next(p for p in part["anyOf"] if p.get("type", "object") == kind)
        if key is not None:
            part = part["items"] if isinstance(key, int) else part["properties"][key]
            value = value[key]
    return part


# --- schemas --------------------------------------------------------------------------------------


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schemas by the names of their files. Conditions of gradients and merges that structs
    cannot express are in them, and the readers check these."""
    files = [_file(operation, model) for operation in VECTORS for model in VECTORS[operation]]
    parts, definitions = msgspec.json.schema_components(files, ref_template="#/$defs/{name}")
    definitions["Gradient"]["dependentRequired"] = {
        name: [other for other in DROPPED if other != name] for name in DROPPED
    }
    definitions["Merge"]["properties"]["tree"] = {
        "description": "the number of a block, or two trees whose states are merged",
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": 1024},
            {
                "type": "array",
                "minItems": 2,
                "maxItems": 2,
                "items": {"$ref": "#/$defs/Merge/properties/tree"},
            },
        ],
    }
    vectors = {
        "title": "One family of attention vectors with exact or enclosed expected results",
        "anyOf": list(parts),
        "$defs": definitions,
    }
    return {
        "schema.json": _publish(VECTORS_FORMAT, vectors),
        "index_schema.json": _publish(INDEX_FORMAT, msgspec.json.schema(Index)),
    }


def _publish(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": name, **schema}
    # In JSON Schema $ is the end of the text anyway, and not all libraries know (?!…).
    ends = json.dumps(shapes.END)[1:-1]
    found: dict[str, Any] = json.loads(json.dumps(head).replace(ends, "$"))
    return found


def schema_text(schema: dict[str, Any]) -> str:
    """A schema as it is written: each definition in a line of its own."""
    definitions = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(part, ensure_ascii=False)}"
        for name, part in sorted(schema["$defs"].items())
    )
    rest = ",\n ".join(
        f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False)}"
        for name, part in schema.items()
        if name != "$defs"
    )
    return f'{{{rest},\n "$defs": {{\n{definitions}\n }}}}\n'
