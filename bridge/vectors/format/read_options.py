"""What the vectors of several operations hold beside their inputs: their names, and what changes
the scores."""

from __future__ import annotations

from typing import Any

from bridge.vectors.format.fields import Fields
from bridge.vectors.model.attention import Alibi, Exact


def header(fields: Fields) -> dict[str, Any]:
    """What vectors of all operations have."""
    entry = fields.entry
    return {
        "id": entry["id"],
        "family": fields.family,
        "lean": entry["lean"],
        "theorem": entry["theorem"],
        "reason": entry["reason"],
        "model": fields.model,
    }


def laid_out(fields: Fields) -> dict[str, Any]:
    entry = fields.entry
    return {
        **header(fields),
        "head_dim": entry["head_dim"],
        "value_dim": entry["value_dim"],
        "scale": fields.given_scale(),
    }


def has_changes(fields: Fields, field: str) -> bool:
    """Whether there is something that changes the scores; the exact model has no place for it."""
    if field not in fields.entry:
        return False
    if fields.model == "exact":
        raise fields.fail(field, "is given, which the exact model cannot hold")
    return True


def _natural_number(fields: Fields, field: str) -> Exact | None:
    """A number that a kernel is given beside the scores."""
    if not has_changes(fields, field):
        return None
    return fields.bf16(fields.entry[field], field)


def sink(fields: Fields) -> Exact | None:
    """The sink; in the exact model 0 alone, which stays 0 whatever the base of the exponential."""
    if fields.model == "exact" and "sink" in fields.entry:
        sink = fields.bf16(fields.entry["sink"], "sink")
        if sink != 0:
            raise fields.fail("sink", f"is {sink}, but the exact model can hold no sink but 0")
        return sink
    return _natural_number(fields, "sink")


def softcap(fields: Fields) -> Exact | None:
    """The bound of the scores."""
    cap = _natural_number(fields, "softcap")
    if cap is not None and cap <= 0:
        raise fields.fail("softcap", "is not positive")
    return cap


def alibi(fields: Fields, q_len: int, kv_len: int) -> Alibi | None:
    """The linear biases of the one head."""
    if not has_changes(fields, "alibi"):
        return None
    data = fields.entry["alibi"]
    slope = fields.bf16(data["slope"], "alibi.slope")
    return Alibi(slope, fields.shift(data["alignment"], q_len, kv_len))


def bias_rows(
    fields: Fields, data: list[list[str | None]], field: str, kv_len: int
) -> tuple[tuple[Exact | None, ...], ...]:
    """Rows of numbers to add to the scores; None masks."""
    out = []
    for i, row in enumerate(data):
        fields.counted(row, f"{field}[{i}]", kv_len, "kv_len", "numbers")
        out.append(
            tuple(
                None if x is None else fields.bf16(x, f"{field}[{i}][{j}]")
                for j, x in enumerate(row)
            )
        )
    return tuple(out)


def bias(fields: Fields, q_len: int, kv_len: int) -> tuple[tuple[Exact | None, ...], ...] | None:
    """The bias of the one head."""
    if not has_changes(fields, "bias"):
        return None
    data = fields.counted(fields.entry["bias"], "bias", q_len, "q_len", "rows")
    return bias_rows(fields, data, "bias", kv_len)
