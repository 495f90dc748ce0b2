"""The backward pass of FlashAttention-2 in PyTorch, tile by tile.

For each tile of queries it goes over the tiles of keys that `tiled` goes over, computes the
weights anew from the log-sum-exp, and adds the tile's part to the gradients; the memory beyond
inputs and outputs is that of a few tiles of scores for each thread, and of the gradients of keys
and values in the dtype of the computation. Runs on any device; the order of all sums is fixed.
Source: Dao 2023, algorithm 2, with its loops exchanged: all that one thread adds to is its own.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyimpl.backends.products import add_product, multiply_into
from pyimpl.backends.scratch import Scratch, ThreadScratch
from pyimpl.backends.tile_bounds import TileBounds, num_tiles
from pyimpl.backends.tiled import (
    LOG2E,
    THREADS_FROM,
    TILE_SCORES,
    Heads,
    Tile,
    cuts,
    portions,
    takes_one_head,
    tanh_,
    without,
)
from pyimpl.backends.workers import for_each
from pyimpl.internal.arguments import compute_dtype, empty_output, without_autocast
from pyimpl.internal.gradients import Gradients, Wanted, row_gradient, sink_gradient, sum_to
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import ScoreOptions, cut, folds_into_query

# Queries in one tile, those of the heads that share a key head together, and keys: chosen by
# measurement. Fewer where tiles are cut through (`cuts`).
ROWS = 1024
KEYS = 256
# Of a tile of one head (`takes_one_head`): at least so many queries, and this many scores.
ROWS_ALONE = 512
SCORES_ALONE = 1 << 19


@folds_into_query
@implements("Attention.Spec.flashBackwardOneLoop")
def flash_backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    options: ScoreOptions,
    wanted: Wanted,
    *,
    delta: Tensor | None = None,
    wide: bool = False,
    block_m: int | None = None,
    block_n: int | None = None,
) -> Gradients:
    """dQ in the dtype of `query`, laid out as `empty_output` does, the others, with `wide` all, in
    `compute_dtype(query.dtype)`.

    Arguments and results as in `backends.reference_backward.attention_backward`; `block_m`
    queries and `block_n` keys to a tile. Products and sums as in `pyimpl.backends.tiled.flash`.

    A key masked for every query of a tile, and a query whose log-sum-exp is −∞, have no influence
    on that tile, whatever they hold, NaN included; all else must be finite.

    Raises:
        ValueError: a block size is below 1.
    """
    batch, heads, q_len, head_dim = query.shape
    kv_heads, kv_len, value_dim = value.shape[1:]
    group = max(heads // max(kv_heads, 1), 1)
    for name, block in (("block_m", block_m), ("block_n", block_n)):
        if block is not None and block < 1:
            raise ValueError(f"{name} must be at least 1, not {block}")
    alone = takes_one_head(query, kv_len, group, options)
    if block_m is None:
        rows = ROWS >> cuts(options)
        block_m = max(16, (max(rows, ROWS_ALONE) if alone else rows) // group)
    if block_n is None:
        block_n = max(KEYS, SCORES_ALONE // (group * block_m)) if alone else KEYS
    bounds = TileBounds(q_len, kv_len, block_m, block_n, options.left, options.right, options.shift)
    dtype = compute_dtype(query.dtype)
    lse = lse.to(dtype)
    if delta is None:
        d_lse = None if grad_lse is None else grad_lse.to(dtype)
        delta = row_gradient(out.to(dtype), grad_out.to(dtype), d_lse)
    grad_q = empty_output(query, head_dim, wide=wide)
    grad_k = key.new_zeros(batch, kv_heads, kv_len, head_dim, dtype=dtype)
    grad_v = key.new_zeros(batch, kv_heads, kv_len, value_dim, dtype=dtype)
    grad_slopes = grad_bias = None
    if wanted.slopes and options.alibi_slopes is not None:
        grad_slopes = query.new_zeros(batch, heads, dtype=dtype)
    if wanted.bias and options.bias is not None:
        sizes = (1,) * (4 - options.bias.dim()) + tuple(options.bias.shape)
        grad_bias = query.new_zeros(sizes, dtype=dtype)

    if grad_q.numel() and kv_len:
        k, v = key.to(dtype), value.to(dtype)
        threads = query.device.type == "cpu" and batch * heads * q_len * kv_len >= THREADS_FROM
        # Threads that shared the gradient of a bias would add to it in any order.
        threads = threads and (grad_bias is None or grad_bias.shape[:2] == (batch, heads))
        pieces = 4 * torch.get_num_threads() if threads else 1
        at_once = TILE_SCORES // (group * min(block_m, q_len) * min(block_n, kv_len))
        at_once = 1 if alone else max(1, min(at_once, batch * kv_heads // pieces))
        parts = []
        for some, kv_range in portions(batch, kv_heads, at_once):
            head_range = slice(kv_range.start * group, kv_range.stop * group)
            parts.append(
                _HeadsBackward(
                    query[some, head_range],
                    k[some, kv_range],
                    v[some, kv_range],
                    options.part(some, head_range, (batch, heads, q_len, kv_len)),
                    bounds,
                    lse[some, head_range],
                    grad_out[some, head_range],
                    delta[some, head_range],
                    Gradients(
                        grad_q[some, head_range],
                        grad_k[some, kv_range].flatten(0, 1),
                        grad_v[some, kv_range].flatten(0, 1),
                        cut(grad_slopes, some, head_range),
                        cut(grad_bias, some, head_range),
                    ),
                )
            )
        scratch = ThreadScratch(k)
        # With fewer parts than threads PyTorch shares out each operation.
        threads = threads and len(parts) >= torch.get_num_threads()
        for_each(parts, lambda part: part.run(scratch), threads=threads)
    else:
        grad_q.zero_()

    if grad_slopes is not None and options.alibi_slopes is not None:
        each = options.alibi_slopes.shape[0] == batch
        grad_slopes = grad_slopes if each else grad_slopes.sum(dim=0, keepdim=True)
    if grad_bias is not None and options.bias is not None:
        grad_bias = grad_bias.view(options.bias.shape)
    grad_sinks = None
    if wanted.sinks and options.sinks is not None:
        grad_sinks = sink_gradient(options.sinks, lse, delta)
    return Gradients(grad_q, grad_k, grad_v, grad_slopes, grad_bias, grad_sinks)


class _HeadsBackward(Heads):
    """The backward pass for some heads of some batches at a time: as `Heads`, with their
    log-sum-exp, the gradient of their output and `row_gradient`, and the gradients that are added
    to, of keys and values as `[batch·kv_heads, kv_len, …]`."""

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        options: ScoreOptions,
        bounds: TileBounds,
        lse: Tensor,
        grad_out: Tensor,
        delta: Tensor,
        gradients: Gradients,
    ) -> None:
        super().__init__(query, key, value, options, bounds)
        self.values_t = self.v.transpose(-1, -2)
        self.lse, self.grad_out, self.delta = lse, grad_out, delta
        self.gradients = gradients

    def run(self, scratch: Scratch) -> None:
        """Add the parts of all tiles."""
        with without_autocast(self.query.device):
            for t in range(num_tiles(self.bounds.q_len, self.bounds.block_m)):
                self.add_query_tile(t, scratch)
            self.gradients.key.mul_(self.options.scale)

    def add_query_tile(self, t: int, scratch: Scratch) -> None:
        """Write dQ of the queries of tile `t` and add to the other gradients."""
        bounds = self.bounds
        start, stop = bounds.row_first(t), bounds.row_last(t) + 1
        lse, delta = (self.rows(x.unsqueeze(-1), start, stop) for x in (self.lse, self.delta))
        # exp(s − ∞) is 0 for a query without a key, and 0 · 0 is, whatever the query held.
        none = torch.isneginf(lse)
        lse = torch.where(none, torch.inf, lse * LOG2E)
        delta = delta.masked_fill(none, 0.0)
        q = self.rows(self.query, start, stop).masked_fill(none, 0.0)
        grad_o = self.rows(self.grad_out, start, stop).masked_fill(none, 0.0)
        grad_q = torch.zeros_like(q)
        scaled = q * self.factor
        visited, unmasked = bounds.visited_tiles(t), bounds.unmasked_tiles(t)
        for u in range(visited.first, visited.stop):
            first = max(u * bounds.block_n, bounds.first_key(t))
            last = min((u + 1) * bounds.block_n, bounds.stop_key(t))
            tile = Tile(start, stop, first, last, u not in unmasked)
            self.key_tile(tile, scaled, q, lse, grad_o, delta, grad_q, scratch)
        grad_q.mul_(self.options.scale)
        self.gradients.query[:, :, start:stop] = grad_q.view_as(self.query[:, :, start:stop])

    def key_tile(
        self,
        tile: Tile,
        scaled: Tensor,
        q: Tensor,
        lse: Tensor,
        grad_o: Tensor,
        delta: Tensor,
        grad_q: Tensor,
        scratch: Scratch,
    ) -> None:
        """Add the part of one tile. Base 2: `lse` is multiplied by log₂e; `scaled` is `q` times the
        factor of the scores."""
        tile, hidden = self.narrow(tile, self.hidden_pairs(tile))
        if tile.first == tile.last:
            return
        keys = slice(tile.first, tile.last)
        k, keys_t, values_t = self.k[:, keys], self.keys_t[:, :, keys], self.values_t[:, :, keys]
        if hidden is not None:
            # A weight 0 would not silence a NaN: keys that no query sees go.
            unseen = self.hidden_keys(hidden)
            k, values_t = without(k, unseen), without(values_t.mT, unseen).mT
        shape = (q.shape[0], q.shape[1], tile.last - tile.first)
        by_head = (self.batch, self.heads, tile.stop - tile.start, tile.last - tile.first)

        s = multiply_into(scratch, scaled, keys_t)
        if self.late != 1.0:
            s.mul_(self.late)
        tanh = None
        if self.options.softcap is not None:
            tanh = tanh_(s, scratch.of(*shape, which=2))
            cap = self.options.softcap * LOG2E
            s = torch.mul(tanh, cap, out=scratch.of(*shape, which=2))
        self.add(s.view(by_head), tile)
        if hidden is not None:
            self.hide(s.view(by_head), hidden)
        p = s.sub_(lse).exp2_()
        self.drop_outside(p.view(by_head), tile)
        if self.options.sinks is not None:
            # With a sink a query that sees no key has a log-sum-exp all the same.
            unseeing = p.amax(dim=-1, keepdim=True) == 0
            q, grad_o, delta = (without(x, unseeing) for x in (q, grad_o, delta))
        factors = self.dropout_factors(tile, shape)
        dropped = p if factors is None else p * factors
        add_product(self.gradients.value[:, keys], dropped.mT, grad_o)

        grad_p = multiply_into(scratch, grad_o, values_t, which=1)
        if factors is not None:
            grad_p.mul_(factors)
        grad_s = grad_p.sub_(delta).mul_(p)
        self.add_to_options(grad_s.view(by_head), tile)
        # A gradient 0 would not silence the NaN of a key that is hidden.
        if tanh is not None:
            grad_s.mul_(tanh.square_().neg_().add_(1.0).nan_to_num_(nan=0.0))
        add_product(self.gradients.key[:, keys], grad_s.mT, q)
        add_product(grad_q, grad_s, k)

    def dropout_factors(self, tile: Tile, shape: tuple[int, ...]) -> Tensor | None:
        """The factors by which dropout multiplies the weights of the tile, 0 or 1 / (1 − p), of
        this shape; None without dropout."""
        kept = self.kept_weights(tile)
        if kept is None or self.options.dropout is None:
            return None
        return kept.view(shape).to(self.k.dtype).mul_(self.options.dropout.scale)

    def drop_outside(self, p: Tensor, tile: Tile) -> None:
        """0 for the weights `[batch, heads, rows, keys]` of the pairs that the window hides."""
        if tile.masked:
            self.clear_outside(p, tile)

    @implements("Attention.Spec.slopeTerm")
    @implements("Attention.Spec.stepSlopes")
    def add_to_options(self, grad_s: Tensor, tile: Tile) -> None:
        """Add a tile's dS `[batch, heads, rows, keys]` to the gradients of slopes and bias."""
        if self.gradients.slopes is not None:
            self.gradients.slopes.sub_((grad_s * self.distance(tile).abs()).sum(dim=(-2, -1)))
        if self.gradients.bias is not None:
            rows, keys = slice(tile.start, tile.stop), slice(tile.first, tile.last)
            whole = self.gradients.bias
            some = cut(whole, slice(None), slice(None), rows, keys)
            assert some is not None
            some.add_(sum_to(grad_s, some.shape))
