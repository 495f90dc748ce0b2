"""From the fields of an entry to the vector of its operation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

from bridge.vectors.format.fields import Fields
from bridge.vectors.format.read_dropout import dropout, philox
from bridge.vectors.format.read_gradients import gradient
from bridge.vectors.format.read_options import alibi, bias, header, laid_out, sink, softcap
from bridge.vectors.format.read_transformers import layer, transformer
from bridge.vectors.model.attention import AttentionVector, EnclosedRow, Exact, Row, Vector
from bridge.vectors.model.dropout import DropoutVector, PhiloxVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import (
    CacheVector,
    CascadeVector,
    CombineVector,
    Edit,
    GroupedQueryVector,
    MergeVector,
    PagedVector,
    Partial,
    TileBoundsVector,
    Tree,
    VarlenVector,
)
from bridge.vectors.model.transformers import LayerVector, TransformerVector


def attention(fields: Fields) -> AttentionVector:
    entry = fields.entry
    q_len, kv_len, scale = entry["q_len"], entry["kv_len"], fields.scale()
    fields.affordable(q_len * kv_len, entry["head_dim"] + entry["value_dim"])
    data = fields.counted(entry["expected"], "expected", q_len, "q_len", "rows")
    expected: tuple[Row | EnclosedRow, ...]
    if fields.model == "exact":
        expected = fields.rows(data, "expected", q_len, "q_len")
    else:
        expected = tuple(fields.enclosed_row(row, f"expected[{i}]") for i, row in enumerate(data))
    vector = AttentionVector(
        **header(fields),
        q_len=q_len,
        kv_len=kv_len,
        head_dim=entry["head_dim"],
        value_dim=entry["value_dim"],
        scale=scale,
        q=fields.matrix("q", "q_len", "head_dim"),
        k=fields.matrix("k", "kv_len", "head_dim"),
        v=fields.matrix("v", "kv_len", "value_dim"),
        mask=fields.mask(q_len, kv_len),
        expected=expected,
        softcap=softcap(fields),
        alibi=alibi(fields, q_len, kv_len),
        bias=bias(fields, q_len, kv_len),
        sink=sink(fields),
    )
    fields.plausible(vector, [f"expected[{i}]" for i in range(q_len)])
    return vector


def grouped_query(fields: Fields) -> GroupedQueryVector:
    entry = fields.entry
    heads, kv_heads = entry["num_heads"], entry["num_kv_heads"]
    if heads % kv_heads:
        raise fields.fail("num_heads", f"is {heads}, no multiple of num_kv_heads, {kv_heads}")
    columns = entry["head_dim"] + entry["value_dim"]
    fields.affordable(heads * entry["q_len"] * entry["kv_len"], columns)
    data = fields.counted(entry["expected"], "expected", heads, "num_heads", "heads")
    vector = GroupedQueryVector(
        **laid_out(fields),
        num_heads=heads,
        num_kv_heads=kv_heads,
        q_len=entry["q_len"],
        kv_len=entry["kv_len"],
        q=fields.matrices("q", "num_heads", "q_len", "head_dim"),
        k=fields.matrices("k", "num_kv_heads", "kv_len", "head_dim"),
        v=fields.matrices("v", "num_kv_heads", "kv_len", "value_dim"),
        mask=fields.mask(entry["q_len"], entry["kv_len"]),
        expected=tuple(
            fields.rows(rows, f"expected[{h}]", entry["q_len"], "q_len")
            for h, rows in enumerate(data)
        ),
    )
    for h, problem in enumerate(vector.attentions()):
        fields.plausible(problem, [f"expected[{h}][{i}]" for i in range(problem.q_len)])
    return vector


def _alignment(mask: dict[str, Any]) -> Literal["top-left", "bottom-right"]:
    bottom_right = mask["kind"] == "causal-bottom-right" or mask.get("alignment") == "bottom-right"
    return "bottom-right" if bottom_right else "top-left"


def varlen(fields: Fields) -> VarlenVector:
    entry = fields.entry
    if entry["mask"]["kind"] not in ("none", "causal", "causal-bottom-right", "window"):
        raise fields.fail("mask.kind", "is none that means the same for every length")
    queries, keys = (tuple(entry[f"cu_seqlens_{x}"]) for x in "qk")
    if len(queries) != len(keys):
        raise fields.fail(
            "cu_seqlens_k", f"has {len(keys)} numbers, but cu_seqlens_q has {len(queries)}"
        )
    for name, sums in (("cu_seqlens_q", queries), ("cu_seqlens_k", keys)):
        if sums[:1] != (0,) or any(a > b for a, b in pairwise(sums)):
            raise fields.fail(name, "does not rise from 0")
    lengths = list(zip(pairwise(queries), pairwise(keys), strict=True))
    columns = entry["head_dim"] + entry["value_dim"]
    fields.affordable(sum((b - a) * (d - c) for (a, b), (c, d) in lengths), columns)
    total_q, total_k = queries[-1], keys[-1]
    q, k, v = (
        fields.rows_of(
            fields.counted(entry[x], x, total, f"the last of cu_seqlens_{side}", "rows"),
            x,
            entry[columns],
            columns,
        )
        for x, side, total, columns in (
            ("q", "q", total_q, "head_dim"),
            ("k", "k", total_k, "head_dim"),
            ("v", "k", total_k, "value_dim"),
        )
    )
    vector = VarlenVector(
        **laid_out(fields),
        cu_seqlens_q=queries,
        cu_seqlens_k=keys,
        q=q,
        k=k,
        v=v,
        masks=tuple(fields.mask(b - a, d - c) for (a, b), (c, d) in lengths),
        alignment=_alignment(entry["mask"]),
        expected=fields.rows(entry["expected"], "expected", total_q, "the last of cu_seqlens_q"),
    )
    for first, problem in zip(queries, vector.attentions(), strict=False):
        rows = range(first, first + problem.q_len)
        fields.plausible(problem, [f"expected[{i}]" for i in rows])
    return vector


def paged(fields: Fields) -> PagedVector:
    entry = fields.entry
    batch = len(entry["q"])
    for name in ("tables", "lengths", "expected"):
        fields.counted(entry[name], name, batch, "the number of rows of q", "entries")
    for b, (table, length) in enumerate(zip(entry["tables"], entry["lengths"], strict=True)):
        for t, page in enumerate(table):
            if page >= entry["num_pages"]:
                raise fields.fail(
                    f"tables[{b}][{t}]", f"is {page}, but num_pages is {entry['num_pages']}"
                )
        if length > len(table) * entry["page_size"]:
            raise fields.fail(f"lengths[{b}]", f"is {length}, more than its pages hold")
    fields.affordable(sum(entry["lengths"]), entry["head_dim"] + entry["value_dim"])
    vector = PagedVector(
        **laid_out(fields),
        page_size=entry["page_size"],
        num_pages=entry["num_pages"],
        k=fields.matrices("k", "num_pages", "page_size", "head_dim"),
        v=fields.matrices("v", "num_pages", "page_size", "value_dim"),
        q=fields.rows_of(entry["q"], "q", entry["head_dim"], "head_dim"),
        tables=tuple(tuple(table) for table in entry["tables"]),
        lengths=tuple(entry["lengths"]),
        expected=fields.rows(entry["expected"], "expected", batch, "the number of rows of q"),
    )
    for b, problem in enumerate(vector.attentions()):
        fields.plausible(problem, [f"expected[{b}]"])
    return vector


def cascade(fields: Fields) -> CascadeVector:
    entry = fields.entry
    batch, prefix_len = len(entry["q"]), len(entry["prefix_k"])
    for name in ("suffix_k", "suffix_v", "expected"):
        fields.counted(entry[name], name, batch, "the number of rows of q", "entries")
    fields.counted(
        entry["prefix_v"], "prefix_v", prefix_len, "the number of rows of prefix_k", "rows"
    )
    for b, k in enumerate(entry["suffix_k"]):
        fields.counted(
            entry["suffix_v"][b], f"suffix_v[{b}]", len(k), f"that of suffix_k[{b}]", "rows"
        )

    pairs = batch * prefix_len + sum(map(len, entry["suffix_k"]))
    fields.affordable(pairs, entry["head_dim"] + entry["value_dim"])

    def suffixes(field: str, columns: str) -> tuple[tuple[tuple[Exact, ...], ...], ...]:
        return tuple(
            fields.rows_of(rows, f"{field}[{b}]", entry[columns], columns)
            for b, rows in enumerate(entry[field])
        )

    vector = CascadeVector(
        **laid_out(fields),
        q=fields.rows_of(entry["q"], "q", entry["head_dim"], "head_dim"),
        prefix_k=fields.rows_of(entry["prefix_k"], "prefix_k", entry["head_dim"], "head_dim"),
        prefix_v=fields.rows_of(entry["prefix_v"], "prefix_v", entry["value_dim"], "value_dim"),
        suffix_k=suffixes("suffix_k", "head_dim"),
        suffix_v=suffixes("suffix_v", "value_dim"),
        expected=fields.rows(entry["expected"], "expected", batch, "the number of rows of q"),
    )
    for b, problem in enumerate(vector.attentions()):
        fields.plausible(problem, [f"expected[{b}]"])
    return vector


def merge(fields: Fields) -> MergeVector:
    entry = fields.entry

    def tree(data: Any, field: str) -> Tree:
        if isinstance(data, list):
            if len(data) != 2:
                raise fields.fail(field, f"has {len(data)} trees, but 2 are merged")
            return tree(data[0], f"{field}[0]"), tree(data[1], f"{field}[1]")
        if not isinstance(data, int) or isinstance(data, bool) or data < 0:
            raise fields.fail(field, "is neither the number of a block nor two trees")
        if data >= len(entry["blocks"]):
            raise fields.fail(field, f"is {data}, but there are {len(entry['blocks'])} blocks")
        leaves.append(len(entry["blocks"][data]))
        return int(data)

    leaves: list[int] = []
    whole = tree(entry["tree"], "tree")
    fields.affordable(sum(leaves), entry["value_dim"])
    vector = MergeVector(
        **header(fields),
        value_dim=entry["value_dim"],
        blocks=tuple(
            tuple(fields.key(key, f"blocks[{b}][{n}]") for n, key in enumerate(block))
            for b, block in enumerate(entry["blocks"])
        ),
        tree=whole,
        expected=fields.state(entry["expected"], "expected"),
    )
    if vector.expected.m is not None and vector.expected.l < 1:
        raise fields.fail("expected.l", "is below 1, but the largest weight alone is 1")
    fields.plausible(vector.attentions()[0], ["expected"])
    return vector


def cache(fields: Fields) -> CacheVector:
    entry = fields.entry
    keys = tuple(fields.key(key, f"keys[{n}]") for n, key in enumerate(entry["keys"]))
    # Each edit copies the keys, and each state is of all of them.
    fields.affordable((len(keys) + len(entry["edits"])) * len(entry["edits"]), entry["value_dim"])
    edits, held = [], list(keys)
    for n, data in enumerate(entry["edits"]):
        edit = Edit(
            data["kind"],
            fields.key(data, f"edits[{n}]") if "value" in data else None,
            data.get("index", 0),
            data.get("window", 0),
        )
        try:
            held = edit.apply(held)
        except IndexError:
            raise fields.fail(
                f"edits[{n}].index", f"is {edit.index}, but there are {len(held)} keys then"
            ) from None
        edits.append(edit)
    count = len(edits) + 1
    fields.counted(entry["expected"], "expected", count, "the number of edits and one", "states")
    return CacheVector(
        **header(fields),
        value_dim=entry["value_dim"],
        keys=keys,
        edits=tuple(edits),
        expected=tuple(
            fields.state(state, f"expected[{n}]") for n, state in enumerate(entry["expected"])
        ),
    )


def combine(fields: Fields) -> CombineVector:
    entry = fields.entry
    parts = []
    for n, part in enumerate(entry["parts"]):
        lse, place = part["log_sum_exp"], f"parts[{n}]"
        parts.append(
            Partial(
                None if lse is None else fields.bf16(lse, f"{place}.log_sum_exp"),
                fields.vector(part["output"], f"{place}.output", entry["value_dim"], "value_dim"),
            )
        )
    vector = CombineVector(
        **header(fields),
        value_dim=entry["value_dim"],
        parts=tuple(parts),
        expected=fields.enclosed_row(entry["expected"], "expected"),
    )
    fields.plausible(vector.attentions()[0], ["expected"])
    return vector


def tile_bounds(fields: Fields) -> TileBoundsVector:
    entry = fields.entry
    q_tiles = -(-entry["q_len"] // entry["block_m"])
    kv_tiles = -(-entry["kv_len"] // entry["block_n"])
    fields.affordable(entry["q_len"] * entry["kv_len"], 1)
    data = fields.counted(
        entry["expected"], "expected", q_tiles, "the number of tiles of queries", "entries"
    )
    for t, letters in enumerate(data):
        fields.counted(
            letters, f"expected[{t}]", kv_tiles, "the number of tiles of keys", "letters"
        )
    return TileBoundsVector(
        **header(fields),
        q_len=entry["q_len"],
        kv_len=entry["kv_len"],
        block_m=entry["block_m"],
        block_n=entry["block_n"],
        mask=fields.window(entry, entry["q_len"], entry["kv_len"]),
        expected=tuple(data),
    )


READERS: dict[str, Callable[[Fields], Vector]] = {
    AttentionVector.operation: attention,
    GroupedQueryVector.operation: grouped_query,
    VarlenVector.operation: varlen,
    PagedVector.operation: paged,
    CascadeVector.operation: cascade,
    MergeVector.operation: merge,
    CacheVector.operation: cache,
    CombineVector.operation: combine,
    TileBoundsVector.operation: tile_bounds,
    GradientVector.operation: gradient,
    DropoutVector.operation: dropout,
    PhiloxVector.operation: philox,
    LayerVector.operation: layer,
    TransformerVector.operation: transformer,
}
