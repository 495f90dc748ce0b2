"""How the input of a vector is given to the translated definition that the vector names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

from bridge.spec import attention as plain
from bridge.spec import (
    cache,
    combine,
    dropout,
    heads,
    paged,
    ring,
    rows,
    softmax,
    split_kv,
)
from bridge.spec import flash as tile_loop
from bridge.spec import online as states
from bridge.spec import sink as sinks
from bridge.spec.attention import Mask, ScoredValue, ScoreMod
from bridge.spec.cascade import cascade
from bridge.spec.core import EXACT, Arithmetic
from bridge.spec.masks import Alignment
from bridge.spec.padding import attention_padded
from bridge.spec.schedule import TileKind, TileRange, flash_schedule
from bridge.spec.tile_bounds import flash_window, visited_tiles, window_kind
from bridge.spec.varlen import attention_sliced, attention_varlen
from bridge.vectors.model import attention as model
from bridge.vectors.model import operations
from bridge.vectors.model.by_spec import spec_changes, spec_mask
from bridge.vectors.model.sampled import SampledVector

# The bounds of the enclosures have 38 digits.
DIGITS = Context(prec=60)
NATURAL = Arithmetic(Decimal.exp, Decimal, Decimal)
# Ragged in both directions for most lengths.
BLOCKS = (2, 3)


def arithmetic(vector: model.Vector) -> Arithmetic:
    """That of the vector's model."""
    return EXACT if vector.model == "exact" else NATURAL


def number(vector: model.Vector, x: model.Exact) -> Any:
    """An input as a number of the vector's model."""
    if vector.model == "exact":
        return Fraction(x)
    return Decimal(Fraction(x).numerator) / Fraction(x).denominator


def score_number(vector: model.Vector, x: model.Exact) -> Any:
    """A query, a key or a scale as a score: an integer in the exact model, where it can be one."""
    exact = Fraction(x)
    whole = vector.model == "exact" and exact.denominator == 1
    return exact.numerator if whole else number(vector, x)


def matrix(vector: model.Vector, of: Sequence[Sequence[model.Exact]]) -> list[list[Any]]:
    return [[score_number(vector, x) for x in row] for row in of]


def values(vector: model.Vector, of: Sequence[Sequence[model.Exact]]) -> list[list[Any]]:
    return [[number(vector, x) for x in row] for row in of]


def mask_of(mask: model.Mask, q_len: int, kv_len: int) -> Mask:
    """The translated mask."""
    # Where the shift is 0 the two alignments are one.
    assert mask.shift in (0, kv_len - q_len)
    return spec_mask(mask, q_len, kv_len)


def changes_of(
    v: model.AttentionVector, number: Callable[[model.Exact], Any], num: Arithmetic
) -> ScoreMod:
    """The changes of the scores. number: an input as a number of the arithmetic."""
    shifts = {v.mask.shift, 0 if v.alibi is None else v.alibi.shift}
    assert shifts <= {0, v.kv_len - v.q_len}
    return spec_changes(v, number, num)


def modify_of(v: model.AttentionVector) -> ScoreMod:
    return changes_of(v, partial(number, v), arithmetic(v))


def scale_of(v: model.AttentionVector) -> Any:
    if v.scale is None:
        return 1 / Decimal(v.head_dim).sqrt()
    return score_number(v, v.scale)


def inputs(v: model.AttentionVector) -> tuple[Any, ...]:
    """scale, modify, Q, K and V."""
    return scale_of(v), modify_of(v), matrix(v, v.q), matrix(v, v.k), values(v, v.v)


def widths(v: Any) -> dict[str, Any]:
    """Of keys and values, with the arithmetic."""
    return {"d": v.head_dim, "d_v": v.value_dim, "num": arithmetic(v)}


def sizes(v: Any) -> dict[str, Any]:
    return {"q_len": v.q_len, "kv_len": v.kv_len, **widths(v)}


def _attention(v: model.AttentionVector) -> Any:
    return plain.attention(*inputs(v), **sizes(v))


def last_rows(v: SampledVector) -> list[model.AttentionVector]:
    """Of each head the last query that is judged: one will do, since all are computed alike."""
    return [
        replace(
            each,
            q_len=1,
            q=each.q[-1:],
            mask=model.Mask("boolean", each.mask.rows[-1:]),
            bias=None if each.bias is None else each.bias[-1:],
            dropout=None
            if each.dropout is None
            else replace(each.dropout, keep=each.dropout.keep[-1:]),
            expected=each.expected[-1:],
        )
        for each in v.attentions()
    ]


def _attend(v: SampledVector) -> Any:
    return [row for each in last_rows(v) for row in _attend_row(each)]


def _attend_row(each: model.AttentionVector) -> Any:
    if each.dropout is not None:
        return dropout.attention_dropout(*inputs(each), each.dropout.factor, **sizes(each))
    return _attention(each) if each.sink is None else _sink(each)


def _flash(v: model.AttentionVector) -> Any:
    return tile_loop.flash(*inputs(v), *BLOCKS, **sizes(v))


def _without_masks(v: model.AttentionVector) -> ScoreMod:
    return lambda i, j, s: s


def _flash_window(v: model.AttentionVector) -> Any:
    window = v.mask.window
    at = Alignment.BOTTOM_RIGHT if window.shift else Alignment.TOP_LEFT
    scale, _, *qkv = inputs(v)
    bounds = (at, window.left, window.right)
    return flash_window(scale, _without_masks(v), *bounds, *qkv, *BLOCKS, **sizes(v))


def _flash_schedule(v: model.AttentionVector) -> Any:
    """Every tile is visited, those that are all hidden or all visible as such."""
    block_m, block_n = BLOCKS
    mask = mask_of(v.mask, v.q_len, v.kv_len)

    def kind(t: int, u: int) -> TileKind:
        seen = [
            mask(i, j)
            for i in range(t * block_m, min((t + 1) * block_m, v.q_len))
            for j in range(u * block_n, min((u + 1) * block_n, v.kv_len))
        ]
        return TileKind.UNMASKED if all(seen) else TileKind.MASKED if any(seen) else TileKind.SKIP

    every = TileRange(0, tile_loop.num_tiles(v.kv_len, block_n))
    scale, _, *qkv = inputs(v)
    return flash_schedule(
        scale, _without_masks(v), mask, *qkv, lambda t: every, kind, *BLOCKS, **sizes(v)
    )


def _split_kv(v: model.AttentionVector) -> Any:
    return split_kv.split_kv(*inputs(v), 4, 3, **sizes(v))


def _ring(v: model.AttentionVector) -> Any:
    """Three devices, each with every third query and key."""
    shards = [(list(range(n, v.q_len, 3)), list(range(n, v.kv_len, 3))) for n in range(3)]
    outputs = ring.ring(*inputs(v), shards, **widths(v))
    by_query = {
        i: row
        for (mine, _), out in zip(shards, outputs, strict=True)
        for i, row in zip(mine, out, strict=True)
    }
    return [by_query[i] for i in range(v.q_len)]


def _pad(v: model.AttentionVector) -> Any:
    """One more query, two more keys and one more column, full of numbers that must not count."""
    scale, modify, q, k, value = inputs(v)
    widened = [[[*row, 0] for row in m] for m in (q, k)]
    more = ([[9] * (v.head_dim + 1)], [[9] * (v.head_dim + 1)] * 2, [[1000] * v.value_dim] * 2)
    size = {**sizes(v), "d": v.head_dim + 1, "r": 1, "p": 2}
    return attention_padded(scale, modify, *widened, value, *more, **size)


def _sink(v: model.AttentionVector) -> Any:
    scale, modify, *qkv = inputs(v)
    assert v.sink is not None
    return sinks.attention_sink(scale, modify, number(v, v.sink), *qkv, **sizes(v))


def rows_of(v: model.AttentionVector) -> list[list[ScoredValue]]:
    """The keys as each query sees them."""
    cols = list(range(v.kv_len))
    size = {"d": v.head_dim, "num": arithmetic(v)}
    return [plain.scored(*inputs(v), i, cols, **size) for i in range(v.q_len)]


def _safe_softmax(v: model.AttentionVector) -> Any:
    """The values are unit vectors: the output is the row of weights."""
    return [softmax.safe_softmax([key.score for key in row], num=EXACT) for row in rows_of(v)]


def _divide(v: model.AttentionVector) -> Any:
    """FlashAttention-1 over blocks of three keys."""
    size = {"d": v.value_dim, "num": EXACT}
    found = []
    for row in rows_of(v):
        state = states.empty(**size)
        for block in tile_loop.tiles(3, row):
            state = states.step_block_divided(state, block, **size)
        found.append(state.o)
    return found


def _online_sink(v: model.AttentionVector) -> Any:
    assert v.sink is not None
    size = {"d": v.value_dim, "num": EXACT}
    sink = score_number(v, v.sink)
    blocks = [tile_loop.tiles(3, row) for row in rows_of(v)]
    return [states.finish(sinks.online_sink(sink, b, **size), **size) for b in blocks]


def _flash_sink(v: model.AttentionVector) -> Any:
    scale, modify, *qkv = inputs(v)
    assert v.sink is not None
    return sinks.flash_sink(scale, modify, score_number(v, v.sink), *qkv, *BLOCKS, **sizes(v))


def _heads(function: Callable[..., Any], v: operations.GroupedQueryVector, **of_heads: int) -> Any:
    """The rows of all heads, one head after another."""
    mask = plain.mask_to_score_mod(mask_of(v.mask, v.q_len, v.kv_len))
    found = function(
        score_number(v, v.scale),
        lambda h, i, j, s: mask(i, j, s),
        [matrix(v, q) for q in v.q],
        [matrix(v, k) for k in v.k],
        [values(v, x) for x in v.v],
        **sizes(v),
        **of_heads,
    )
    return [row for head in found for row in head]


def _multi_head(v: operations.GroupedQueryVector) -> Any:
    assert v.num_heads == v.num_kv_heads
    return _heads(heads.multi_head, v, num_heads=v.num_heads)


def _group(function: Callable[..., Any]) -> Callable[[operations.GroupedQueryVector], Any]:
    def call(v: operations.GroupedQueryVector) -> Any:
        group = v.num_heads // v.num_kv_heads
        return _heads(function, v, num_kv_heads=v.num_kv_heads, group=group)

    return call


def _key_values(v: Any, k: model.Matrix, value: model.Matrix) -> list[rows.KeyValue]:
    return rows.key_values(matrix(v, k), values(v, value))


def _varlen(function: Callable[..., Any]) -> Callable[[operations.VarlenVector], Any]:
    def call(v: operations.VarlenVector) -> Any:
        lengths = zip(pairwise(v.cu_seqlens_q), pairwise(v.cu_seqlens_k), strict=True)
        seen = [
            plain.mask_to_score_mod(mask_of(mask, q[1] - q[0], k[1] - k[0]))
            for mask, (q, k) in zip(v.masks, lengths, strict=True)
        ]
        return function(
            score_number(v, v.scale),
            lambda b, i, j, s: seen[b](i, j, s),
            list(v.cu_seqlens_q),
            list(v.cu_seqlens_k),
            matrix(v, v.q),
            _key_values(v, v.k, v.v),
            **widths(v),
        )

    return call


def _paged_cache(v: operations.PagedVector) -> Any:
    pool = [_key_values(v, k, value) for k, value in zip(v.k, v.v, strict=True)]
    return [
        paged.attend_paged(
            score_number(v, v.scale),
            lambda j, s: s,
            matrix(v, [q])[0],
            pool,
            list(table),
            length,
            page_size=v.page_size,
            **widths(v),
        )
        for q, table, length in zip(v.q, v.tables, v.lengths, strict=True)
    ]


def _cascade(v: operations.CascadeVector) -> Any:
    suffixes = [_key_values(v, k, value) for k, value in zip(v.suffix_k, v.suffix_v, strict=True)]
    return cascade(
        score_number(v, v.scale),
        lambda i, j, s: s,
        matrix(v, v.q),
        matrix(v, v.prefix_k),
        values(v, v.prefix_v),
        lambda i: suffixes[i],
        3,
        q_len=len(v.q),
        prefix_len=len(v.prefix_k),
        **widths(v),
    )


def _combine(v: operations.CombineVector) -> Any:
    parts = [
        combine.Partial(
            [number(v, x) for x in p.output],
            None if p.log_sum_exp is None else number(v, p.log_sum_exp),
        )
        for p in v.parts
    ]
    weights = [p.lse.exp() for p in parts if p.lse is not None]
    total = sum(weights).ln() if weights else None
    return [combine.combine(total, parts, d=v.value_dim, num=NATURAL)]


def keys_of(keys: Sequence[operations.Key]) -> list[ScoredValue]:
    return [ScoredValue(key.score, [Fraction(x) for x in key.value]) for key in keys]


def _merge(v: operations.MergeVector) -> Any:
    def state(tree: operations.Tree) -> states.State:
        if isinstance(tree, int):
            return states.of_block(keys_of(v.blocks[tree]), d=v.value_dim, num=EXACT)
        return states.merge(state(tree[0]), state(tree[1]), num=EXACT)

    return [state(v.tree)]


def _cache(v: operations.CacheVector) -> Any:
    """The state at the beginning and after each edit."""
    size = {"d": v.value_dim, "num": EXACT}
    keys = keys_of(v.keys)
    held = (keys, cache.append(states.empty(**size), keys, num=EXACT))
    found = [held[1]]
    for edit in v.edits:
        key = None if edit.key is None else keys_of([edit.key])[0]
        if edit.kind == "slide":
            held = cache.slide(edit.window, held, key, **size)
        elif edit.kind == "append":
            held = cache.edit(held, cache.EditAppend(key), **size)
        elif edit.kind == "delete":
            held = cache.edit(held, cache.EditDelete(edit.index), **size)
        else:
            held = cache.edit(held, cache.EditReplace(edit.index, key), **size)
        found.append(held[1])
    return found


def _tile_bounds(v: operations.TileBoundsVector) -> Any:
    window = v.mask.window
    at = Alignment.BOTTOM_RIGHT if window.shift else Alignment.TOP_LEFT
    given = (at, window.left, window.right, v.q_len, v.kv_len, v.block_m, v.block_n)

    def letter(t: int, u: int) -> str:
        if not visited.first <= u < visited.stop:
            return "-"
        return "u" if window_kind(*given, t, u) is TileKind.UNMASKED else "m"

    found = []
    for t in range(tile_loop.num_tiles(v.q_len, v.block_m)):
        visited = visited_tiles(*given, t)
        columns = range(tile_loop.num_tiles(v.kv_len, v.block_n))
        found.append("".join(letter(t, u) for u in columns))
    return found


CALLS: Mapping[str, Callable[[Any], Any]] = {
    "attend": _attend,
    "attention": _attention,
    "attentionPadded": _pad,
    "attentionSink": _sink,
    "flash": _flash,
    "flashSink": _flash_sink,
    "flashSchedule": _flash_schedule,
    "flashWindow": _flash_window,
    "ring": _ring,
    "splitKV": _split_kv,
    "safeSoftmax": _safe_softmax,
    "Online.stepBlockDivided": _divide,
    "onlineSink": _online_sink,
    "multiHead": _multi_head,
    "groupedQuery": _group(heads.grouped_query),
    "groupedQueryPacked": _group(heads.grouped_query_packed),
    "attentionVarlen": _varlen(attention_varlen),
    "attentionSliced": _varlen(attention_sliced),
    "attendPaged": _paged_cache,
    "cascade": _cascade,
    "combine": _combine,
    "Online.merge": _merge,
    "Online.edit": _cache,
    "Online.slide": _cache,
    "visitedTiles": _tile_bounds,
}
