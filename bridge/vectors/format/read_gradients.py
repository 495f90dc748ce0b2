"""From the fields of an entry to a vector of gradients."""

from __future__ import annotations

from typing import Any

from bridge.vectors.format.fields import LARGEST_UNCERTAINTY, Entry, Size, bf16_or_none, number
from bridge.vectors.format.read_dropout import dropout_masks
from bridge.vectors.format.read_options import has_changes, pairs_of_heads, per_head, scale, softcap
from bridge.vectors.model.gradients import PER_HEAD, Gradients, GradientVector, Slopes, middle_of

# These fields are all there or none of them.
DROPPED = ("dropout_p", "dropout_seed", "keep")
_QUERIES = ("num_heads", "q_len")
_KEYS = ("num_kv_heads", "kv_len")
Sizes = dict[str, tuple[Size, ...]]


def gradient(entry: Entry) -> GradientVector:
    """The vector. Raises VectorError as all readers do."""
    data = entry.data
    entry.affordable(pairs_of_heads(entry), 2 * (data["head_dim"] + data["value_dim"]))
    entry["grad_log_sum_exp"].check_count("num_heads", "rows")
    bias = _bias(entry)
    options = per_head(entry)
    options["alibi"] = slopes = slopes_of(entry)
    sizes: Sizes = {
        "q": (*_QUERIES, "head_dim"),
        "k": (*_KEYS, "head_dim"),
        "v": (*_KEYS, "value_dim"),
        "bias": (*_QUERIES, "kv_len"),
    }
    if bias is not None:
        sizes["bias"] = ((len(bias), "that of bias"), (len(bias[0]), "that of bias"), "kv_len")
    for name in ("slopes", *PER_HEAD):
        if (slopes if name == "slopes" else options.get(name)) is not None:
            sizes[name] = ("num_heads",)
        elif f"expected_{name}" in entry:
            raise entry[f"expected_{name}"].fail("is given, but there is nothing that it is by")
    for name in sizes:
        if f"expected_{name}" not in entry:
            raise entry.fail("is missing", f"expected_{name}")
    expected, bounds = results(entry, sizes)
    for name in DROPPED:
        if name not in entry and any(other in entry for other in DROPPED):
            raise entry.fail(f"is missing, but {', '.join(DROPPED)} are given together", name)
    if "keep" in entry:
        options["dropout"], options["dropout_seed"] = dropout_masks(entry, "num_heads")
    vector = GradientVector(
        **entry.plain(GradientVector),
        scale=scale(entry),
        q=entry["q"].numbers(*sizes["q"]),
        k=entry["k"].numbers(*sizes["k"]),
        v=entry["v"].numbers(*sizes["v"]),
        masks=(entry["mask"].mask(),),
        grad_output=entry["grad_output"].numbers(*_QUERIES, "value_dim"),
        grad_log_sum_exp=entry["grad_log_sum_exp"].numbers(*_QUERIES),
        expected=expected,
        softcap=softcap(entry),
        bias=bias,
        bounds=bounds,
        **options,
    )
    check_bounds(entry, vector)
    return vector


def check_bounds(entry: Entry, vector: GradientVector) -> None:
    """Refuse bounds that are none, or too far apart."""
    if vector.bounds is None:
        return
    for (place, lower), (_, upper) in zip(*(x.numbers() for x in vector.bounds), strict=True):
        if lower > upper:
            raise entry.fail("has a lower bound above the upper one", f"expected_{place}")
    if vector.uncertainty > LARGEST_UNCERTAINTY:
        raise entry.fail("has bounds that are further apart than 2^-60", "expected")


def _bias(entry: Entry) -> Any:
    if not has_changes(entry, "bias"):
        return None
    bias, heads, q_len = entry["bias"], entry.data["num_heads"], entry.data["q_len"]
    if len(bias) not in (1, heads):
        raise bias.fail(f"has {len(bias)} matrices, but num_heads is {heads}")
    rows = len(bias[0]), "that of bias[0]"
    if rows[0] not in (1, q_len):
        raise bias[0].fail(f"has {rows[0]} rows, but q_len is {q_len}")
    return bias.numbers(None, rows, "kv_len", read=bf16_or_none)


def slopes_of(entry: Entry) -> Slopes | None:
    """The linear biases of each head."""
    if not has_changes(entry, "alibi"):
        return None
    alibi, bottom_right = entry["alibi"], entry.data["kv_len"] - entry.data["q_len"]
    return Slopes(alibi["slopes"].numbers("num_heads"), alibi.shift(bottom_right))


def results(entry: Entry, sizes: Sizes) -> tuple[Gradients, tuple[Gradients, Gradients] | None]:
    """The gradients, and their bounds in the natural model."""
    parts = {name: entry[f"expected_{name}"] for name in sizes}
    exact = entry.model == "exact"
    for part in parts.values():
        if isinstance(part.data, dict) == exact:
            other = "natural" if exact else "exact"
            raise part.fail(f"is of the {other} model in a file of the {entry.model} one")
    if exact:
        found = {name: part.numbers(*sizes[name], read=number) for name, part in parts.items()}
        return Gradients(**found), None
    lower, upper = (
        Gradients(**{n: part[side].numbers(*sizes[n], read=int) for n, part in parts.items()})
        for side in ("lower", "upper")
    )
    return middle_of((lower, upper)), (lower, upper)
