"""The arguments of attention by several processes: the checks that each process can do alone, and
the description on which all must agree (`agreement`)."""

from __future__ import annotations

from collections.abc import Sequence as Numbers
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyimpl.backends.dispatch import Backend, choose_backend
from pyimpl.distributed.internal.agreement import Description
from pyimpl.distributed.internal.blocks import Sequence
from pyimpl.distributed.internal.passing import Grid, Processes
from pyimpl.distributed.internal.shards import Shards, in_rows
from pyimpl.internal import arguments as check
from pyimpl.internal.arguments import Alignment, Window
from pyimpl.internal.dropout import checked_dropout
from pyimpl.internal.scores import (
    CHANGES,
    ScoreOptions,
    alignment_shift,
    checked_numbers,
    checked_options,
)


class Prepared(NamedTuple):
    """Checked arguments: tensors, options as the operators take them, and the rest."""

    query: Tensor
    key: Tensor
    value: Tensor
    options: ScoreOptions
    sequence: Sequence
    backend: Backend


def prepare(
    processes: Processes | Grid,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    shards: Shards,
    key_shards: Shards | None,
    *,
    attn_mask: Tensor | None,
    bias: Tensor | None,
    whole_pairs: bool,
    is_causal: bool,
    causal_alignment: Alignment,
    window: Window,
    cu_seqlens: Numbers[int] | Tensor | None,
    enable_gqa: bool,
    return_lse: bool,
    dropout_p: float,
    dropout_seed: int | Tensor | None,
    backend: Backend,
    **changes: Any,
) -> Prepared:
    """The arguments, after the checks that a process makes alone; whole_pairs: masks and biases are
    of all queries, and not of those of this process. Raises as `pyimpl.attention` does."""
    named = check.under_autocast({"query": query, "key": key, "value": value})
    check.check_floating(named, ("batch", "heads", "length", "head_dim"))
    query, key, value = check.check_attended(named, enable_gqa)
    key_shards = shards if key_shards is None else key_shards
    check_shards("shards", shards, processes, "query", query)
    check_shards("key_shards", key_shards, processes, "key", key)
    check.check_bool("return_lse", return_lse)
    check.check_one_of("causal_alignment", causal_alignment, Alignment)
    check.check_one_of("backend", backend, Backend)
    batch, heads = query.shape[:2]
    options = checked_options(query, batch, heads, is_causal=is_causal, window=window, **changes)
    dropout = checked_dropout(dropout_p, dropout_seed, query)
    if dropout is not None and dropout_seed is None:
        raise ValueError(
            "dropout_seed must be given, the same in every process: drawn by each alone it "
            "would not drop the weights that one process drops"
        )
    if dropout is not None and backend == "triton":
        _check_stretches(processes, shards, key_shards)
    choose_backend(backend, query, value)
    sizes = (batch, heads, shards.length if whole_pairs else query.shape[2], key_shards.length)
    if attn_mask is not None:
        check.check_scores_like("attn_mask", attn_mask, query, sizes, boolean=True)
    if bias is not None:
        check.check_scores_like("bias", bias, query, sizes, boolean=False)
        if attn_mask is not None and attn_mask.dtype != torch.bool:
            raise ValueError("a floating attn_mask is a bias: give it or bias, not both")
    check.check_reverse_mode(named | {"attn_mask": attn_mask, "bias": bias} | options.tensors())
    documents = _documents(cu_seqlens, shards, key_shards)
    shift = alignment_shift(causal_alignment, shards.length, key_shards.length)
    options = replace(options, mask=attn_mask, bias=bias, shift=shift, dropout=dropout)
    with torch.no_grad():
        checked_numbers(options, query.dtype)
    sequence = Sequence(shards, key_shards, documents, options.left, options.right, shift)
    return Prepared(query, key, value, options, sequence, backend)


def describe(given: Prepared) -> Description:
    """The values that must be the same in every process, by the names that messages give them."""
    query, key, value, options, sequence, backend = given
    tensors = (query, key, value, *options.tensors().values())
    wanted = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    described: Description = {
        "the dtype of query, key and value": str(query.dtype),
        "the batch": query.shape[0],
        "the number of heads": query.shape[1],
        "the number of heads of key and value": key.shape[1],
        "the head_dim of query and key": query.shape[3],
        "the last dimension of value": value.shape[3],
        "shards": sequence.queries.digest,
        "key_shards": sequence.keys.digest,
        "cu_seqlens": sequence.documents,
        "the window with is_causal": (options.left, options.right),
        "causal_alignment": options.shift,
        "scale": options.scale,
        "softcap": options.softcap,
        "dropout_p": 0.0 if options.dropout is None else options.dropout.p,
        "dropout_seed": None if options.dropout is None else int(options.dropout.seed),
        "backend": backend,
        "whether a gradient is asked for": wanted,
    }
    for change in CHANGES:
        if change.kind == "head":
            described[f"whether there is {change.name}"] = change.name in options.tensors()
    return described


def check_shards(
    name: str, shards: object, processes: Processes | Grid, of: str, tensor: Tensor
) -> None:
    if check.is_dtensor(tensor):
        raise TypeError(f"{of} must be the tensor of this process, not a DTensor: give to_local()")
    if not isinstance(shards, Shards):
        raise TypeError(
            f"{name} must be Shards, such as Shards.zigzag, not {check.describe(shards)}"
        )
    if shards.processes != processes.count:
        raise ValueError(
            f"{name} must be of the {processes.count} processes of the group, "
            f"not of {shards.processes}"
        )
    wanted = shards.lengths[processes.rank]
    if tensor.shape[2] != wanted:
        raise ValueError(
            f"{of} must have the length that {name} give process {processes.rank}, {wanted}, "
            f"not {tensor.shape[2]}"
        )


def _check_stretches(processes: Processes | Grid, *shards: Shards) -> None:
    """Raises NotImplementedError where dropout would have queries or keys that do not follow one
    another, in which no kernel numbers them; by heads a row of processes has the shards of all."""
    if isinstance(processes, Grid):
        shards = tuple(in_rows(some, processes.row.count)[0] for some in shards)
    if not all(some.are_stretches for some in shards):
        raise NotImplementedError(
            "dropout_p above 0 is supported by the backend 'triton' for shards that are a few "
            "stretches, such as Shards.zigzag, and not for these: use 'tiled', or 'auto', which "
            "takes it for them"
        )


def _documents(
    given: Numbers[int] | Tensor | None, shards: Shards, key_shards: Shards
) -> tuple[int, ...] | None:
    """Prefix sums of the lengths of documents as plain numbers, checked."""
    if given is None:
        return None
    if isinstance(given, Tensor):
        check.check_integers("cu_seqlens", given)
        given = given.tolist()
    if not isinstance(given, list | tuple) or not all(check.is_whole(n) for n in given):
        raise TypeError(
            "cu_seqlens must be whole numbers or a tensor of int32 or int64, "
            f"not {check.describe(given)}"
        )
    if shards.length != key_shards.length:
        raise ValueError(
            f"cu_seqlens needs as many keys as queries, {shards.length}, not {key_shards.length}"
        )
    sums = tuple(map(int, given))
    if not sums or sums[0] != 0 or sums[-1] != shards.length or list(sums) != sorted(sums):
        raise ValueError(
            f"cu_seqlens must rise from 0 to the length of the sequence, {shards.length}, "
            f"not {check.describe(list(sums))}"
        )
    return sums
