"""Attention of few queries over a long cache of keys and values, contiguous or in pages, with the
keys split (split-KV): `Attention.Spec.splitKV`, `Attention.Spec.attendPaged`.

Source: Dao, Haziza, Massa and Sizov 2023, "Flash-Decoding for long-context inference"; Kwon et al.
2023, "Efficient Memory Management for Large Language Model Serving with PagedAttention", section 4.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

import torch
from torch import Tensor

from pyimpl.backends.dispatch import Backend, choose_backend, forward
from pyimpl.backends.tile_bounds import num_tiles
from pyimpl.internal import arguments
from pyimpl.internal.arguments import Window, compute_dtype
from pyimpl.internal.implements import implements
from pyimpl.internal.operators import operator
from pyimpl.internal.scores import (
    SCHEMA,
    Changes,
    ScoreOptions,
    alignment_shift,
    checked_numbers,
    checked_options,
    takes_changes,
)
from pyimpl.merge import combine

# Keys in one split of a cache in pages, unless the caller says how many splits; so many are
# gathered at a time.
SPLIT_LEN = 4096


@takes_changes
def attention_decode(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    *,
    kv_lens: Tensor | None = None,
    page_table: Tensor | None = None,
    num_splits: int | None = None,
    is_causal: bool = False,
    window: Window = (None, None),
    enable_gqa: bool = False,
    return_lse: bool = False,
    check: bool | None = None,
    backend: Backend = "auto",
    **changes: Unpack[Changes],
) -> Tensor | tuple[Tensor, Tensor]:
    """`pyimpl.attention` over the first kv_lens[b] keys of each sequence b of a cache.

    The queries are the last tokens of their sequence: `is_causal`, `window` and `alibi_slopes` are
    aligned bottom-right, query i standing at kv_lens[b] − q_len + i.

    Args:
        query: `[batch, heads, q_len, head_dim]`, mostly with q_len 1.
        key_cache, value_cache: `[batch, kv_heads, max_len, head_dim]` and `[batch, kv_heads,
            max_len, value_dim]`; with `page_table` a pool of pages, `[num_pages, kv_heads,
            page_size, head_dim]` and `[num_pages, kv_heads, page_size, value_dim]`.
        kv_lens: `[batch]`, int32 or int64, how many keys each sequence has, at least 0; needed with
            `page_table`; None: max_len. Keys beyond have no influence, whatever they hold.
        page_table: `[batch, max_pages]`, int32 or int64: key t of sequence b lies in slot
            t % page_size of page page_table[b, t // page_size]. Entries beyond the last page of a
            sequence are not looked at.
        num_splits: into how many parts the keys of each sequence are split, at least 1; None: as
            suits the device and, with pages on a CPU, parts of `SPLIT_LEN` keys. Parts may be
            empty.
        check: whether the numbers in `kv_lens`, `page_table` and the options are looked at, which
            waits for a GPU; None: on a CPU. Where nobody looks, a length outside of 0 … max_len
            counts as the nearest of these, a sequence with a page that is not in the pool has an
            output of NaN, and nothing outside of the tensors is read. Backends other than "triton"
            look at lengths and pages always.
        The rest, with the `Changes` of the scores, as for `pyimpl.attention`.

    Returns:
        `[batch, heads, q_len, value_dim]` in the dtype of `query`; with `return_lse` also `[batch,
        heads, q_len]`, as `pyimpl.attention`.

    Raises:
        As `pyimpl.attention`; ValueError also for lengths beyond the cache and for pages that are
        not in the pool; NotImplementedError also for gradients: there is no backward pass.
    """
    named = arguments.under_autocast(
        {"query": query, "key_cache": key_cache, "value_cache": value_cache}
    )
    query, key_cache, value_cache = named.values()
    arguments.check_floating(named, ("batch", "heads", "length", "head_dim"))
    arguments.check_attended(named, enable_gqa, paged=page_table is not None)
    batch, heads = query.shape[:2]
    if page_table is not None:
        if kv_lens is None:
            raise ValueError("kv_lens must be given with page_table, not None")
        _check_integers("page_table", page_table, batch, ", any")
    if kv_lens is not None:
        _check_integers("kv_lens", kv_lens, batch)
    if num_splits is not None:
        if not arguments.is_whole(num_splits):
            raise TypeError(
                f"num_splits must be a whole number or None, not {arguments.describe(num_splits)}"
            )
        if num_splits < 1:
            raise ValueError(f"num_splits must be at least 1, not {arguments.describe(num_splits)}")
        # More splits than keys are empty ones: nothing is kept for them.
        num_splits = min(arguments.whole(num_splits), max(1, _capacity(key_cache, page_table)))
    arguments.check_bool("return_lse", return_lse)
    arguments.check_one_of("backend", backend, Backend)
    options = checked_options(
        query, batch, heads, is_causal=is_causal, window=window, check=check, **changes
    )
    tensors = named | options.tensors()
    arguments.check_reverse_mode(tensors)
    arguments.check_no_gradients("attention_decode", tensors)
    out, lse = _attention_decode.call(
        query, key_cache, value_cache, kv_lens, page_table, num_splits, backend, *options.flat()
    )
    return (out, lse) if return_lse else out


@operator(
    "attention_decode",
    "(Tensor query, Tensor key_cache, Tensor value_cache, Tensor? kv_lens, "
    f"Tensor? page_table, SymInt? num_splits, str backend, {SCHEMA}) -> (Tensor, Tensor)",
)
def _attention_decode(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    kv_lens: Tensor | None,
    page_table: Tensor | None,
    num_splits: int | None,
    backend: Backend,
    *flat: Any,
) -> tuple[Tensor, Tensor]:
    """The same of arguments that are checked but for the numbers in their tensors."""
    options = checked_numbers(ScoreOptions.of_flat(*flat), query.dtype)
    by_kernels = choose_backend(backend, query, value_cache) == "triton"
    if by_kernels and not options.check:
        return _triton(query, key_cache, value_cache, options, kv_lens, page_table, num_splits)
    batch, capacity = query.shape[0], _capacity(key_cache, page_table)
    lens = [capacity] * batch
    if kv_lens is not None:
        lens = kv_lens.tolist()
        if lens and not 0 <= min(lens) <= max(lens) <= capacity:
            bad = next(n for n in lens if not 0 <= n <= capacity)
            raise ValueError(f"kv_lens must be from 0 to the capacity, {capacity}, not {bad}")
    pages = None if page_table is None else _used_pages(page_table, lens, key_cache)
    if num_splits is not None:
        num_splits = min(num_splits, max(lens, default=1) or 1)
    if by_kernels:
        return _triton(query, key_cache, value_cache, options, kv_lens, page_table, num_splits)
    out = query.new_empty(*query.shape[:3], value_cache.shape[3])
    lse = query.new_empty(query.shape[:3], dtype=compute_dtype(query.dtype))
    # Sequences of one length in one cache are taken together.
    together = pages is None and batch > 0 and min(lens) == max(lens)
    for first in range(0, batch, batch if together else 1):
        some = slice(first, batch if together else first + 1)
        split = _Splits(
            query[some],
            key_cache if pages is not None else key_cache[some],
            value_cache if pages is not None else value_cache[some],
            lens[first],
            None if pages is None else pages[first],
        )
        # The tile loop holds few scores at a time, but also the keys gathered from pages.
        count = num_splits or (1 if pages is None else max(1, num_tiles(lens[first], SPLIT_LEN)))
        out[some], lse[some] = split.run(options.of_batches(some), count, backend)
    return out, lse


@_attention_decode.register_fake
def _(query: Tensor, key_cache: Tensor, value_cache: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    out = query.new_empty(*query.shape[:3], value_cache.shape[3])
    return out, query.new_empty(query.shape[:3], dtype=compute_dtype(query.dtype))


def _capacity(key_cache: Tensor, page_table: Tensor | None) -> int:
    """How many keys a sequence of the cache may have."""
    return key_cache.shape[2] * (1 if page_table is None else page_table.shape[1])


def _triton(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    options: ScoreOptions,
    kv_lens: Tensor | None,
    page_table: Tensor | None,
    num_splits: int | None,
) -> tuple[Tensor, Tensor]:
    """By the kernels, which take all sequences at once, and read nothing outside of the cache
    whatever the lengths and the pages are."""
    decode, paged = _kernels()
    if kv_lens is not None:
        kv_lens = _as_indices(kv_lens, query.device)
    if page_table is None or kv_lens is None:
        return decode(
            query, key_cache, value_cache, options,
            kv_lens=kv_lens, bottom_right=True, num_splits=num_splits,
        )  # fmt: skip
    return paged(
        query, key_cache, value_cache, _as_indices(page_table, query.device), kv_lens, options,
        bottom_right=True, num_splits=num_splits,
    )  # fmt: skip


@functools.cache
def _kernels() -> tuple[Callable[..., tuple[Tensor, Tensor]], Callable[..., tuple[Tensor, Tensor]]]:
    """The kernels, which need Triton: of a contiguous cache and of one in pages."""
    from pyimpl.backends.kernels.decode import decode
    from pyimpl.backends.kernels.paged import decode_paged

    return decode, decode_paged


def _as_indices(given: Tensor, device: torch.device) -> Tensor:
    """Whole numbers in 32 bits, as the kernels take them; those beyond −1 … 2³¹ − 1 as the nearest
    of these: a length below 0 or beyond any cache, a page that no pool has."""
    if given.dtype != torch.int32:
        given = given.clamp(-1, 2**31 - 1)
    elif given.device == device:
        return given
    return given.to(device, torch.int32)


def _check_integers(name: str, given: Tensor, batch: int, others: str = "") -> None:
    """A tensor of int32 or int64 of shape `[batch]`, or with `others` of one dimension more."""
    arguments.check_integers(name, given)
    sizes = given.shape
    if len(sizes) != (2 if others else 1) or sizes[0] != batch:
        wanted = f"[{batch}{others}]"
        raise ValueError(f"{name} must be of shape {wanted}, not {arguments.shape(given)}")


def _used_pages(page_table: Tensor, lens: list[int], pool: Tensor) -> list[Tensor]:
    """The pages of each sequence that hold its keys, on the device of the pool."""
    used = []
    for b, length in enumerate(lens):
        pages = page_table[b, : num_tiles(length, max(pool.shape[2], 1))].to(pool.device).long()
        inside = (pages >= 0) & (pages < pool.shape[0])
        if not bool(inside.all()):
            raise ValueError(
                f"page_table must hold pages from 0 to {pool.shape[0] - 1}, "
                f"not {int(pages[~inside][0])} (sequence {b})"
            )
        used.append(pages)
    return used


class _Splits:
    """Sequences of one length: their queries `[batch, heads, q_len, head_dim]` over the first
    `kv_len` keys of `key` and `value` `[batch, kv_heads, max_len, …]`, or, with `pages`, one
    sequence in these pages of a pool."""

    def __init__(
        self, query: Tensor, key: Tensor, value: Tensor, kv_len: int, pages: Tensor | None
    ) -> None:
        self.query, self.key, self.value = query, key, value
        self.kv_len, self.pages = kv_len, pages

    @implements("Attention.Spec.Pool.gather")
    def keys(self, cache: Tensor, first: int, stop: int) -> Tensor:
        """The rows first … stop − 1 of the sequences, `[batch, kv_heads, stop − first, …]`: a view,
        or of a pool a copy of these rows' pages."""
        if self.pages is None:
            return cache[:, :, first:stop]
        page_size = cache.shape[2]
        page = first // page_size if page_size else 0
        some = cache[self.pages[page : num_tiles(stop, max(page_size, 1))]]
        rows = some.transpose(0, 1).flatten(1, 2)
        return rows[:, first - page * page_size : stop - page * page_size].unsqueeze(0)

    @implements("Attention.Spec.attendPaged")
    @implements("Attention.Spec.splitKV")
    def run(self, options: ScoreOptions, count: int, backend: Backend) -> tuple[Tensor, Tensor]:
        """Output and log-sum-exp in `compute_dtype`, from `count` ≥ 1 splits, each taken alone and
        combined; computed in that dtype, so that the output is rounded once."""
        dtype = compute_dtype(self.query.dtype)
        shift = alignment_shift("bottom-right", self.query.shape[2], self.kv_len)
        split_len = max(1, num_tiles(self.kv_len, count))
        query = self.query.to(dtype)
        outs, lses = [], []
        for first in range(0, max(self.kv_len, 1), split_len):
            stop = min(first + split_len, self.kv_len)
            k, v = (self.keys(cache, first, stop).to(dtype) for cache in (self.key, self.value))
            # Seen from the first key of the split the queries stand further to the left; the sink
            # counts once.
            part = replace(options, shift=shift - first, sinks=None if first else options.sinks)
            out, lse = forward(query, k, v, part, backend)
            outs.append(out)
            lses.append(lse)
        if len(outs) == 1:  # Combined with nothing it stays as it is.
            return outs[0], lses[0]
        return combine(torch.stack(outs), torch.stack(lses))
