"""Attention's backward pass in Triton: D − dL of every query (`_delta_kernel`), dK and dV by tiles
of keys (`backward_keys`), dQ by tiles of queries (`backward_queries`), and the gradient of a bias
by its own tiles (`backward_bias`).

Every sum is added up by one program in a fixed order, without atomic operations: the same inputs
give the same bits. Tiles that the window hides are skipped; those that it shows in full need no
mask code. Source: Dao 2023, "FlashAttention-2", algorithm 2.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
# (a kernel's parameters are Triton's own values, which have no Python types to write down)

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyimpl._arguments import empty_output
from pyimpl._gradients import Gradients, Wanted, sink_gradient
from pyimpl._implements import implements
from pyimpl._scores import ScoreOptions
from pyimpl.kernels import _tuning, backward_bias, backward_keys, backward_queries
from pyimpl.kernels._backward_launch import Chosen, Given, Sequences
from pyimpl.kernels._bounds import num_tiles
from pyimpl.kernels._launch import (
    Launch,
    capability,
    check_kind,
    check_outputs,
    check_programs,
    check_tensor,
    padded,
    strides_of,
)
from pyimpl.kernels._numerics import to_float32


@triton.jit(do_not_specialize=["q_len"])
def _delta_kernel(
    out_ptr, grad_out_ptr, grad_lse_ptr, delta_ptr,
    stride_ob, stride_oh, stride_om, stride_od, stride_gb, stride_gh, stride_gm, stride_gd,
    stride_eb, stride_eh, stride_em, stride_tb, stride_th, stride_tm,
    num_heads, q_len, value_dim, BLOCK_M: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    query_tiles = num_tiles(q_len, BLOCK_M)
    tile = tl.program_id(0) % query_tiles
    head = tl.program_id(0) // query_tiles
    batch = (head // num_heads).to(tl.int64)
    head = (head % num_heads).to(tl.int64)
    queries = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = queries < q_len
    queries64 = queries.to(tl.int64)
    dims = tl.arange(0, BLOCK_V).to(tl.int64)
    both = inside[:, None] & (dims < value_dim)[None, :]
    out_ptrs = out_ptr + batch * stride_ob + head * stride_oh
    out_ptrs = out_ptrs + queries64[:, None] * stride_om + dims[None, :] * stride_od
    grad_ptrs = grad_out_ptr + batch * stride_gb + head * stride_gh
    grad_ptrs = grad_ptrs + queries64[:, None] * stride_gm + dims[None, :] * stride_gd
    out = to_float32(tl.load(out_ptrs, mask=both, other=0.0))
    grad_out = to_float32(tl.load(grad_ptrs, mask=both, other=0.0))
    delta = tl.sum(out * grad_out, 1)
    if grad_lse_ptr is not None:
        lse_ptrs = grad_lse_ptr + batch * stride_eb + head * stride_eh + queries64 * stride_em
        delta = delta - tl.load(lse_ptrs, mask=inside, other=0.0)
    delta_ptrs = delta_ptr + batch * stride_tb + head * stride_th + queries64 * stride_tm
    tl.store(delta_ptrs, delta, mask=inside)


def delta_launch(out: Tensor, grad_out: Tensor, grad_lse: Tensor | None, delta: Tensor) -> Launch:
    """The launch that writes `row_gradient` into `delta` `[batch, heads, q_len]`, float32, of any
    strides; raises ValueError for tensors that do not fit."""
    batch, num_heads, q_len, value_dim = out.shape
    check_tensor("grad_out", grad_out, out, out.shape)
    check_outputs(out, delta, out.shape)
    if grad_lse is not None:
        check_outputs(out, grad_lse, out.shape)
        grad_lse = grad_lse.resolve_neg()
    out, grad_out = out.resolve_neg(), grad_out.resolve_neg()
    block_m = max(16, 4096 // padded(value_dim))
    programs = triton.cdiv(q_len, block_m) * batch * num_heads
    check_programs("batch × heads × query tiles", programs)
    return Launch(
        _delta_kernel,
        programs,
        {
            "out_ptr": out, "grad_out_ptr": grad_out, "grad_lse_ptr": grad_lse, "delta_ptr": delta,
            **strides_of("o", "bhmd", out.stride()),
            **strides_of("g", "bhmd", grad_out.stride()),
            **strides_of("e", "bhm", (0, 0, 0) if grad_lse is None else grad_lse.stride()),
            **strides_of("t", "bhm", delta.stride()),
            "num_heads": num_heads, "q_len": q_len, "value_dim": value_dim,
        },
        {"BLOCK_M": block_m, "BLOCK_V": padded(value_dim)},
        4,
        1,
    )  # fmt: skip


@implements("Attention.Spec.flashBackward")
def backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    options: ScoreOptions,
    wanted: Wanted,
    *,
    sequences: Sequences | None = None,
    blocks: Chosen = None,
) -> Gradients:
    """dQ, dK and dV in the dtype of `query`, the others in float32; all newly allocated.

    Arguments and what is returned as in `pyimpl.reference_backward.attention_backward`, the tensors
    as `pyimpl.kernels.forward.forward` takes them, `lse` and `grad_lse` float32. Of packed
    `sequences` the gradient of the slopes is `[1, heads, q_len]`, what each query adds; rows of no
    sequence have gradient 0. `blocks`: `block_m` and `block_n` (powers of two ≥ 16) instead of
    those of the `launch_options`, or of what is fastest if ATTENTION_TUNE=1 asks
    for it (`_tuning`).

    A key masked for every query, and a query whose log-sum-exp is −∞, have no influence, whatever
    they hold, NaN included; all else must be finite.

    Raises:
        ValueError: a tensor does not fit `query`; the dtype, device or head size (see
            `_launch.why_not`), a block size, a length, a number of `options` or the number of tiles
            is outside what the kernels take.
    """
    check_kind(query, value)
    found = capability(query.device)
    delta = query.new_empty(query.shape[:-1], dtype=torch.float32)
    delta_launch(out, grad_out, grad_lse, delta).run(query.device)
    sizes = (query.dtype, query.shape[-1], value.shape[-1], options, found)
    head_dim, value_dim = query.shape[-1], value.shape[-1]
    # Vectors that have to be loaded element by element take more registers than there are.
    query, key, value, grad_out = (_filled_up(x) for x in (query, key, value, grad_out))
    given = Given(query, key, value, grad_out, lse, delta, options, sequences)
    grad_q, grad_k, grad_v = (empty_output(x, x.shape[-1]) for x in (query, key, value))
    if sequences is not None:
        for gradient in (grad_q, grad_k, grad_v):
            gradient.zero_()
    slopes = sinks = bias = None
    if wanted.slopes and options.alibi_slopes is not None:
        slopes = torch.zeros_like(delta)

    def keys(chosen: dict[str, int]) -> Launch:
        return backward_keys.launch(given, grad_k, grad_v, capability=found, chosen=chosen)

    def queries(chosen: dict[str, int]) -> Launch:
        return backward_queries.launch(given, grad_q, slopes, capability=found, chosen=chosen)

    for make, default in (
        (keys, backward_keys.launch_options(*sizes)),
        (queries, backward_queries.launch_options(*sizes)),
    ):
        if blocks is None and _tuning.wanted(query.device):
            _tuning.fastest(make, default, query.device).run(query.device)
        else:
            make(default | (blocks or {})).run(query.device)
    if slopes is not None and options.alibi_slopes is not None and sequences is None:
        slopes = slopes.sum(dim=-1)
        slopes = slopes if len(options.alibi_slopes) == len(slopes) else slopes.sum(0, keepdim=True)
    if wanted.bias and options.bias is not None:
        shape = (1,) * (4 - options.bias.dim()) + tuple(options.bias.shape)
        grad = query.new_zeros(shape, dtype=torch.float32)
        default = backward_bias.launch_options(*sizes) | (blocks or {})
        backward_bias.launch(given, grad, capability=found, chosen=default).run(query.device)
        bias = grad.view(options.bias.shape)
    if wanted.sinks and options.sinks is not None:
        sinks = sink_gradient(options.sinks, lse, delta)
    grad_q, grad_k = grad_q[..., :head_dim], grad_k[..., :head_dim]
    return Gradients(grad_q, grad_k, grad_v[..., :value_dim], slopes, bias, sinks)


def _filled_up(x: Tensor) -> Tensor:
    """The vectors with zeros behind them, up to a multiple of 16: as they are, if they are one."""
    missing = -x.shape[-1] % 16
    return torch.nn.functional.pad(x, (0, missing)) if missing else x
