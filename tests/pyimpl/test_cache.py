"""States whose keys come and go: the laws of `Attention.Proof.Cache.Basic`; the vectors are in
`tests/generated`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from state_checks import Key, judge_state, tensors
from torch import Tensor

from bridge.conformance.tolerances.rounding_model import FLOAT64
from bridge.conformance.tolerances.states import wrong_states
from bridge.vectors.exact import attention as exact
from bridge.vectors.model.operations import CacheVector, Edit
from bridge.vectors.model.operations import Key as SpecKey
from pyimpl.cache import Cache, append, delete, replace
from pyimpl.state import State, empty, finish, log_sum_exp

CPU = torch.device("cpu")
# Small integer values and scores.
keys = st.tuples(
    st.one_of(st.none(), st.integers(-6, 6)),
    st.lists(st.integers(-9, 9), min_size=2, max_size=2),
)


def key(one: Key) -> tuple[Tensor, Tensor]:
    scores, values = tensors([one])
    return scores[:, 0], values[0]


def start(*shape: int, value_dim: int = 2) -> State:
    return empty(shape or (1,), value_dim, dtype=torch.float64, device=CPU)


def nothing() -> Cache:
    return Cache(*tensors([]), start())


@given(st.lists(keys, max_size=8))
def test_append_is_the_state_of_the_keys(some: list[Key]) -> None:
    judge_state(append(start(), *tensors(some)), some)


changes = st.tuples(
    st.sampled_from(["append", "delete", "replace", "slide"]), keys, st.integers(0, 7)
)


def change(kept: Cache, edit: Edit) -> Cache:
    if edit.key is None:
        return kept.delete(edit.index)
    score, value = key((edit.key.score, list(edit.key.value)))
    score = math.log(2.0) * score
    if edit.kind == "replace":
        return kept.replace(edit.index, score, value)
    return (
        kept.slide(edit.window, score, value) if edit.kind == "slide" else kept.append(score, value)
    )


@given(st.lists(keys, max_size=6), st.lists(changes, max_size=12))
def test_any_changes_keep_the_exact_state(
    some: list[Key], wanted: list[tuple[Any, Key, int]]
) -> None:
    held = [SpecKey(score, tuple(value)) for score, value in some]
    first, edits = tuple(held), []
    for kind, (score, value), n in wanted:
        if kind in ("delete", "replace") and not held:
            continue
        new = None if kind == "delete" else SpecKey(score, tuple(value))
        edits.append(Edit(kind, new, n % len(held) if held else 0, n))
        held = edits[-1].apply(held)
    vector = CacheVector("drawn-0", "drawn", "", "", "", "exact", 2, first, tuple(edits), ())
    vector = dataclasses.replace(vector, expected=tuple(exact.cache_states(vector)))
    scores, values = tensors(some)
    scores = math.log(2.0) * scores
    cache = Cache(scores, values, append(start(), scores, values))
    states = [cache.state]
    for edit in edits:
        cache = change(cache, edit)
        states.append(cache.state)
    computed = [(float(s.m[0]), float(s.l[0]), s.o[0].tolist()) for s in states]
    assert list(wrong_states(vector, computed, FLOAT64)) == []


@given(st.lists(keys, min_size=1, max_size=8), keys, st.integers(0, 7))
def test_replace_is_delete_and_append(some: list[Key], new: Key, at: int) -> None:
    state = append(start(), *tensors(some))
    old = some[at % len(some)]
    one = replace(state, key(old), key(new))
    other = append(delete(state, *key(old)), *tensors([new]))
    assert torch.equal(one.m, other.m)
    assert torch.equal(one.l, other.l)
    assert torch.equal(one.o, other.o)


@given(st.lists(keys, min_size=1, max_size=12), st.integers(0, 5))
def test_a_window_keeps_the_last_keys(some: list[Key], window: int) -> None:
    cache = nothing()
    for one in some:
        cache = cache.slide(window, *key(one))
    scores, values = tensors(some[max(0, len(some) - window) :])
    assert torch.equal(cache.scores, scores)
    assert torch.equal(cache.values, values)
    kept = [s for s, _ in some if s is not None]
    assert cache.state.m.tolist() == [max(kept, default=-torch.inf)]


def test_the_cache_holds_the_keys_that_its_edits_leave() -> None:
    a, b, c = ((1, [2, 3]), (None, [4, 5]), (-2, [6, 7]))
    cache = nothing().append(*key(a)).append(*key(b)).append(*key(c)).delete(0)
    assert torch.equal(cache.scores, tensors([b, c])[0])
    before = cache.scores.clone()
    changed = cache.replace(0, *key(a))
    assert torch.equal(changed.scores, tensors([a, c])[0])
    assert torch.equal(changed.values, tensors([a, c])[1])
    assert torch.equal(cache.scores, before), "a change gives a new cache"


def test_a_row_without_keys_gives_zero_again() -> None:
    cache = nothing().append(*key((3, [2, 5]))).delete(0)
    assert finish(cache.state).tolist() == [[0.0, 0.0]]
    assert log_sum_exp(cache.state).tolist() == [-torch.inf]


def test_leading_dimensions() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 3, 4, 5, generator=generator, dtype=torch.float64)
    values = torch.randn(2, 3, 5, 6, generator=generator, dtype=torch.float64)
    state = append(start(2, 3, 4, value_dim=6), scores, values)
    alone = append(start(4, value_dim=6), scores[1, 2], values[1, 2])
    assert torch.equal(state.l[1, 2], alone.l)
    assert torch.equal(state.o[1, 2], alone.o)
    cache = Cache(scores, values, state).delete(4).slide(4, scores[..., 4], values[..., 4, :])
    assert (cache.scores.shape, cache.values.shape) == ((2, 3, 4, 4), (2, 3, 4, 6))
    assert torch.equal(cache.scores, scores[..., 1:])


S, V = torch.zeros(1, 3, dtype=torch.float64), torch.zeros(3, 2, dtype=torch.float64)
CACHE = Cache(S, V, append(start(), S, V))
REFUSALS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: append(S, S, V), TypeError, "state must be a pyimpl.state.State, not Tensor"),
    (lambda: append(start(), [0.0], V), TypeError, "scores must be a torch.Tensor, not list"),
    (lambda: append(start(), S, V.float()), TypeError, "values must have the dtype of the state"),
    (lambda: append(start(), S.to("meta"), V), ValueError, "scores must be on the device of the"),
    (lambda: append(start(2), S, V), ValueError, r"scores must have a number for each .* \[2\]"),
    (lambda: append(start(), S, V[:2]), ValueError, r"state and scores, \[3, 2\], not \[2, 2\]"),
    (
        lambda: append(start(), S.clone().requires_grad_(), V),
        NotImplementedError,
        "scores requires a gradient",
    ),
    (lambda: delete(start(), 1.0, V[0]), TypeError, "score must be a torch.Tensor, not float"),
    (lambda: delete(start(), S[:, 0], V[0, 0]), ValueError, "value must have at least 1 dimension"),
    (lambda: CACHE.delete(3), ValueError, "i must be the place of one of the 3 keys, not 3"),
    (lambda: CACHE.delete(-1), ValueError, "i must be the place of one of the 3 keys, not -1"),
    (lambda: CACHE.replace(1.0, S[:, 0], V[0]), TypeError, "i must be a whole number, not 1.0"),
    (lambda: CACHE.slide(-1, S[:, 0], V[0]), ValueError, "window must be at least 0, not -1"),
    (lambda: CACHE.slide("2", S[:, 0], V[0]), TypeError, "window must be a whole number, not '2'"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_refusals(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
