"""The translated definitions over other numbers, and theorems seen on drawn inputs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest
import torch
from generated_checks import judge, scale_of, vector_of
from hypothesis import given
from hypothesis import strategies as st

from bridge.spec import online as states
from bridge.spec.attention import ScoredValue, attend, attention, scored
from bridge.spec.backward_bounds import window_keys
from bridge.spec.cache import EditAppend, EditDelete, edit
from bridge.spec.core import (
    EXACT,
    Arithmetic,
    div,
    erase_index,
    get_or,
    get_or_none,
    mod,
    set_index,
)
from bridge.spec.flash import flash, tiles
from bridge.spec.masks import Alignment, mask_window
from bridge.spec.maximum import row_max
from bridge.spec.merge import MergeTreeLeaf, MergeTreeNode, merge_tree_eval, merge_tree_keys
from bridge.spec.schedule import TileKind, tile_range_contains
from bridge.spec.softmax import safe_softmax, softmax
from bridge.spec.varlen import cu_seqlens, sequence_of
from bridge.spec.whole_tiles import whole_kind

SCORES = st.one_of(st.none(), st.integers(-40, 40))
KEYS = st.lists(
    st.builds(
        ScoredValue, SCORES, st.lists(st.integers(-9, 9).map(Fraction), min_size=2, max_size=2)
    ),
    max_size=9,
)
SIZE: dict[str, Any] = {"d": 2, "num": EXACT}


@given(KEYS)
def test_softmax_sums_to_one(keys: list[ScoredValue]) -> None:
    row = [key.score for key in keys]
    weights = softmax(row, num=EXACT)
    assert sum(weights) == (0 if row_max(row) is None else 1)
    assert weights == safe_softmax(row, num=EXACT)


@given(KEYS, st.integers(1, 4))
def test_online_is_attend(keys: list[ScoredValue], block: int) -> None:
    """`online-any-blocks`."""
    state = states.online(tiles(block, keys), **SIZE)
    assert states.finish(state, **SIZE) == attend(keys, d_v=2, num=EXACT)


TREES = st.recursive(
    KEYS.map(MergeTreeLeaf), lambda t: st.builds(MergeTreeNode, t, t), max_leaves=6
)


@given(TREES)
def test_any_tree_of_merges(tree: Any) -> None:
    """`any-tree`."""
    whole = states.of_block(merge_tree_keys(tree), **SIZE)
    assert merge_tree_eval(tree, **SIZE) == whole


@given(KEYS.filter(lambda keys: any(key.score is not None for key in keys)), KEYS.filter(bool))
def test_append_then_delete(keys: list[ScoredValue], more: list[ScoredValue]) -> None:
    """`kv-edits`: the output is that of the keys that are left, though m may have grown."""
    held = (keys, states.of_block(keys, **SIZE))
    appended = edit(held, EditAppend(more[0]), **SIZE)
    back, state = edit(appended, EditDelete(len(keys)), **SIZE)
    assert back == keys
    assert states.finish(state, **SIZE) == attend(keys, d_v=2, num=EXACT)


@given(st.lists(st.integers(0, 5), max_size=6))
def test_positions_of_packed_sequences(lens: list[int]) -> None:
    cu = cu_seqlens(lens, 0)
    assert cu[-1] == sum(lens)
    owners = [b for b, n in enumerate(lens) for _ in range(n)]
    assert [sequence_of(cu, i) for i in range(sum(lens))] == owners


@given(
    st.sampled_from(Alignment), *(st.none() | st.integers(0, 6),) * 2, *(st.integers(1, 12),) * 2,
    *(st.integers(1, 5),) * 2,
)  # fmt: skip
def test_bounds_of_both_loops_of_the_backward_pass(
    alignment: Alignment, left: int | None, right: int | None, q_len: int, kv_len: int,
    block_m: int, block_n: int,
) -> None:  # fmt: skip
    """`tile-bounds-keys`, `tile-bounds-keys-whole` and `whole-tiles`: of each pair of tiles."""
    window = alignment, left, right, q_len, kv_len, block_m, block_n
    sees = mask_window(alignment, left, right, q_len=q_len, kv_len=kv_len)
    loop = window_keys(*window)
    for t, first in enumerate(range(0, q_len, block_m)):
        for u, key in enumerate(range(0, kv_len, block_n)):
            rows = range(first, min(first + block_m, q_len))
            cols = range(key, min(key + block_n, kv_len))
            seen = [sees(i, j) for i in rows for j in cols]
            assert tile_range_contains(loop.visit(u), t) == any(seen)
            whole = all(seen) and len(cols) == block_n
            assert (whole_kind(*window, t, u) is TileKind.UNMASKED) == whole
            whole = whole and len(rows) == block_m
            assert (loop.kind(u, t) is TileKind.UNMASKED) == whole


def test_a_long_row_needs_no_deep_recursion() -> None:
    row = [ScoredValue(n % 7, [Fraction(n)]) for n in range(5000)]
    assert len(softmax([key.score for key in row], num=EXACT)) == 5000
    assert attend(row, d_v=1, num=EXACT) != [0]


# By name: the arithmetic, a number of its kind, and the dtype whose roundings it has at most.
NUMBERS: dict[str, tuple[Arithmetic, Any, torch.dtype]] = {
    "float": (Arithmetic(math.exp, float, float), float, torch.float64),
    "mpmath": (Arithmetic(mpmath.exp, mpmath.mpf, mpmath.mpf), mpmath.mpf, torch.float64),
    "torch": (
        Arithmetic(torch.exp, lambda n: torch.tensor(float(n)), lambda n: torch.tensor(float(n))),
        torch.tensor,
        torch.float32,
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_over_other_numbers(name: str) -> None:
    """One definition over floats of three kinds, within the tolerance of a kernel's."""
    num, number, dtype = NUMBERS[name]
    vector = vector_of("causal-003")
    q, k, v = (
        [[number(float(x)) for x in row] for row in m] for m in (vector.q, vector.k, vector.v)
    )
    size: dict[str, Any] = {"d": vector.head_dim, "d_v": vector.value_dim, "num": num}

    def modify(i: int, j: int, s: Any) -> Any:
        return s if vector.mask.visible(i, j) else None

    given_numbers = (number(scale_of(vector)), modify, q, k, v)
    lengths = {"q_len": vector.q_len, "kv_len": vector.kv_len}
    cols = list(range(vector.kv_len))
    keys = [
        scored(*given_numbers, i, cols, d=vector.head_dim, num=num) for i in range(vector.q_len)
    ]
    rows = [states.of_block(row, d=vector.value_dim, num=num) for row in keys]
    lse = torch.tensor([float(s.m) + math.log(float(s.l)) for s in rows], dtype=dtype)
    for found in (
        attention(*given_numbers, **lengths, **size),
        flash(*given_numbers, 2, 2, **lengths, **size),
    ):
        out = torch.tensor([[float(x) for x in row] for row in found], dtype=dtype)
        judge(vector, dtype, (out[None, None], lse[None, None]))


def test_what_core_lean_does_beyond_the_ends() -> None:
    assert (div(7, 2), div(7, 0), mod(7, 2), mod(7, 0)) == (3, 0, 1, 7)
    assert (get_or([1], 0, 9), get_or([1], 1, 9), get_or_none([1], 0), get_or_none([1], 1)) == (
        1,
        9,
        1,
        None,
    )
    assert (erase_index([1, 2], 0), erase_index([1, 2], 2)) == ([2], [1, 2])
    assert (set_index([1, 2], 1, 5), set_index([1, 2], 2, 5)) == ([1, 5], [1, 2])
