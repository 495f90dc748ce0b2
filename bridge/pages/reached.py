"""How many queries and keys the vectors have by option, forwards and for gradients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bridge.vectors.model.attention import AttentionVector, Family, Mask, Vector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import (
    GroupedQueryVector,
    LaidOutVector,
    PagedVector,
    VarlenVector,
)
from bridge.vectors.model.sampled import Packed, SampledGradientVector, SampledVector
from pyimpl.internal.scores import CHANGES

_MASKS = {
    "none": "no mask",
    "causal": "causal, top-left",
    "causal-bottom-right": "causal, bottom-right",
    "window": "a window",
    "key-length": "padding",
    "key-padding": "padding",
    "document": "documents",
    "boolean": "a Boolean mask",
}
_OPTIONS = {change.feature: change.title for change in CHANGES}
_OPTIONS |= {"sinks": "sinks", "dropout": "dropout"}
EACH_HEAD = "a mask of each head"
GROUPED, BATCH, LSE = "heads that share keys", "several sequences", "the log-sum-exp in the loss"
PACKED, PACKED_HEADS = "packed sequences", "packed sequences, several heads"
PAGES = "pages"
# The rows of the table, in this order.
NAMES = (
    *dict.fromkeys(_MASKS.values()), EACH_HEAD, *dict.fromkeys(_OPTIONS.values()), GROUPED, BATCH,
    PACKED, PACKED_HEADS, PAGES, LSE,
)  # fmt: skip
_HEAD = ("option", *("queries", "keys", "of both") * 2)


@dataclass(frozen=True)
class Reach:
    """The most queries of a vector, the most keys, and the most that one has of both, at once."""

    queries: int = 0
    keys: int = 0
    both: int = 0

    def over(self, q_len: int, kv_len: int) -> Reach:
        """The reach together with a vector of so many queries and keys."""
        both = max(self.both, min(q_len, kv_len))
        return Reach(max(self.queries, q_len), max(self.keys, kv_len), both)


def table(families: Sequence[Family]) -> str:
    """A row for each option; forwards, then for gradients."""
    found = reach_by_option(families)
    rows = [
        (name, *_cells(found.get((name, False))), *_cells(found.get((name, True))))
        for name in NAMES
    ]
    line = ("---", *["---:"] * 6)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (_HEAD, line, *rows))


def reach_by_option(families: Iterable[Family]) -> dict[tuple[str, bool], Reach]:
    """By option of `NAMES`, and whether it is of gradients, how far the vectors reach. Of packed
    sequences each is of its own lengths."""
    found: dict[tuple[str, bool], Reach] = {}
    for family in families:
        for vector in family.vectors:
            gradients = isinstance(vector, GradientVector)
            for names, q_len, kv_len in _options_and_lengths(vector):
                for name in names:
                    key = name, gradients
                    found[key] = found.get(key, Reach()).over(q_len, kv_len)
    return found


def _options_and_lengths(vector: Vector) -> Iterator[tuple[set[str], int, int]]:
    """The options of a vector, with its lengths, or those of each of its sequences."""
    names: set[str] = set()
    match vector:
        case AttentionVector():
            yield _options(vector.options) | _masks([vector.mask]), vector.q_len, vector.kv_len
        case GradientVector():
            names = _options(vector.options)
            if vector.num_heads != vector.num_kv_heads:
                names.add(GROUPED)
            if vector.batch > 1:
                names.add(BATCH)
            if vector.by_log_sum_exp:
                names.add(LSE)
            packed = vector.packed if isinstance(vector, SampledGradientVector) else None
            heads, lengths = vector.num_heads, (vector.q_len, vector.kv_len)
            yield from _of_heads(names, vector.masks, packed, heads, lengths)
        case SampledVector():
            names = _options(vector.problems()[0].options | vector.own_options)
            if vector.grouped:
                names.add(GROUPED)
            if vector.q.shape[0] > 1:
                names.add(BATCH)
            lengths = vector.q.shape[2], vector.k.shape[2]
            yield from _of_heads(names, vector.masks, vector.packed, vector.heads, lengths)
        case LaidOutVector():
            if isinstance(vector, GroupedQueryVector) and vector.num_heads != vector.num_kv_heads:
                names.add(GROUPED)
            if isinstance(vector, VarlenVector):
                names.add(PACKED)
            if isinstance(vector, PagedVector):
                names.add(PAGES)
            for one in vector.problems():
                dropped = {"dropout"} if one.dropout is not None else set()
                yield names | _options(dropped) | _masks([one.mask]), one.q_len, one.kv_len


def _of_heads(
    names: set[str],
    masks: Sequence[Mask],
    packed: Packed | None,
    heads: int,
    lengths: tuple[int, int],
) -> Iterator[tuple[set[str], int, int]]:
    if packed is None:
        each = {EACH_HEAD} if len(masks) > 1 else set()
        yield names | each | _masks(masks), *lengths
        return
    names |= {PACKED, PACKED_HEADS} if heads > 1 else {PACKED}
    for mask, (q_len, kv_len) in zip(packed.masks, packed.lengths(), strict=True):
        yield names | _masks([mask]), q_len, kv_len


def _options(names: Iterable[str]) -> set[str]:
    return {_OPTIONS[name] for name in names}


def _masks(masks: Iterable[Mask]) -> set[str]:
    return {_MASKS[mask.kind] for mask in masks}


def _cells(reach: Reach | None) -> tuple[str, ...]:
    if reach is None:
        return ("",) * 3
    return str(reach.queries), str(reach.keys), str(reach.both)
