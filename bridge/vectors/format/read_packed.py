"""From the fields of an entry to packed sequences."""

from __future__ import annotations

from itertools import pairwise

from bridge.vectors.format.fields import Entry, Field
from bridge.vectors.model.sampled import Packed


def sequences(entry: Entry, mask: Field) -> Packed:
    """The sequences, each with that mask in its own positions."""
    if mask.data["kind"] not in ("none", "causal", "causal-bottom-right", "window"):
        raise mask["kind"].fail("is none that means the same for every length")
    sums = entry["cu_seqlens_q"], entry["cu_seqlens_k"]
    sums[1].check_count(sums[0].number_of("numbers"), "numbers")
    for part in sums:
        if part.data[:1] != [0] or any(a > b for a, b in pairwise(part.data)):
            raise part.fail("does not rise from 0")
    lengths = [[b - a for a, b in pairwise(part.data)] for part in sums]
    kind, alignment = mask.data["kind"], mask.data.get("alignment")
    bottom_right = kind == "causal-bottom-right" or alignment == "bottom-right"
    return Packed(
        cu_seqlens_q=tuple(sums[0].data),
        cu_seqlens_k=tuple(sums[1].data),
        masks=tuple(
            mask.mask((q, "the length"), (k, "the length")) for q, k in zip(*lengths, strict=True)
        ),
        alignment="bottom-right" if bottom_right else "top-left",
    )
