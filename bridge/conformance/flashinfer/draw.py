"""Fresh vectors of a definition: its numbers of heads and columns, and lengths that are drawn or a
workload's."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from bridge.conformance.decoding.draw import sequence
from bridge.conformance.flashinfer.operation import BenchOperation
from bridge.vectors.model.decode import SequencesVector

FAMILY = "fresh-definition"
# Keys of a sequence, among them those about the sizes of tiles.
_LENGTHS = (1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65)
# Keys times kv_heads × head_dim, and queries times keys times heads, of one vector at most.
_MOST_NUMBERS, _MOST_SCORES = 1 << 18, 1 << 14


@dataclass(frozen=True)
class Sizes:
    """The sizes of a workload: how many sequences, queries in all, and keys in all (in pages: full
    ones)."""

    batch: int
    queries: int
    keys: int

    @classmethod
    def of(cls, own: BenchOperation, axes: Mapping[str, int]) -> Sizes:
        """The sizes from the axes of a workload. Raises KeyError for one that it lacks."""
        if own.kind == "paged decode":
            batch = axes["batch_size"]
            return cls(batch, batch, axes["num_kv_indices"] * own.page_size)
        keys = axes["total_kv"] if not own.page_size else axes["num_kv_indices"] * own.page_size
        return cls(axes["len_indptr"] - 1, axes["total_q"], keys)


def draw(
    chance: random.Random, id: str, own: BenchOperation, sizes: Sizes | None
) -> SequencesVector:
    """sizes: a workload's, of which as many sequences are taken as there is room for; None:
    drawn."""
    lengths = _draw_lengths(chance, own) if sizes is None else _of(chance, own, sizes)
    # At sm_scale = 1/√head_dim, as definitions have it, or another that keeps the scores whole.
    scale = chance.choice((None, None, 1))
    made = tuple(
        sequence(chance, own.heads, own.kv_heads, tokens, kv_len, own.head_dim, own.head_dim, scale)
        for tokens, kv_len in lengths
    )
    shown = ", ".join(f"{tokens} over {kv_len}" for tokens, kv_len in lengths)
    whose = "drawn for this run" if sizes is None else "of a workload's sizes, drawn for this run"
    return SequencesVector(
        id, FAMILY, "Attention.Spec.attention", "causal-lengths",
        f"{whose}: queries over keys {shown}", "natural" if scale is None else "exact",
        own.head_dim, own.head_dim, scale, made,
    )  # fmt: skip


def _fits(own: BenchOperation, lengths: list[tuple[int, int]]) -> bool:
    keys = sum(kv_len for _, kv_len in lengths)
    scores = sum(tokens * kv_len for tokens, kv_len in lengths) * own.heads
    return keys * own.kv_heads * own.head_dim <= _MOST_NUMBERS and scores <= _MOST_SCORES


def _whole(own: BenchOperation, kv_len: int) -> int:
    """A length that the operation has, not below this one."""
    step = 1 if own.why_not(1) is None else own.page_size
    return -(-kv_len // step) * step


def _draw_lengths(chance: random.Random, own: BenchOperation) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for n in range(chance.randint(1, 4)):
        kv_len = _whole(own, chance.choice((*_LENGTHS, own.page_size or 1, own.page_size + 1)))
        tokens = 1 if own.kind == "paged decode" else min(chance.randint(1, 5), kv_len)
        if n and own.kind == "paged decode" and chance.randrange(8) == 0:
            kv_len = 0
        if found and not _fits(own, [*found, (tokens, kv_len)]):
            break
        found.append((tokens, kv_len))
    return found


def _of(chance: random.Random, own: BenchOperation, sizes: Sizes) -> list[tuple[int, int]]:
    """About as long as those of the workload; a sequence that is too long is cut."""
    batch = max(1, sizes.batch)
    tokens = 1 if own.kind == "paged decode" else max(1, sizes.queries // batch)
    kv_len = max(1, sizes.keys // batch)
    while not _fits(own, [(tokens, _whole(own, kv_len))]) and (tokens > 1 or kv_len > 1):
        tokens, kv_len = max(1, tokens // 2), max(1, kv_len // 2)
    found: list[tuple[int, int]] = []
    for _ in range(batch):
        keys = _whole(own, max(tokens, kv_len - chance.randint(0, kv_len // 2)))
        if found and not _fits(own, [*found, (tokens, keys)]):
            break
        found.append((tokens, keys))
    return found
