"""Attention of sequences of different lengths, packed one after another without padding:
`Attention.Spec.attentionVarlen`, computed as `Attention.Spec.attentionSliced`.

Source: the variable-length interface of flash-attention (`flash_attn_varlen_func`).
"""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor

from pyimpl.autograd.varlen import setup_context, varlen_gradients
from pyimpl.backends.dispatch import Backend, choose_backend, forward
from pyimpl.internal import arguments
from pyimpl.internal.arguments import Alignment, Window, compute_dtype
from pyimpl.internal.dropout import checked_dropout
from pyimpl.internal.implements import implements
from pyimpl.internal.operators import operator
from pyimpl.internal.packed import longest, prefix_sums
from pyimpl.internal.scores import (
    SCHEMA,
    Changes,
    ScoreOptions,
    alignment_shift,
    checked_numbers,
    checked_options,
    takes_changes,
)


@implements("Attention.Spec.attentionVarlen")
@takes_changes
def attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    *,
    is_causal: bool = False,
    causal_alignment: Alignment = "top-left",
    window: Window = (None, None),
    enable_gqa: bool = False,
    return_lse: bool = False,
    dropout_p: float = 0.0,
    dropout_seed: int | Tensor | None = None,
    max_q_len: int | None = None,
    max_kv_len: int | None = None,
    check: bool | None = None,
    backend: Backend = "auto",
    **changes: Unpack[Changes],
) -> Tensor | tuple[Tensor, Tensor]:
    """`pyimpl.attention` of each of several sequences; none sees the keys of another.

    Args:
        query: `[total_q, heads, head_dim]`, the queries of all sequences, one after another.
        key, value: `[total_k, kv_heads, head_dim]` and `[total_k, kv_heads, value_dim]`, likewise.
        cu_seqlens_q, cu_seqlens_k: `[sequences + 1]`, int32 or int64, the prefix sums of the
            lengths (`Attention.Spec.cuSeqlens`): sequence b holds the queries from
            cu_seqlens_q[b] up to but without cu_seqlens_q[b + 1]. Lengths may be 0.
        causal_alignment: as for `pyimpl.attention`, with the lengths of each sequence.
        alibi_slopes: `[heads]` or `[sequences, heads]`.
        dropout_p, dropout_seed: as for `pyimpl.attention`; which weights are dropped depends on the
            rows of query and key in the packed tensors.
        max_q_len, max_kv_len: at least the longest sequence's queries and keys, for the kernels,
            whose grids they are. None: as found, with `check`, otherwise all tokens: much too many
            where there are many sequences, so give them.
        check: whether the numbers in `cu_seqlens_q`, `cu_seqlens_k` and the options are looked at,
            which waits for a GPU; None: on a CPU. Where nobody looks, an entry outside of 0 …
            tokens counts as the nearest of these, queries beyond `max_q_len` of a sequence may come
            out as of none, with output 0, and nothing outside of the tensors is read or written.
            Backends other than "triton" look at the prefix sums always.
        The rest, with the `Changes` of the scores, as for `pyimpl.attention`.

    Returns:
        `[total_q, heads, value_dim]` in the dtype of `query`; with `return_lse` also `[heads,
        total_q]`, as flash-attention lays it out.

    Raises:
        As `pyimpl.attention`; ValueError also where the prefix sums do not start at 0, decrease, or
        do not end at the number of tokens.
    """
    named = arguments.under_autocast({"query": query, "key": key, "value": value})
    query, key, value = named.values()
    arguments.check_floating(named, ("tokens", "heads", "head_dim"))
    arguments.check_attended(named, enable_gqa, packed=True)
    for name, given in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        arguments.check_integers(name, given)
        if given.dim() != 1 or given.shape[0] == 0:
            raise ValueError(
                f"{name} must be [sequences + 1], not of shape {arguments.shape(given)}"
            )
    sequences = cu_seqlens_q.shape[0] - 1
    if cu_seqlens_k.shape[0] - 1 != sequences:
        raise ValueError(
            "cu_seqlens_k must have the number of sequences of cu_seqlens_q, "
            f"{sequences}, not {cu_seqlens_k.shape[0] - 1}"
        )
    arguments.check_bool("return_lse", return_lse)
    arguments.check_one_of("causal_alignment", causal_alignment, Alignment)
    arguments.check_one_of("backend", backend, Backend)
    for name, most in (("max_q_len", max_q_len), ("max_kv_len", max_kv_len)):
        if most is not None and not arguments.is_whole(most):
            raise TypeError(
                f"{name} must be a whole number or None, not {arguments.describe(most)}"
            )
        if most is not None and most < 0:
            raise ValueError(f"{name} must be at least 0, not {arguments.describe(most)}")
    options = checked_options(
        query, sequences, query.shape[1], is_causal=is_causal, window=window, check=check,
        dropout=checked_dropout(dropout_p, dropout_seed, query), **changes,
    )  # fmt: skip
    arguments.check_reverse_mode({**named, **options.tensors()})
    out, lse = _attention_varlen.call(
        query, key, value, cu_seqlens_q, cu_seqlens_k, max_q_len, max_kv_len, causal_alignment,
        backend, *options.flat(),
    )  # fmt: skip
    return (out, lse) if return_lse else out


@operator(
    "attention_varlen",
    "(Tensor query, Tensor key, Tensor value, Tensor cu_seqlens_q, Tensor cu_seqlens_k, "
    "SymInt? max_q_len, SymInt? max_kv_len, str causal_alignment, str backend, "
    f"{SCHEMA}) -> (Tensor, Tensor)",
)
def _attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_q_len: int | None,
    max_kv_len: int | None,
    causal_alignment: Alignment,
    backend: Backend,
    *flat: Any,
) -> tuple[Tensor, Tensor]:
    """The same of arguments that are checked but for the numbers in their tensors."""
    options = checked_numbers(ScoreOptions.of_flat(*flat), query.dtype)
    by_kernels = choose_backend(backend, query, value) == "triton"
    cu_q = cu_k = None
    if options.check or not by_kernels:
        cu_q = prefix_sums("cu_seqlens_q", cu_seqlens_q, query.shape[0], "query")
        cu_k = prefix_sums("cu_seqlens_k", cu_seqlens_k, key.shape[0], "key")
    most = longest("max_q_len", max_q_len, cu_q, query.shape[0])
    longest("max_kv_len", max_kv_len, cu_k, key.shape[0])
    if not by_kernels:
        assert cu_q is not None
        assert cu_k is not None
        return _slice_by_slice(query, key, value, cu_q, cu_k, options, causal_alignment, backend)
    from pyimpl.backends.kernels.varlen import varlen

    sums_q, sums_k = (cu.to(query.device, torch.int32) for cu in (cu_seqlens_q, cu_seqlens_k))
    return varlen(
        query, key, value, sums_q, sums_k, options,
        max_q_len=most, bottom_right=causal_alignment == "bottom-right",
    )  # fmt: skip


@_attention_varlen.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    total_q, heads, _ = query.shape
    out = query.new_empty(total_q, heads, value.shape[-1])
    return out, query.new_empty(heads, total_q, dtype=compute_dtype(query.dtype))


_attention_varlen.register_autograd(varlen_gradients, setup_context=setup_context)


@implements("Attention.Spec.attentionSliced")
@implements("Attention.Spec.slice")
def _slice_by_slice(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_q: list[int],
    cu_k: list[int],
    options: ScoreOptions,
    alignment: Alignment,
    backend: Backend,
) -> tuple[Tensor, Tensor]:
    """One attention for each sequence, on slices of the packed tensors."""
    heads, value_dim = query.shape[1], value.shape[2]
    out = query.new_empty(query.shape[0], heads, value_dim)
    lse = query.new_empty(heads, query.shape[0], dtype=compute_dtype(query.dtype))
    dropout = options.dropout
    for b in range(len(cu_q) - 1):
        rows, cols = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
        q, k, v = (
            x[part].transpose(0, 1).unsqueeze(0)
            for x, part in ((query, rows), (key, cols), (value, cols))
        )
        one = options.of_batches(
            slice(b, b + 1),
            shift=alignment_shift(alignment, q.shape[2], k.shape[2]),
            dropout=None if dropout is None else dropout.from_row(rows.start, cols.start),
        )
        o, l = forward(q, k, v, one, backend)
        out[rows], lse[:, rows] = o[0].transpose(0, 1), l[0]
    return out, lse
