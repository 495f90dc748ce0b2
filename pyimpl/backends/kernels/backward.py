"""Attention's backward pass in Triton: L and D − dL of each query (`_row_numbers_kernel`), dK and
dV by tiles of keys (`backward_keys`), dQ by tiles of queries (`backward_queries`), and the gradient
of a bias by its own tiles (`backward_bias`).

Every sum is added up by one program in a fixed order, so that the same inputs give the same bits,
but for dQ where `atomics` of `backward` asks for another way. Tiles that the window hides are
skipped; those that it shows in full need no mask code. Source: Dao 2023, "FlashAttention-2",
algorithm 2.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
# (a kernel's parameters are Triton's own values, which have no Python types to write down)

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyimpl.backends.kernels import backward_bias, backward_keys, backward_queries
from pyimpl.backends.kernels.parts import kept, tuning
from pyimpl.backends.kernels.parts.backward_launch import Chosen, Given, row_buffers
from pyimpl.backends.kernels.parts.bounds import num_tiles
from pyimpl.backends.kernels.parts.gradient import row_numbers
from pyimpl.backends.kernels.parts.launch import (
    Launch,
    are_aligned,
    capability,
    check_kind,
    check_outputs,
    check_programs,
    check_tensor,
    padded_size,
    processors,
    strides_of,
)
from pyimpl.backends.kernels.parts.numerics import (
    LOG2E,
    head_of,
    kernel,
    or_one,
    row_pointers,
    to_float32,
    within,
)
from pyimpl.backends.kernels.parts.sequences import Sequences
from pyimpl.internal.arguments import empty_output
from pyimpl.internal.gradients import Gradients, Wanted, sink_gradient
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import ScoreOptions, folds_into_query


@kernel
def _row_numbers_kernel(
    out_ptr, grad_out_ptr, lse_ptr, grad_lse_ptr, row_lse_ptr, delta_ptr,
    stride_ob, stride_oh, stride_om, stride_od, stride_gb, stride_gh, stride_gm, stride_gd,
    stride_lb, stride_lh, stride_lm, stride_eb, stride_eh, stride_em,
    stride_rb, stride_rh, stride_rm, stride_tb, stride_th, stride_tm,
    num_heads, q_len, value_dim,
    BLOCK_M: tl.constexpr, BLOCK_V: tl.constexpr, ALIGNED: tl.constexpr,
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
    both = inside[:, None] & within(dims, value_dim, ALIGNED)[None, :]
    out_base = head_of(out_ptr, batch, stride_ob, head, stride_oh, None, None, ALIGNED)
    out_ptrs = row_pointers(out_base, queries64, dims, stride_om, or_one(stride_od), ALIGNED)
    grad_base = head_of(grad_out_ptr, batch, stride_gb, head, stride_gh, None, None, ALIGNED)
    grad_ptrs = row_pointers(grad_base, queries64, dims, stride_gm, or_one(stride_gd), ALIGNED)
    out = to_float32(tl.load(out_ptrs, mask=both, other=0.0))
    grad_out = to_float32(tl.load(grad_ptrs, mask=both, other=0.0))
    delta = tl.sum(out * grad_out, 1)
    if grad_lse_ptr is not None:
        grad_lse_ptrs = grad_lse_ptr + batch * stride_eb + head * stride_eh
        grad_lse_ptrs = grad_lse_ptrs + queries64 * or_one(stride_em)
        delta = delta - tl.load(grad_lse_ptrs, mask=inside, other=0.0)
    lse_ptrs = lse_ptr + batch * stride_lb + head * stride_lh + queries64 * or_one(stride_lm)
    lse, delta = row_numbers(tl.load(lse_ptrs, mask=inside, other=0.0), delta)
    row_lse_ptrs = row_lse_ptr + batch * stride_rb + head * stride_rh
    row_lse_ptrs = row_lse_ptrs + queries64 * or_one(stride_rm)
    tl.store(row_lse_ptrs, lse, mask=inside)
    delta_ptrs = delta_ptr + batch * stride_tb + head * stride_th + queries64 * or_one(stride_tm)
    tl.store(delta_ptrs, delta, mask=inside)


def row_numbers_launch(
    out: Tensor,
    grad_out: Tensor,
    lse: Tensor,
    grad_lse: Tensor | None,
    row_lse: Tensor,
    delta: Tensor,
) -> Launch:
    """The launch that writes the numbers of `gradient.row_numbers` into `row_lse` and `delta`
    `[batch, heads, q_len]`, float32, of any strides; raises ValueError for tensors that do not
    fit."""
    batch, num_heads, q_len, value_dim = out.shape
    check_tensor("grad_out", grad_out, out, out.shape)
    for rows in (lse, row_lse, delta):
        check_outputs(out, rows, out.shape)
    if grad_lse is not None:
        check_outputs(out, grad_lse, out.shape)
        grad_lse = grad_lse.resolve_neg()
    out, grad_out, lse = out.resolve_neg(), grad_out.resolve_neg(), lse.resolve_neg()
    block_m = max(16, 4096 // padded_size(value_dim))
    programs = triton.cdiv(q_len, block_m) * batch * num_heads
    check_programs("batch × heads × query tiles", programs)
    return Launch(
        _row_numbers_kernel,
        programs,
        {
            "out_ptr": out, "grad_out_ptr": grad_out, "lse_ptr": lse, "grad_lse_ptr": grad_lse,
            "row_lse_ptr": row_lse, "delta_ptr": delta,
            **strides_of("o", "bhmd", out.stride()),
            **strides_of("g", "bhmd", grad_out.stride()),
            **strides_of("l", "bhm", lse.stride()),
            **strides_of("e", "bhm", (None,) * 3 if grad_lse is None else grad_lse.stride()),
            **strides_of("r", "bhm", row_lse.stride()),
            **strides_of("t", "bhm", delta.stride()),
            "num_heads": num_heads, "q_len": q_len, "value_dim": value_dim,
        },
        {
            "BLOCK_M": block_m, "BLOCK_V": padded_size(value_dim),
            "ALIGNED": are_aligned(value_dim, *out.stride()[:-1], *grad_out.stride()[:-1]),
        },
        4,
        1,
    )  # fmt: skip


# The kernels' parameters for the tensors of a call, in their order, and for those that it makes.
_SHARED = (
    "query_ptr", "key_ptr", "value_ptr", "grad_out_ptr", None, None, None, None, *kept.OPTIONS,
    "cu_q_ptr", "cu_k_ptr", "lse_ptr", "delta_ptr", None,
)  # fmt: skip
_ROWS = (
    None, None, None, None, "out_ptr", "grad_out_ptr", "lse_ptr", "grad_lse_ptr",
    *(None,) * (len(kept.OPTIONS) + 2), "row_lse_ptr", "delta_ptr", None, *(None,) * 4,
)  # fmt: skip
_KEYS = (*_SHARED, None, "grad_key_ptr", "grad_value_ptr", None)
_HOPPER = (
    "q_desc", "k_desc", "v_desc", "g_desc", None, None, None, None,
    *(None,) * (len(kept.OPTIONS) + 2), "lse_desc", "delta_desc", "sums_desc",
    None, "dk_ptr", "dv_ptr", None,
)  # fmt: skip
_HOPPER_QUERIES = (
    "q_desc", "k_desc", "v_desc", "g_desc", None, None, None, None,
    *(None,) * (len(kept.OPTIONS) + 2), "lse_desc", "delta_desc", None,
    "dq_desc", None, None, None,
)  # fmt: skip
_QUERIES = (*_SHARED, "grad_query_ptr", None, None, "grad_slopes_ptr")


@folds_into_query
@implements("Attention.Spec.flashBackward")
@implements("Attention.Spec.backwardSlope")
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
    delta: Tensor | None = None,
    wide: bool = False,
    sequences: Sequences | None = None,
    blocks: Chosen = None,
    atomics: bool | None = None,
    hopper: bool | None = False,
    hopper_queries: bool | None = False,
) -> Gradients:
    """dQ, dK and dV in the dtype of `query`, the others, with `wide` all, in float32; all newly
    allocated.

    Arguments and results as in `reference_backward.attention_backward`, the tensors
    as `pyimpl.backends.kernels.forward.forward` takes them, `lse` and `grad_lse` float32. Of packed
    `sequences` the gradient of the slopes is `[1, heads, q_len]`, each query's part; rows of no
    sequence have gradient 0. `blocks`: `block_m` and `block_n` (powers of two ≥ 16) instead of
    those of the `launch_options`, or of the fastest if ATTENTION_TUNE=1 asks for it (`tuning`).

    atomics: False: dQ is summed by a loop of its own. True: the loop for dK and dV adds to it with
    atomic operations, in no fixed order, so that two calls may differ in the last bits; not with
    the gradient of slopes. None: False, or the faster one if ATTENTION_TUNE=1 asks for it, unless
    `torch.use_deterministic_algorithms` forbids it.

    hopper: dK and dV, and with `atomics` dQ, by the Gluon kernel (`hopper.backward`), if it can.
    hopper_queries: dQ, without `atomics`, by the Gluon kernel for it (`hopper.queries`), if it can.
    None: where it was seen right (`choice.is_chosen_backward`, `is_chosen_queries`).

    A key masked for every query, and a query whose log-sum-exp is −∞, have no influence, whatever
    they hold, NaN included; all else must be finite.

    Raises:
        ValueError: a tensor does not fit `query`; the dtype, device or head size (see
            `launch.why_not`), a block size, a length, a number of `options` or the number of tiles
            is outside the kernels' range.
    """
    check_kind(query, value)
    known = delta is not None
    if delta is None:
        row_lse, delta = row_buffers(query)
    else:
        # As `gradient.row_numbers` has them.
        none = torch.isneginf(lse)
        row_lse = (lse * LOG2E.value).masked_fill(none, torch.inf)
        delta = delta.masked_fill(none, 0.0)
    head_dim, value_dim = query.shape[-1], value.shape[-1]
    as_given = (query, key, value, options)
    # Vectors that have to be loaded element by element take more registers than there are.
    query, key, value, filled = (_pad_width(x) for x in (query, key, value, grad_out))
    given = Given(query, key, value, filled, row_lse, delta, options, sequences)
    grad_q, grad_k, grad_v = (empty_output(x, x.shape[-1], wide=wide) for x in (query, key, value))
    if sequences is not None:
        for gradient in (grad_q, grad_k, grad_v):
            gradient.zero_()
    slopes = sinks = bias = None
    if wanted.slopes and options.alibi_slopes is not None:
        slopes = torch.zeros_like(delta)

    # In the order of `_ROWS`, `_KEYS`, `_HOPPER`, `_QUERIES` and `_HOPPER_QUERIES`, as far as the
    # call has them.
    prefix_sums = (None, None) if sequences is None else sequences[:2]
    tensors = (
        query, key, value, filled, out, grad_out, lse, grad_lse, *kept.tensors_of(options),
        *prefix_sums, row_lse, delta, delta,
    )  # fmt: skip

    def options_of(launch_options: Callable[..., dict[str, int]], *more: bool) -> dict[str, int]:
        found = capability(query.device)
        return launch_options(query.dtype, head_dim, value_dim, options, found, *more)

    tuned = blocks is None and tuning.is_wanted(query.device)

    def launch_of(make: Callable[[dict[str, int]], Launch], default: dict[str, int]) -> Launch:
        if tuned:
            return tuning.fastest(make, default, query.device)
        return make(default | (blocks or {}))

    def keys(chosen: dict[str, int], sums: Tensor | None = None) -> Launch:
        return backward_keys.launch(
            given, grad_k, grad_v, sums, capability=capability(query.device), chosen=chosen
        )

    # A Gluon kernel where it is asked for, or "auto" takes it, and it can: each call with equal
    # numbers and tensors of the same kind has the same, so that it is found out once.
    def keys_launch(sums: Tensor | None = None) -> kept.Named:
        from pyimpl.backends.kernels.hopper import choice

        may = sums is None or head_dim in choice.WITH_SUMS
        if may and _is_wanted(hopper, choice.is_chosen_backward, *as_given):
            from pyimpl.backends.kernels.hopper import backward as on_hopper

            if on_hopper.why_not(given, grad_k, grad_v) is None:
                many = processors(query.device)
                return on_hopper.launch(given, grad_k, grad_v, sums, processors=many), _HOPPER
        default = options_of(backward_keys.launch_options, sums is not None)
        return launch_of(partial(keys, sums=sums), default), _KEYS

    def queries(chosen: dict[str, int]) -> Launch:
        return backward_queries.launch(
            given, grad_q, slopes, capability=capability(query.device), chosen=chosen
        )

    def queries_launch() -> kept.Named:
        from pyimpl.backends.kernels.hopper import choice

        if slopes is None and _is_wanted(hopper_queries, choice.is_chosen_queries, *as_given):
            from pyimpl.backends.kernels.hopper import queries as on_hopper

            if on_hopper.why_not(given, grad_q) is None:
                many = processors(query.device)
                return on_hopper.launch(given, grad_q, processors=many), _HOPPER_QUERIES
        return launch_of(queries, options_of(backward_queries.launch_options)), _QUERIES

    def rows() -> tuple[kept.Named, ...]:
        if known:
            return ()
        return ((row_numbers_launch(out, grad_out, lse, grad_lse, row_lse, delta), _ROWS),)

    def loops() -> tuple[kept.Named, ...]:
        return keys_launch(), queries_launch()

    def in_two_loops() -> None:
        for launch, _ in loops():
            launch.run(query.device)

    def with_atomics() -> None:
        sums = query.new_empty(query.shape, dtype=torch.float32)
        launch, _ = keys_launch(sums)
        # Now: measuring adds to them too.
        sums.zero_()
        launch.run(query.device)
        torch.mul(sums, options.scale, out=grad_q)

    ways = {"two loops": in_two_loops, "atomics": with_atomics}
    if atomics is None:
        # Two loops add up in one order, and they alone find the gradient of the slopes.
        may = slopes is None and not torch.are_deterministic_algorithms_enabled()
        if tuned and may:
            launch = keys(options_of(backward_keys.launch_options))
            atomics = tuning.fastest_way(ways, launch, query.device) == "atomics"
    elif atomics and slopes is not None:
        raise ValueError("atomics must be False where the gradient of alibi_slopes is wanted")
    if atomics or tuned:
        for launch, _ in rows():
            launch.run(query.device)
        ways["atomics" if atomics else "two loops"]()
    else:
        chosen = None if blocks is None else tuple(blocks.items())
        of_sequences = None if sequences is None else sequences[2:]
        numbers = (
            "backward", wide, known, slopes is not None, hopper, hopper_queries, head_dim, chosen,
            of_sequences, *kept.numbers_of(options),
        )  # fmt: skip
        kept.start(
            lambda: (*rows(), *loops()), query.device, tensors, (grad_q, grad_k, grad_v, slopes),
            numbers,
        )  # fmt: skip
    if slopes is not None and options.alibi_slopes is not None and sequences is None:
        slopes = slopes.sum(dim=-1)
        slopes = slopes if len(options.alibi_slopes) == len(slopes) else slopes.sum(0, keepdim=True)
    if wanted.bias and options.bias is not None:
        shape = (1,) * (4 - options.bias.dim()) + tuple(options.bias.shape)
        grad = query.new_zeros(shape, dtype=torch.float32)
        default = options_of(backward_bias.launch_options) | (blocks or {})
        found = capability(query.device)
        backward_bias.launch(given, grad, capability=found, chosen=default).run(query.device)
        bias = grad.view(options.bias.shape)
    if wanted.sinks and options.sinks is not None:
        sinks = sink_gradient(options.sinks, lse, delta)
    grad_q, grad_k = grad_q[..., :head_dim], grad_k[..., :head_dim]
    return Gradients(grad_q, grad_k, grad_v[..., :value_dim], slopes, bias, sinks)


def _is_wanted(asked: bool | None, is_chosen: Callable[..., bool], *as_given: Any) -> bool:
    """Whether a kernel is wanted. asked: as `hopper` of `backward` says it; as_given: query, key,
    value and options."""
    return is_chosen(*as_given) if asked is None else asked


def _pad_width(x: Tensor) -> Tensor:
    """The vectors with zeros behind them, up to a multiple of 16: as they are, if they are one."""
    missing = -x.shape[-1] % 16
    return torch.nn.functional.pad(x, (0, missing)) if missing else x
