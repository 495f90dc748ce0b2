"""The compiled decode, paged, varlen and combine kernels on a GPU. Run alone:
`python -m pytest tests/gpu`.

Skipped where `gpu_device` says.
"""

from __future__ import annotations

import math

import pytest
import torch
from gpu_device import DEVICE, length, skip_elsewhere
from kernel_checks import judge, score_options

from bridge.conformance.tolerances.rounding_model import RoundingModel
from pyimpl.backends.kernels.decode import decode
from pyimpl.backends.kernels.forward import forward
from pyimpl.backends.kernels.paged import decode_paged
from pyimpl.backends.kernels.varlen import varlen

skip_elsewhere()

DTYPES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}
KV_LEN = length(1000)
OPTIONS = [
    {"right": 0},
    {"left": length(300), "right": 0, "softcap": 3.0},
    {"alibi": True, "sinks": True, "right": 0},
]


def normal(*size: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    return torch.randn(*size, generator=generator, device=DEVICE).to(dtype)


def check(result, query, key, value, options) -> None:
    rounding = RoundingModel.flash(DTYPES[query.dtype], denominator="unrounded", truncating=True)
    judge(result, query, key, value, options, rounding)


def choose_options(changes: dict[str, object], heads: int) -> dict[str, object]:
    found = {n: x for n, x in changes.items() if n not in ("alibi", "sinks")}
    if "alibi" in changes:
        found["alibi_slopes"] = torch.linspace(0.01, 0.5, heads, device=DEVICE)[None]
    if "sinks" in changes:
        found["sinks"] = torch.linspace(-2.0, 3.0, heads, device=DEVICE)
    return found


@pytest.mark.parametrize("num_splits", [None, 1, 7])
@pytest.mark.parametrize("changes", OPTIONS, ids=lambda c: "+".join(c))
@pytest.mark.parametrize("head_dim", [64, 80, 100, 128, 256])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_decode_kernel(dtype: torch.dtype, head_dim: int, changes, num_splits: int | None) -> None:
    query = normal(2, 12, 2, head_dim, dtype=dtype, seed=0)
    key = normal(2, 2, KV_LEN, head_dim, dtype=dtype, seed=1)
    value = normal(2, 2, KV_LEN, head_dim, dtype=dtype, seed=2)
    options = score_options(query, shift=KV_LEN - 2, **choose_options(changes, 12))
    result = decode(query, key, value, options, num_splits=num_splits)
    check(result, query, key, value, options)


@pytest.mark.parametrize("page_size", [16, 48, 256])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_pages(dtype: torch.dtype, page_size: int) -> None:
    query = normal(3, 8, 1, 128, dtype=dtype, seed=0)
    lens = torch.tensor([768, 300, 0], dtype=torch.int32, device=DEVICE)
    max_pages = 768 // page_size
    pool = [normal(3 * max_pages, 2, page_size, 128, dtype=dtype, seed=s) for s in (1, 2)]
    table = torch.randperm(3 * max_pages, device=DEVICE).reshape(3, max_pages).int()
    options = score_options(query, right=0)
    out, lse = decode_paged(query, *pool, table, lens, options, bottom_right=True)
    for b, kv_len in enumerate(lens.tolist()):
        pages = [x[table[b].long()].transpose(0, 1) for x in pool]
        key, value = (x.flatten(1, 2)[None, :, :kv_len] for x in pages)
        one = (out[b : b + 1], lse[b : b + 1])
        check(one, query[b : b + 1], key, value, score_options(query, right=0, shift=kv_len - 1))


@pytest.mark.parametrize("bottom_right", [False, True])
@pytest.mark.parametrize("changes", OPTIONS, ids=lambda c: "+".join(c))
@pytest.mark.parametrize("head_dim", [64, 100, 128, 256])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_varlen_kernel(dtype: torch.dtype, head_dim: int, changes, bottom_right: bool) -> None:
    q_lens, k_lens = [length(n) for n in (100, 0, 257, 1)], [length(n) for n in (300, 5, 200, 64)]
    query = normal(sum(q_lens), 4, head_dim, dtype=dtype, seed=0)
    key = normal(sum(k_lens), 2, head_dim, dtype=dtype, seed=1)
    value = normal(sum(k_lens), 2, head_dim, dtype=dtype, seed=2)
    cu_q, cu_k = (torch.tensor([0, *x], device=DEVICE).cumsum(0).int() for x in (q_lens, k_lens))
    found = choose_options(changes, 4)
    options = score_options(query, **found)
    out, lse = varlen(query, key, value, cu_q, cu_k, options, bottom_right=bottom_right)
    starts = zip(cu_q.tolist(), cu_k.tolist(), q_lens, k_lens, strict=False)
    for first_q, first_k, q_len, kv_len in starts:
        rows, keys = slice(first_q, first_q + q_len), slice(first_k, first_k + kv_len)
        one = [x.transpose(0, 1)[None] for x in (query[rows], key[keys], value[keys])]
        shift = kv_len - q_len if bottom_right else 0
        result = (out[rows].transpose(0, 1)[None], lse[:, rows][None])
        check(result, *one, score_options(query, shift=shift, **found))


def test_decode_is_forward() -> None:
    """More rows than a tile, and keys that no split but one sees."""
    query = normal(1, 8, 40, 64, dtype=torch.float32, seed=0)
    key, value = (normal(1, 1, length(5000), 64, dtype=torch.float32, seed=s) for s in (1, 2))
    options = score_options(query, left=10, right=0, shift=100)
    result = decode(query, key, value, options, num_splits=5)
    for each in (result, forward(query, key, value, options)):
        check(each, query, key, value, options)
    assert not bool((result[1] == -math.inf).any())
