"""Errors that users of attention kernels reported in other projects' trackers, a named test each.

The references are GitHub issues and pull requests. Errors with a test elsewhere in `tests/pyimpl`
are not repeated:

| reported | where | tested in |
| --- | --- | --- |
| the lowest number as −∞ in a mask | pytorch #109517 | test_attention: …_lowest_number_masks_… |
| NaN in what is masked | pytorch #101967 | test_attention: a_key_hidden_…; test_tiled: keys_… |
| a part without keys, merged | flashinfer #4484 | test_merge: empty_parts_have_no_influence_… |
| offsets past int32 | pytorch #190857 | kernels/test_far_strides |
| gradient of LSE that is ignored | flash-attention #404 | test_backward: one_output_alone |
| gradient of a bias, missing | xformers #783, pytorch #145208 | test_backward: gradients_are_… |
| another backend in silence | pytorch #181528 | test_attention: what_triton_cannot_take_… |
| torch.compile | in all | test_operators |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from attention_checks import inputs, judge, kernel_rounding, tiled_rounding
from torch import Tensor

from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.conformance.tolerances.tolerance import lse_tolerance
from pyimpl import attention, attention_decode, attention_varlen, merge_states

pytestmark = pytest.mark.parametrize("backend", ["triton", "tiled", "reference"])
Result = tuple[Tensor, Tensor]


def rounding(backend: str) -> RoundingModel:
    return (kernel_rounding if backend == "triton" else tiled_rounding)(torch.float32)


def call_packed(query: Tensor, key: Tensor, value: Tensor, **call: Any) -> Result:
    """`attention_varlen` of a batch, one sequence after another, as `attention` returns it."""
    batch, _, q_len, _ = query.shape
    sums = [torch.arange(batch + 1) * n for n in (q_len, key.shape[2])]
    rows = (x.transpose(1, 2).flatten(0, 1) for x in (query, key, value))
    out, lse = attention_varlen(*rows, *(cu.int() for cu in sums), return_lse=True, **call)
    out, lse = out.unflatten(0, (batch, q_len)), lse.unflatten(1, (batch, q_len))
    return out.transpose(1, 2), lse.transpose(0, 1)


def call_decode(query: Tensor, key: Tensor, value: Tensor, **call: Any) -> Result:
    """`attention_decode` with keys beyond those of the sequences, which it is not to see."""
    lens = torch.full((query.shape[0],), key.shape[2])
    caches = (torch.nn.functional.pad(x, (0, 0, 0, 3), value=math.nan) for x in (key, value))
    call.pop("causal_alignment", None)
    return attention_decode(query, *caches, kv_lens=lens, return_lse=True, **call)


def call_paged(query: Tensor, key: Tensor, value: Tensor, **call: Any) -> Result:
    """`attention_decode` with the keys in pages of 4."""
    batch, _, kv_len, _ = key.shape
    count = -(-kv_len // 4)
    lens, pool = torch.full((batch,), kv_len), []
    for x in (key, value):
        whole = torch.nn.functional.pad(x, (0, 0, 0, 4 * count - kv_len), value=math.nan)
        pool.append(whole.unflatten(2, (count, 4)).transpose(1, 2).flatten(0, 1))
    table = torch.arange(batch * count).view(batch, count)
    call.pop("causal_alignment", None)
    return attention_decode(query, *pool, kv_lens=lens, page_table=table, return_lse=True, **call)


def plain(query: Tensor, key: Tensor, value: Tensor, **call: Any) -> Result:
    return attention(query, key, value, return_lse=True, **call)


# All aligned bottom-right, as the last two always are.
FUNCTIONS: dict[str, Callable[..., Result]] = {
    "attention": lambda *x, **call: plain(*x, causal_alignment="bottom-right", **call),
    "varlen": lambda *x, **call: call_packed(*x, causal_alignment="bottom-right", **call),
    "decode": call_decode,
    "paged": call_paged,
}
every_function = pytest.mark.parametrize("function", FUNCTIONS)
# Why a query sees no key: q_len, kv_len, options, and which queries.
EMPTY: dict[str, tuple[int, int, dict[str, Any], list[int]]] = {
    "more queries than keys": (5, 2, {"is_causal": True}, [0, 1, 2]),
    "no keys": (3, 0, {}, [0, 1, 2]),
    "a window before the first key": (6, 2, {"window": (3, 1)}, [0, 1, 2]),
}


@every_function
@pytest.mark.parametrize("reason", EMPTY)
def test_a_query_without_a_key_gives_0_and_minus_infinity(
    reason: str, function: str, backend: str
) -> None:
    """Neither NaN nor the mean of the values: pytorch #41508, #103963, onnxruntime #28904, iree
    #24175. Nor a finite log-sum-exp: flashinfer #4452."""
    q_len, kv_len, options, empty = EMPTY[reason]
    query, key, value, _ = inputs((2, 2, q_len, kv_len, 8, 8), torch.float32)
    out, lse = FUNCTIONS[function](query, key, value, backend=backend, **options)
    none = torch.zeros(q_len, dtype=torch.bool)
    none[empty] = True
    assert torch.equal(out[:, :, none], torch.zeros(2, 2, len(empty), 8))
    assert torch.equal(lse == -math.inf, none.expand(2, 2, -1))
    assert bool(out.isfinite().all())
    assert bool((out[:, :, ~none] != 0).all())


@pytest.mark.parametrize("mask", ["boolean", "minus infinity", "lowest number"])
def test_a_mask_that_hides_every_key_gives_0_and_minus_infinity(mask: str, backend: str) -> None:
    """However the mask says so: pytorch #41508, #103963, #109517, onnxruntime #28904."""
    query, key, value, _ = inputs((2, 2, 4, 6, 8, 8), torch.float32)
    seen = torch.ones(2, 1, 4, 6, dtype=torch.bool)
    seen[0, :, 2] = False
    low = torch.finfo(torch.float32).min if mask == "lowest number" else -math.inf
    given = seen if mask == "boolean" else torch.zeros(seen.shape).masked_fill(~seen, low)
    out, lse = plain(query, key, value, attn_mask=given, backend=backend)
    assert torch.equal(out[0, :, 2], torch.zeros(2, 8))
    assert torch.equal(lse[0, :, 2], torch.full((2,), -math.inf))
    judge((out, lse), query, key, value, mask=seen, rounding=rounding(backend))


@every_function
def test_the_log_sum_exp_of_no_key_is_neutral(function: str, backend: str) -> None:
    """−∞, not +∞, so that merging with it changes nothing: flash-attention #978, #2842."""
    query, key, value, _ = inputs((2, 2, 3, 7, 8, 8), torch.float32)
    call = FUNCTIONS[function]
    whole = call(query, key, value, backend=backend)
    empty = call(query, key[:, :, :0], value[:, :, :0], backend=backend)
    for parts in ((whole, empty), (empty, whole), (empty, whole, empty)):
        outs, lses = (torch.stack(x) for x in zip(*parts, strict=True))
        merged = merge_states(outs, lses)
        assert all(torch.equal(x, y) for x, y in zip(merged, whole, strict=True))


@every_function
@pytest.mark.parametrize("score", [-6e4, -1e6, -1e30])
def test_scores_below_any_number_taken_for_minus_infinity(
    score: float, function: str, backend: str
) -> None:
    """Keys that are seen, all with such scores, weigh as their scores say, and hidden ones nothing:
    flashinfer #4267, #4401."""
    query, key, value, _ = inputs((1, 2, 4, 9, 8, 8), torch.float32)
    query[..., 0], key[..., 0] = 1.0, score
    value[:, :, 8] = 1e4
    options = {"is_causal": True, "window": (3, None), "scale": 1.0}
    result = FUNCTIONS[function](query, key, value, backend=backend, **options)
    judge(
        result, query, key, value, is_causal=True, left=3, shift=5, scale=1.0,
        rounding=rounding(backend),
    )  # fmt: skip
    # Queries 0 to 2 do not see the last key, however low the scores of the others.
    assert bool((result[0][:, :, :3].abs() < 10).all())
    assert bool((result[0][:, :, 3] > 10).all())
    assert bool((result[1] < 0.9 * score).all())


def test_negative_scores_after_tiles_that_are_masked(backend: str) -> None:
    """The maximum of a masked tile is no 0 that later scores are measured against: flash-attention
    #2082."""
    query, key, value, _ = inputs((1, 1, 3, 300, 8, 8), torch.float32)
    query[..., 0], key[..., 0] = 10.0, -100.0
    for seen in (slice(256, None), slice(0, 20), slice(140, 150)):
        mask = torch.zeros(300, dtype=torch.bool)
        mask[seen] = True
        result = plain(query, key, value, attn_mask=mask, backend=backend)
        judge(result, query, key, value, mask=mask, rounding=rounding(backend))
        assert bool((result[1] < -200).all())


# Rows are queries, x is a key that may be seen.
CAUSAL = {
    ("top-left", 2, 5): ["x....", "xx..."],
    ("bottom-right", 2, 5): ["xxxx.", "xxxxx"],
    ("top-left", 5, 2): ["x.", "xx", "xx", "xx", "xx"],
    ("bottom-right", 5, 2): ["..", "..", "..", "x.", "xx"],
    ("top-left", 3, 3): ["x..", "xx.", "xxx"],
    ("bottom-right", 3, 3): ["x..", "xx.", "xxx"],
}


def keys_seen(call: Callable[..., Result], q_len: int, kv_len: int, **options: Any) -> list[str]:
    """Which keys have a weight in the output, as in `CAUSAL`: all scores are 0, and the value of
    key j is a 1 in column j."""
    query, key = torch.zeros(1, 1, q_len, 8), torch.ones(1, 1, kv_len, 8)
    out, _ = call(query, key, torch.eye(kv_len)[None, None], **options)
    return ["".join("x" if weight > 0 else "." for weight in row) for row in out[0, 0]]


@pytest.mark.parametrize("case", CAUSAL, ids=str)
def test_causal_with_other_numbers_of_queries_than_keys(
    case: tuple[str, int, int], backend: str
) -> None:
    """Top-left as in SDPA, bottom-right as in flash-attention from 2.1 on: pytorch #103082, onnx
    #8068."""
    alignment, q_len, kv_len = case
    options = {"is_causal": True, "backend": backend}
    for function in (plain, call_packed):
        seen = keys_seen(function, q_len, kv_len, causal_alignment=alignment, **options)
        assert seen == CAUSAL[case]
    if alignment == "bottom-right":
        for function in (call_decode, call_paged):
            assert keys_seen(function, q_len, kv_len, **options) == CAUSAL[case]


@every_function
def test_a_window_holds_as_many_keys_as_it_says(function: str, backend: str) -> None:
    """(left, right) is left + 1 + right keys, the query's own among them; where a model says that
    its window is n keys, left is n − 1: transformers #39408."""
    call = FUNCTIONS[function]
    assert keys_seen(call, 7, 7, window=(2, 1), backend=backend) == [
        "xx.....", "xxx....", "xxxx...", ".xxxx..", "..xxxx.", "...xxxx", "....xxx",
    ]  # fmt: skip
    assert keys_seen(call, 3, 7, window=(2, None), is_causal=True, backend=backend) == [
        "..xxx..", "...xxx.", "....xxx",
    ]  # fmt: skip
    assert keys_seen(call, 2, 4, window=(0, 0), backend=backend) == ["..x.", "...x"]


@every_function
def test_the_log_sum_exp_is_natural(function: str, backend: str) -> None:
    """ln n over n keys with score 0, and not log₂ n: flashinfer #2113, #4547."""
    key = torch.ones(1, 2, 11, 8)
    query = torch.zeros(1, 2, 3, 8)
    _, lse = FUNCTIONS[function](query, key, key, backend=backend)
    allowed = lse_tolerance(query.numpy(), key.numpy(), scale=1.0, rounding=rounding(backend))
    assert bool(((lse.double() - math.log(11)).abs() <= torch.from_numpy(allowed)).all())


@every_function
def test_neighbouring_query_heads_share_a_key_head(function: str, backend: str) -> None:
    """Query head h uses key head h // group. All else is refused, and nothing is left to a silent
    fallback: pytorch #154363, transformers #46960."""
    value = torch.arange(3.0).view(1, 3, 1, 1).expand(1, 3, 4, 8)
    query, key = torch.zeros(1, 6, 2, 8), torch.ones(1, 3, 4, 8)
    call = FUNCTIONS[function]
    out, _ = call(query, key, value, enable_gqa=True, backend=backend)
    assert torch.equal(out, torch.tensor([0, 0, 1, 1, 2, 2.0]).view(1, 6, 1, 1).expand(out.shape))
    with pytest.raises(ValueError, match="unless enable_gqa=True"):
        call(query, key, value, backend=backend)
    with pytest.raises(ValueError, match="must be a positive multiple"):
        call(query[:, :5], key, value, enable_gqa=True, backend=backend)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_padding_on_the_left_may_hold_nan(backend: str) -> None:
    """Queries, keys and values of a batch padded to one length: pytorch #101967, #103749."""
    query, key, value, _ = inputs((2, 2, 6, 6, 8, 8), torch.float32)
    for tensor in (query, key, value):
        tensor[0, :, :2] = math.nan
    mask = torch.ones(2, 1, 6, 6, dtype=torch.bool)
    mask[0, :, :, :2] = False
    out, lse = plain(query, key, value, attn_mask=mask, is_causal=True, backend=backend)
    for b, first in ((0, 2), (1, 0)):
        rows = [x[b : b + 1, :, first:] for x in (query, key, value)]
        judge(
            (out[b : b + 1, :, first:], lse[b : b + 1, :, first:]), *rows, is_causal=True,
            rounding=rounding(backend),
        )  # fmt: skip
    assert torch.equal(out[0, :, :2], torch.zeros(2, 2, 8))
    assert torch.equal(lse[0, :, :2], torch.full((2, 2), -math.inf))
