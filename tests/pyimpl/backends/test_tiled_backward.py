"""The tile loop of the backward pass against the gradients of the float64 formula."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from attention_checks import inputs, products_by_onednn, score_options
from backward_checks import judge_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from option_cases import TILED, options_of
from test_tiled import CASES, Largest
from torch import Tensor

from pyimpl.backends import tiled, tiled_backward
from pyimpl.backends.tiled_backward import flash_backward
from pyimpl.internal.arguments import compute_dtype
from pyimpl.internal.gradients import Gradients, Wanted
from pyimpl.internal.scores import ScoreOptions

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
EVERYTHING = Wanted(slopes=True, bias=True, sinks=True)
NAMES = {"slopes": "alibi_slopes"}


def backward(
    query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions, seed: int = 0, **blocks: int
) -> tuple[Gradients, Tensor, Tensor]:
    """The gradients, from the forward pass of `backends.tiled` and normal gradients of its outputs,
    which are returned too."""
    out, lse = tiled.flash(query, key, value, options)
    generator = torch.Generator().manual_seed(seed)
    grad_out = torch.randn(out.shape, generator=generator, dtype=torch.float64).to(out.dtype)
    grad_lse = torch.randn(lse.shape, generator=generator, dtype=torch.float64).to(lse.dtype)
    given = (query, key, value, out, lse, grad_out, grad_lse, options, EVERYTHING)
    return flash_backward(*given, **blocks), grad_out, grad_lse


def by_name(
    gradients: Gradients, query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions
) -> dict[str, Tensor]:
    rounded = gradients.round_to_inputs(query, key, value, options)._asdict()
    return {NAMES.get(n, n): x for n, x in rounded.items() if x is not None}


@settings(max_examples=100, deadline=None)
@given(dtype=st.sampled_from(DTYPES), onednn=st.booleans(), **TILED)
def test_any_shape_options_and_tiles(
    shape,
    group: int,
    dtype,
    name: str,
    block_m: int,
    block_n: int,
    tile_scores: int,
    seed: int,
    onednn: bool,
) -> None:
    query, key, value, _ = inputs(shape, dtype, seed=seed, group=group)
    options = options_of(name, query, key, seed)
    by_onednn = products_by_onednn(all_sizes=True) if onednn else nullcontext()
    with by_onednn, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiled_backward, "TILE_SCORES", tile_scores)
        found, *grads = backward(query, key, value, options, seed, block_m=block_m, block_n=block_n)
    found = by_name(found, query, key, value, options)
    judge_gradients(found, query, key, value, options, *grads, computed=compute_dtype(dtype))


@pytest.mark.parametrize("name", ["causal", "bias of one row", "bias", "alibi", "everything"])
def test_any_number_of_threads_gives_the_same(name: str) -> None:
    query, key, value, _ = inputs((2, 2, 90, 70, 8, 8), torch.float32, group=2)
    options = options_of(name, query, key)
    expected, *_ = backward(query, key, value, options, block_m=16, block_n=16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiled_backward, "THREADS_FROM", 0)
        torch.set_num_threads(3)
        try:
            found, *_ = backward(query, key, value, options, block_m=16, block_n=16)
        finally:
            torch.set_num_threads(1)
    for name, one in found._asdict().items():
        if one is not None:
            torch.testing.assert_close(one, getattr(expected, name), msg=name)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_default_tiles_and_large_spread(dtype: torch.dtype) -> None:
    query, key, value, mask = inputs((1, 2, 300, 600, 16, 8), dtype, masked=True)
    options = score_options(query, mask=mask, is_causal=True, scale=30.0)
    found, *grads = backward(query, key, value, options)
    found = by_name(found, query, key, value, options)
    judge_gradients(found, query, key, value, options, *grads, computed=compute_dtype(dtype))


@pytest.mark.parametrize("onednn", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_keys_that_no_query_sees_have_no_influence(masked: bool, onednn: bool) -> None:
    query, key, value, _ = inputs((1, 2, 20, 70, 16, 16), torch.float32)
    mask = torch.ones(20, 70, dtype=torch.bool)
    mask[:, 5] = False
    options = score_options(query, mask=mask if masked else None, left=3, right=1, shift=17)
    with products_by_onednn(all_sizes=True) if onednn else nullcontext():
        expected, *_ = backward(query, key, value, options, block_m=16, block_n=16)
        if masked:
            key[:, :, 5], value[:, :, 5] = math.nan, math.nan
        key[:, :, :14], value[:, :, :14] = math.nan, math.nan
        key[:, :, 38:], value[:, :, 38:] = math.inf, math.inf
        found, *_ = backward(query, key, value, options, block_m=16, block_n=16)
    for one, other in zip(found[:3], expected[:3], strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("blocks", [{"block_m": 0}, {"block_n": 0}, {"block_n": -8}], ids=str)
def test_tiles_below_one_are_refused(blocks: dict[str, int]) -> None:
    query, key, value, _ = inputs((1, 1, 3, 4, 2, 2), torch.float32)
    with pytest.raises(ValueError, match=r"block_[mn] must be at least 1, not"):
        backward(query, key, value, score_options(query), **blocks)


@pytest.mark.parametrize("options", CASES, ids=lambda options: "+".join(options))
def test_memory_is_that_of_a_tile_beside_inputs_and_outputs(options: dict[str, Any]) -> None:
    sizes = []
    for n in (1024, 3000):
        query, key, value, _ = inputs((1, 1, n, n, 4, 4), torch.float32)
        with pytest.MonkeyPatch.context() as patch, Largest() as largest:
            patch.setattr(tiled_backward, "THREADS_FROM", math.inf)
            patch.setattr(tiled, "THREADS_FROM", math.inf)
            backward(query, key, value, score_options(query, **options))
        sizes.append(largest.size)
    assert max(sizes) <= 4 * tiled.TILE_SCORES


@pytest.mark.parametrize(
    ("amplitude", "options"),
    [(100.0, {"softcap": 1e-37}), (1.0, {"softcap": 1e-38, "scale": 1.0}), (1e10, {"scale": 1e20})],
)
def test_a_factor_that_does_not_fit_the_queries_alone(amplitude: float, options) -> None:
    query, key, value, _ = inputs((1, 2, 4, 6, 8, 8), torch.float32)
    query, key = amplitude * query, key * (1.0 if "softcap" in options else 1 / amplitude)
    found, *_ = backward(query, key, value, score_options(query, **options))
    for one in found[:3]:
        assert bool(one.isfinite().all())
