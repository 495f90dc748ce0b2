"""The Gluon kernel for dQ on Hopper GPUs: its limits, and its launch.

It takes less than the Triton kernel (`why_not`), and no theorem is about it. Its arithmetic is that
of `Attention.Spec.stepQueries`, with the tiles of keys from last to first.
"""

from __future__ import annotations

import triton
from torch import Tensor

from pyimpl.backends.kernels.hopper import backward, choice
from pyimpl.backends.kernels.hopper.backward import numbers_descriptor
from pyimpl.backends.kernels.hopper.choice import BLOCK_M, ROWS
from pyimpl.backends.kernels.hopper.forward import descriptor, heads_at_once
from pyimpl.backends.kernels.hopper.queries_kernel import queries_kernel
from pyimpl.backends.kernels.parts.backward_launch import Given
from pyimpl.backends.kernels.parts.launch import (
    Launch,
    check_programs,
    group_of,
    score_arguments,
    window_arguments,
)


def why_not(given: Given, grad_query: Tensor) -> str | None:
    """The sentence that says why this kernel cannot replace the Triton kernel for dQ here, or None
    if it can. grad_query: into which it is to write."""
    refusal = backward.why_not(given)
    if refusal is not None:
        return refusal
    return choice.why_not(grad_query, given.key, given.value, grad_query, given.options)


def launch(
    given: Given,
    grad_query: Tensor,
    *,
    processors: int,
    chosen: dict[str, int] | None = None,
) -> Launch:
    """The launch that writes dQ into `grad_query`, of tensors that `why_not` has nothing against,
    on a device of so many multiprocessors."""
    query, options = given.query, given.options
    batch, num_heads, q_len, head_dim = query.shape
    num_kv_heads, kv_len = given.key.shape[1:3]
    window = window_arguments(options, q_len, kv_len)
    if chosen is None:
        is_windowed = any(bound is not None for bound in window.values())
        chosen = choice.queries_options(head_dim, is_windowed, q_len)
    items = triton.cdiv(q_len, ROWS) * batch * num_heads
    check_programs("batch × heads × query tiles", items)
    programs = min(items, chosen["waves"] * processors) if chosen["waves"] else items
    return Launch(
        queries_kernel,
        programs,
        {
            "q_desc": descriptor(query, BLOCK_M), "g_desc": descriptor(given.grad_out, BLOCK_M),
            "k_desc": descriptor(given.key, chosen["block_n"]),
            "v_desc": descriptor(given.value, chosen["block_n"]),
            "lse_desc": numbers_descriptor(given.lse, BLOCK_M),
            "delta_desc": numbers_descriptor(given.delta, BLOCK_M),
            "dq_desc": descriptor(grad_query, BLOCK_M),
            "num_batches": batch, "num_heads": num_heads,
            "group": group_of(num_heads, num_kv_heads),
            "q_len": q_len, "kv_len": kv_len, "shift": options.shift, **window,
            "scale": score_arguments(options)["scale"], "grad_scale": float(options.scale),
            "heads_at_once": heads_at_once(batch * num_heads, kv_len, head_dim),
        },
        {
            "BLOCK_M": BLOCK_M, "BLOCK_N": chosen["block_n"], "HEAD_DIM": head_dim,
            "KEYS": chosen["keys"], "VALUES": chosen["values"],
            "IN_TURNS": bool(chosen["in_turns"]), "ITEMS": chosen["items"],
        },
        4,
        1,
    )  # fmt: skip
