"""Decoding over a cache: the same as `attention` over the keys that each sequence has."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from attention_checks import inputs, judge, tiled_rounding
from hypothesis import given, settings
from hypothesis import strategies as st

from pyimpl import attention, attention_decode

BACKENDS = ["tiled", "reference"]


def in_pages(cache: torch.Tensor, page_size: int, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """The cache `[batch, heads, max_len, dim]` as a pool of shuffled pages, with its table; pages
    and slots that belong to no key hold NaN."""
    batch, heads, max_len, dim = cache.shape
    count = -(-max_len // page_size)
    order = torch.randperm(batch * count + 2, generator=torch.Generator().manual_seed(seed))
    table = order[: batch * count].view(batch, count)
    pool = torch.full((batch * count + 2, heads, page_size, dim), torch.nan, dtype=cache.dtype)
    for b in range(batch):
        for t in range(max_len):
            pool[table[b, t // page_size], :, t % page_size] = cache[b, :, t]
    return pool, table


@settings(max_examples=80, deadline=None)
@given(
    lens=st.lists(st.integers(0, 20), min_size=1, max_size=4),
    q_len=st.integers(1, 3),
    page_size=st.none() | st.integers(1, 6),
    num_splits=st.none() | st.integers(1, 7),
    is_causal=st.booleans(),
    left=st.none() | st.integers(0, 8),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.float16]),
    backend=st.sampled_from(BACKENDS),
)
def test_each_sequence_alone(
    lens, q_len: int, page_size, num_splits, is_causal: bool, left, dtype, backend
) -> None:
    query, key, value, _ = inputs((len(lens), 2, q_len, 20, 4, 6), dtype, group=2)
    slopes, sinks = torch.rand(len(lens), 4), torch.linspace(-1, 1, 4)
    for b, n in enumerate(lens):
        key[b, :, n:], value[b, :, n:] = torch.nan, torch.nan
    caches: dict[str, object] = {"key_cache": key, "value_cache": value}
    if page_size is not None:
        (keys, table), (values, _) = in_pages(key, page_size), in_pages(value, page_size)
        for b, n in enumerate(lens):
            table[b, -(-n // page_size) :] = -1
        caches = {"key_cache": keys, "value_cache": values, "page_table": table.int()}
    out, lse = attention_decode(
        query, kv_lens=torch.tensor(lens), num_splits=num_splits, is_causal=is_causal,
        window=(left, 2), alibi_slopes=slopes, sinks=sinks, softcap=3.0, enable_gqa=True,
        return_lse=True, backend=backend, **caches,
    )  # fmt: skip
    assert (out.dtype, out.shape) == (dtype, (len(lens), 4, q_len, 6))
    for b, n in enumerate(lens):
        judge(
            (out[b : b + 1], lse[b : b + 1]), query[b : b + 1], key[b : b + 1, :, :n],
            value[b : b + 1, :, :n], rounding=tiled_rounding(dtype), left=left,
            right=0 if is_causal else 2, shift=n - q_len, alibi_slopes=slopes[b : b + 1],
            sinks=sinks, softcap=3.0,
        )  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_whole_cache_by_default(backend) -> None:
    query, key, value, _ = inputs((2, 2, 1, 9, 4, 4), torch.float32)
    expected = attention(query, key, value, backend=backend)
    out = attention_decode(query, key, value, backend=backend)
    assert isinstance(out, torch.Tensor)
    judge((out, attention(query, key, value, return_lse=True)[1]), query, key, value,
          rounding=tiled_rounding(torch.float32))  # fmt: skip
    assert out.shape == expected.shape


def test_no_sequences() -> None:
    query, key, value, _ = inputs((0, 2, 1, 9, 4, 4), torch.float32)
    assert attention_decode(query, key, value).shape == (0, 2, 1, 4)
    pool = torch.zeros(3, 2, 5, 4)
    paged = {"page_table": torch.zeros(0, 2).int(), "kv_lens": torch.zeros(0).int()}
    assert attention_decode(query, pool, pool, **paged).shape == (0, 2, 1, 4)


def test_long_caches_are_split() -> None:
    query, key, value, _ = inputs((1, 1, 1, 9000, 4, 4), torch.float32)
    result = attention_decode(query, key, value, return_lse=True)
    judge(result, query, key, value, rounding=tiled_rounding(torch.float32))


Q, K, V, _ = inputs((2, 2, 1, 6, 4, 4), torch.float32)


@pytest.mark.parametrize("backend", ["triton", "tiled", "reference"])
def test_any_number_of_splits(backend) -> None:
    expected = attention_decode(Q, K, V, num_splits=6, backend=backend)
    for num_splits in (7, 10**30, np.int64(6)):
        assert torch.equal(
            attention_decode(Q, K, V, num_splits=num_splits, backend=backend), expected
        )


LENS, TABLE = torch.tensor([6, 3]), torch.tensor([[0, 1], [1, 0]])
PAGED = {"kv_lens": LENS, "page_table": TABLE}
REFUSALS = [
    ({"query": Q[0]}, ValueError, r"query must be \[batch, heads, length, head_dim\], not of"),
    ({"key_cache": K[:1]}, ValueError, "key_cache must have the batch of query, 2, not 1"),
    (
        {**PAGED, "value_cache": V[:1]},
        ValueError,
        "value_cache must have the pages of key_cache, 2",
    ),
    ({"page_table": TABLE}, ValueError, "kv_lens must be given with page_table, not None"),
    ({"kv_lens": [6, 3]}, TypeError, "kv_lens must be a torch.Tensor of int32 .* not list"),
    ({"kv_lens": LENS.float()}, TypeError, "kv_lens must be a .* int64, not torch.float32"),
    ({"kv_lens": LENS.to("meta")}, ValueError, "kv_lens must .* its numbers, not on meta"),
    ({"kv_lens": LENS[:1]}, ValueError, r"kv_lens must be of shape \[2\], not \[1\]"),
    ({"kv_lens": LENS + 1}, ValueError, "kv_lens must be from 0 to the capacity, 6, not 7"),
    ({"kv_lens": -LENS}, ValueError, "kv_lens must be from 0 to the capacity, 6, not -6"),
    ({**PAGED, "page_table": TABLE[0]}, ValueError, r"must be of shape \[2, any\], not \[2\]"),
    ({**PAGED, "page_table": TABLE / 2}, TypeError, "page_table must be a .* not torch.float32"),
    ({**PAGED, "page_table": TABLE + 1}, ValueError, "pages from 0 to 1, not 2 .sequence 1"),
    ({**PAGED, "kv_lens": LENS * 9}, ValueError, "from 0 to the capacity, 12, not 54"),
    ({"num_splits": 0}, ValueError, "num_splits must be at least 1, not 0"),
    ({"num_splits": 1.5}, TypeError, "num_splits must be a whole number or None, not 1.5"),
    ({"return_lse": None}, TypeError, "return_lse must be True or False, not None"),
    ({"backend": "gpu"}, ValueError, "backend must be one of 'auto', .* not 'gpu'"),
]


@pytest.mark.parametrize(("change", "error", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_refusals(change: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        attention_decode(**{"query": Q, "key_cache": K, "value_cache": V, **change})
    assert "\n" not in str(caught.value)
