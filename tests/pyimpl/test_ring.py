"""Ring attention over shards; the vectors are in `tests/generated`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from attention_checks import inputs, judge, tiled_rounding
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyimpl import simulate_ring


def shard(tensor: Tensor, places: list[Tensor]) -> list[Tensor]:
    return [tensor[:, :, part] for part in places]


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(*[st.integers(1, 2)] * 2, *[st.integers(1, 20)] * 2, *[st.integers(1, 6)] * 2),
    st.integers(1, 5),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_any_shards_in_any_order_are_attention(shape, devices, causal, seed) -> None:
    query, key, value, _ = inputs(shape, torch.float32)
    generator = torch.Generator().manual_seed(seed)
    rows, cols = (
        [places[owners == d] for d in range(devices)]
        for n in shape[2:4]
        for places in [torch.randperm(n, generator=generator)]
        for owners in [torch.randint(devices, (n,), generator=generator)]
    )
    outs, lses = simulate_ring(
        shard(query, rows), shard(key, cols), shard(value, cols), is_causal=causal,
        query_positions=rows, key_positions=cols, return_lse=True,
    )  # fmt: skip
    assert [out.shape[2] for out in outs] == [len(part) for part in rows]
    order = torch.cat(rows).argsort()
    result = torch.cat(outs, 2)[:, :, order], torch.cat(lses, 2)[:, :, order]
    judge(result, query, key, value, is_causal=causal, rounding=tiled_rounding(torch.float32, 1))


def test_shards_stand_one_after_another_unless_it_is_said() -> None:
    query, key, value, _ = inputs((1, 2, 7, 7, 4, 4), torch.float64)
    shards = [x.split([3, 0, 4], 2) for x in (query, key, value)]
    outs, lses = simulate_ring(*shards, is_causal=True, scale=0.5, return_lse=True)
    result = torch.cat(outs, 2), torch.cat(lses, 2)
    judge(
        result, query, key, value, is_causal=True, scale=0.5,
        rounding=tiled_rounding(torch.float64, 1),
    )  # fmt: skip
    assert all(map(torch.equal, outs, simulate_ring(*shards, is_causal=True, scale=0.5)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_the_output_is_rounded_once(dtype: torch.dtype) -> None:
    query, key, value, _ = inputs((1, 2, 5, 33, 8, 4), dtype)
    outs, lses = simulate_ring(
        *(x.tensor_split(3, 2) for x in (query, key, value)), return_lse=True
    )
    assert {out.dtype for out in outs} == {dtype}
    result = torch.cat(outs, 2), torch.cat(lses, 2)
    judge(result, query, key, value, rounding=tiled_rounding(dtype, 1))


def test_autocast_rounds_the_inputs_alone() -> None:
    some = [x.tensor_split(3, 2) for x in inputs((1, 2, 5, 33, 8, 4), torch.float32)[:3]]
    wide = [[x.double() for x in shards] for shards in some]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outs, lses = simulate_ring(*some, return_lse=True)
        exact = simulate_ring(*wide)
    rounded = [[x.bfloat16() for x in shards] for shards in some]
    for found, expected in zip((outs, lses), simulate_ring(*rounded, return_lse=True), strict=True):
        assert [x.dtype for x in found] == [x.dtype for x in expected]
        assert all(map(torch.equal, found, expected))
    assert all(map(torch.equal, exact, simulate_ring(*wide)))


@pytest.mark.parametrize("name", ["queries", "keys", "values"])
def test_forward_mode_derivatives_are_refused(name: str) -> None:
    with torch.autograd.forward_ad.dual_level():
        first, second = GIVEN[name]
        dual = torch.autograd.forward_ad.make_dual(second, torch.ones_like(second))
        with pytest.raises(NotImplementedError, match=rf"{name}\[1\] carries a tangent"):
            simulate_ring(**{**GIVEN, name: [first, dual]})


Q, K, V = ([x[:, :, :2], x[:, :, 2:]] for x in inputs((1, 2, 4, 6, 8, 3), torch.float32)[:3])
GIVEN = {"queries": Q, "keys": K, "values": V}
REFUSALS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"keys": K[0]}, TypeError, "keys must be a list or tuple of tensors, not Tensor"),
    ({"queries": []}, ValueError, "queries must have at least 1 shard, not 0"),
    ({"values": V[:1]}, ValueError, "values must have 2 shards, as queries, not 1"),
    ({"values": [V[0], 1]}, TypeError, r"values\[1\] must be a torch.Tensor, not int"),
    ({"keys": [K[0], K[1].half()]}, TypeError, r"keys\[1\] must have the dtype of queries\[0\]"),
    ({"keys": [K[0], K[1][0]]}, ValueError, r"keys\[1\] must be \[batch, heads, length, head_dim"),
    (
        {"keys": [K[0], K[1][:, :1]]},
        ValueError,
        r"keys\[1\] must have the heads of queries\[0\], 2",
    ),
    (
        {"keys": [K[0], K[1][..., :5]]},
        ValueError,
        r"keys\[1\] must have the last dimension of queries\[0\], 8, not 5",
    ),
    (
        {"values": [V[0], V[1][..., :2]]},
        ValueError,
        r"values\[1\] must have the last dimension of values\[0\], 3, not 2",
    ),
    (
        {"values": [V[0], V[1][:, :, :1]]},
        ValueError,
        r"values\[1\] must have the length of keys\[1\], 4, not 1",
    ),
    ({"is_causal": None}, TypeError, "is_causal must be True or False, not None"),
    ({"scale": "1"}, TypeError, "scale must be a number or None, not '1'"),
    ({"key_positions": torch.arange(6)}, TypeError, "key_positions must be a list or tuple"),
    ({"key_positions": [torch.arange(6)]}, ValueError, "key_positions must have 2 entries, not 1"),
    (
        {"query_positions": [torch.arange(2), torch.arange(2.0)]},
        TypeError,
        r"query_positions\[1\] must be a torch.Tensor of int32 or int64",
    ),
    (
        {"query_positions": [torch.arange(2), torch.arange(3)]},
        ValueError,
        r"query_positions\[1\] must be of shape \[2\], not \[3\]",
    ),
    (
        {"queries": [Q[0].clone().requires_grad_(), Q[1]]},
        NotImplementedError,
        r"queries\[0\] requires a gradient",
    ),
]


@pytest.mark.parametrize(("change", "error", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_refusals(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        simulate_ring(**{**GIVEN, **change})
    assert "\n" not in str(caught.value)
