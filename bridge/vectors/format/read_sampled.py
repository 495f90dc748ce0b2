"""From the fields of an entry to vectors whose inputs are drawn by rule, of which some rows are
judged."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from bridge.vectors.format.fields import Entry, Field
from bridge.vectors.format.read_dropout import probability, seed_of
from bridge.vectors.format.read_gradients import Sizes, check_bounds, results, slopes_of
from bridge.vectors.format.read_options import has_changes, pairs_of_heads, per_head, scale, softcap
from bridge.vectors.format.read_packed import sequences
from bridge.vectors.format.read_results import enclosed_row, row
from bridge.vectors.format.read_rules import MOST_NUMBERS, rule
from bridge.vectors.model.attention import Dropout, Exact, Mask, Row
from bridge.vectors.model.gradients import PER_HEAD
from bridge.vectors.model.sampled import (
    Numbers,
    Packed,
    SampledGradientVector,
    SampledVector,
    draw_dropout,
    matrix,
)


def sampled_attention(entry: Entry) -> SampledVector:
    data = entry.data
    batch, heads, kv_len = (data[x] for x in ("batch", "num_heads", "kv_len"))
    shapes = _shapes(entry)
    rows = _places(entry, "rows", "q_len")
    columns = data["head_dim"] + data["value_dim"]
    entry.affordable(batch * heads * len(rows) * kv_len, columns)
    bias = _bias(entry, heads)
    expected = entry["expected"].check_count((batch * heads, "batch·num_heads"), "heads")
    read: Any = row if entry.model == "exact" else enclosed_row
    packed = _packing(entry)
    p, seed = _dropout(entry)
    vector = SampledVector(
        **entry.plain(SampledVector),
        scale=scale(entry),
        q=rule(entry["q"]).numbers(*shapes["q"]),
        k=rule(entry["k"]).numbers(*shapes["k"]),
        v=rule(entry["v"]).numbers(*shapes["v"]),
        masks=_masks(entry, batch * heads, packed),
        rows=rows,
        softcap=softcap(entry),
        alibi=slopes_of(entry),
        bias=bias,
        dropout_p=p,
        dropout_seed=seed,
        packed=packed,
        given=tuple(
            tuple(map(read, head.check_count((len(rows), "the number of rows"), "rows")))
            for head in expected
        ),
        **_per_head(entry),
    )
    if entry.model == "exact":
        _check_integers(entry, vector)
    _check_plausible(vector, expected)
    return vector


def _shapes(entry: Entry) -> dict[str, tuple[int, ...]]:
    """The shapes of the inputs by rule. Raises VectorError for heads that do not fit, and for more
    numbers than are drawn in a second."""
    data = entry.data
    batch, heads, kv_heads = data["batch"], data["num_heads"], data["num_kv_heads"]
    pairs = pairs_of_heads(entry, batch)
    q_len, kv_len = data["q_len"], data["kv_len"]
    shapes: dict[str, tuple[int, ...]] = {
        "q": (batch, heads, q_len, data["head_dim"]),
        "k": (batch, kv_heads, kv_len, data["head_dim"]),
        "v": (batch, kv_heads, kv_len, data["value_dim"]),
    }
    numbers = sum(map(math.prod, shapes.values()))
    if max(numbers, pairs) > MOST_NUMBERS:
        raise entry["q_len"].fail(
            f"and the other sizes come to more than {MOST_NUMBERS} numbers, or pairs of a query "
            "and a key"
        )
    return shapes


def _packing(entry: Entry) -> Packed | None:
    """The sequences that lie packed in each head."""
    if ("cu_seqlens_q" in entry) != ("cu_seqlens_k" in entry):
        raise entry.fail("are given together or not at all", "cu_seqlens_q and cu_seqlens_k")
    if "cu_seqlens_q" not in entry:
        return None
    if len(entry["masks"]) != 1:
        raise entry["masks"].fail("has several entries, but the sequences are packed")
    if entry.data["batch"] > 1:
        raise entry["batch"].fail("is above 1, but the sequences are packed")
    for name, size in (("cu_seqlens_q", "q_len"), ("cu_seqlens_k", "kv_len")):
        if entry.data[name][-1:] != [entry.data[size]]:
            raise entry[name].fail(f"does not end at {size}, {entry.data[size]}")
    return sequences(entry, entry["masks"][0])


def _dropout(entry: Entry) -> tuple[Exact | None, int]:
    """The probability and the seed; None, 0: there is none. Which weights are kept is drawn."""
    if ("dropout_p" in entry) != ("dropout_seed" in entry):
        raise entry.fail("are given together or not at all", "dropout_p and dropout_seed")
    if "dropout_p" not in entry:
        return None, 0
    return probability(entry), seed_of(entry)


def _per_head(entry: Entry) -> dict[str, Any]:
    """The given numbers of `PER_HEAD`; in the exact model integers."""
    found = per_head(entry)
    for name, numbers in found.items():
        if entry.model == "exact" and any(x.denominator != 1 for x in numbers):
            raise entry[name].fail("has fractions, but scores of the exact model are integers")
    return found


def _masks(entry: Entry, heads: int, packed: Packed | None) -> tuple[Mask, ...]:
    """The masks of so many heads of all sequences."""
    if packed is not None:
        return (packed.whole(),)
    masks = entry["masks"]
    if len(masks) not in (1, heads):
        raise masks.fail(f"has {len(masks)} entries, but there are {heads} heads")
    return tuple(mask.mask() for mask in masks)


def _bias(entry: Entry, heads: int) -> Numbers | None:
    """[heads, q_len, kv_len]."""
    if not has_changes(entry, "bias"):
        return None
    found = rule(entry["bias"]).numbers(heads, entry.data["q_len"], entry.data["kv_len"])
    return np.asarray(found)


def _places(entry: Entry, name: str, size: str) -> tuple[int, ...]:
    places = tuple(entry.data[name])
    if places[-1] >= entry.data[size] or any(a >= b for a, b in pairwise(places)):
        raise entry[name].fail(f"does not rise to less than {size}, {entry.data[size]}")
    return places


def _check_integers(entry: Entry, vector: SampledVector) -> None:
    for name in ("q", "k"):
        if entry.data[name]["over"] != 1:
            raise entry[name]["over"].fail("is not 1, but scores of the exact model are integers")
    if vector.scale is None or vector.scale.denominator != 1:
        raise entry["scale"].fail("is not an integer, but scores of the exact model are integers")


def _check_plausible(vector: SampledVector, expected: Field) -> None:
    """Refuse implausible results, as `read_results.check_plausible` does."""
    group = vector.heads // vector.k.shape[1]
    results = vector.given or ()
    # A weight that dropout keeps may be above 1.
    weight = 1.0 if vector.dropout_p is None else float(Dropout(vector.dropout_p, ()).largest)
    for n, (found, head) in enumerate(zip(results, expected, strict=True)):
        values = vector.v[n // vector.heads, n % vector.heads // group]
        largest = float(np.abs(values).max(initial=0)) * weight
        seen: list[bool] = np.any(vector.visible_keys(n), axis=-1).tolist()
        for result, field, some in zip(found, head, seen, strict=True):
            if any(abs(x) > largest + float(result.uncertainty) for x in result.output):
                raise field["output"].fail("is larger than every value, of which it is a mean")
            if result.masked == (some or vector.sinks is not None):
                name = "max" if isinstance(result, Row) else "log_sum_exp"
                raise field[name].fail("does not agree with the mask")


def sampled_gradient(entry: Entry) -> SampledGradientVector:
    """The heads of all sequences are one after another. Inputs given per head, the same for all
    sequences, are for one sequence alone: the gradient by them is the sum over sequences."""
    data = entry.data
    shapes = _shapes(entry)
    batch, q_len, kv_len = data["batch"], data["q_len"], data["kv_len"]
    heads, kv_heads = batch * data["num_heads"], batch * data["num_kv_heads"]
    entry.affordable(heads * q_len * kv_len, 2 * (data["head_dim"] + data["value_dim"]))
    rows, keys = _places(entry, "rows", "q_len"), _places(entry, "keys", "kv_len")
    queries = (len(rows), "the number of rows")
    of_keys = (len(keys), "the number of keys")
    of_heads, of_kv_heads = (heads, "batch·num_heads"), (kv_heads, "batch·num_kv_heads")
    sizes: Sizes = {
        "q": (of_heads, queries, "head_dim"),
        "k": (of_kv_heads, of_keys, "head_dim"),
        "v": (of_kv_heads, of_keys, "value_dim"),
        "bias": (of_heads, queries, of_keys),
    }
    for name in ("alibi", "bias", *PER_HEAD):
        if name in entry and batch > 1:
            raise entry[name].fail(f"is given for each head, but there are {batch} sequences")
    alibi, bias, each_head = slopes_of(entry), _bias(entry, heads), _per_head(entry)
    packed, (p, seed) = _packing(entry), _dropout(entry)
    there = {*each_head, *(() if alibi is None else ("slopes",))}
    for name in ("slopes", *PER_HEAD):
        if (f"expected_{name}" in entry) != (name in there):
            raise entry.fail("is given or missing, unlike its input", f"expected_{name}")
        if name in there:
            sizes[name] = ("num_heads",)
    expected, bounds = results(entry, sizes)
    by_output = rule(entry["grad_output"]).numbers(heads, q_len, data["value_dim"])
    matrices = {
        name: tuple(map(matrix, rule(entry[name]).numbers(*shape).reshape(-1, *shape[2:])))
        for name, shape in shapes.items()
    }
    vector = SampledGradientVector(
        **entry.plain(SampledGradientVector) | {"num_heads": heads, "num_kv_heads": kv_heads},
        scale=scale(entry),
        q=matrices["q"],
        k=matrices["k"],
        v=matrices["v"],
        masks=_masks(entry, heads, packed),
        grad_output=tuple(map(matrix, by_output)),
        grad_log_sum_exp=matrix(rule(entry["grad_log_sum_exp"]).numbers(heads, q_len)),
        expected=expected,
        softcap=softcap(entry),
        alibi=alibi,
        bias=None if bias is None else tuple(map(matrix, bias)),
        bounds=bounds,
        dropout=()
        if p is None
        else tuple(draw_dropout(p, seed, h, range(q_len), kv_len) for h in range(heads)),
        dropout_seed=seed,
        rows=rows,
        keys=keys,
        packed=packed,
        **each_head,
    )
    check_bounds(entry, vector)
    return vector
