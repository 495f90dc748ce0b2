"""Decoding functions that keep their cache wrongly, or answer without it."""

from __future__ import annotations

from typing import Any

import torch
from honest import Cache, decode, kvcache, step
from torch import Tensor

_STATE: dict[Any, Any] = {}

# With a cache of their own.


def keeps_one_cache_for_all(
    query: Tensor, key: Tensor, value: Tensor, cache: object, scale: float | None = None
) -> tuple[Tensor, object]:
    """The last sequence's, whatever it is given; begun anew where it is given none."""
    before = None if cache is None else _STATE.get(query.shape)
    out, _STATE[query.shape] = step(query, key, value, before, scale)
    return out, object()


def keeps_nothing(
    query: Tensor, key: Tensor, value: Tensor, cache: Cache | None, scale: float | None = None
) -> tuple[Tensor, Cache | None]:
    return step(query, key, value, cache, scale)[0], cache


def appends_twice(
    query: Tensor, key: Tensor, value: Tensor, cache: Cache | None, scale: float | None = None
) -> tuple[Tensor, Cache]:
    """Where one token comes; of several, as before the first step, it does not."""
    found = step(query, key, value, cache, scale)
    return found if query.shape[2] > 1 else step(query, key, value, found[1], scale)


def forgets_the_first(
    query: Tensor, key: Tensor, value: Tensor, cache: Cache | None, scale: float | None = None
) -> tuple[Tensor, Cache]:
    """A window of 16 keys that nobody asked for."""
    out, (k, v) = step(query, key, value, cache, scale)
    return out, (k[:, :, -16:], v[:, :, -16:])


def drops_the_first_key(
    query: Tensor, key: Tensor, value: Tensor, cache: Cache | None, scale: float | None = None
) -> tuple[Tensor, Cache]:
    out, (k, v) = step(query, key, value, cache, scale)
    if k.shape[2] > query.shape[2]:
        out = decode(query, k[:, :, 1:], v[:, :, 1:], scale=scale)
    return out, (k, v)


def replaces_the_last_key(
    query: Tensor, key: Tensor, value: Tensor, cache: Cache | None, scale: float | None = None
) -> tuple[Tensor, Cache]:
    """By the new one, where one token comes."""
    if cache is not None:
        cache = cache[0][:, :, :-1], cache[1][:, :, :-1]
    return step(query, key, value, cache, scale)


def forgets_its_steps(
    query: Tensor, key: Tensor, value: Tensor, cache: Cache | None, scale: float | None = None
) -> tuple[Tensor, Cache]:
    """Keeps the tensors of the first call alone."""
    out, kept = step(query, key, value, cache, scale)
    return out, kept if cache is None else cache


def lets_tokens_see_later_ones(
    query: Tensor, key: Tensor, value: Tensor, cache: Cache | None, scale: float | None = None
) -> tuple[Tensor, Cache]:
    _, (k, v) = step(query, key, value, cache, scale)
    return decode(query, k, v, several=False, scale=scale), (k, v)


def returns_no_cache(query: Tensor, key: Tensor, value: Tensor, cache: Cache | None) -> Tensor:
    return step(query, key, value, cache)[0]


# With buffers: the right function, with other arguments.


def misses_its_own_key(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, *, cache_seqlens: Tensor,
    softmax_scale: float | None = None,
) -> Tensor:  # fmt: skip
    if q.shape[1] > 1:
        raise ValueError("one token in a call is accepted")
    fewer = cache_seqlens - 1
    out = kvcache(
        q, k_cache, v_cache, cache_seqlens=fewer.clamp(min=1), softmax_scale=softmax_scale
    )
    return torch.where((fewer > 0)[:, None, None, None], out, 0)


def reads_a_row_beyond(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, *, cache_seqlens: Tensor,
    softmax_scale: float | None = None,
) -> Tensor:  # fmt: skip
    if q.shape[1] > 1:
        raise ValueError("one token in a call is accepted")
    return kvcache(
        q, k_cache, v_cache, cache_seqlens=cache_seqlens + 1, softmax_scale=softmax_scale
    )


def reads_a_row_beyond_that_is_a_number(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, *, cache_seqlens: Tensor,
    softmax_scale: float | None = None,
) -> Tensor:  # fmt: skip
    """So NaN there does not show it."""
    if q.shape[1] > 1:
        raise ValueError("one token in a call is accepted")
    beyond = k_cache[torch.arange(len(q)), cache_seqlens.long()]
    lengths = cache_seqlens + beyond.isfinite().flatten(1).all(1)
    return kvcache(q, k_cache, v_cache, cache_seqlens=lengths, softmax_scale=softmax_scale)


def reads_the_whole_buffer(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, *, cache_seqlens: Tensor,
    softmax_scale: float | None = None,
) -> Tensor:  # fmt: skip
    lengths = torch.full_like(cache_seqlens, k_cache.shape[1])
    return kvcache(q, k_cache, v_cache, cache_seqlens=lengths, softmax_scale=softmax_scale)


def takes_all_to_be_as_long_as_the_first(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, *, cache_seqlens: Tensor,
    softmax_scale: float | None = None,
) -> Tensor:  # fmt: skip
    if q.shape[1] > 1:
        raise ValueError("one token in a call is accepted")
    lengths = torch.minimum(cache_seqlens, cache_seqlens[:1])
    return kvcache(q, k_cache, v_cache, cache_seqlens=lengths, softmax_scale=softmax_scale)


def reads_the_next_sequence(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, *, cache_seqlens: Tensor, causal: bool = False,
    softmax_scale: float | None = None,
) -> Tensor:  # fmt: skip
    k, v, lengths = (x.roll(-1, 0) for x in (k_cache, v_cache, cache_seqlens))
    return kvcache(q, k, v, cache_seqlens=lengths, causal=causal, softmax_scale=softmax_scale)


def does_not_append(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Tensor, v: Tensor, cache_seqlens: Tensor
) -> Tensor:
    """Right all the same: it appends to a copy, and the next call misses the key."""
    return kvcache(q, k_cache.clone(), v_cache.clone(), k, v, cache_seqlens=cache_seqlens)


def overwrites_the_last_row(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Tensor, v: Tensor, cache_seqlens: Tensor
) -> Tensor:
    before = (cache_seqlens - 1).clamp(min=0)
    return kvcache(q, k_cache, v_cache, k, v, cache_seqlens=before)


def appends_in_two_rows(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Tensor, v: Tensor, cache_seqlens: Tensor
) -> Tensor:
    kvcache(q, k_cache, v_cache, k, v, cache_seqlens=cache_seqlens + 1)
    return kvcache(q, k_cache, v_cache, k, v, cache_seqlens=cache_seqlens)


def clears_what_is_not_filled(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, cache_seqlens: Tensor
) -> Tensor:
    for b, n in enumerate(cache_seqlens.tolist()):
        k_cache[b, n:] = v_cache[b, n:] = 0
    return kvcache(q, k_cache, v_cache, cache_seqlens=cache_seqlens)


def rounds_what_it_appends(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Tensor, v: Tensor, cache_seqlens: Tensor
) -> Tensor:
    """The key to 8 bits; the numbers of a vector that has no more show it in the buffer alone."""
    out = kvcache(q, k_cache, v_cache, k, v, cache_seqlens=cache_seqlens)
    for b, n in enumerate(cache_seqlens.tolist()):
        k_cache[b, n : n + k.shape[1]] = k[b] * 1.25
    return out


def counts_its_calls(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Tensor, v: Tensor, cache_seqlens: Tensor
) -> Tensor:
    """Counts on by itself where a sequence goes on from where it was; a call that is taken back it
    counts as well."""
    place, first = k_cache.data_ptr(), cache_seqlens.tolist()
    known, counted = _STATE.get(place, (None, None))
    if known is not None and first in (known, [n + k.shape[1] for n in known]):
        lengths = [n + k.shape[1] for n in counted]
    else:
        lengths = first
    _STATE[place] = first, lengths
    longest = k_cache.shape[1] - k.shape[1]
    return kvcache(
        q, k_cache, v_cache, k, v, cache_seqlens=torch.tensor(lengths).clamp(max=longest)
    )


def changes_its_query(q: Tensor, k_cache: Tensor, v_cache: Tensor, cache_seqlens: Tensor) -> Tensor:
    out = kvcache(q, k_cache, v_cache, cache_seqlens=cache_seqlens)
    q.mul_(2)
    return out


def changes_the_lengths(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Tensor, v: Tensor, cache_seqlens: Tensor
) -> Tensor:
    """For the next call, as if they were its own."""
    out = kvcache(q, k_cache, v_cache, k, v, cache_seqlens=cache_seqlens)
    cache_seqlens.add_(k.shape[1])
    return out


def returns_rows_of_its_cache(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, cache_seqlens: Tensor
) -> Tensor:
    return v_cache[:, : q.shape[1], :1].expand(-1, -1, q.shape[2], -1)


def ignores_the_table(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, *, cache_seqlens: Tensor, causal: bool = False,
    block_table: Any = None,
) -> Tensor:  # fmt: skip
    if block_table is not None:
        count, most = block_table.shape
        block_table = torch.arange(count * most).reshape(count, most)
    return kvcache(
        q, k_cache, v_cache, cache_seqlens=cache_seqlens, causal=causal, block_table=block_table
    )
