"""A kernel with one program for each query, whose autotuned configurations are faults: FAULT 0 is
none."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"FAULT": i}) for i in range(8)], key=["length"])
@triton.jit
def rows(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, scale, length,
    D: tl.constexpr, N: tl.constexpr, FAULT: tl.constexpr,
):  # fmt: skip
    i, head = tl.program_id(0), tl.program_id(1)
    j, c = tl.arange(0, N), tl.arange(0, D)
    inside = j < length
    q = tl.load(q_ptr + (head * length + i) * D + c)
    keys = tl.make_tensor_descriptor(k_ptr, [tl.num_programs(1) * length, D], [D, 1], [N, D])
    scores = tl.sum(q[None, :] * keys.load([head * length, 0]), 1) * scale
    if FAULT != 1:
        scores = tl.where(inside, scores, float("-inf"))
    largest = tl.max(scores, 0)
    if FAULT == 2:
        largest = -largest
    if FAULT == 6:
        largest = tl.max(tl.where(j < 16, scores, float("-inf")), 0)
    weights = tl.exp(scores - largest)
    if FAULT == 3:
        weights = tl.sin(weights)
    values = v_ptr + (head * length + j[:, None] + (FAULT == 4)) * D + c[None, :]
    v = tl.load(values, mask=inside[:, None], other=0.0)
    total = tl.sum(weights, 0)
    out = tl.sum(weights[:, None] * v, 0) / total
    row = head * length + (0 if FAULT == 5 else i)
    tl.store(out_ptr + row * D + c, out)
    lse = largest + tl.log(total)
    if FAULT == 7:
        lse = tl.log(total)
    tl.store(lse_ptr + row, lse)


def launch_rows(query, key, value, scale):
    batch, heads, length, dim = query.shape
    if key.shape != query.shape or dim not in (1, 2, 4):
        raise ValueError("as many keys as queries are taken, of 1, 2 or 4 numbers")
    out = torch.empty_like(query)
    lse = torch.empty(query.shape[:-1], dtype=torch.float32, device=query.device)
    tile = triton.next_power_of_2(length)
    rows[(length, batch * heads)](query, key, value, out, lse, scale, length, D=dim, N=tile)
    return out, lse
