"""From the fields of an entry to the vector of its operation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from bridge.vectors.format.fields import Entry, Field, bf16_or_none
from bridge.vectors.format.read_dropout import dropout, philox
from bridge.vectors.format.read_gradients import gradient
from bridge.vectors.format.read_options import given_scale, one_head, pairs_of_heads
from bridge.vectors.format.read_packed import sequences
from bridge.vectors.format.read_results import check_plausible, enclosed_row, key, row, state
from bridge.vectors.format.read_rules import is_drawn, numbers
from bridge.vectors.format.read_sampled import sampled_attention, sampled_gradient
from bridge.vectors.format.read_shards import shards
from bridge.vectors.format.read_tangents import tangent
from bridge.vectors.format.read_transformers import layer, transformer
from bridge.vectors.model import operations
from bridge.vectors.model.attention import AttentionVector, EnclosedRow, Row, Vector
from bridge.vectors.model.dropout import DropoutVector, PhiloxVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import Edit, Partial, Tree
from bridge.vectors.model.sampled import SampledGradientVector, SampledVector
from bridge.vectors.model.shards import ShardsVector
from bridge.vectors.model.tangents import TangentVector
from bridge.vectors.model.transformers import LayerVector, TransformerVector


def attention(entry: Entry) -> AttentionVector:
    data = entry.data
    entry.affordable(data["q_len"] * data["kv_len"], data["head_dim"] + data["value_dim"])
    rows = entry["expected"].check_count("q_len", "rows")
    read: Callable[[Field], Row | EnclosedRow] = row if entry.model == "exact" else enclosed_row
    expected = tuple(map(read, rows))
    vector = AttentionVector(**entry.plain(AttentionVector), **one_head(entry), expected=expected)
    check_plausible([vector], rows)
    return vector


def grouped_query(entry: Entry) -> operations.GroupedQueryVector:
    entry.affordable(pairs_of_heads(entry), entry.data["head_dim"] + entry.data["value_dim"])
    expected = entry["expected"].check_count("num_heads", "heads")
    vector = operations.GroupedQueryVector(
        **entry.plain(operations.GroupedQueryVector),
        scale=given_scale(entry),
        q=entry["q"].numbers("num_heads", "q_len", "head_dim"),
        k=entry["k"].numbers("num_kv_heads", "kv_len", "head_dim"),
        v=entry["v"].numbers("num_kv_heads", "kv_len", "value_dim"),
        mask=entry["mask"].mask(),
        expected=tuple(tuple(map(row, head.check_count("q_len", "rows"))) for head in expected),
    )
    check_plausible(vector.attentions(), chain.from_iterable(expected))
    return vector


def varlen(entry: Entry) -> operations.VarlenVector:
    data, packed = entry.data, sequences(entry, entry["mask"])
    entry.affordable(sum(q * k for q, k in packed.lengths()), data["head_dim"] + data["value_dim"])
    sums = entry["cu_seqlens_q"], entry["cu_seqlens_k"]
    total_q, total_k = ((part.data[-1], f"the last of {part.place}") for part in sums)
    rows = entry["expected"].check_count(total_q, "rows")
    vector = operations.VarlenVector(
        **entry.plain(operations.VarlenVector),
        scale=given_scale(entry),
        **vars(packed),
        q=numbers(entry["q"], total_q, "head_dim", integers=True),
        k=numbers(entry["k"], total_k, "head_dim", integers=True),
        v=numbers(entry["v"], total_k, "value_dim"),
        expected=tuple(map(row, rows)),
    )
    check_plausible(vector.attentions(), rows)
    return vector


def paged_cache(entry: Entry) -> operations.PagedVector:
    data = entry.data
    batch = entry["q"].number_of("rows")
    if is_drawn(entry["q"]):
        batch = entry["tables"].number_of("entries")
    for name in ("tables", "lengths", "expected"):
        entry[name].check_count(batch, "entries")
    pages, page_size = data["num_pages"], data["page_size"]
    for table, length in zip(entry["tables"], entry["lengths"], strict=True):
        for page in table:
            if page.data >= pages:
                raise page.fail(f"is {page.data}, but num_pages is {pages}")
        if length.data > len(table) * page_size:
            raise length.fail(f"is {length.data}, more than its pages hold")
    entry.affordable(sum(data["lengths"]), data["head_dim"] + data["value_dim"])
    vector = operations.PagedVector(
        **entry.plain(operations.PagedVector),
        scale=given_scale(entry),
        k=numbers(entry["k"], "num_pages", "page_size", "head_dim", integers=True),
        v=numbers(entry["v"], "num_pages", "page_size", "value_dim"),
        q=numbers(entry["q"], batch, "head_dim", integers=True),
        tables=tuple(map(tuple, data["tables"])),
        lengths=tuple(data["lengths"]),
        expected=tuple(map(row, entry["expected"])),
    )
    check_plausible(vector.attentions(), entry["expected"])
    return vector


def cascade(entry: Entry) -> operations.CascadeVector:
    data = entry.data
    for name in ("suffix_k", "suffix_v", "expected"):
        entry[name].check_count(entry["q"].number_of("rows"), "entries")
    entry["prefix_v"].check_count(entry["prefix_k"].number_of("rows"), "rows")
    for k, v in zip(entry["suffix_k"], entry["suffix_v"], strict=True):
        v.check_count(k.number_of("rows"), "rows")
    pairs = len(data["q"]) * len(data["prefix_k"]) + sum(map(len, data["suffix_k"]))
    entry.affordable(pairs, data["head_dim"] + data["value_dim"])
    vector = operations.CascadeVector(
        **entry.plain(operations.CascadeVector),
        scale=given_scale(entry),
        q=entry["q"].numbers(None, "head_dim"),
        prefix_k=entry["prefix_k"].numbers(None, "head_dim"),
        prefix_v=entry["prefix_v"].numbers(None, "value_dim"),
        suffix_k=entry["suffix_k"].numbers(None, None, "head_dim"),
        suffix_v=entry["suffix_v"].numbers(None, None, "value_dim"),
        expected=tuple(map(row, entry["expected"])),
    )
    check_plausible(vector.attentions(), entry["expected"])
    return vector


def _tree(part: Field, leaves: list[int]) -> Tree:
    """The tree; `leaves` gets the lengths of its blocks."""
    tree, blocks = part.data, part.entry.data["blocks"]
    if isinstance(tree, list):
        if len(tree) != 2:
            raise part.fail(f"has {len(tree)} trees, but 2 are merged")
        return _tree(part[0], leaves), _tree(part[1], leaves)
    if not isinstance(tree, int) or isinstance(tree, bool) or tree < 0:
        raise part.fail("is neither the number of a block nor two trees")
    if tree >= len(blocks):
        raise part.fail(f"is {tree}, but there are {len(blocks)} blocks")
    leaves.append(len(blocks[tree]))
    return tree


def merge(entry: Entry) -> operations.MergeVector:
    leaves: list[int] = []
    tree = _tree(entry["tree"], leaves)
    entry.affordable(sum(leaves), entry.data["value_dim"])
    vector = operations.MergeVector(
        **entry.plain(operations.MergeVector),
        blocks=tuple(tuple(map(key, block)) for block in entry["blocks"]),
        tree=tree,
        expected=state(entry["expected"]),
    )
    if vector.expected.m is not None and vector.expected.l < 1:
        raise entry["expected"]["l"].fail("is below 1, but the largest weight alone is 1")
    check_plausible(vector.attentions(), [entry["expected"]])
    return vector


def cache(entry: Entry) -> operations.CacheVector:
    keys, edits = tuple(map(key, entry["keys"])), []
    # Each edit copies the keys, and each state is of all of them.
    count = len(entry["edits"])
    entry.affordable((len(keys) + count) * count, entry.data["value_dim"])
    held = list(keys)
    for part in entry["edits"]:
        kind, *numbers = (part.data.get(name, 0) for name in ("kind", "index", "window"))
        edit = Edit(kind, key(part) if "value" in part else None, *numbers)
        try:
            held = edit.apply(held)
        except IndexError:
            raise part["index"].fail(
                f"is {edit.index}, but there are {len(held)} keys then"
            ) from None
        edits.append(edit)
    states = entry["expected"].check_count((count + 1, "the number of edits and one"), "states")
    return operations.CacheVector(
        **entry.plain(operations.CacheVector),
        keys=keys,
        edits=tuple(edits),
        expected=tuple(map(state, states)),
    )


def combine(entry: Entry) -> operations.CombineVector:
    vector = operations.CombineVector(
        **entry.plain(operations.CombineVector),
        parts=tuple(
            Partial(part["log_sum_exp"].read(bf16_or_none), part["output"].numbers("value_dim"))
            for part in entry["parts"]
        ),
        expected=enclosed_row(entry["expected"]),
    )
    check_plausible(vector.attentions(), [entry["expected"]])
    return vector


def tile_bounds(entry: Entry) -> operations.TileBoundsVector:
    q_len, kv_len = entry.data["q_len"], entry.data["kv_len"]
    q_tiles, kv_tiles = -(-q_len // entry.data["block_m"]), -(-kv_len // entry.data["block_n"])
    entry.affordable(q_len * kv_len, 1)
    for letters in entry["expected"].check_count(
        (q_tiles, "the number of tiles of queries"), "entries"
    ):
        letters.check_count((kv_tiles, "the number of tiles of keys"), "letters")
    return operations.TileBoundsVector(
        **entry.plain(operations.TileBoundsVector),
        mask=entry.window(kv_len - q_len),
        expected=tuple(entry.data["expected"]),
    )


READERS: dict[str, Callable[[Entry], Vector]] = {
    AttentionVector.operation: attention,
    operations.GroupedQueryVector.operation: grouped_query,
    operations.VarlenVector.operation: varlen,
    operations.PagedVector.operation: paged_cache,
    operations.CascadeVector.operation: cascade,
    ShardsVector.operation: shards,
    operations.MergeVector.operation: merge,
    operations.CacheVector.operation: cache,
    operations.CombineVector.operation: combine,
    operations.TileBoundsVector.operation: tile_bounds,
    GradientVector.operation: gradient,
    TangentVector.operation: tangent,
    SampledVector.operation: sampled_attention,
    SampledGradientVector.operation: sampled_gradient,
    DropoutVector.operation: dropout,
    PhiloxVector.operation: philox,
    LayerVector.operation: layer,
    TransformerVector.operation: transformer,
}
