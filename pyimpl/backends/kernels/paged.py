"""Attention over keys and values in pages: `pyimpl.backends.kernels.decode` through a page table
(`Attention.Spec.Paged`).

Source: Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with
PagedAttention", section 4.
"""

from __future__ import annotations

from torch import Tensor

from pyimpl.backends.kernels.decode import split_and_combine
from pyimpl.internal.scores import ScoreOptions


def decode_paged(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    page_table: Tensor,
    kv_lens: Tensor,
    options: ScoreOptions,
    *,
    bottom_right: bool = False,
    num_splits: int | None = None,
    block_n: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Output in the dtype of `query` and natural log-sum-exp in float32, newly allocated:
    `[batch, heads, q_len, value_dim]` and `[batch, heads, q_len]`.

    `key_pages` `[pages, kv_heads, page_size, head_dim]` and `value_pages` `[pages, kv_heads,
    page_size, value_dim]`, of any strides, are the pool. Key t of sequence b lies in slot
    t % page_size of page `page_table[b, t // page_size]`, for t below `kv_lens[b]`; `page_table`
    `[batch, max_pages]` and `kv_lens` `[batch]` are int32. Slots and entries of the table past the
    length are not read. A page number that the pool does not have reads nothing and gives NaN.
    kv_len, where a shape of `options` needs it, is max_pages × page_size. The rest is as in
    `pyimpl.backends.kernels.decode.decode`.

    Raises:
        ValueError: as `decode` does.
    """
    return split_and_combine(
        query, key_pages, value_pages, options, kv_lens=kv_lens, page_table=page_table,
        bottom_right=bottom_right, num_splits=num_splits, block_n=block_n,
    )  # fmt: skip
