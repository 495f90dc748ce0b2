"""The state of online softmax, under the names of `Attention.Spec.Online`, on PyTorch tensors.

A state holds, for each of n queries, a summary of the keys seen so far: m, the largest unmasked
score; l = Σ exp(s − m); o = Σ exp(s − m)·v. Every function takes any leading batch dimensions
(`...`), computes in the dtype of its tensors, under `torch.autocast` too, and is free of NaN for
finite values and scores that are finite or −∞ (masked). Source: Milakov & Gimelshein 2018,
algorithm 3, and Dao 2023 (FlashAttention-2), algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from pyimpl.internal.arguments import describe, without_autocast
from pyimpl.internal.implements import implements


@implements("Attention.Spec.Online.State")
@dataclass(frozen=True)
class State:
    """m `[..., n]` (−∞: no unmasked key so far), l `[..., n]`, o `[..., n, value_dim]`, of one
    floating dtype."""

    m: Tensor
    l: Tensor
    o: Tensor


@implements("Attention.Spec.Online.empty")
def empty(
    shape: tuple[int, ...], value_dim: int, *, dtype: torch.dtype, device: torch.device
) -> State:
    """The state before any key, for queries of the given shape `(..., n)`: m = −∞, l = 0, o = 0."""
    m = torch.full(shape, -torch.inf, dtype=dtype, device=device)
    l = torch.zeros(shape, dtype=dtype, device=device)
    o = torch.zeros(*shape, value_dim, dtype=dtype, device=device)
    return State(m, l, o)


@implements("Attention.Spec.sinkState")
def sink_state(sinks: Tensor, value_dim: int) -> State:
    """The state of sinks alone: m = `sinks`, `(..., n)` and finite, l = 1, o = 0. `online` from it
    is attention with a sink, one more score in each softmax, without a value."""
    o = sinks.new_zeros(*sinks.shape, value_dim)
    return State(sinks, torch.ones_like(sinks), o)


def _finite(m: Tensor) -> Tensor:
    """m, with 0 for −∞: s − m is then −∞ and not NaN where s is −∞ too, and exp of it is the 0 that
    is wanted."""
    return torch.where(torch.isneginf(m), 0.0, m)


@implements("Attention.Spec.rescale")
def rescale(s: Tensor, m: Tensor) -> Tensor:
    """exp(s − m) for s ≤ m, and 0 where s is −∞; `s` and `m` broadcast."""
    with without_autocast(s.device):
        return torch.exp(s - _finite(m))


@implements("Attention.Spec.Online.step")
def step(state: State, score: Tensor, value: Tensor) -> State:
    """The state after one more key: `score` `[..., n]` (−∞: masked), `value` `[..., value_dim]`,
    finite."""
    m = torch.maximum(state.m, score)
    alpha = rescale(state.m, m)
    p = rescale(score, m)
    l = alpha * state.l + p
    o = alpha.unsqueeze(-1) * state.o + p.unsqueeze(-1) * value.unsqueeze(-2)
    return State(m, l, o)


@implements("Attention.Spec.Online.stepBlock")
def step_block(state: State, scores: Tensor, values: Tensor) -> State:
    """The state after one more block of k ≥ 1 keys, as the inner loop of FlashAttention-2 computes
    it.

    `scores` `[..., n, k]` (−∞: masked), `values` `[..., k, value_dim]`, finite.
    """
    m = torch.maximum(state.m, scores.amax(dim=-1))
    alpha = rescale(state.m, m)
    p = rescale(scores, m.unsqueeze(-1))
    with without_autocast(p.device):
        l = alpha * state.l + p.sum(dim=-1)
        o = alpha.unsqueeze(-1) * state.o + p @ values
    return State(m, l, o)


@implements("Attention.Spec.Online.ofBlock")
def of_block(scores: Tensor, values: Tensor) -> State:
    """The state of one block of k ≥ 1 keys alone: `scores` `[..., n, k]`, `values` `[..., k,
    value_dim]`."""
    m = scores.amax(dim=-1)
    p = rescale(scores, m.unsqueeze(-1))
    with without_autocast(p.device):
        return State(m, p.sum(dim=-1), p @ values)


@implements("Attention.Spec.Online.merge")
def merge(a: State, b: State) -> State:
    """The state of the keys of `a` and of `b` together; the two have the same shapes."""
    m = torch.maximum(a.m, b.m)
    alpha, beta = rescale(a.m, m), rescale(b.m, m)
    l = alpha * a.l + beta * b.l
    o = alpha.unsqueeze(-1) * a.o + beta.unsqueeze(-1) * b.o
    return State(m, l, o)


@implements("Attention.Spec.Online.finish")
def finish(state: State) -> Tensor:
    """The attention output o / l, `[..., n, value_dim]`; 0 for a query without an unmasked key,
    also where all that there were have been deleted again (`pyimpl.cache`)."""
    none = (state.l == 0).unsqueeze(-1)
    return torch.where(none, 0.0, state.o / torch.where(none, 1.0, state.l.unsqueeze(-1)))


def log_sum_exp(state: State) -> Tensor:
    """The natural log-sum-exp m + ln l, `[..., n]`; −∞ for a query without an unmasked key."""
    none = torch.isneginf(state.m)
    with without_autocast(state.l.device):
        return state.m + torch.log(torch.where(none, 1.0, state.l))


# A state, or two trees whose states are merged.
MergeTree = State | tuple["MergeTree", "MergeTree"]


@implements("Attention.Spec.Online.MergeTree.eval")
def merge_tree(tree: MergeTree) -> State:
    """The state at the root of a tree of merges: a `State` (`of_block` makes it of a block of keys)
    or a pair of trees. Every tree over the same keys gives the same but for rounding.

    Raises TypeError for anything else.
    """
    if isinstance(tree, State):
        return tree
    if not isinstance(tree, tuple) or len(tree) != 2:
        raise TypeError(f"tree must be a State or a pair of trees, not {describe(tree)}")
    left, right = tree
    return merge(merge_tree(left), merge_tree(right))


@implements("Attention.Spec.Online.online")
@implements("Attention.Spec.onlineSink")
def online(start: State, blocks: Iterable[tuple[Tensor, Tensor]]) -> State:
    """`step_block` over blocks of (scores, values), from `start`, which is `empty(...)`,
    `sink_state(...)`, or the state of keys that were seen before."""
    state = start
    for scores, values in blocks:
        state = step_block(state, scores, values)
    return state


def _multiply_back(state: State) -> State:
    """A state whose o is divided by l, before the division."""
    return State(state.m, state.l, state.l.unsqueeze(-1) * state.o)


@implements("Attention.Spec.Online.stepBlockDivided")
def step_block_divided(state: State, scores: Tensor, values: Tensor) -> State:
    """FlashAttention-1's `step_block`, whose states hold o already divided by l."""
    after = step_block(_multiply_back(state), scores, values)
    return State(after.m, after.l, finish(after))


@implements("Attention.Spec.Online.stepBlockFlash1")
def step_block_flash1(state: State, scores: Tensor, values: Tensor) -> State:
    """The same as FlashAttention-1's paper has it: the block against its own maximum first."""
    after = merge(_multiply_back(state), of_block(scores, values))
    return State(after.m, after.l, finish(after))
