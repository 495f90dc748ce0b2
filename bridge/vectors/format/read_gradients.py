"""From the fields of an entry to a vector of gradients."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from bridge.vectors.format.fields import LARGEST_UNCERTAINTY, Fields
from bridge.vectors.format.read_dropout import dropped
from bridge.vectors.format.read_options import bias_rows, has_changes, header, softcap
from bridge.vectors.model.attention import BOUNDS_UNIT, Exact
from bridge.vectors.model.gradients import PER_HEAD, Gradients, GradientVector, Slopes

# What there is together or not at all.
DROPPED = ("dropout_p", "dropout_seed", "keep")
_SIDES = ("lower", "upper")
Shape = tuple[tuple[int, str], ...]


def gradient(fields: Fields) -> GradientVector:
    """The vector. Raises VectorError as all readers do."""
    entry = fields.entry
    heads, kv_heads = entry["num_heads"], entry["num_kv_heads"]
    q_len, kv_len = entry["q_len"], entry["kv_len"]
    if heads % kv_heads:
        raise fields.fail("num_heads", f"is {heads}, no multiple of num_kv_heads, {kv_heads}")
    columns = entry["head_dim"] + entry["value_dim"]
    fields.affordable(heads * q_len * kv_len, 2 * columns)
    log_sum_exps = fields.counted(
        entry["grad_log_sum_exp"], "grad_log_sum_exp", heads, "num_heads", "rows"
    )
    bias, slopes = _bias(fields), _slopes(fields)
    per_head: dict[str, Any] = {name: _per_head(fields, name) for name in PER_HEAD}
    sizes: dict[str, Shape] = {
        "q": _named(fields, "num_heads", "q_len", "head_dim"),
        "k": _named(fields, "num_kv_heads", "kv_len", "head_dim"),
        "v": _named(fields, "num_kv_heads", "kv_len", "value_dim"),
        "bias": _named(fields, "num_heads", "q_len", "kv_len")
        if bias is None
        else ((len(bias), "that of bias"), (len(bias[0]), "that of bias"), (kv_len, "kv_len")),
    }
    for name, option in {"slopes": slopes, **per_head}.items():
        if option is not None:
            sizes[name] = ((heads, "num_heads"),)
        elif f"expected_{name}" in entry:
            raise fields.fail(f"expected_{name}", "is given, but there is nothing that it is by")
    for name in sizes:
        if f"expected_{name}" not in entry:
            raise fields.fail(f"expected_{name}", "is missing")
    expected, bounds = _results(fields, sizes)
    weights: dict[str, Any] = {}
    for name in DROPPED:
        if name not in entry and any(other in entry for other in DROPPED):
            raise fields.fail(name, f"is missing, but {', '.join(DROPPED)} are given together")
    if "keep" in entry:
        kept, seed = dropped(fields, heads, "num_heads")
        weights = {"dropout": kept, "dropout_seed": seed}
    vector = GradientVector(
        **header(fields),
        num_heads=heads,
        num_kv_heads=kv_heads,
        q_len=q_len,
        kv_len=kv_len,
        head_dim=entry["head_dim"],
        value_dim=entry["value_dim"],
        scale=fields.scale(),
        q=fields.matrices("q", "num_heads", "q_len", "head_dim"),
        k=fields.matrices("k", "num_kv_heads", "kv_len", "head_dim"),
        v=fields.matrices("v", "num_kv_heads", "kv_len", "value_dim"),
        mask=fields.mask(q_len, kv_len),
        grad_output=fields.matrices("grad_output", "num_heads", "q_len", "value_dim"),
        grad_log_sum_exp=fields.rows_of(log_sum_exps, "grad_log_sum_exp", q_len, "q_len"),
        expected=expected,
        softcap=softcap(fields),
        alibi=slopes,
        bias=bias,
        bounds=bounds,
        **per_head,
        **weights,
    )
    if bounds is not None:
        for (place, lower), (_, upper) in zip(*(x.numbers() for x in bounds), strict=True):
            if lower > upper:
                raise fields.fail(f"expected_{place}", "has a lower bound above the upper one")
        if vector.uncertainty > LARGEST_UNCERTAINTY:
            raise fields.fail("expected", "has bounds that are further apart than 2^-60")
    return vector


def _named(fields: Fields, *names: str) -> Shape:
    return tuple((fields.entry[name], name) for name in names)


def _bias(fields: Fields) -> tuple[tuple[tuple[Exact | None, ...], ...], ...] | None:
    if not has_changes(fields, "bias"):
        return None
    entry = fields.entry
    data = entry["bias"]
    if len(data) not in (1, entry["num_heads"]):
        raise fields.fail(
            "bias", f"has {len(data)} matrices, but num_heads is {entry['num_heads']}"
        )
    rows = len(data[0])
    if rows not in (1, entry["q_len"]):
        raise fields.fail("bias[0]", f"has {rows} rows, but q_len is {entry['q_len']}")
    for n, matrix in enumerate(data):
        fields.counted(matrix, f"bias[{n}]", rows, "that of bias[0]", "rows")
    return tuple(bias_rows(fields, m, f"bias[{n}]", entry["kv_len"]) for n, m in enumerate(data))


def _slopes(fields: Fields) -> Slopes | None:
    if not has_changes(fields, "alibi"):
        return None
    entry = fields.entry
    data = entry["alibi"]
    slopes = fields.vector(data["slopes"], "alibi.slopes", entry["num_heads"], "num_heads")
    return Slopes(slopes, fields.shift(data["alignment"], entry["q_len"], entry["kv_len"]))


def _per_head(fields: Fields, name: str) -> tuple[Exact, ...] | None:
    if name not in fields.entry or not (PER_HEAD[name] or has_changes(fields, name)):
        return None
    return fields.vector(fields.entry[name], name, fields.entry["num_heads"], "num_heads")


def _shaped(
    fields: Fields, data: Any, field: str, shape: Shape, read: Callable[[str, str], Any]
) -> Any:
    """Nested lists of this shape as nested tuples of what `read` makes of their texts."""
    if not shape:
        return read(data, field)
    (count, name), *rest = shape
    fields.counted(data, field, count, name, "entries")
    return tuple(
        _shaped(fields, part, f"{field}[{n}]", tuple(rest), read) for n, part in enumerate(data)
    )


def _results(
    fields: Fields, sizes: dict[str, Shape]
) -> tuple[Gradients, tuple[Gradients, Gradients] | None]:
    """The gradients, and their bounds in the natural model."""
    data = {name: fields.entry[f"expected_{name}"] for name in sizes}
    for name, found in data.items():
        if isinstance(found, dict) != (fields.model == "natural"):
            other = "natural" if fields.model == "exact" else "exact"
            raise fields.fail(
                f"expected_{name}", f"is of the {other} model in a file of the {fields.model} one"
            )
    if fields.model == "exact":
        exact = {
            name: _shaped(fields, data[name], f"expected_{name}", shape, fields.number)
            for name, shape in sizes.items()
        }
        return Gradients(**exact), None
    lower, upper = (
        Gradients(
            **{
                name: _shaped(
                    fields,
                    data[name][side],
                    f"expected_{name}.{side}",
                    shape,
                    lambda text, _: int(text),
                )
                for name, shape in sizes.items()
            }
        )
        for side in _SIDES
    )
    middle = {name: _middle(part, getattr(upper, name)) for name, part in lower.named().items()}
    return Gradients(**middle), (lower, upper)


def _middle(lower: Any, upper: Any) -> Any:
    if isinstance(lower, tuple):
        return tuple(_middle(*pair) for pair in zip(lower, upper, strict=True))
    return Fraction(lower + upper, 2 * BOUNDS_UNIT)
