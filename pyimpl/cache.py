"""The state of a row as its keys come and go: `Attention.Spec.Online.append`, `.delete`,
`.replace`, `.edit` and `.slide`.

The queries stay, and the keys of a cache change one at a time. A key is appended by `step`, and
taken out again by subtracting its terms; only (m, l, o) is kept, which `pyimpl.state.finish` turns
into the output. The stored m stays when its key goes: from then on it is a point of
reference, and need not be the score of a key that is left.

In floating point a deletion leaves the rounding error of its subtraction. Beside keys whose scores
are x below the stored m, that is e^x times as large as usual: where the largest keys have been
deleted, compute the state anew with `pyimpl.state.of_block`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyimpl.internal.arguments import (
    check_no_gradients,
    check_reverse_mode,
    describe,
    is_whole,
    shape,
    whole,
)
from pyimpl.internal.implements import implements
from pyimpl.state import State, rescale, step


@implements("Attention.Spec.Online.append")
def append(state: State, scores: Tensor, values: Tensor) -> State:
    """The state after k ≥ 0 more keys, one at a time.

    `state` of n queries, m `[..., n]`; `scores` `[..., n, k]` (−∞: masked), `values` `[..., k,
    value_dim]`, finite, both of the dtype and on the device of the state.

    Raises:
        TypeError: an argument of the wrong type or dtype.
        ValueError: a shape or device that does not fit the state.
        NotImplementedError: gradients or forward-mode derivatives are asked for.
    """
    _check_keys(state, scores, values)
    for j in range(scores.shape[-1]):
        state = step(state, scores[..., j], values[..., j, :])
    return state


@implements("Attention.Spec.Online.delete")
def delete(state: State, score: Tensor, value: Tensor) -> State:
    """The state without one of its keys: `score` `[..., n]` and `value` `[..., value_dim]`, as they
    were appended. Raises as `append` does."""
    _check_keys(state, *_block(score, value))
    p = rescale(score, state.m)
    o = state.o - p.unsqueeze(-1) * value.unsqueeze(-2)
    return State(state.m, state.l - p, o)


@implements("Attention.Spec.Online.replace")
def replace(state: State, old: tuple[Tensor, Tensor], new: tuple[Tensor, Tensor]) -> State:
    """The state with one key, (score, value), taken out and another put in its place. Raises as
    `append` does."""
    return append(delete(state, *old), *_block(*new))


@dataclass(frozen=True)
class Cache:
    """The k keys that n queries attend to, in order, with the state that is kept for them: `scores`
    `[..., n, k]` (−∞: masked), `values` `[..., k, value_dim]`.

    A change gives a new cache; each raises as `append` does.
    """

    scores: Tensor
    values: Tensor
    state: State

    @implements("Attention.Spec.Online.edit")
    def append(self, score: Tensor, value: Tensor) -> Cache:
        """With one more key at the end: `score` `[..., n]`, `value` `[..., value_dim]`."""
        scores, values = _block(score, value)
        state = append(self.state, scores, values)
        return Cache(torch.cat((self.scores, scores), -1), _join(self.values, values), state)

    @implements("Attention.Spec.Online.edit")
    def delete(self, i: int) -> Cache:
        """Without key `i`. Raises ValueError where there is none."""
        i = self._place(i)
        scores = torch.cat((self.scores[..., :i], self.scores[..., i + 1 :]), -1)
        values = _join(self.values[..., :i, :], self.values[..., i + 1 :, :])
        return Cache(scores, values, delete(self.state, *self._key(i)))

    @implements("Attention.Spec.Online.edit")
    def replace(self, i: int, score: Tensor, value: Tensor) -> Cache:
        """With another key in the place of key `i`. Raises ValueError where there is none."""
        i = self._place(i)
        state = replace(self.state, self._key(i), (score, value))
        scores, values = self.scores.clone(), self.values.clone()
        scores[..., i], values[..., i, :] = score, value
        return Cache(scores, values, state)

    @implements("Attention.Spec.Online.slide")
    def slide(self, window: int, score: Tensor, value: Tensor) -> Cache:
        """With one more key at the end, and without the first if there are then more than `window`
        ≥ 0."""
        if not is_whole(window):
            raise TypeError(f"window must be a whole number, not {describe(window)}")
        if window < 0:
            raise ValueError(f"window must be at least 0, not {describe(window)}")
        cache = self.append(score, value)
        return cache.delete(0) if window < cache.scores.shape[-1] else cache

    def _key(self, i: int) -> tuple[Tensor, Tensor]:
        return self.scores[..., i], self.values[..., i, :]

    def _place(self, i: int) -> int:
        """The place of a key."""
        if not is_whole(i):
            raise TypeError(f"i must be a whole number, not {describe(i)}")
        count = self.scores.shape[-1]
        if not 0 <= i < count:
            raise ValueError(f"i must be the place of one of the {count} keys, not {describe(i)}")
        return whole(i)


def _block(score: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """One key as a block of one."""
    for name, tensor in (("score", score), ("value", value)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a torch.Tensor, not {type(tensor).__name__}")
        if tensor.dim() == 0:
            raise ValueError(f"{name} must have at least 1 dimension, not be a single number")
    return score.unsqueeze(-1), value.unsqueeze(-2)


def _join(first: Tensor, last: Tensor) -> Tensor:
    return torch.cat((first, last), -2)


def _check_keys(state: State, scores: Tensor, values: Tensor) -> None:
    """Raises unless the keys fit the state."""
    if not isinstance(state, State):
        raise TypeError(f"state must be a pyimpl.state.State, not {type(state).__name__}")
    queries, value_dim = state.m.shape, state.o.shape[-1]
    for name, tensor in (("scores", scores), ("values", values)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a torch.Tensor, not {type(tensor).__name__}")
        if tensor.dtype != state.m.dtype:
            raise TypeError(
                f"{name} must have the dtype of the state, {state.m.dtype}, not {tensor.dtype}"
            )
        if tensor.device != state.m.device:
            raise ValueError(
                f"{name} must be on the device of the state, {state.m.device}, not {tensor.device}"
            )
    if scores.shape[:-1] != queries:
        raise ValueError(
            f"scores must have a number for each query of the state, {list(queries)}, "
            f"not be of shape {shape(scores)[:-1]}"
        )
    wanted = [*queries[:-1], scores.shape[-1], value_dim]
    if shape(values) != wanted:
        raise ValueError(f"values must fit state and scores, {wanted}, not {shape(values)}")
    named = {"scores": scores, "values": values}
    check_reverse_mode(named)
    check_no_gradients("pyimpl.cache", named)
