"""The fields of several operations' vectors beside their inputs: the changes of the scores."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from bridge.vectors.format.fields import Entry, bf16, bf16_or_none, number
from bridge.vectors.model.attention import Alibi, Exact
from bridge.vectors.model.gradients import PER_HEAD

# Scales are numbers that a kernel is given: well within float32.
_LARGEST_SCALE = 1 << 64


def scale(entry: Entry) -> Exact | None:
    """The factor of the scores; None: 1/√head_dim."""
    field = entry["scale"]
    if field.data == "default":
        if entry.model == "exact":
            raise field.fail("is the default, which the exact model cannot hold")
        return None
    found: Exact = field.read(number)
    if abs(Fraction(found)) > _LARGEST_SCALE:
        raise field.fail("is beyond 2^64")
    return found


def given_scale(entry: Entry) -> Exact:
    """The factor of the scores, which has to be given."""
    found = scale(entry)
    if found is None:
        raise entry["scale"].fail("is the default, but has to be given for this operation")
    return found


def pairs_of_heads(entry: Entry, batch: int = 1) -> int:
    """How many queries of all heads and keys there are pairs of; heads share those of keys."""
    data = entry.data
    heads, kv_heads = data["num_heads"], data["num_kv_heads"]
    if heads % kv_heads:
        raise entry["num_heads"].fail(f"is {heads}, no multiple of num_kv_heads, {kv_heads}")
    return int(batch * heads * data["q_len"] * data["kv_len"])


def has_changes(entry: Entry, name: str) -> bool:
    """Whether there is something that changes the scores; the exact model has no place for it."""
    if name in entry and entry.model == "exact":
        raise entry[name].fail("is given, which the exact model cannot hold")
    return name in entry


def per_head(entry: Entry) -> dict[str, Any]:
    """The numbers of `PER_HEAD` that are given."""
    return {
        name: entry[name].numbers("num_heads")
        for name, row in PER_HEAD.items()
        if name in entry and (row.exact or has_changes(entry, name))
    }


def sink(entry: Entry) -> Exact | None:
    """The sink; in the exact model 0 alone, which stays 0 whatever the base of the exponential."""
    if "sink" not in entry:
        return None
    found: Exact = entry["sink"].read(bf16)
    if found != 0 and entry.model == "exact":
        raise entry["sink"].fail(f"is {found}, but the exact model can hold no sink but 0")
    return found


def softcap(entry: Entry) -> Exact | None:
    """The bound of the scores."""
    if not has_changes(entry, "softcap"):
        return None
    cap: Exact = entry["softcap"].read(bf16)
    if cap <= 0:
        raise entry["softcap"].fail("is not positive")
    return cap


def alibi(entry: Entry) -> Alibi | None:
    """The linear biases of the one head."""
    if not has_changes(entry, "alibi"):
        return None
    shift = entry["alibi"].shift(entry.data["kv_len"] - entry.data["q_len"])
    return Alibi(entry["alibi"]["slope"].read(bf16), shift)


def bias(entry: Entry) -> Any:
    """The bias of the one head: [q_len][kv_len], or None."""
    if not has_changes(entry, "bias"):
        return None
    return entry["bias"].numbers("q_len", "kv_len", read=bf16_or_none)


def one_head(entry: Entry) -> dict[str, Any]:
    """The inputs of the one head, and the changes of its scores."""
    return {
        "scale": scale(entry),
        "q": entry["q"].numbers("q_len", "head_dim"),
        "k": entry["k"].numbers("kv_len", "head_dim"),
        "v": entry["v"].numbers("kv_len", "value_dim"),
        "mask": entry["mask"].mask(),
        "softcap": softcap(entry),
        "alibi": alibi(entry),
        "bias": bias(entry),
        "sink": sink(entry),
    }
