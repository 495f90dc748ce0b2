"""The tile loop in PyTorch against the float64 reference."""

from __future__ import annotations

import math

import pytest
import torch
from attention_checks import inputs, judge, tiled_profile
from hypothesis import given, settings
from hypothesis import strategies as st

from pyimpl.tiled import compute_dtype, flash

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@settings(max_examples=150, deadline=None)
@given(
    shape=st.tuples(*[st.integers(0, 3)] * 2, *[st.integers(0, 40)] * 2, *[st.integers(1, 12)] * 2),
    dtype=st.sampled_from(DTYPES),
    is_causal=st.booleans(),
    masked=st.booleans(),
    scale=st.one_of(st.none(), st.floats(-3.0, 3.0)),
    block_m=st.integers(1, 50),
    block_n=st.integers(1, 50),
    seed=st.integers(0, 2**31),
)
def test_any_shape_and_tiles(
    shape, dtype, is_causal, masked, scale, block_m: int, block_n: int, seed: int
) -> None:
    query, key, value, mask = inputs(shape, dtype, seed=seed, masked=masked)
    options = {"mask": mask, "is_causal": is_causal, "scale": scale}
    result = flash(query, key, value, block_m=block_m, block_n=block_n, **options)
    assert result[0].dtype == dtype
    assert result[1].dtype == compute_dtype(dtype)
    judge(result, query, key, value, profile=tiled_profile(dtype, block_n), **options)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_default_tiles_and_large_spread(dtype: torch.dtype) -> None:
    query, key, value, mask = inputs((1, 2, 300, 600, 16, 8), dtype, masked=True)
    options = {"mask": mask, "is_causal": True, "scale": 30.0}
    judge(
        flash(query, key, value, **options),
        query,
        key,
        value,
        profile=tiled_profile(dtype),
        **options,
    )


def test_keys_that_no_query_sees_have_no_influence() -> None:
    query, key, value, _ = inputs((1, 2, 20, 70, 16, 16), torch.float32)
    mask = torch.ones(20, 70, dtype=torch.bool)
    mask[:, 5] = False
    expected = flash(query, key, value, mask=mask, is_causal=True, block_m=16, block_n=16)
    key[:, :, 5], value[:, :, 5] = math.nan, math.nan
    key[:, :, 20:], value[:, :, 20:] = math.inf, math.inf
    result = flash(query, key, value, mask=mask, is_causal=True, block_m=16, block_n=16)
    assert torch.equal(result[0], expected[0])
    assert torch.equal(result[1], expected[1])


def test_broadcast_masks_and_inputs() -> None:
    query, key, value, mask = inputs((1, 1, 20, 33, 16, 24), torch.float32, masked=True)
    wide = [x.expand(2, 3, -1, -1) for x in (query, key, value)]
    expected = flash(*wide, mask=mask.expand(2, 3, -1, -1).contiguous())[0]
    for m in (mask, mask[0], mask[0, 0], mask.expand(2, 1, -1, -1)):
        assert torch.equal(flash(*wide, mask=m)[0], expected)


@pytest.mark.parametrize("blocks", [{"block_m": 0}, {"block_n": 0}, {"block_n": -8}], ids=str)
def test_tiles_below_one_are_refused(blocks: dict[str, int]) -> None:
    query, key, value, _ = inputs((1, 1, 3, 4, 2, 2), torch.float32)
    with pytest.raises(ValueError, match="block_m and block_n must be at least 1"):
        flash(query, key, value, **blocks)
