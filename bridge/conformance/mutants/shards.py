"""Mutants of sequences in shards: which places a device holds, where its queries stand, and how the
results over several shards become one."""

from __future__ import annotations

from bridge.conformance.mutants.planting import Mutant, mutants_of

_RING = "distributed/internal/ring.py"

_in_shards = mutants_of("distributed/internal/shards.py", through=_RING)
_in_blocks = mutants_of("distributed/internal/blocks.py", through=_RING)
_in_merge = mutants_of("merge.py", through=_RING)

SHARD_MUTANTS: tuple[Mutant, ...] = (
    _in_shards(
        "zigzag-ends-exchanged", "a device has the stretch near the end of the sequence first",
        "torch.cat(pair)", "torch.cat(pair[::-1])", ("shards-zigzag",),
    ),
    _in_shards(
        "odd-stretch-one-short", "a stretch of an odd length above 1 loses its last place",
        "Run(start, int(places[start]), stop - start, 1)",
        "Run(start, int(places[start]), max(1, (stop - start) // 2 * 2), 1)", ("shards-zigzag",),
    ),
    _in_blocks(
        "second-half-follows-first",
        "the queries of a device's second stretch stand where they would if it followed the first",
        "_window(sequence, a.first + sequence.shift - b.first, step)",
        "_window(sequence, queries[0].first + a.start + sequence.shift - b.first, step)",
        ("shards-zigzag",),
    ),
    _in_blocks(
        "stripe-window-not-divided", "of stripes the window is not divided by their step",
        "shift = (distance + right) // step", "shift = distance + right", ("shards-striped",),
    ),
    _in_merge(
        "shards-not-rescaled",
        "the outputs over several shards are averaged: none is rescaled by its log-sum-exp",
        "weights = torch.exp(lses - torch.where(torch.isneginf(m), 0.0, m))",
        "weights = (~torch.isneginf(lses)).to(lses.dtype)", ("shards-contiguous",),
    ),
)  # fmt: skip
