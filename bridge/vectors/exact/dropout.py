"""Dropout's weights and Philox's words by `model.philox`."""

from __future__ import annotations

from bridge.vectors.model.dropout import DropoutVector, PhiloxVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.philox import keep, philox


def wrong_masks(vector: DropoutVector | GradientVector) -> list[str]:
    """One sentence for each row whose kept weights are not those of the seed."""
    found = []
    for h, given in enumerate(vector.dropout):
        right = keep(given.p, vector.dropout_seed, h, range(vector.q_len), vector.kv_len)
        for i, (row, want) in enumerate(zip(given.keep, right.tolist(), strict=True)):
            if list(row) != want:
                shown = ("".join("01"[bit] for bit in bits) for bits in (row, want))
                got, should = shown
                found.append(f"{vector.id}: keep[{h}][{i}] is {got}, should be {should}.")
    return found


def wrong_words(vector: PhiloxVector) -> list[str]:
    """One sentence for each counter whose words are others."""
    right = philox(vector.key, vector.counters, vector.rounds).tolist()
    return [
        f"{vector.id}: expected[{n}] is {list(got)}, should be {want}."
        for n, (got, want) in enumerate(zip(vector.expected, right, strict=True))
        if list(got) != want
    ]
