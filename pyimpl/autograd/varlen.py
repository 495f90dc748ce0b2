"""The backward pass of `pyimpl.attention_varlen` as a PyTorch operator, and its formula for
autograd: `pyimpl.autograd.attention` of each sequence.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from pyimpl.autograd.attention import (
    GRADIENTS,
    Flat,
    as_flat,
    by_option,
    fake_gradients,
    no_second_derivative,
    restore,
    save,
    wanted_gradients,
)
from pyimpl.backends.dispatch import Backend, backward, choose_backend
from pyimpl.internal.arguments import Alignment, compute_dtype
from pyimpl.internal.gradients import Gradients, Wanted
from pyimpl.internal.operators import operator
from pyimpl.internal.packed import longest
from pyimpl.internal.scores import (
    DIFFERENTIABLE,
    SCHEMA,
    ScoreOptions,
    alignment_shift,
    checked_numbers,
)


@operator(
    "attention_varlen_backward",
    "(Tensor grad_out, Tensor? grad_lse, Tensor query, Tensor key, Tensor value, "
    "Tensor cu_seqlens_q, Tensor cu_seqlens_k, Tensor out, Tensor lse, bool[] wanted, "
    "SymInt? max_q_len, SymInt? max_kv_len, str causal_alignment, str backend, "
    f"{SCHEMA}) -> {GRADIENTS}",
)
def _attention_varlen_backward(
    grad_out: Tensor,
    grad_lse: Tensor | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    out: Tensor,
    lse: Tensor,
    wanted: list[bool],
    max_q_len: int | None,
    max_kv_len: int | None,
    causal_alignment: Alignment,
    backend: Backend,
    *flat: Any,
) -> Flat:
    """The gradients for the arguments and results of `pyimpl::attention_varlen`, which come first;
    `grad_out` and `grad_lse` (None: 0) are of the shapes of `out` and `lse`."""
    options = checked_numbers(ScoreOptions.of_flat(*flat), query.dtype)
    if choose_backend(backend, query, value) == "triton":
        # Sums that the forward pass has not read stay unread.
        sums = [cu.tolist() if options.check else None for cu in (cu_seqlens_q, cu_seqlens_k)]
        found = _by_kernels(
            query, key, value, cu_seqlens_q, cu_seqlens_k, out, lse, grad_out, grad_lse, options,
            Wanted(*wanted), causal_alignment,
            longest("max_q_len", max_q_len, sums[0], query.shape[0]),
            longest("max_kv_len", max_kv_len, sums[1], key.shape[0]),
        )  # fmt: skip
    else:
        found = _slice_by_slice(
            query, key, value, cu_seqlens_q, cu_seqlens_k, out, lse, grad_out, grad_lse, options,
            Wanted(*wanted), causal_alignment, backend,
        )  # fmt: skip
    tensors = options.tensors()
    rounded = {
        name: gradient.to(tensors[change.name].dtype)
        for name, change in DIFFERENTIABLE.items()
        for gradient in [getattr(found, name)]
        if gradient is not None and change.name in tensors
    }
    return as_flat(found._replace(**rounded), query)


@_attention_varlen_backward.register_fake
def _(
    grad_out: Tensor,
    grad_lse: Tensor | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    out: Tensor,
    lse: Tensor,
    wanted: list[bool],
    max_q_len: int | None,
    max_kv_len: int | None,
    causal_alignment: Alignment,
    backend: Backend,
    *flat: Any,
) -> Flat:
    q, k, v = (x.unsqueeze(0) for x in (query, key, value))
    options = ScoreOptions.of_flat(*flat)
    others = fake_gradients(q, k, v, options, Wanted(*wanted))[3:]
    return (*(x.new_empty(x.shape) for x in (query, key, value)), *others)


_attention_varlen_backward.register_autograd(no_second_derivative)


def _slice_by_slice(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    out: Tensor,
    lse: Tensor,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    options: ScoreOptions,
    wanted: Wanted,
    alignment: Alignment,
    backend: Backend,
) -> Gradients:
    """One backward pass for each sequence, on slices of the packed tensors; dense, those of query,
    key and value in their dtype."""
    grad_q, grad_k, grad_v = (x.new_empty(x.shape) for x in (query, key, value))
    tensors, dropout = options.tensors(), options.dropout
    sums = {
        name: tensors[change.name].new_zeros(
            tensors[change.name].shape, dtype=compute_dtype(query.dtype)
        )
        for name, change in DIFFERENTIABLE.items()
        if getattr(wanted, name) and change.name in tensors
    }
    cu_q, cu_k = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    for b, ((i, i_stop), (j, j_stop)) in enumerate(
        zip(pairwise(cu_q), pairwise(cu_k), strict=True)
    ):
        rows, cols = slice(i, i_stop), slice(j, j_stop)
        one = options.of_batches(
            slice(b, b + 1),
            shift=alignment_shift(alignment, i_stop - i, j_stop - j),
            dropout=None if dropout is None else dropout.from_row(i, j),
        )
        q, o, d_o, k, v = (
            x[part].transpose(0, 1).unsqueeze(0)
            for x, part in (
                (query, rows),
                (out, rows),
                (grad_out, rows),
                (key, cols),
                (value, cols),
            )
        )
        l, d_l = (None if x is None else x[None, :, rows] for x in (lse, grad_lse))
        assert l is not None
        found = backward(q, k, v, o, l, d_o, d_l, one, wanted, backend)
        grad_q[rows], grad_k[cols], grad_v[cols] = (x[0].transpose(0, 1) for x in found[:3])
        for name, total in sums.items():
            by_batch = DIFFERENTIABLE[name].by_batch and len(total) > 1
            total[slice(b, b + 1) if by_batch else ...] += getattr(found, name)
    return Gradients(grad_q, grad_k, grad_v, **sums)


def _by_kernels(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    out: Tensor,
    lse: Tensor,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    options: ScoreOptions,
    wanted: Wanted,
    alignment: Alignment,
    max_q: int,
    max_k: int,
) -> Gradients:
    """The same by the kernels, which take all sequences at once: the longest has at most so many
    queries and keys."""
    from pyimpl.backends.kernels.backward import backward as kernels
    from pyimpl.backends.kernels.parts.sequences import Sequences

    sums_q, sums_k = (cu.to(query.device, torch.int32) for cu in (cu_seqlens_q, cu_seqlens_k))
    sequences = Sequences(sums_q, sums_k, max_q, max_k, alignment == "bottom-right")
    q, k, v, o, d_o = (x.transpose(0, 1).unsqueeze(0) for x in (query, key, value, out, grad_out))
    d_l = None if grad_lse is None else grad_lse.unsqueeze(0)
    found = kernels(q, k, v, o, lse.unsqueeze(0), d_o, d_l, options, wanted, sequences=sequences)
    grad_q, grad_k, grad_v = (x[0].transpose(0, 1).contiguous() for x in found[:3])
    slopes, of_rows, grad_slopes = options.alibi_slopes, found.slopes, None
    if of_rows is not None and slopes is not None:
        # Queries of no sequence would add 0.
        rows = of_rows[0].t()
        if len(slopes) == 1:
            grad_slopes = rows.sum(dim=0, keepdim=True)
        else:
            grad_slopes = torch.segment_reduce(
                rows.contiguous(), "sum", offsets=sums_q.long().clamp(0, len(rows)), axis=0,
                unsafe=True, initial=0.0,
            )  # fmt: skip
    return found._replace(query=grad_q, key=grad_k, value=grad_v, slopes=grad_slopes)


def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    """Keep the inputs and results of `pyimpl::attention_varlen` for its backward pass."""
    (query, key, value, cu_seqlens_q, cu_seqlens_k), rest = inputs[:5], inputs[5:]
    ctx.numbers_of_call, flat = rest[:4], rest[4:]
    save(ctx, flat, query, key, value, cu_seqlens_q, cu_seqlens_k, *output)


def varlen_gradients(
    ctx: Any, grad_out: Tensor | None, grad_lse: Tensor | None
) -> tuple[Tensor | None, ...]:
    """The gradients of all arguments of `pyimpl::attention_varlen`."""
    tensors, flat = restore(ctx)
    *given, out, lse = tensors
    if grad_out is None:
        grad_out = torch.zeros_like(out)
    needs = ctx.needs_input_grad[9:]
    q, k, v, *others = _attention_varlen_backward.call(
        grad_out,
        grad_lse,
        *given,
        out,
        lse,
        list(wanted_gradients(needs)),
        *ctx.numbers_of_call,
        *flat,
    )
    return (q, k, v, *[None] * 6, *by_option(needs, *others))
