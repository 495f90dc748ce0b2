"""FlashAttention-2's forward and backward pass in the manner of Triton's tutorial 06, as a
`torch.autograd.Function`: a kernel for D = Σ dO·O, one that takes the tiles of keys for dK and dV,
and one that takes the tiles of queries for dQ, both with weights 2^(score − log-sum-exp)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 16
LN2 = tl.constexpr(0.6931471824645996)


@triton.jit
def _forward(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, scale, length,
    CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.program_id(1)
    dims = tl.arange(0, D)
    begin = head.to(tl.int64) * length * D
    at = begin + rows[:, None] * D + dims[None, :]
    inside = rows < length
    q = tl.load(q_ptr + at, mask=inside[:, None], other=0.0)
    m = tl.full([BLOCK], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK], tl.float32)
    acc = tl.zeros([BLOCK, D], tl.float32)
    scale *= 1.44269504
    for start in range(0, length, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        there = begin + keys[:, None] * D + dims[None, :]
        k = tl.load(k_ptr + there, mask=(keys < length)[:, None], other=0.0)
        v = tl.load(v_ptr + there, mask=(keys < length)[:, None], other=0.0)
        seen = (keys < length)[None, :]
        if CAUSAL:
            seen = seen & (rows[:, None] >= keys[None, :])
        s = tl.where(seen, tl.dot(q, tl.trans(k)) * scale, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.math.exp2(s - m_new[:, None])
        alpha = tl.math.exp2(m - m_new)
        l = l * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new
    tl.store(out_ptr + at, (acc / l[:, None]).to(out_ptr.dtype.element_ty), mask=inside[:, None])
    # To base 2, as the kernels of the backward pass take it.
    tl.store(lse_ptr + head * length + rows, m + tl.math.log2(l), mask=inside)


@triton.jit
def _preprocess(out_ptr, do_ptr, delta_ptr, length, D: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.program_id(1)
    at = (head.to(tl.int64) * length + rows[:, None]) * D + tl.arange(0, D)[None, :]
    inside = rows < length
    out = tl.load(out_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
    do = tl.load(do_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
    tl.store(delta_ptr + head * length + rows, tl.sum(out * do, 1), mask=inside)


@triton.jit
def _by_keys(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, scale, length,
    CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    keys = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.program_id(1)
    dims = tl.arange(0, D)
    begin = head.to(tl.int64) * length * D
    at = begin + keys[:, None] * D + dims[None, :]
    inside = (keys < length)[:, None]
    k = tl.load(k_ptr + at, mask=inside, other=0.0)
    v = tl.load(v_ptr + at, mask=inside, other=0.0)
    dk = tl.zeros([BLOCK, D], tl.float32)
    dv = tl.zeros([BLOCK, D], tl.float32)
    first = tl.program_id(0) * BLOCK if CAUSAL else 0
    for start in range(first, length, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        there = begin + rows[:, None] * D + dims[None, :]
        q = tl.load(q_ptr + there, mask=(rows < length)[:, None], other=0.0)
        do = tl.load(do_ptr + there, mask=(rows < length)[:, None], other=0.0)
        lse = tl.load(lse_ptr + head * length + rows, mask=rows < length, other=0.0)
        delta = tl.load(delta_ptr + head * length + rows, mask=rows < length, other=0.0)
        seen = (rows < length)[None, :] & inside
        if CAUSAL:
            seen = seen & (rows[None, :] >= keys[:, None])
        p = tl.math.exp2(tl.dot(k, tl.trans(q)) * scale * 1.44269504 - lse[None, :])
        p = tl.where(seen, p, 0.0)
        dv += tl.dot(p.to(do.dtype), do)
        ds = p * (tl.dot(v, tl.trans(do)) - delta[None, :])
        dk += tl.dot(ds.to(q.dtype), q)
    tl.store(dk_ptr + at, (dk * scale).to(dk_ptr.dtype.element_ty), mask=inside)
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _by_queries(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, scale, length,
    CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, LN2: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.program_id(1)
    dims = tl.arange(0, D)
    begin = head.to(tl.int64) * length * D
    at = begin + rows[:, None] * D + dims[None, :]
    inside = rows < length
    q = tl.load(q_ptr + at, mask=inside[:, None], other=0.0)
    do = tl.load(do_ptr + at, mask=inside[:, None], other=0.0)
    lse = tl.load(lse_ptr + head * length + rows, mask=inside, other=0.0)
    delta = tl.load(delta_ptr + head * length + rows, mask=inside, other=0.0)
    dq = tl.zeros([BLOCK, D], tl.float32)
    # Keys that are scaled once for all, as in the tutorial: dQ has ln 2 to make up for log₂e.
    in_base_2 = scale * 1.44269504
    stop = (tl.program_id(0) + 1) * BLOCK if CAUSAL else length
    for start in range(0, stop, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        there = begin + keys[:, None] * D + dims[None, :]
        k = tl.load(k_ptr + there, mask=(keys < length)[:, None], other=0.0)
        v = tl.load(v_ptr + there, mask=(keys < length)[:, None], other=0.0)
        k = (k * in_base_2).to(k.dtype)
        seen = (keys < length)[None, :] & inside[:, None]
        if CAUSAL:
            seen = seen & (rows[:, None] >= keys[None, :])
        p = tl.math.exp2(tl.dot(q, tl.trans(k)) - lse[:, None])
        p = tl.where(seen, p, 0.0)
        ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
        dq += tl.dot(ds.to(k.dtype), k)
    tl.store(dq_ptr + at, (dq * LN2).to(dq_ptr.dtype.element_ty), mask=inside[:, None])


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, is_causal, scale):
        batch, heads, length, dim = query.shape
        if key.shape != query.shape or dim not in (16, 32, 64, 128):
            raise ValueError("as many keys as queries are taken")
        out = torch.empty_like(query)
        lse = torch.empty(query.shape[:-1], dtype=torch.float32, device=query.device)
        grid = (triton.cdiv(length, BLOCK), batch * heads)
        _forward[grid](query, key, value, out, lse, scale, length, is_causal, dim, BLOCK)
        ctx.save_for_backward(query, key, value, out, lse)
        ctx.options = (scale, length, is_causal, dim, BLOCK)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        query, key, value, out, lse = ctx.saved_tensors
        scale, length, is_causal, dim, block = ctx.options
        delta = torch.empty_like(lse)
        dq, dk, dv = torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)
        grid = (triton.cdiv(length, block), query.shape[0] * query.shape[1])
        _preprocess[grid](out, grad_out, delta, length, dim, block)
        given = (query, key, value, grad_out, lse, delta)
        _by_keys[grid](*given, dk, dv, scale, length, is_causal, dim, block)
        _by_queries[grid](*given, dq, scale, length, is_causal, dim, block, LN2)
        return dq, dk, dv, None, None
