"""From the fields of an entry to vectors of dropout and of its generator."""

from __future__ import annotations

from bridge.vectors.format.fields import Fields
from bridge.vectors.format.read_options import header, laid_out
from bridge.vectors.model.attention import Dropout
from bridge.vectors.model.dropout import DropoutVector, PhiloxVector


def dropped(fields: Fields, heads: int, name: str) -> tuple[tuple[Dropout, ...], int]:
    """The dropout of so many heads, as many as the field `name` says, and the seed."""
    entry = fields.entry
    p = fields.number(entry["dropout_p"], "dropout_p")
    if not 0 <= p <= 1:
        raise fields.fail("dropout_p", f"is {entry['dropout_p']}, no probability from 0 to 1")
    seed = int(entry["dropout_seed"])
    if not 0 <= seed < 1 << 63:
        raise fields.fail("dropout_seed", f"is {seed}, not from 0 to 2^63 − 1")
    data = fields.counted(entry["keep"], "keep", heads, name, "heads")
    q_len, kv_len = entry["q_len"], entry["kv_len"]
    return tuple(
        Dropout(p, fields.booleans(rows, f"keep[{h}]", q_len, kv_len))
        for h, rows in enumerate(data)
    ), seed


def dropout(fields: Fields) -> DropoutVector:
    entry = fields.entry
    batch, heads, kv_heads = entry["batch"], entry["num_heads"], entry["num_kv_heads"]
    if heads % kv_heads:
        raise fields.fail("num_heads", f"is {heads}, no multiple of num_kv_heads, {kv_heads}")
    q_len, kv_len = entry["q_len"], entry["kv_len"]
    total = batch * heads
    fields.affordable(total * q_len * kv_len, entry["head_dim"] + entry["value_dim"])
    kept, seed = dropped(fields, total, "batch·num_heads")
    counts = {"batch·num_heads": total, "batch·num_kv_heads": batch * kv_heads}
    sized = Fields(fields.filename, fields.family, fields.model, {**entry, **counts})
    data = fields.counted(entry["expected"], "expected", total, "batch·num_heads", "heads")
    vector = DropoutVector(
        **laid_out(fields),
        batch=batch,
        num_heads=heads,
        num_kv_heads=kv_heads,
        q_len=q_len,
        kv_len=kv_len,
        q=sized.matrices("q", "batch·num_heads", "q_len", "head_dim"),
        k=sized.matrices("k", "batch·num_kv_heads", "kv_len", "head_dim"),
        v=sized.matrices("v", "batch·num_kv_heads", "kv_len", "value_dim"),
        mask=fields.mask(q_len, kv_len),
        dropout=kept,
        dropout_seed=seed,
        expected=tuple(
            fields.rows(rows, f"expected[{h}]", q_len, "q_len") for h, rows in enumerate(data)
        ),
    )
    for h, problem in enumerate(vector.attentions()):
        fields.plausible(problem, [f"expected[{h}][{i}]" for i in range(q_len)])
    return vector


def philox(fields: Fields) -> PhiloxVector:
    entry, count = fields.entry, len(fields.entry["counters"])
    expected = fields.counted(
        entry["expected"], "expected", count, "the number of counters", "entries"
    )
    return PhiloxVector(
        **header(fields),
        rounds=entry["rounds"],
        key=tuple(entry["key"]),
        counters=tuple(map(tuple, entry["counters"])),
        expected=tuple(map(tuple, expected)),
    )
