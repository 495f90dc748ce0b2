"""The tile loop of FlashAttention-2 in PyTorch: `Attention.Spec.flashSchedule`, with the bounds of
`pyimpl.backends.tile_bounds`.

For each tile of queries it goes over the tiles of keys and divides once at the end, so the memory
beyond inputs and outputs is that of a few tiles of scores for each thread. Tiles of keys that no
query of the tile sees are not visited; those that all of them see in full are taken without mask
code. Runs on any device.
Source: Dao 2023, algorithm 1 and section 3.1.

The states are those of `pyimpl.state`, changed in place (`_Running`). Base 2, as in the kernels:
a score is multiplied by log₂e before anything is done with it, and m by ln 2 at the end. PyTorch's
exp takes 10 to 35 times as long for −∞ and for scores that underflow as for other numbers on some
processors; its exp2 does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from pyimpl.backends.products import add_product, multiply, multiply_into, use_onednn
from pyimpl.backends.scratch import Scratch, ThreadScratch
from pyimpl.backends.tile_bounds import TileBounds, num_tiles
from pyimpl.backends.workers import for_each
from pyimpl.internal.arguments import compute_dtype, empty_output, without_autocast
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import ScoreOptions, folds_into_query

LOG2E = 1.0 / math.log(2.0)
LN2 = math.log(2.0)
# Scores in one tile, all its heads together: few enough to stay in a core's cache, many enough to
# be worth an operation of PyTorch. This, the block sizes and THREADS_FROM are chosen by measurement
# (`python -m bench`).
TILE_SCORES = 1 << 20
# Of a tile of one head (`takes_one_head`): the least rows, the keys, and fewer scores than it has.
ROWS_ALONE = 256
KEYS_ALONE = 2048
SCORES_ALONE = 1 << 17
# Scores, all together, from which on threads take tiles of their own.
THREADS_FROM = 1 << 20


@folds_into_query
@implements("Attention.Spec.groupedQuery")
@implements("Attention.Spec.flashWindow")
@implements("Attention.Spec.flashSchedule")
@implements("Attention.Spec.flashSink")
@implements("Attention.Spec.flashDrawn")
@implements("Attention.Spec.flashDropout")
@implements("Attention.Spec.flash")
def flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: ScoreOptions,
    *,
    wide: bool = False,
    block_m: int | None = None,
    block_n: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Output in the dtype of `query` and natural log-sum-exp in `compute_dtype(query.dtype)`; wide:
    both in the latter.

    Shapes, `options` and results as in `reference.attention`; `block_m` queries and `block_n` keys
    to a tile, at least 1, by default numbers that were measured to be fast. Products and sums
    are in `compute_dtype`, under `torch.autocast` too; float32 products follow PyTorch's own
    settings (TF32 on a GPU, `torch.set_float32_matmul_precision`). The tensors are not checked
    here: `pyimpl.attention` does.

    A key masked for every query of a tile has no influence on that tile, whatever its key and value
    rows hold, NaN included. The value row of a key that some query of the tile may attend to must
    be finite.

    Raises:
        ValueError: a block size is below 1.
    """
    batch, heads, q_len, _ = query.shape
    kv_heads, kv_len, value_dim = value.shape[1:]
    group = heads // max(kv_heads, 1)
    alone = takes_one_head(query, kv_len, group, options)
    block_m, block_n = _blocks(q_len, kv_len, group, options, block_m, block_n, alone)
    bounds = TileBounds(q_len, kv_len, block_m, block_n, options.left, options.right, options.shift)
    dtype = compute_dtype(query.dtype)
    if 0 in (batch, heads, q_len, value_dim):
        lse = query.new_empty(batch, heads, q_len, dtype=dtype)
        return empty_output(query, value_dim, wide=wide), lse
    k, v = as_dtype(key, dtype), as_dtype(value, dtype)
    query_tiles = num_tiles(q_len, block_m)
    at_once = TILE_SCORES // (group * min(block_m, q_len) * max(1, min(block_n, kv_len)))
    # Threads are worth their while for many scores only; then there are to be pieces enough that
    # none is left without one for long.
    threads = query.device.type == "cpu" and batch * heads * q_len * kv_len >= THREADS_FROM
    pieces = 4 * torch.get_num_threads() if threads else 1
    at_once = 1 if alone else max(1, min(at_once, batch * kv_heads * query_tiles // pieces))
    if at_once >= batch * kv_heads and query_tiles == 1:
        # A short call is one tile of queries, which need not be put together with others.
        whole = options.part(slice(0, batch), slice(0, heads), (batch, heads, q_len, kv_len))
        with torch.no_grad():
            o, lse = Heads(query, k, v, whole, bounds).query_tile(0, Scratch(k))
            if (wide or dtype == query.dtype) and query.stride(2) <= query.stride(1):
                return o, lse
            return empty_output(query, value_dim, wide=wide).copy_(o), lse
    out = empty_output(query, value_dim, wide=wide)
    lse = query.new_empty(batch, heads, q_len, dtype=dtype)
    parts = []
    for batches, kv_range in portions(batch, kv_heads, at_once):
        head_range = slice(kv_range.start * group, kv_range.stop * group)
        parts.append(
            (
                Heads(
                    query[batches, head_range],
                    k[batches, kv_range],
                    v[batches, kv_range],
                    options.part(batches, head_range, (batch, heads, q_len, kv_len)),
                    bounds,
                ),
                out[batches, head_range],
                lse[batches, head_range],
            )
        )
    scratch = ThreadScratch(k)

    def write_tile(tile: tuple[tuple[Heads, Tensor, Tensor], int]) -> None:
        (part, some_out, some_lse), t = tile
        rows = slice(bounds.row_first(t), bounds.row_last(t) + 1)
        some_out[:, :, rows], some_lse[:, :, rows] = part.query_tile(t, scratch)

    # The keys of one part after the other stay in the cache. Under causality the last tiles have
    # the most keys: started first, they do not finish last.
    tiles = [(part, t) for part in parts for t in reversed(range(query_tiles))]
    if len(parts) < pieces:
        tiles.sort(key=lambda tile: -tile[1])
    for_each(tiles, write_tile, threads=threads)
    return out, lse


def takes_one_head(query: Tensor, kv_len: int, group: int, options: ScoreOptions) -> bool:
    """Whether a tile has the queries of one head of keys alone, so that the scores stay where
    oneDNN writes them. Heads that share a mask or bias share the work on it."""
    if options.mask is not None or options.bias is not None:
        return False
    keys = kv_len
    if options.left is not None and options.right is not None:
        keys = min(keys, options.left + options.right + ROWS_ALONE)
    large = group * min(query.shape[2], ROWS_ALONE) * keys > SCORES_ALONE
    return large and use_onednn(compute_dtype(query.dtype), query.device)


def _blocks(
    q_len: int,
    kv_len: int,
    group: int,
    options: ScoreOptions,
    block_m: int | None,
    block_n: int | None,
    alone: bool,
) -> tuple[int, int]:
    """The block sizes: those given, if they are at least 1, or else the measured ones."""
    for name, block in (("block_m", block_m), ("block_n", block_n)):
        if block is not None and block < 1:
            raise ValueError(f"{name} must be at least 1, not {block}")
    if block_m is None:
        block_m = 512 >> cuts(options)
        if alone:
            block_m = max(16, max(ROWS_ALONE, block_m) // group)
    if block_n is None:
        block_n = max(512, TILE_SCORES // 16 // max(min(block_m, q_len), 1))
        if alone:
            block_n = KEYS_ALONE
    return block_m, block_n


def cuts(options: ScoreOptions) -> int:
    """How many edges of the visible keys cut through tiles, at most 2: of such tiles less is masked
    when they are short. A mask may have edges anywhere."""
    if options.mask is not None:
        return 2
    return (options.left is not None) + (options.right is not None)


def portions(batch: int, heads: int, at_once: int) -> Iterator[tuple[slice, slice]]:
    """All pairs of batch and head as rectangles of at most `at_once` ≥ 1 pairs: some heads of one
    batch, or all heads of some batches."""
    batches = max(1, at_once // heads)
    for first in range(0, batch, batches):
        for head in range(0, heads, at_once):
            yield (
                slice(first, min(first + batches, batch)),
                slice(head, min(head + at_once, heads)),
            )


@dataclass
class _Running:
    """`Attention.Spec.Online.State`, changed in place: m (base 2) and l `[..., n, 1]`, o `[..., n,
    value_dim]`.

    For m = none stands the least finite number: no score is below it, and a difference of two m is
    no NaN. That a query has seen no unmasked key is told by l = 0 alone; seen: there is no such
    query.
    """

    m: Tensor
    l: Tensor
    o: Tensor
    seen: bool

    @classmethod
    def of_block(cls, scores: Tensor, values: Tensor, kept: Tensor | None, seen: bool) -> _Running:
        """`step_block` of the state before any key, of a block that has keys; seen: each query sees
        one of them."""
        m = scores.amax(dim=-1, keepdim=True)
        if not seen:
            # Of a query that sees none, the greatest score is −∞.
            m.clamp_(min=torch.finfo(scores.dtype).min)
        p = scores.sub_(m).exp2_()
        l = p.sum(dim=-1, keepdim=True)
        if kept is not None:
            p.mul_(kept)
        return cls(m, l, multiply(p, values), seen)

    def step_block(self, scores: Tensor, values: Tensor, kept: Tensor | None, seen: bool) -> None:
        """`Attention.Spec.Online.stepBlock` for `scores` `[..., n, k]` in base 2, which are
        overwritten, and `values` `[..., k, value_dim]`; with dropout o takes those of `kept`, like
        the scores, alone. seen: each query sees one of these keys."""
        m = torch.maximum(self.m, scores.amax(dim=-1, keepdim=True))
        alpha = torch.exp2(self.m - m)
        p = scores.sub_(m).exp2_()
        self.l = torch.addcmul(p.sum(dim=-1, keepdim=True), alpha, self.l)
        if kept is not None:
            p.mul_(kept)
        add_product(self.o.mul_(alpha), p, values)
        self.m, self.seen = m, self.seen or seen

    def finish(self) -> tuple[Tensor, Tensor]:
        """(o / l, natural log-sum-exp), 0 and −∞ for a query without an unmasked key."""
        lse = torch.log(self.l).add_(self.m, alpha=LN2)
        if not self.seen:
            self.l.masked_fill_(self.l == 0, 1.0)
        return self.o.div_(self.l), lse


class Tile(NamedTuple):
    """The queries start … stop − 1 with the keys first … last − 1; masked: the window hides some
    pair of them."""

    start: int
    stop: int
    first: int
    last: int
    masked: bool


def as_dtype(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """`tensor.to(dtype)`, which takes most of a short operation's time to find nothing to do."""
    return tensor if tensor.dtype == dtype else tensor.to(dtype)


def on_cpu(tensor: Tensor) -> bool:
    """Looking at a number of it waits for no other device."""
    return tensor.device.type == "cpu"


def as_numbers(flags: Tensor) -> Tensor:
    """A boolean tensor as 0 and 1 in the same memory: PyTorch takes the least and greatest of these
    many times as fast as `all` and `any`."""
    return flags.view(torch.uint8)


def tanh_(x: Tensor, memory: Tensor) -> Tensor:
    """tanh x in place, as e / (e + 2) with e = exp(2x) − 1, off by at most 4 roundings: PyTorch's
    own takes several times as long on some processors. `memory` of the same shape is overwritten.
    """
    # tanh 32 is 1 in every format, and exp(64) is finite.
    e = x.clamp_(max=32.0).mul_(2.0).expm1_()
    return e.div_(torch.add(e, 2.0, out=memory))


def without(rows: Tensor, unseen: Tensor) -> Tensor:
    """`rows` `[..., keys, width]` with 0 in those of `unseen` `[..., keys, 1]`."""
    if on_cpu(unseen) and not bool(as_numbers(unseen).amax()):
        return rows
    return rows.masked_fill(unseen, 0.0)


class Heads:
    """The tile loop for some heads of some batches at a time: query `[batch, heads, q_len,
    head_dim]`, key and value `[batch, kv_heads, kv_len, …]` in the dtype of the computation, and
    the options cut to them.

    The queries of the heads that share a key head are rows of one tile (`Spec.packedHead`), so a
    tile of scores is `[batch·kv_heads, group·rows, keys]`, or, seen by its heads, `[batch, heads,
    rows, keys]`.
    """

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        options: ScoreOptions,
        bounds: TileBounds,
    ) -> None:
        self.query, self.options, self.bounds = query, options, bounds
        self.batch, self.heads = query.shape[:2]
        self.k, self.v = key.flatten(0, 1), value.flatten(0, 1)
        self.keys_t = self.k.mT
        self.modified = (
            options.softcap is not None
            or options.alibi_slopes is not None
            or options.bias is not None
        )
        # softcap needs s / cap, everything else s·log₂e: either is one factor on the queries.
        self.factor = options.scale * LOG2E
        if options.softcap is not None:
            self.factor = options.scale / options.softcap
        # Where it could overflow on the queries alone, it waits for the product.
        self.late = 1.0
        if abs(self.factor) > 2.0**10:
            self.factor, self.late = 1.0, self.factor

    def rows(self, tensor: Tensor, start: int, stop: int) -> Tensor:
        """These queries' rows of `[batch, heads, q_len, …]` as rows of the tiles, `[batch·kv_heads,
        group·rows, …]`, in the dtype of the computation."""
        # A view of everything takes as long as a short product.
        some = tensor if stop - start == tensor.shape[2] else tensor[:, :, start:stop]
        some = as_dtype(some, self.k.dtype)
        return some.reshape(self.k.shape[0], -1, tensor.shape[-1])

    def query_tile(self, t: int, scratch: Scratch) -> tuple[Tensor, Tensor]:
        """The output `[batch, heads, rows, value_dim]` and log-sum-exp `[batch, heads, rows]` of
        the queries of tile `t`, dense, in the dtype of the computation."""
        with without_autocast(self.query.device):
            bounds = self.bounds
            start, stop = bounds.row_first(t), bounds.row_last(t) + 1
            state = None if self.options.sinks is None else self.start(stop - start)
            q = self.rows(self.query, start, stop)
            visited, unmasked = bounds.visited_tiles(t), bounds.unmasked_tiles(t)
            first_key, stop_key = bounds.first_key(t), bounds.stop_key(t)
            factor = self.factor
            if visited.stop - visited.first > 1:
                # Loaded once, and multiplied once, for all tiles of keys.
                q, factor = q * factor, 1.0
            for u in range(visited.first, visited.stop):
                # Keys of the tile that the bounds hide from all of its queries are left out.
                first = max(u * bounds.block_n, first_key)
                last = min((u + 1) * bounds.block_n, stop_key)
                tile = Tile(start, stop, first, last, u not in unmasked)
                tile, hidden = self.narrow(tile, self.hidden_pairs(tile))
                if tile.first == tile.last:
                    continue
                keys_t, values = self.keys_t, self.v
                if (tile.first, tile.last) != (0, bounds.kv_len):
                    keys_t = keys_t[:, :, tile.first : tile.last]
                    values = values[:, tile.first : tile.last]
                scores = multiply_into(scratch, q, keys_t, factor=factor)
                if self.late != 1.0:
                    scores.mul_(self.late)
                seen = hidden is None and not tile.masked
                if not seen or self.modified:
                    values = self.change_scores(scores, values, tile, hidden, scratch)
                kept = self.kept_weights(tile)
                kept = None if kept is None else kept.view_as(scores)
                if state is None:
                    state = _Running.of_block(scores, values, kept, seen)
                else:
                    state.step_block(scores, values, kept, seen)
                del scores  # The next tile's may lie in the same memory.
            o, lse = (state or self.start(stop - start)).finish()
            if self.options.dropout is not None:
                o.mul_(self.options.dropout.scale)
            sizes = (self.batch, self.heads, stop - start)
            return o.view(*sizes, -1), lse.view(sizes)

    def start(self, rows: int) -> _Running:
        """The state before any key: `Spec.Online.empty`, with sinks `Spec.sinkState`."""
        shape = (self.batch, self.heads, rows, 1)
        least = torch.finfo(self.k.dtype).min
        m = self.k.new_full(shape, least)
        if self.options.sinks is not None:
            sinks = (self.options.sinks.to(m.dtype) * LOG2E).clamp_min(least)
            m = sinks.view(1, -1, 1, 1).expand(shape)
        m = m.reshape(self.k.shape[0], -1, 1)
        l = (m > least).to(m.dtype)
        return _Running(m, l, m.new_zeros(*m.shape[:2], self.v.shape[-1]), seen=False)

    def hidden_pairs(self, tile: Tile) -> Tensor | None:
        """The pairs of the tile that mask, bias and window hide, `[batch|1, heads|1, rows, keys]`
        boolean; None where there is neither mask nor bias."""
        rows, keys = slice(tile.start, tile.stop), slice(tile.first, tile.last)
        hidden = None
        if self.options.mask is not None:
            hidden = ~self.options.mask[..., rows, keys]
        if self.options.bias is not None:
            by_bias = torch.isneginf(self.options.bias[..., rows, keys])
            hidden = by_bias if hidden is None else hidden | by_bias
        if hidden is not None and tile.masked:
            distance = self.distance(tile)
            if self.options.left is not None:
                hidden = hidden | (distance > self.options.left)
            if self.options.right is not None:
                hidden = hidden | (distance < -self.options.right)
        return hidden

    def narrow(self, tile: Tile, hidden: Tensor | None) -> tuple[Tile, Tensor | None]:
        """The tile without the keys before the first and after the last that some query sees, and
        its `hidden`; None for that also where nothing is hidden. Looks at no other device."""
        if hidden is None or not on_cpu(hidden):
            return tile, hidden
        seen = (as_numbers(hidden).amin(dim=(0, 1, 2)) == 0).nonzero()
        if seen.numel() == 0:
            return tile._replace(last=tile.first), None
        first, stop = int(seen[0]), int(seen[-1]) + 1
        tile = tile._replace(first=tile.first + first, last=tile.first + stop)
        hidden = hidden[..., first:stop]
        return tile, hidden if bool(as_numbers(hidden).amax()) else None

    def change_scores(
        self,
        scores: Tensor,
        values: Tensor,
        tile: Tile,
        hidden: Tensor | None,
        scratch: Scratch,
    ) -> Tensor:
        """Change the scores of a tile as the options say, in place and to base 2, and return the
        values of its keys."""
        options = self.options
        by_head = scores.view(self.batch, self.heads, tile.stop - tile.start, scores.shape[-1])
        if options.softcap is not None:
            tanh_(scores, scratch.of(*scores.shape, which=1)).mul_(options.softcap * LOG2E)
        self.add(by_head, tile)
        if hidden is None and tile.masked:
            self.hide_outside(by_head, tile, scratch)
        if hidden is None:
            return values
        self.hide(by_head, hidden)
        # A weight 0 would not silence a NaN: the values of keys that no query sees go.
        return without(values, self.hidden_keys(hidden))

    def add(self, scores: Tensor, tile: Tile) -> None:
        """Add ALiBi and bias to the scores `[batch, heads, rows, keys]` of a tile, base 2."""
        options = self.options
        if options.alibi_slopes is not None:
            slopes = options.alibi_slopes.to(scores.dtype)[..., None, None] * LOG2E
            scores.sub_(slopes * self.distance(tile).abs())
        if options.bias is not None:
            bias = options.bias[..., tile.start : tile.stop, tile.first : tile.last]
            scores.add_(bias.to(scores.dtype), alpha=LOG2E)

    def kept_weights(self, tile: Tile) -> Tensor | None:
        """The weights of the tile that dropout keeps, `[batch, heads, rows, keys]` boolean; None
        without dropout."""
        if self.options.dropout is None:
            return None
        rows, keys = range(tile.start, tile.stop), range(tile.first, tile.last)
        return self.options.dropout.kept_weights(self.batch, self.heads, rows, keys)

    def hidden_keys(self, hidden: Tensor) -> Tensor:
        """The keys of a tile that all of its queries are hidden from, `[batch·kv_heads, keys, 1]`,
        from the pairs of `hidden`."""
        unseen = as_numbers(hidden).amin(dim=-2).expand(self.batch, self.heads, -1)
        unseen = unseen.reshape(self.k.shape[0], -1, hidden.shape[-1]).amin(dim=1)
        return unseen.unsqueeze(-1).bool()

    def distance(self, tile: Tile) -> Tensor:
        """i + shift − j for the queries and keys of a tile, `[rows, keys]`."""
        device = self.k.device
        places = torch.arange(tile.start, tile.stop, device=device) + self.options.shift
        return places.unsqueeze(-1) - torch.arange(tile.first, tile.last, device=device)

    def hide(self, scores: Tensor, hidden: Tensor) -> None:
        """−∞ for the scores `[batch, heads, rows, keys]` of the pairs of `hidden`.

        On a CPU adding is many times faster than choosing where the mask is irregular, but a NaN
        stays one; where there is any, the choice is made.
        """
        if on_cpu(scores):
            # 1 − 1/1 is 0, 1 − 1/0 is −∞.
            scores.add_((~hidden).to(scores.dtype).reciprocal_().neg_().add_(1.0))
            if not bool(scores.sum().isnan()):
                return
        scores.masked_fill_(hidden, -torch.inf)

    def hide_outside(self, scores: Tensor, tile: Tile, scratch: Scratch) -> None:
        """−∞ for the pairs of a tile `[batch, heads, rows, keys]` that the window hides.

        Writing 0 first silences NaN, and adding −∞ then is faster than `masked_fill_`.
        """
        for side, some, diagonal in self.clear_outside(scores, tile):
            rows, keys = some.shape[-2:]
            some.add_(scratch.beyond(side, rows, keys, diagonal + side))

    def clear_outside(self, pairs: Tensor, tile: Tile) -> list[tuple[int, Tensor, int]]:
        """Write 0 for those of a tile's `pairs` `[batch, heads, rows, keys]` that the window hides.

        Returned for each edge that cuts through the tile: 1 for the right, −1 for the left; the
        pairs of the keys that some query does not see, `[batch·heads, rows, some keys]`; and the
        last diagonal of these that is seen.
        """
        place = tile.start + self.options.shift - tile.first
        rows, keys = pairs.shape[-2:]
        # PyTorch copies for a triangle of four dimensions that is not dense.
        pairs = pairs.flatten(0, 1)
        found = []
        if self.options.right is not None and keys - 1 > (last := place + self.options.right):
            first = max(0, last + 1)
            found.append((1, pairs[..., first:].tril_(last - first), last - first))
        if self.options.left is not None and rows - 1 > (last := self.options.left - place):
            found.append((-1, pairs[..., : rows - 1 - last].triu_(-last), -last))
        return found
