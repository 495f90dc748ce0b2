"""FlashAttention-2's forward pass in the manner of Triton's tutorial 06, with block pointers: one
program for each block of queries and each head, a pass over the tiles without masks and one over
those at the diagonal, scores in base 2, a mask that adds a large negative number."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N = 16, 16
MASKED = tl.constexpr(-1.0e6)


@triton.jit
def _pass(
    acc, l_i, m_i, q, k_block, v_block, first, stop, offs_m, offs_n, scale,
    MASK: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    k_block = tl.advance(k_block, (0, first))
    v_block = tl.advance(v_block, (first, 0))
    for start in range(first, stop, BLOCK_N):
        qk = tl.dot(q, tl.load(k_block))
        if MASK:
            seen = offs_m[:, None] >= (start + offs_n[None, :])
            qk = qk * scale + tl.where(seen, 0, MASKED)
            m_ij = tl.maximum(m_i, tl.max(qk, 1))
            qk -= m_ij[:, None]
        else:
            m_ij = tl.maximum(m_i, tl.max(qk, 1) * scale)
            qk = qk * scale - m_ij[:, None]
        p = tl.math.exp2(qk)
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_block)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_ij
        k_block = tl.advance(k_block, (0, BLOCK_N))
        v_block = tl.advance(v_block, (BLOCK_N, 0))
    return acc, l_i, m_i


@triton.jit
def attention_forward(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, scale,
    stride_z, stride_h, stride_m, heads, length,
    CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    head = tl.program_id(1)
    begin = (head // heads).to(tl.int64) * stride_z + (head % heads).to(tl.int64) * stride_h
    q_block = tl.make_block_ptr(
        q_ptr + begin, (length, HEAD_DIM), (stride_m, 1), (block * BLOCK_M, 0),
        (BLOCK_M, HEAD_DIM), (1, 0),
    )  # fmt: skip
    k_block = tl.make_block_ptr(
        k_ptr + begin, (HEAD_DIM, length), (1, stride_m), (0, 0), (HEAD_DIM, BLOCK_N), (0, 1)
    )
    v_block = tl.make_block_ptr(
        v_ptr + begin, (length, HEAD_DIM), (stride_m, 1), (0, 0), (BLOCK_N, HEAD_DIM), (1, 0)
    )
    out_block = tl.make_block_ptr(
        out_ptr + begin, (length, HEAD_DIM), (stride_m, 1), (block * BLOCK_M, 0),
        (BLOCK_M, HEAD_DIM), (1, 0),
    )  # fmt: skip
    offs_m = block * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    m_i = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l_i = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    q = tl.load(q_block)
    scale *= 1.44269504
    whole = block * BLOCK_M if CAUSAL else length
    acc, l_i, m_i = _pass(
        acc, l_i, m_i, q, k_block, v_block, 0, whole, offs_m, offs_n, scale,
        False, BLOCK_N, MASKED,
    )  # fmt: skip
    if CAUSAL:
        acc, l_i, m_i = _pass(
            acc, l_i, m_i, q, k_block, v_block, whole, whole + BLOCK_M, offs_m, offs_n, scale,
            True, BLOCK_N, MASKED,
        )  # fmt: skip
    tl.store(lse_ptr + head * length + offs_m, (m_i + tl.math.log2(l_i)) * 0.6931471805599453)
    tl.store(out_block, (acc / l_i[:, None]).to(out_ptr.dtype.element_ty))


def launch_attention_forward(q, k, v, is_causal=False, scale=None):
    batch, heads, length, head_dim = q.shape
    if length % BLOCK_M or k.shape != q.shape or head_dim not in (16, 32, 64, 128):
        raise ValueError(f"query and key must be alike, of a length that {BLOCK_M} divides")
    scale = head_dim**-0.5 if scale is None else scale
    out, lse = torch.empty_like(q), torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)
    attention_forward[(length // BLOCK_M, batch * heads)](
        q, k, v, out, lse, scale, *q.stride()[:3], heads, length,
        is_causal, head_dim, BLOCK_M, BLOCK_N, MASKED,
    )  # fmt: skip
    return out, lse
