"""From the fields of an entry to vectors of dropout and of its generator."""

from __future__ import annotations

from itertools import chain

from bridge.vectors.format.fields import Entry, Size, number
from bridge.vectors.format.read_options import given_scale, pairs_of_heads
from bridge.vectors.format.read_results import check_plausible, row
from bridge.vectors.model.attention import Dropout, Exact
from bridge.vectors.model.dropout import DropoutVector, PhiloxVector


def probability(entry: Entry) -> Exact:
    """The probability to drop a weight."""
    p: Exact = entry["dropout_p"].read(number)
    if not 0 <= p <= 1:
        raise entry["dropout_p"].fail(f"is {p}, no probability from 0 to 1")
    return p


def seed_of(entry: Entry) -> int:
    """The seed by which it is drawn which weights are dropped."""
    seed = int(entry.data["dropout_seed"])
    if not 0 <= seed < 1 << 63:
        raise entry["dropout_seed"].fail(f"is {seed}, not from 0 to 2^63 − 1")
    return seed


def dropout_masks(entry: Entry, heads: Size) -> tuple[tuple[Dropout, ...], int]:
    """The dropout of so many heads, and the seed."""
    p, seed = probability(entry), seed_of(entry)
    kept = entry["keep"].check_count(heads, "heads")
    return tuple(Dropout(p, rows.booleans("q_len", "kv_len")) for rows in kept), seed


def dropout(entry: Entry) -> DropoutVector:
    data = entry.data
    batch, heads, kv_heads = (data[name] for name in ("batch", "num_heads", "num_kv_heads"))
    entry.affordable(pairs_of_heads(entry, batch), data["head_dim"] + data["value_dim"])
    total, kv_total = (batch * heads, "batch·num_heads"), (batch * kv_heads, "batch·num_kv_heads")
    kept, seed = dropout_masks(entry, total)
    expected = entry["expected"].check_count(total, "heads")
    vector = DropoutVector(
        **entry.plain(DropoutVector),
        scale=given_scale(entry),
        q=entry["q"].numbers(total, "q_len", "head_dim"),
        k=entry["k"].numbers(kv_total, "kv_len", "head_dim"),
        v=entry["v"].numbers(kv_total, "kv_len", "value_dim"),
        mask=entry["mask"].mask(),
        dropout=kept,
        dropout_seed=seed,
        expected=tuple(tuple(map(row, head.check_count("q_len", "rows"))) for head in expected),
    )
    check_plausible(vector.attentions(), chain.from_iterable(expected))
    return vector


def philox(entry: Entry) -> PhiloxVector:
    size = len(entry["counters"]), "the number of counters"
    return PhiloxVector(
        **entry.plain(PhiloxVector),
        key=tuple(entry.data["key"]),
        counters=tuple(map(tuple, entry.data["counters"])),
        expected=tuple(map(tuple, entry["expected"].check_count(size, "entries").data)),
    )
