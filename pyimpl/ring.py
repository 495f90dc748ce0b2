"""The ring of the Spec played by one process: `Attention.Spec.ring`.

Every device has a shard of the queries, which stays, and at first its own shard of the keys. In
each round it takes the keys that it holds into the states of its queries and passes them on; after
as many rounds as there are devices, every query has met every key.

The devices are places in a list and one process plays them all in turn: this shows, and the vectors
test, the order of the computation, in which each device sees the keys in another order.
Between processes, with gradients and all options, it is `pyimpl.distributed.ring_attention`.
Source: Liu, Zaharia and Abbeel 2023, "Ring Attention with Blockwise Transformers for Near-Infinite
Context", algorithm 1; Brandon et al. 2023, "Striped Attention", for shards that are no stretches.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

import torch
from torch import Tensor

from pyimpl.internal import arguments as check
from pyimpl.internal.arguments import compute_dtype, resolve_scale, without_autocast
from pyimpl.internal.implements import implements
from pyimpl.state import State, empty, finish, log_sum_exp, step_block

T = TypeVar("T")


@implements("Attention.Spec.rotate")
def _rotate(held: list[T]) -> list[T]:
    """Each passes its item to the one before it, the first to the last."""
    return held[1:] + held[:1]


@implements("Attention.Spec.ring")
def simulate_ring(
    queries: Sequence[Tensor],
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    is_causal: bool = False,
    query_positions: Sequence[Tensor] | None = None,
    key_positions: Sequence[Tensor] | None = None,
    scale: float | None = None,
    return_lse: bool = False,
) -> list[Tensor] | tuple[list[Tensor], list[Tensor]]:
    """`pyimpl.attention` of sharded queries over sharded keys, as a ring of devices computes it.

    Args:
        queries: for each device d `[batch, heads, q_len_d, head_dim]`, float64, float32, float16 or
            bfloat16, of one dtype and device; lengths may differ and may be 0.
        keys, values: for each device `[batch, heads, kv_len_d, head_dim]` and `[batch, heads,
            kv_len_d, value_dim]`, likewise; the values finite. As many shards as of the queries.
        is_causal: a query sees the keys at its own position and before.
        query_positions, key_positions: for each device `[q_len_d]` and `[kv_len_d]`, int32 or
            int64, where its queries and keys stand in the sequence; None: one shard after another.
            Used by `is_causal` alone.
        scale: factor on the scores; 1/√head_dim if None.
        return_lse: also return the natural log-sum-exps.

    Under `torch.autocast` queries, keys and values are first rounded to its dtype, unless they are
    float64, as by `pyimpl.attention`.

    Returns:
        For each device `[batch, heads, q_len_d, value_dim]` in the dtype of the queries, computed
        in float32 (float64 for float64 inputs); with `return_lse` also a list of `[batch, heads,
        q_len_d]`. A query that sees no key gives 0 and −∞.

    Raises:
        TypeError: an argument of the wrong type or dtype.
        ValueError: numbers of shards, shapes or devices that do not fit together.
        NotImplementedError: gradients or forward-mode derivatives are asked for.
    """
    queries, keys, values = _checked_shards(queries, keys, values)
    check.check_bool("is_causal", is_causal)
    check.check_bool("return_lse", return_lse)
    first = queries[0]
    check.check_scale(scale, first.dtype)
    rows = _positions("query_positions", query_positions, queries)
    cols = _positions("key_positions", key_positions, keys)
    wide, factor = compute_dtype(first.dtype), resolve_scale(scale, first.shape[-1])

    def take_shard(state: State, device: int, shard: int) -> State:
        """The state of a device's queries after it has taken a shard of the keys."""
        if keys[shard].shape[2] == 0:
            return state
        scores = factor * (queries[device].to(wide) @ keys[shard].to(wide).mT)
        if is_causal:
            hidden = cols[shard] > rows[device].unsqueeze(-1)
            scores = scores.masked_fill(hidden, -torch.inf)
        return step_block(state, scores, values[shard].to(wide))

    value_dim = values[0].shape[-1]
    states = [empty(tuple(q.shape[:-1]), value_dim, dtype=wide, device=q.device) for q in queries]
    held = list(range(len(keys)))
    with without_autocast(first.device):
        for _ in held:
            states = [take_shard(state, d, held[d]) for d, state in enumerate(states)]
            held = _rotate(held)
    outs = [finish(state).to(first.dtype) for state in states]
    return (outs, [log_sum_exp(state) for state in states]) if return_lse else outs


def _checked_shards(
    queries: Sequence[Tensor], keys: Sequence[Tensor], values: Sequence[Tensor]
) -> list[list[Tensor]]:
    """The shards of each as `torch.autocast` wants them; raises unless there are as many of each,
    at least one, and they fit together."""
    given = {"queries": queries, "keys": keys, "values": values}
    for name, shards in given.items():
        if not isinstance(shards, list | tuple):
            raise TypeError(
                f"{name} must be a list or tuple of tensors, not {type(shards).__name__}"
            )
        if not shards or len(shards) != len(queries):
            wanted = f"{len(queries)} shards, as queries" if queries else "at least 1 shard"
            raise ValueError(f"{name} must have {wanted}, not {len(shards)}")
    named = check.under_autocast(
        {f"{name}[{d}]": x for name, shards in given.items() for d, x in enumerate(shards)}
    )
    check.check_floating(named, ("batch", "heads", "length", "head_dim"))
    check.check_no_gradients("simulate_ring", named)
    check.check_reverse_mode(named)
    for d, (k, v) in enumerate(zip(keys, values, strict=True)):
        if v.shape[2] != k.shape[2]:
            raise ValueError(
                f"values[{d}] must have the length of keys[{d}], {k.shape[2]}, not {v.shape[2]}"
            )
    for name, tensor in named.items():
        last = values[0] if name.startswith("values") else queries[0]
        for what, dim, like in (
            ("batch", 0, queries[0]), ("heads", 1, queries[0]), ("last dimension", 3, last)
        ):  # fmt: skip
            if tensor.shape[dim] != like.shape[dim]:
                other = "values[0]" if like is values[0] else "queries[0]"
                raise ValueError(
                    f"{name} must have the {what} of {other}, {like.shape[dim]}, "
                    f"not {tensor.shape[dim]}"
                )
    shards, count = list(named.values()), len(queries)
    return [shards[first : first + count] for first in range(0, 3 * count, count)]


def _positions(name: str, given: Sequence[Tensor] | None, shards: Sequence[Tensor]) -> list[Tensor]:
    """The positions of each shard."""
    lengths = [shard.shape[2] for shard in shards]
    device = shards[0].device
    if given is None:
        starts = accumulate(lengths, initial=0)
        return [
            torch.arange(start, start + n, device=device)
            for start, n in zip(starts, lengths, strict=False)
        ]
    if not isinstance(given, list | tuple):
        raise TypeError(
            f"{name} must be a list or tuple of tensors, or None, not {type(given).__name__}"
        )
    if len(given) != len(shards):
        raise ValueError(f"{name} must have {len(shards)} entries, not {len(given)}")
    for d, (positions, n) in enumerate(zip(given, lengths, strict=True)):
        check.check_integers(f"{name}[{d}]", positions)
        if check.shape(positions) != [n]:
            raise ValueError(f"{name}[{d}] must be of shape [{n}], not {check.shape(positions)}")
        if positions.device != device:
            raise ValueError(f"{name}[{d}] must be on {device}, not on {positions.device}")
    return list(given)
