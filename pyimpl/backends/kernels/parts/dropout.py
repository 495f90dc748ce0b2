"""Dropout in the kernels: which weights of a tile are kept, as `pyimpl.dropout` says, computed with
Triton's own Philox4x32-10 where the tile is."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from pyimpl.backends.kernels.parts.launch import Arguments
from pyimpl.backends.kernels.parts.numerics import device_function
from pyimpl.internal.dropout import Dropout


class Drop(NamedTuple):
    """Dropout of the weights of one head.

    seed: int64; head: its number h; last: the largest word whose weight is kept, as the int32 of
    its bits; scale: 1 / (1 − p); shift: where query 0 stands on the axis of the keys.
    """

    seed: Any
    head: Any
    last: Any
    scale: Any
    shift: Any


@device_function
def drop_of(
    seed_ptr, cu_ptr, batch, num_heads, head, last, scale, shift, first_head, all_heads
):  # fmt: skip
    """The `Drop` of a head of a batch, or, where there is a `cu_ptr`, of a packed sequence; None
    without a seed. first_head: the number of the first head of the first batch, of batches that
    have `all_heads` to count; None: of a whole call."""
    drop = None
    if seed_ptr is not None:
        if all_heads is not None:
            num_heads = all_heads
        number = head
        if cu_ptr is None:
            number = batch * num_heads + head
        if first_head is not None:
            number = first_head + number
        drop = Drop(tl.load(seed_ptr), number, last, scale, shift)
    return drop


@device_function
def numbered_from(first, given):
    """The number of the first row: that with which a packed sequence begins, None: 0, after
    `given`, None: 0; None: 0."""
    number = None  # Triton 3.6 returns no parameter that is None.
    if first is not None:
        number = first
    if given is not None:
        number = given if first is None else first + given
    return number


@device_function
def kept_pairs(scores, positions, key_first, mask, BLOCK_N: tl.constexpr):
    """Which weights are kept, `[BLOCK_M, BLOCK_N]`, of the queries at these `positions` on the
    axis of the keys and of the keys from `key_first`, a multiple of 4, on, by `loop.Scores`; mask:
    None where no boolean mask hides pairs."""
    drop = scores.drop
    rows = positions - drop.shift
    column = key_first
    if scores.first_query is not None:
        rows = rows + scores.first_query.to(tl.int32)
        column = key_first + scores.first_key.to(tl.int32)
    calls = column // 4 + tl.arange(0, BLOCK_N // 4)
    k0, k1, k2, k3 = _four_kept(drop, rows, calls)
    if scores.first_key is not None:
        # The sequence may begin inside of a call: words of the next one complete its columns.
        n0, n1, n2, _ = _four_kept(drop, rows, calls + 1)
        odd = column % 2 != 0
        k0, k1, k2, k3, n0, n1 = (
            tl.where(odd, k1, k0), tl.where(odd, k2, k1), tl.where(odd, k3, k2),
            tl.where(odd, n0, k3), tl.where(odd, n1, n0), tl.where(odd, n2, n1),
        )  # fmt: skip
        late = column % 4 >= 2
        k0, k1, k2, k3 = (
            tl.where(late, k2, k0), tl.where(late, k3, k1), tl.where(late, n0, k2),
            tl.where(late, n1, k3),
        )  # fmt: skip
    kept = tl.interleave(tl.interleave(k0, k2), tl.interleave(k1, k3))
    if mask is not None:
        # The largest of one: Triton sees no interleaving behind it. Otherwise it takes a weight of
        # 16 bits that a mask hides and dropout drops for one made of 4 bits, and adds the elements
        # of tiles of 16 twice (`offline.compile.repeats`).
        kept = tl.max(kept[:, :, None], 2)
    return kept != 0


@device_function
def _four_kept(drop, rows, calls):
    """Whether each of the four words of these calls keeps its weight, 1 or 0, `[rows, calls]`."""
    zero = tl.zeros_like(calls)[None, :]
    head = zero + drop.head.to(tl.int32)
    w0, w1, w2, w3 = tl.philox(drop.seed, calls[None, :], rows[:, None], head, zero)
    last = drop.last.to(tl.uint32, bitcast=True)
    k0 = (w0 <= last).to(tl.int8)
    k1 = (w1 <= last).to(tl.int8)
    k2 = (w2 <= last).to(tl.int8)
    k3 = (w3 <= last).to(tl.int8)
    return k0, k1, k2, k3


def dropout_arguments(dropout: Dropout | None, num_heads: int, device: torch.device) -> Arguments:
    """The arguments of a kernel for dropout, None without it; those for the places of a part are
    None for a whole call.

    Raises:
        ValueError: the seed has the wrong dtype, device or shape.
        NotImplementedError: queries or keys have numbers that do not follow one another.
    """
    places: Arguments = dict.fromkeys(("drop_head", "drop_heads", "drop_query", "drop_key"))
    if dropout is None:
        return {"seed_ptr": None, "keep_last": None, "keep_scale": None, **places}
    if dropout.query_numbers is not None:
        raise NotImplementedError(
            "dropout in the kernels numbers queries and keys one after another: use the backend "
            "'tiled' for others"
        )
    seed: Tensor = dropout.seed
    if seed.dtype != torch.int64 or seed.numel() != 1 or seed.device != device:
        raise ValueError(
            f"seed must be one torch.int64 on {device}, not {seed.dtype} {list(seed.shape)} on "
            f"{seed.device}"
        )
    if dropout.place is not None:
        heads = num_heads if dropout.heads is None else dropout.heads
        numbers = (dropout.first_head, heads, dropout.first_query, dropout.first_key)
        places = dict(zip(places, numbers, strict=True))
    # Where no word keeps a weight the factor 0 sees to it.
    last = max(dropout.threshold - 1, 0)
    return {
        "seed_ptr": seed,
        "keep_last": last - 2**32 if last >= 2**31 else last,
        "keep_scale": dropout.scale,
        **places,
    }
