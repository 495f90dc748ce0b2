"""The tile loop of FlashAttention-2 in PyTorch: `Attention.Spec.flash` on the states of
`pyimpl.state`.

For each tile of queries it goes over the tiles of keys and divides once at the end, so the memory
beyond inputs and outputs is that of one tile of scores. Runs on any device. Source: Dao 2023,
algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from pyimpl._arguments import mask_as_4d, resolve_scale
from pyimpl._implements import implements
from pyimpl.state import empty, finish, log_sum_exp, online


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """What a given input dtype is computed in, and its log-sum-exp returned in: float64 for
    float64, otherwise float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """A block in which `torch.autocast` does not lower the products from `compute_dtype`."""
    if torch.amp.is_autocast_available(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


@implements("Attention.Spec.flash")
def flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    block_m: int = 128,
    block_n: int = 256,
) -> tuple[Tensor, Tensor]:
    """Output in the dtype of `query` and natural log-sum-exp in `compute_dtype(query.dtype)`.

    Shapes, `mask`, `is_causal`, `scale` and what is returned as in `pyimpl.reference.attention`;
    `block_m` queries and `block_n` keys to a tile, at least 1. Products and sums are in
    `compute_dtype`, under `torch.autocast` too; float32 products follow PyTorch's own settings
    (TF32 on a GPU, `torch.set_float32_matmul_precision`). The tensors are not checked here:
    `pyimpl.attention` does.

    A key masked for every query of a tile has no influence on that tile, whatever its key and value
    rows hold, NaN included. The value row of a key that some query of the tile may attend to must
    be finite.

    Raises:
        ValueError: a block size is below 1.
    """
    if block_m < 1 or block_n < 1:
        raise ValueError(f"block_m and block_n must be at least 1, not {block_m} and {block_n}")
    q_len, kv_len = query.shape[-2], key.shape[-2]
    dtype = compute_dtype(query.dtype)
    scale = resolve_scale(scale, query.shape[-1])
    k, v = key.to(dtype), value.to(dtype)
    if mask is not None:
        mask = mask_as_4d(mask, q_len, kv_len)
    out = query.new_empty(*query.shape[:-1], value.shape[-1])
    lse = query.new_empty(query.shape[:-1], dtype=dtype)

    def key_tiles(q: Tensor, start: int, stop: int) -> Iterator[tuple[Tensor, Tensor]]:
        """(scores, values) of each tile of keys for the queries start … stop − 1.

        `q` holds these queries with the scale applied.
        """
        # Under causality no query of the tile sees a key from `stop` on: those tiles are skipped.
        kv_stop = min(kv_len, stop) if is_causal else kv_len
        for first in range(0, kv_stop, block_n):
            last = min(first + block_n, kv_stop)
            scores = q @ k[..., first:last, :].transpose(-1, -2)
            values = v[..., first:last, :]
            hidden = None
            if is_causal and last - 1 > start:
                rows = torch.arange(start, stop, device=q.device).unsqueeze(-1)
                hidden = torch.arange(first, last, device=q.device) > rows
            if mask is not None:
                masked = ~mask[..., start:stop, first:last]
                hidden = masked if hidden is None else hidden | masked
                # A weight 0 would not silence a NaN: the values of keys that no query sees go.
                values = values.masked_fill(hidden.all(dim=-2).unsqueeze(-1), 0.0)
            if hidden is not None:
                scores = scores.masked_fill(hidden, -torch.inf)
            yield scores, values

    for start in range(0, q_len, block_m):
        stop = min(start + block_m, q_len)
        # The factor is applied once to the queries, not to every score.
        q = scale * query[..., start:stop, :].to(dtype)
        nothing = empty(tuple(q.shape[:-1]), v.shape[-1], dtype=dtype, device=q.device)
        with _without_autocast(q.device):
            state = online(nothing, key_tiles(q, start, stop))
        out[..., start:stop, :] = finish(state)
        lse[..., start:stop] = log_sum_exp(state)
    return out, lse
