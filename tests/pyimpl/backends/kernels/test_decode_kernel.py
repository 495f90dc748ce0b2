"""Decoding with the keys split, and with keys in pages, interpreted, against plain float64."""

from __future__ import annotations

import math

import pytest
import torch
from attention_checks import inputs, kernel_rounding
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_checks import judge, score_options
from torch import Tensor

from pyimpl.backends.kernels import decode as decoding
from pyimpl.backends.kernels.combine import combine_into
from pyimpl.backends.kernels.decode import decode, programs_each, split_count, visited_keys
from pyimpl.backends.kernels.forward import forward
from pyimpl.backends.kernels.paged import decode_paged

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def make_grouped(shape: tuple[int, ...], kv_heads: int, dtype: torch.dtype) -> list[Tensor]:
    query, key, value, _ = inputs(shape, dtype)
    return [query, key[:, :kv_heads], value[:, :kv_heads]]


@pytest.mark.parametrize("num_splits", [None, 1, 2, 9])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_splits(dtype: torch.dtype, num_splits: int | None) -> None:
    """9 splits of 7 tiles: two splits have no key."""
    query, key, value = make_grouped((2, 6, 2, 100, 24, 40), 2, dtype)
    options = score_options(query, right=0, shift=98, softcap=4.0)
    result = decode(query, key, value, options, num_splits=num_splits, block_n=16)
    assert result[0].dtype == dtype
    judge(result, query, key, value, options, kernel_rounding(dtype, 16))


@pytest.mark.parametrize(
    "changes",
    [
        {"left": 30, "right": 0, "shift": 65},
        {"left": 4, "right": 9, "shift": 20},
        {"right": 0, "shift": -3},
        {"alibi_slopes": torch.tensor([[0.5, 0.1, -0.25, 1.0]])},
        {"sinks": torch.tensor([0.5, 8.0, -math.inf, 1.0])},
        {"mask": torch.rand(1, 4, 5, 70, generator=torch.Generator().manual_seed(5)) < 0.3},
        {"bias": torch.randn(4, 1, 70, generator=torch.Generator().manual_seed(5))},
    ],
    ids=lambda c: "+".join(c),
)
def test_changes_of_the_scores(changes: dict[str, object]) -> None:
    """5 queries × group 2 are 10 rows of one tile; each row has its own head and query."""
    query, key, value = make_grouped((1, 4, 5, 70, 16, 16), 2, torch.float32)
    options = score_options(query, **changes)
    result = decode(query, key, value, options, num_splits=3, block_n=16)
    judge(result, query, key, value, options, kernel_rounding(torch.float32, 16))


@settings(max_examples=15, deadline=None)
@given(
    kv_heads=st.integers(1, 2),
    group=st.integers(1, 5),
    q_len=st.integers(1, 8),
    kv_len=st.integers(0, 60),
    left=st.none() | st.integers(0, 40),
    right=st.none() | st.integers(0, 40),
    num_splits=st.integers(1, 3),
    sink=st.booleans(),
)
def test_the_same_as_forward(kv_heads, group, q_len, kv_len, left, right, num_splits, sink) -> None:
    """Row tiles that end within a query's heads, windows, splits without keys."""
    query, key, value = make_grouped(
        (1, kv_heads * group, q_len, kv_len, 16, 16), kv_heads, torch.float32
    )
    options = score_options(
        query,
        left=left,
        right=right,
        shift=kv_len - q_len,
        sinks=torch.linspace(-1, 1, kv_heads * group) if sink else None,
    )
    result = decode(query, key, value, options, num_splits=num_splits, block_n=16)
    judge(result, query, key, value, options, kernel_rounding(torch.float32, 16))
    expected = forward(query, key, value, options, block_m=16, block_n=16)
    assert torch.equal(result[0] == 0.0, expected[0] == 0.0)


def check_each(
    result: tuple[Tensor, Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    lens: Tensor,
    **changes,
) -> None:
    """Judge each sequence alone, at its own length; the last query stands at the last key."""
    for b, length in enumerate(lens.tolist()):
        options = score_options(query, shift=length - query.shape[2], **changes)
        judge(
            (result[0][b : b + 1], result[1][b : b + 1]),
            query[b : b + 1], key[b : b + 1, :, :length], value[b : b + 1, :, :length],
            options, kernel_rounding(query.dtype, 16),
        )  # fmt: skip


@pytest.mark.parametrize("num_splits", [1, 3])
def test_lengths_of_the_sequences(num_splits: int) -> None:
    """Keys past a length are not read; a sequence may have none."""
    query, key, value = make_grouped((4, 4, 2, 70, 16, 16), 2, torch.float32)
    lens = torch.tensor([70, 33, 0, 1], dtype=torch.int32)
    for b, length in enumerate(lens.tolist()):
        key[b, :, length:], value[b, :, length:] = math.nan, math.nan
    options = score_options(query, left=40, right=0)
    arguments = {"bottom_right": True, "num_splits": num_splits, "block_n": 16}
    result = decode(query, key, value, options, kv_lens=lens, **arguments)
    check_each(result, query, key, value, lens, left=40, right=0)
    assert bool((result[1][2] == -math.inf).all())
    assert bool((result[0][2] == 0.0).all())
    options = score_options(query)
    result = decode(
        query,
        key,
        value,
        options,
        kv_lens=lens + torch.tensor([9, 0, -5, 0]).int(),
        num_splits=num_splits,
    )
    check_each(result, query, key, value, lens)


def in_pages(tensors: list[Tensor], lens: Tensor, page_size: int) -> tuple[list[Tensor], Tensor]:
    """(`[pages, kv_heads, page_size, dim]` of each tensor, the page table). Pages lie in any order;
    slots and entries that belong to no key are NaN and −7."""
    batch, _, kv_len, _ = tensors[0].shape
    max_pages = -(-kv_len // page_size)
    numbers = torch.randperm(batch * max_pages + 3, generator=torch.Generator().manual_seed(0))
    table = numbers[: batch * max_pages].reshape(batch, max_pages).int()
    pools = [
        x.new_full((len(numbers), x.shape[1], page_size, x.shape[3]), math.nan) for x in tensors
    ]
    for b, length in enumerate(lens.tolist()):
        for t in range(length):
            for pool, x in zip(pools, tensors, strict=True):
                pool[table[b, t // page_size], :, t % page_size] = x[b, :, t]
        table[b, -(-length // page_size) :] = -7
    return pools, table


@pytest.mark.parametrize("page_size", [1, 7, 16, 32])
@pytest.mark.parametrize("num_splits", [1, 3])
def test_pages(page_size: int, num_splits: int) -> None:
    """The same as without pages, bit for bit."""
    query, key, value = make_grouped((3, 4, 2, 60, 24, 40), 2, torch.float16)
    lens = torch.tensor([60, 17, 0], dtype=torch.int32)
    (keys, values), table = in_pages([key, value], lens, page_size)
    options = score_options(query, left=40, right=0, sinks=torch.tensor([0.0, 1.0, -1.0, 2.0]))
    arguments = {"bottom_right": True, "num_splits": num_splits, "block_n": 16}
    result = decode_paged(query, keys, values, table, lens, options, **arguments)
    expected = decode(query, key, value, options, kv_lens=lens, **arguments)
    assert torch.equal(result[0], expected[0])
    assert torch.equal(result[1], expected[1])


@pytest.mark.parametrize("options", [{}, {"softcap": 2.0}, {"left": 70, "right": 0}], ids=str)
@pytest.mark.parametrize("page_size", [32, 48, 64])
def test_tiles_that_lie_in_one_page(page_size: int, options: dict[str, object]) -> None:
    """The same as without pages, bit for bit; also of tiles that every row sees whole, and of pages
    that hold any number of tiles."""
    query, key, value = make_grouped((2, 4, 2, 150, 16, 16), 2, torch.float16)
    lens = torch.tensor([150, 65], dtype=torch.int32)
    (keys, values), table = in_pages([key, value], lens, page_size)
    changed = score_options(query, **options)
    arguments = {"bottom_right": True, "num_splits": 2, "block_n": 16}
    result = decode_paged(query, keys, values, table, lens, changed, **arguments)
    expected = decode(query, key, value, changed, kv_lens=lens, **arguments)
    assert torch.equal(result[0], expected[0])
    assert torch.equal(result[1], expected[1])


def spread(x: Tensor, order: list[int]) -> Tensor:
    """The same numbers with memory in another order of dimensions, and NaN, or for whole numbers
    −9, around each."""
    places = [order.index(i) for i in range(x.dim())]
    fill = math.nan if x.is_floating_point() else -9
    around = x.new_full([2 * x.shape[i] + 1 for i in order], fill)
    inside = around[(slice(1, None, 2),) * x.dim()].permute(places)
    return inside.copy_(x)


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 3), st.integers(1, 5)),
    page_size=st.sampled_from([1, 3, 15, 16, 17, 32, 48, 64]),
    shares=st.lists(st.floats(0, 1), min_size=2, max_size=2),
    order=st.permutations(range(4)),
    num_splits=st.sampled_from([1, 2, 5, 40]),
    block_n=st.sampled_from([16, 32]),
    left=st.none() | st.integers(0, 30),
    right=st.none() | st.integers(0, 3),
    beyond=st.sampled_from([-(2**31), -1, 0, 2**31 - 1]),
    numbers=st.integers(0, 2**16),
)
def test_odd_pages(
    sizes, page_size, shares, order, num_splits, block_n, left, right, beyond, numbers
) -> None:
    """Tensors of any strides, several queries, lengths from 0 on in a table of any entries beyond
    them, more splits than tiles: the same as plain attention of each sequence's keys."""
    batch, kv_heads, group, q_len = sizes
    torch.manual_seed(numbers)
    capacity = page_size * -(-70 // page_size)
    lens = torch.tensor([round(share * capacity) for share in shares[:batch]], dtype=torch.int32)
    query = torch.randn(batch, kv_heads * group, q_len, 16)
    key, value = (torch.randn(batch, kv_heads, capacity, dim) for dim in (16, 8))
    pools, table = in_pages([key, value], lens, page_size)
    table[table == -7] = beyond
    sinks = torch.linspace(-1, 1, kv_heads * group)
    options = score_options(query, left=left, right=right, sinks=sinks)
    result = decode_paged(
        *(spread(x, order) for x in (query, *pools)), spread(table, [1, 0]), spread(lens, [0]),
        options, bottom_right=True, num_splits=num_splits, block_n=block_n,
    )  # fmt: skip
    check_each(result, query, key, value, lens, left=left, right=right, sinks=sinks)


@pytest.mark.filterwarnings("ignore:All-NaN slice encountered")
@pytest.mark.parametrize("block_n", [16, 32])
def test_a_page_that_is_not_there_gives_nan(block_n: int) -> None:
    """Whether a tile lies in one page or in two."""
    query, key, value = make_grouped((2, 2, 1, 32, 16, 16), 1, torch.float32)
    lens = torch.tensor([32, 32], dtype=torch.int32)
    (keys, values), table = in_pages([key, value], lens, 16)
    for number in (-1, len(keys), 2**31 - 1):
        table[1, 0] = number
        options = score_options(query)
        out, _ = decode_paged(query, keys, values, table, lens, options, block_n=block_n)
        assert bool(out[1].isnan().all())
        assert not bool(out[0].isnan().any())


def test_combine() -> None:
    """Attention of parts of the keys, one of them empty, one masked for some queries."""
    query, key, value, _ = inputs((2, 3, 7, 50, 16, 24), torch.float32)
    mask = torch.ones(7, 50, dtype=torch.bool)
    mask[2, :20] = False
    mask[3] = False
    options = score_options(query, mask=mask)
    bounds = [(0, 20), (20, 20), (20, 50)]
    done = [
        forward(
            query, key[:, :, a:b], value[:, :, a:b], score_options(query, mask=mask[:, a:b]),
            block_m=16, block_n=16,
        )
        for a, b in bounds
    ]  # fmt: skip
    parts, lses = torch.stack([x[0] for x in done]), torch.stack([x[1] for x in done])
    for order in (slice(None), [2, 0, 1]):
        out, lse = torch.empty(2, 3, 7, 24), torch.empty(2, 3, 7)
        combine_into(parts[order], lses[order], out, lse)
        judge((out, lse), query, key, value, options, kernel_rounding(torch.float32, 16))
        assert bool((out[:, :, 3] == 0.0).all())
        assert bool((lse[:, :, 3] == -math.inf).all())
    strided = parts.permute(4, 0, 1, 2, 3).contiguous().permute(1, 2, 3, 4, 0)
    again = torch.empty(7, 2, 24, 3).permute(1, 3, 0, 2)
    combine_into(strided, lses, again, lse)
    combine_into(parts, lses, out, lse)
    assert torch.equal(again, out)


def test_weights_of_parts_sum_to_1_where_log_sum_exps_are_large() -> None:
    """exp(Lₖ − L) does not: L = 30000 + ln 3 is rounded to a multiple of 1/512."""
    parts, lses = torch.ones(3, 1, 1, 2, 16), torch.full((3, 1, 1, 2), 3e4)
    lses[:, ..., 1] = -3e4
    out, lse = torch.empty(1, 1, 2, 16), torch.empty(1, 1, 2)
    combine_into(parts, lses, out, lse)
    assert float((out - 1.0).abs().max()) < 1e-6
    assert float((lse - lses[0]).abs().max()) < 1.2


def test_how_many_splits() -> None:
    """Two programs for each multiprocessor, on Hopper four; 4 tiles to a split at least; 128 splits
    at most."""
    assert split_count(programs=8, tiles=10_000, processors=132) == 33
    assert split_count(programs=8, tiles=10_000, processors=132, each=programs_each(90)) == 66
    assert programs_each(80) == programs_each(100) == 2
    assert split_count(programs=8, tiles=40, processors=132) == 10
    assert split_count(programs=1000, tiles=10_000, processors=132) == 1
    assert split_count(programs=1, tiles=10_000, processors=132) == decoding.MAX_SPLITS
    assert split_count(programs=0, tiles=0, processors=1) == 1
    query = torch.zeros(1, 1, 2, 16)
    assert visited_keys(score_options(query, right=0), 2, 500) == 500
    assert visited_keys(score_options(query, left=30, right=0), 2, 500) == 32


def test_nothing_to_do() -> None:
    for shape in ((0, 2, 3, 4, 5, 6), (2, 0, 3, 4, 5, 6), (2, 2, 0, 4, 5, 6)):
        query, key, value, _ = inputs(shape, torch.float32)
        for num_splits in (1, 2):
            out, lse = decode(query, key, value, score_options(query), num_splits=num_splits)
            assert out.shape == (*shape[:3], 6)
            assert lse.shape == shape[:3]


def test_refusals() -> None:
    query, key, value = make_grouped((2, 2, 1, 32, 16, 16), 1, torch.float32)
    lens, table = torch.tensor([32, 32]), torch.zeros(2, 2, dtype=torch.int32)
    options = score_options(query)
    for arguments, message in (
        ({"kv_lens": lens}, r"kv_lens must be torch.int32 \[2\] on cpu, not torch.int64 \[2\]"),
        ({"kv_lens": lens[:1].int()}, r"kv_lens must be .* \[2\] on cpu, not .* \[1\] on cpu"),
        ({"num_splits": 0}, "num_splits must be None or at least 1, not 0"),
        ({"block_n": 24}, "block_n must be a power of two, at least 16, not 24"),
    ):
        with pytest.raises(ValueError, match=message):
            decode(query, key, value, options, **arguments)
    pages = torch.zeros(5, 1, 16, 16)
    with pytest.raises(ValueError, match=r"page_table must be .* \[2, 2\] .* not torch.int64"):
        decode_paged(query, pages, pages, table.long(), lens.int(), options)
    with pytest.raises(ValueError, match=r"value must be .*\[5, 1, 16, 16\].* not .*\[4, 1, 16"):
        decode_paged(query, pages, pages[:4], table, lens.int(), options)
    with pytest.raises(ValueError, match="takes float32, float16 and bfloat16"):
        decode(query.double(), key, value, options)
    with pytest.raises(ValueError, match=r"parts must be torch.float32 .* not torch.float16"):
        combine_into(query[None].half(), query[None, ..., 0], query, query[..., 0])
