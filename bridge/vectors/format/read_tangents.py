"""From the fields of an entry to a vector of the derivative forwards."""

from __future__ import annotations

from typing import Any

from bridge.vectors.format.fields import Entry, bf16
from bridge.vectors.format.read_options import one_head
from bridge.vectors.format.read_results import enclosed_row
from bridge.vectors.model.tangents import TangentVector

# The changes of the scores, with the field of each one's rate: both are given or none.
RATES = {"alibi": "tangent_slope", "bias": "tangent_bias", "sink": "tangent_sink"}


def tangent(entry: Entry) -> TangentVector:
    """The vector. Raises VectorError as all readers do."""
    data = entry.data
    entry.affordable(data["q_len"] * data["kv_len"], 2 * (data["head_dim"] + data["value_dim"]))
    for name, rate in RATES.items():
        if name in entry and rate not in entry:
            raise entry.fail("is missing", rate)
        if rate in entry and name not in entry:
            raise entry[rate].fail("is given, but there is nothing whose rate it is")
    rows = entry["expected"].check_count("q_len", "rows")
    rates: dict[str, Any] = {
        rate: entry[rate].read(bf16)
        for rate in RATES.values()
        if rate in entry and rate != "tangent_bias"
    }
    if "tangent_bias" in entry:
        rates["tangent_bias"] = entry["tangent_bias"].numbers("q_len", "kv_len")
    vector = TangentVector(
        **entry.plain(TangentVector),
        **one_head(entry),
        tangent_q=entry["tangent_q"].numbers("q_len", "head_dim"),
        tangent_k=entry["tangent_k"].numbers("kv_len", "head_dim"),
        tangent_v=entry["tangent_v"].numbers("kv_len", "value_dim"),
        expected=tuple(map(enclosed_row, rows)),
        **rates,
    )
    attention = vector.attention()
    for i, (row, field) in enumerate(zip(vector.expected, rows, strict=True)):
        seen = any(attention.visible(i, j) for j in range(vector.kv_len))
        if row.masked == (seen or vector.sink is not None):
            raise field["log_sum_exp"].fail("does not agree with the mask")
    return vector
