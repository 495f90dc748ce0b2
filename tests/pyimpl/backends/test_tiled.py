"""The tile loop in PyTorch against the float64 reference."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from attention_checks import (
    inputs,
    judge,
    judge_options,
    products_by_onednn,
    score_options,
    tiled_rounding,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from option_cases import DROPOUT, TILED, options_of
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pyimpl import attention
from pyimpl.backends import tiled
from pyimpl.backends.tiled import flash, tanh_
from pyimpl.internal.arguments import compute_dtype

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@settings(max_examples=150, deadline=None)
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
        patch.setattr(tiled, "TILE_SCORES", tile_scores)
        result = flash(query, key, value, options, block_m=block_m, block_n=block_n)
    assert result[0].dtype == dtype
    assert result[1].dtype == compute_dtype(dtype)
    judge_options(result, query, key, value, options, tiled_rounding(dtype, block_n))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_default_tiles_and_large_spread(dtype: torch.dtype) -> None:
    query, key, value, mask = inputs((1, 2, 300, 600, 16, 8), dtype, masked=True)
    given = {"mask": mask, "is_causal": True, "scale": 30.0}
    result = flash(query, key, value, score_options(query, **given))
    judge(result, query, key, value, rounding=tiled_rounding(dtype), **given)


@pytest.mark.parametrize("onednn", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_keys_that_no_query_sees_have_no_influence(masked: bool, onednn: bool) -> None:
    query, key, value, _ = inputs((1, 2, 20, 70, 16, 16), torch.float32)
    mask = torch.ones(20, 70, dtype=torch.bool)
    mask[:, 5] = False
    options = score_options(query, mask=mask if masked else None, left=3, right=1, shift=17)
    with products_by_onednn(all_sizes=True) if onednn else nullcontext():
        expected = flash(query, key, value, options, block_m=16, block_n=16)
        if masked:
            key[:, :, 5], value[:, :, 5] = math.nan, math.nan
        key[:, :, :14], value[:, :, :14] = math.nan, math.nan
        key[:, :, 38:], value[:, :, 38:] = math.inf, math.inf
        result = flash(query, key, value, options, block_m=16, block_n=16)
    assert torch.equal(result[0], expected[0])
    assert torch.equal(result[1], expected[1])


@pytest.mark.parametrize("onednn", [False, True])
@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize("given", [{"right": 0}, {"left": 0}, {"mask": True}], ids=str)
def test_a_bad_key_spoils_the_queries_that_see_it_and_no_others(
    given, number: float, onednn: bool
) -> None:
    query, key, value, _ = inputs((1, 1, 6, 6, 4, 4), torch.float32)
    if "mask" in given:
        given = {"mask": torch.ones(6, 6, dtype=torch.bool).tril()}
    options = score_options(query, **given)
    with products_by_onednn(all_sizes=True) if onednn else nullcontext():
        expected = flash(query, key, value, options)[0]
        key[0, 0, 3] = number
        out = flash(query, key, value, options)[0]
    sees = torch.arange(6) <= 3 if "left" in given else torch.arange(6) >= 3
    # A score of −∞ by overflow is a weight of 0.
    assert bool(out[0, 0, sees].isnan().all()) or number == math.inf
    assert torch.equal(out[0, 0, ~sees], expected[0, 0, ~sees])


def test_of_a_masked_tile_only_the_keys_from_the_first_to_the_last_seen_are_multiplied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query, key, value, _ = inputs((1, 2, 48, 64, 8, 8), torch.float32)
    mask = torch.zeros(48, 64, dtype=torch.bool)
    mask[3, 5] = mask[9, 20] = mask[20, 40] = mask[21, 47] = True  # rows 32 to 47 see nothing
    widths = []
    product = torch.Tensor.baddbmm_

    def record(to: torch.Tensor, a: torch.Tensor, b: torch.Tensor, **given: Any) -> torch.Tensor:
        if given.get("beta") == 0:  # A product of queries and keys, into memory that is kept.
            widths.append(b.shape[-1])
        return product(to, a, b, **given)

    monkeypatch.setattr(torch.Tensor, "baddbmm_", record)
    options = score_options(query, mask=mask)
    result = flash(query, key, value, options, block_m=16, block_n=32)
    assert sorted(widths) == [8, 16]
    monkeypatch.undo()
    judge(result, query, key, value, rounding=tiled_rounding(torch.float32), mask=mask)


class Operations(TorchDispatchMode):
    """The names of PyTorch's operations, without views and memory."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if not func.is_view and name not in ("new_empty", "view", "empty"):
            self.names.append(name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("group", [1, 2])
def test_a_call_of_one_tile_that_hides_nothing_is_nine_operations(group: int) -> None:
    """Their number is most of the time of a short call (`python -m bench.short_calls`)."""
    query, key, value, _ = inputs((2, 3, 8, 20, 16, 16), torch.float32, group=group)
    with Operations() as counted:
        flash(query, key, value, score_options(query))
    assert counted.names == [
        "baddbmm_", "amax", "sub_", "exp2_", "sum", "bmm", "log", "add_", "div_",
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_tanh_is_off_by_at_most_four_roundings(dtype: torch.dtype) -> None:
    x = torch.cat([torch.logspace(-36, 2, 100_000, dtype=torch.float64), torch.tensor([math.inf])])
    x = torch.cat([x, -x]).to(dtype)
    exact = np.tanh(x.numpy().astype(np.longdouble))
    found = tanh_(x.clone(), torch.empty_like(x)).numpy().astype(np.longdouble)
    u = np.longdouble(torch.finfo(dtype).eps) / 2
    assert (abs(found - exact) <= 4 * u * abs(exact)).all()
    nan = torch.tensor([math.nan], dtype=dtype)
    assert bool(tanh_(nan, torch.empty_like(nan)).isnan())


def test_broadcast_masks_and_inputs() -> None:
    query, key, value, mask = inputs((1, 1, 20, 33, 16, 24), torch.float32, masked=True)
    wide = [x.expand(2, 3, -1, -1) for x in (query, key, value)]
    whole = mask.expand(2, 3, -1, -1).contiguous()
    expected = flash(*wide, score_options(query, mask=whole))[0]
    for m in (mask, mask[0], mask[0, 0], mask.expand(2, 1, -1, -1)):
        assert torch.equal(flash(*wide, score_options(query, mask=m))[0], expected)


def test_heads_and_lengths_lie_in_the_output_as_in_the_query() -> None:
    query, key, value, _ = inputs((2, 3, 5, 7, 4, 6), torch.float32)
    expected = flash(query, key, value, score_options(query))[0]
    other = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (query, key, value))
    out = flash(*other, score_options(query))[0]
    assert out.transpose(1, 2).is_contiguous()
    assert expected.is_contiguous()
    assert torch.equal(out, expected)


@pytest.mark.parametrize("blocks", [{"block_m": 0}, {"block_n": 0}, {"block_n": -8}], ids=str)
def test_tiles_below_one_are_refused(blocks: dict[str, int]) -> None:
    query, key, value, _ = inputs((1, 1, 3, 4, 2, 2), torch.float32)
    with pytest.raises(ValueError, match=r"block_[mn] must be at least 1, not"):
        flash(query, key, value, score_options(query), **blocks)


class Largest(TorchDispatchMode):
    """The size in bytes of the largest memory that a result of an operation lies in."""

    size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in (x for x in tree_leaves(result) if isinstance(x, torch.Tensor)):
            self.size = max(self.size, tensor.untyped_storage().nbytes())
        return result


CASES = [{}, {"right": 0}, {"left": 100, "right": 100}, {"dropout": DROPOUT}]


@pytest.mark.parametrize("options", CASES, ids=lambda options: "+".join(options))
def test_memory_is_that_of_a_tile_beside_inputs_and_outputs(options: dict[str, Any]) -> None:
    sizes = []
    for n in (1024, 3000):
        query, key, value, _ = inputs((1, 1, n, n, 4, 4), torch.float32)
        with pytest.MonkeyPatch.context() as patch, Largest() as largest:
            patch.setattr(tiled, "THREADS_FROM", math.inf)
            flash(query, key, value, score_options(query, **options))
        sizes.append(largest.size)
    assert max(sizes) <= 4 * tiled.TILE_SCORES


@pytest.mark.parametrize(
    ("amplitude", "options"),
    [
        (100.0, {"softcap": 1e-37}),
        (1.0, {"softcap": 1e-38, "scale": 1.0}),
        (1e30, {"scale": 1e20}),
    ],
)
def test_a_factor_that_does_not_fit_the_queries_alone(amplitude: float, options) -> None:
    """The factor times a query overflows where factor times product does not, or may."""
    query, key, value, _ = inputs((1, 2, 4, 6, 8, 8), torch.float32)
    query, key = amplitude * query, key * (1.0 if "softcap" in options else 1 / amplitude)
    found, expected = (
        attention(query, key, value, backend=backend, return_lse=True, **options)
        for backend in ("tiled", "reference")
    )
    for one, other in zip(found, expected, strict=True):
        assert bool(other.isfinite().all())
        torch.testing.assert_close(one, other)
