"""The changes of scores in the forward kernel: windows, softcap, ALiBi, bias, sinks; and grouped
heads. Interpreted, against plain float64."""

from __future__ import annotations

import math

import pytest
import torch
from attention_checks import inputs, kernel_rounding
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_checks import judge, score_options
from torch import Tensor

from pyimpl.backends.kernels.forward import forward
from pyimpl.internal.scores import ScoreOptions

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
# q_len, kv_len; tiles are 16 × 16.
LENGTHS = [(40, 70), (70, 40), (33, 33)]
WINDOWS = [(None, 0), (0, 0), (5, 0), (20, 3), (7, None), (None, 4), (40, 40)]


def check(
    shape: tuple[int, ...], dtype: torch.dtype, kv_heads: int | None = None, **changes: object
) -> None:
    """Judge the kernel for inputs of this shape under these options."""
    query, key, value, _ = inputs(shape, dtype)
    key, value = key[:, :kv_heads], value[:, :kv_heads]
    options = score_options(query, **changes)
    result = forward(query, key, value, options, block_m=16, block_n=16)
    judge(result, query, key, value, options, kernel_rounding(dtype, 16))


@pytest.mark.parametrize("bottom_right", [False, True])
@pytest.mark.parametrize(("left", "right"), WINDOWS)
@pytest.mark.parametrize(("q_len", "kv_len"), LENGTHS)
def test_windows(
    q_len: int, kv_len: int, left: int | None, right: int | None, bottom_right: bool
) -> None:
    shift = kv_len - q_len if bottom_right else 0
    check((1, 1, q_len, kv_len, 16, 16), torch.float32, left=left, right=right, shift=shift)


@pytest.mark.parametrize(("left", "right", "shift"), [(3, 2, 0), (20, 0, 30), (None, 0, 30)])
def test_keys_outside_of_every_window_of_a_tile_have_no_influence(left, right, shift) -> None:
    """Their tiles are skipped, and in a tile that is visited they are masked: NaN shows nowhere."""
    query, key, value, _ = inputs((1, 1, 16, 100, 16, 16), torch.float32)
    options = score_options(query, left=left, right=right, shift=shift)
    expected = forward(query, key, value, options, block_m=16, block_n=16)
    hidden = torch.arange(100)
    hidden = (hidden > 15 + shift + right) | (hidden < shift - (1000 if left is None else left))
    assert bool(hidden.any())
    key[:, :, hidden], value[:, :, hidden] = math.nan, math.nan
    result = forward(query, key, value, options, block_m=16, block_n=16)
    assert torch.equal(result[0], expected[0])
    assert torch.equal(result[1], expected[1])


def test_a_bound_that_excludes_nothing_changes_nothing() -> None:
    query, key, value, _ = inputs((1, 2, 20, 33, 16, 16), torch.float32)
    expected = forward(query, key, value, score_options(query), block_m=16, block_n=16)
    for left, right in ((19, 32), (10**12, 10**12)):
        options = score_options(query, left=left, right=right)
        assert torch.equal(
            forward(query, key, value, options, block_m=16, block_n=16)[0], expected[0]
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "changes",
    [
        {"softcap": 2.0},
        {"softcap": 30.0, "scale": 20.0, "right": 0, "shift": 17},
        {"softcap": 1e-3, "scale": 1e3},
        {"softcap": 1e20},
        {"alibi_slopes": torch.tensor([[0.5, -0.25]])},
        {"alibi_slopes": torch.tensor([[0.5, 0.125]]).half(), "right": 0, "shift": 17},
        {"bias": torch.randn(20, 37, generator=torch.Generator().manual_seed(3))},
        {"sinks": torch.tensor([0.5, -3.0])},
        {"sinks": torch.tensor([40.0, -math.inf]).double(), "right": 0, "shift": -5},
    ],
    ids=lambda c: "+".join(c),
)
def test_each_change_of_the_scores(dtype: torch.dtype, changes: dict[str, object]) -> None:
    check((1, 2, 20, 37, 16, 24), dtype, **changes)


def drawn_options(data, query: Tensor, kv_len: int, generator: torch.Generator) -> ScoreOptions:
    batch, heads, q_len, _ = query.shape

    def maybe(value: object) -> object:
        return value if data.draw(st.booleans()) else None

    def pairs() -> tuple[int, ...]:
        return tuple(data.draw(st.sampled_from([1, n])) for n in (batch, heads, q_len, kv_len))

    bias = torch.randn(pairs(), generator=generator)
    bias = bias.masked_fill(torch.rand(bias.shape, generator=generator) < 0.2, -math.inf)
    return score_options(
        query,
        softcap=maybe(data.draw(st.floats(0.1, 50.0))),
        alibi_slopes=maybe(torch.randn(1, heads, generator=generator)),
        bias=maybe(bias.to(data.draw(st.sampled_from(DTYPES)))),
        mask=maybe(torch.rand(pairs(), generator=generator) < 0.7),
        left=data.draw(st.none() | st.integers(0, 50)),
        right=data.draw(st.none() | st.integers(0, 50)),
        shift=data.draw(st.sampled_from([0, kv_len - q_len]) | st.integers(-60, 60)),
        sinks=maybe(torch.randn(heads, generator=generator)),
    )


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_options_together(data: st.DataObject) -> None:
    kv_heads, group = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3))
    lengths = data.draw(st.tuples(st.integers(1, 40), st.integers(0, 60)))
    dtype = data.draw(st.sampled_from(DTYPES))
    seed = data.draw(st.integers(0, 2**31))
    query, key, value, _ = inputs((1, kv_heads * group, *lengths, 16, 8), dtype, seed=seed)
    key, value = key[:, :kv_heads], value[:, :kv_heads]
    options = drawn_options(data, query, lengths[1], torch.Generator().manual_seed(seed))
    block_n = data.draw(st.sampled_from([16, 32]))
    result = forward(query, key, value, options, block_m=16, block_n=block_n)
    judge(result, query, key, value, options, kernel_rounding(dtype, block_n))


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
def test_grouped_heads(kv_heads: int) -> None:
    """Query head h uses head h // group of the keys, not h % kv_heads."""
    query, key, value, _ = inputs((2, 6, 5, 20, 16, 8), torch.float32)
    key, value = key[:, :kv_heads], value[:, :kv_heads]
    options = score_options(query, alibi_slopes=torch.rand(2, 6), sinks=torch.randn(6))
    result = forward(query, key, value, options, block_m=16, block_n=16)
    judge(result, query, key, value, options, kernel_rounding(torch.float32, 16))
    repeated = (x.repeat_interleave(6 // kv_heads, 1) for x in (key, value))
    assert torch.equal(result[0], forward(query, *repeated, options, block_m=16, block_n=16)[0])


def test_a_bias_of_minus_infinity_masks() -> None:
    """As a mask does: not even NaN among its values shows, and a row of it alone gives 0 and −∞."""
    query, key, value, mask = inputs((1, 2, 20, 37, 16, 8), torch.float32, masked=True)
    mask[..., 5] = False
    bias = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    by_mask = forward(query, key, value, score_options(query, mask=mask), block_m=16, block_n=16)
    key[:, :, 5], value[:, :, 5] = math.nan, math.nan
    by_bias = forward(query, key, value, score_options(query, bias=bias), block_m=16, block_n=16)
    assert torch.equal(by_mask[0], by_bias[0])
    assert torch.equal(by_mask[1], by_bias[1])
    assert bool((by_bias[1][:, :, ::4] == -math.inf).all())


def test_strides_of_the_options() -> None:
    query, key, value, _ = inputs((2, 2, 20, 37, 16, 8), torch.float32)
    bias = torch.randn(37, 20, 2).permute(2, 1, 0)
    slopes, sinks = torch.rand(2, 2).T, torch.randn(8)[::4]
    options = score_options(query, bias=bias, alibi_slopes=slopes, sinks=sinks)
    plain = score_options(
        query,
        bias=bias.expand(2, -1, -1, -1).contiguous(),
        alibi_slopes=slopes.contiguous(),
        sinks=sinks.contiguous(),
    )
    result, expected = (
        forward(query, key, value, o, block_m=16, block_n=16) for o in (options, plain)
    )
    assert torch.equal(result[0], expected[0])
    broadcast = score_options(query, sinks=torch.tensor(0.5).expand(2))
    judge(
        forward(query, key, value, broadcast, block_m=16, block_n=16),
        query, key, value, broadcast, kernel_rounding(torch.float32, 16),
    )  # fmt: skip


def test_a_sink_alone() -> None:
    """With nothing to attend to: output 0, and the log-sum-exp is the sink."""
    query, key, value, _ = inputs((1, 2, 3, 0, 16, 8), torch.float32)
    options = score_options(query, sinks=torch.tensor([0.75, -2.0]))
    result = forward(query, key, value, options, block_m=16, block_n=16)
    assert bool((result[0] == 0.0).all())
    judge(result, query, key, value, options, kernel_rounding(torch.float32, 16))
