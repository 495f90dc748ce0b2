"""The laws of the online-softmax state that `Attention.Proof` proves over exact numbers.

A law that holds of the rounded functions too is tested bit for bit; the others by the tolerance of
the attention that the states finish to, with scores given as products of one-element vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from state_checks import Key, judge_state, tensors
from torch import Tensor

from pyimpl.state import (
    MergeTree,
    State,
    empty,
    finish,
    log_sum_exp,
    merge,
    merge_tree,
    of_block,
    online,
    sink_state,
    step,
    step_block,
    step_block_divided,
    step_block_flash1,
)

# Scores on a grid of eighths and small integer values: sums and differences of them are exact.
keys = st.tuples(
    st.one_of(st.none(), st.integers(-400, 400).map(lambda n: n / 8)),
    st.lists(st.integers(-9, 9), min_size=2, max_size=2),
)
key_lists = st.lists(keys, max_size=12)
nonempty = st.lists(keys, min_size=1, max_size=12)


def nothing() -> State:
    return empty((1,), 2, dtype=torch.float64, device=torch.device("cpu"))


def state_of(some: list[Key]) -> State:
    return of_block(*tensors(some)) if some else nothing()


def same(a: State, b: State) -> bool:
    return torch.equal(a.m, b.m) and torch.equal(a.l, b.l) and torch.equal(a.o, b.o)


def check(state: State, some: list[Key]) -> None:
    """The state is one of the keys given, up to the tolerance; its maximum is theirs exactly."""
    if some:
        assert torch.equal(state.m, tensors(some)[0].amax(-1))
    judge_state(state, some)


@given(key_lists)
def test_step_by_step(some: list[Key]) -> None:
    state = nothing()
    for score, value in some:
        scores, values = tensors([(score, value)])
        state = step(state, scores[:, 0], values[0])
    check(state, some)


@given(st.lists(nonempty, max_size=4))
def test_online_over_any_blocks(blocks: list[list[Key]]) -> None:
    check(online(nothing(), map(tensors, blocks)), [key for block in blocks for key in block])


@pytest.mark.parametrize("update", [step_block_divided, step_block_flash1])
@given(blocks=st.lists(nonempty, max_size=4))
def test_division_inside_the_loop(
    update: Callable[[State, Tensor, Tensor], State], blocks: list[list[Key]]
) -> None:
    divided = nothing()
    for block in blocks:
        divided = update(divided, *tensors(block))
    multiplied = State(divided.m, divided.l, divided.l.unsqueeze(-1) * divided.o)
    check(multiplied, [key for block in blocks for key in block])


@given(nonempty)
def test_first_block_is_of_block(block: list[Key]) -> None:
    assert same(step_block(nothing(), *tensors(block)), of_block(*tensors(block)))


@given(key_lists, nonempty)
def test_step_block_is_merge_with_of_block(some: list[Key], block: list[Key]) -> None:
    check(step_block(state_of(some), *tensors(block)), some + block)
    check(merge(state_of(some), state_of(block)), some + block)


@given(key_lists)
def test_merge_identity(some: list[Key]) -> None:
    state = state_of(some)
    assert same(merge(state, nothing()), state)
    assert same(merge(nothing(), state), state)


@given(key_lists, key_lists)
def test_merge_commutative(a: list[Key], b: list[Key]) -> None:
    assert same(merge(state_of(a), state_of(b)), merge(state_of(b), state_of(a)))


@given(key_lists, key_lists, key_lists)
def test_merge_associative(a: list[Key], b: list[Key], c: list[Key]) -> None:
    first = merge(merge(state_of(a), state_of(b)), state_of(c))
    last = merge(state_of(a), merge(state_of(b), state_of(c)))
    assert torch.equal(first.m, last.m)
    check(first, a + b + c)
    check(last, a + b + c)


@given(st.lists(key_lists, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_any_tree_of_merges(blocks: list[list[Key]], random: Any) -> None:
    trees: list[MergeTree] = [state_of(block) for block in blocks]
    while len(trees) > 1:
        at = random.randrange(len(trees) - 1)
        trees[at : at + 2] = [(trees[at], trees[at + 1])]
    check(merge_tree(trees[0]), [key for block in blocks for key in block])


def test_a_tree_is_of_states_and_pairs() -> None:
    one = state_of([(1.0, [2, 3])])
    assert merge_tree(one) is one
    for wrong, said in (
        ([one, one], r"not \[State"),
        ((one, (one,)), r"not \(State"),
        (1, "not 1"),
    ):
        with pytest.raises(TypeError, match=f"tree must be a State or a pair of trees, {said}"):
            merge_tree(wrong)  # type: ignore[arg-type]


@given(st.lists(nonempty, max_size=4), st.integers(-400, 400))
def test_online_from_a_sink(blocks: list[list[Key]], sink: int) -> None:
    start = sink_state(torch.tensor([sink / 8], dtype=torch.float64), 2)
    some: list[Key] = [key for block in blocks for key in block]
    check(online(start, map(tensors, blocks)), [(sink / 8, [0, 0]), *some])


@given(nonempty, st.integers(-4000, 4000))
def test_shift_changes_the_maximum_alone(some: list[Key], shift: int) -> None:
    shifted: list[Key] = [(None if s is None else s + shift / 8, v) for s, v in some]
    state, other = state_of(some), state_of(shifted)
    assert same(State(state.m + shift / 8, state.l, state.o), other)


@given(nonempty, st.randoms(use_true_random=False))
def test_any_order_of_keys(some: list[Key], random: object) -> None:
    shuffled = list(some)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    check(state_of(shuffled), some)


@given(nonempty, nonempty)
def test_masked_keys_do_not_count(some: list[Key], more: list[Key]) -> None:
    hidden: list[Key] = [(None, value) for _, value in more]
    assert same(step_block(state_of(some), *tensors(hidden)), state_of(some))


@given(st.lists(st.tuples(st.none(), keys.map(lambda key: key[1])), min_size=1, max_size=8))
def test_every_key_masked(some: list[Key]) -> None:
    state = step_block(state_of(some), *tensors(some))
    assert same(state, nothing())
    assert torch.equal(finish(state), torch.zeros(1, 2, dtype=torch.float64))
    assert torch.equal(log_sum_exp(state), torch.tensor([-torch.inf], dtype=torch.float64))


@given(nonempty)
def test_denominator_between_one_and_the_number_of_keys(some: list[Key]) -> None:
    unmasked = sum(score is not None for score, _ in some)
    l = float(state_of(some).l)
    assert 1.0 <= l <= unmasked if unmasked else l == 0.0


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_leading_dimensions(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(2, 3, 4, 5, generator=generator)
    values = torch.randn(2, 3, 5, 6, generator=generator)
    start = empty((2, 3, 4), 6, dtype=torch.float32, device=scores.device)
    state = step_block(start, scores, values)
    assert (state.m.shape, state.l.shape, state.o.shape) == ((2, 3, 4), (2, 3, 4), (2, 3, 4, 6))
    stepped = step(start, scores[..., 0], values[..., 0, :])
    block = step_block(start, scores[..., :1], values[..., :1, :])
    assert same(stepped, block)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_autocast_changes_nothing(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 4, 5, generator=generator, dtype=dtype)
    values = torch.randn(2, 5, 6, generator=generator, dtype=dtype)
    start = empty((2, 4), 6, dtype=dtype, device=scores.device)
    ways: list[Callable[[], State]] = [
        lambda: of_block(scores, values),
        lambda: step(of_block(scores, values), scores[..., 0], values[..., 0, :]),
        lambda: online(start, [(scores, values)] * 2),
        lambda: step_block_divided(start, scores, values),
        lambda: step_block_flash1(start, scores, values),
        lambda: merge_tree((of_block(scores, values), step_block(start, scores, values))),
    ]
    for made in ways:
        expected = made()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = made()
            ends = finish(found), log_sum_exp(found)
        assert same(found, expected)
        assert found.o.dtype == dtype
        assert all(map(torch.equal, ends, (finish(expected), log_sum_exp(expected))))
