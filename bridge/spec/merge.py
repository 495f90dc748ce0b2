"""Trees of merges.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Merge.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from bridge.spec.attention import ScoredValue
from bridge.spec.core import Arithmetic
from bridge.spec.online import State, merge, of_block
from bridge.spec.vector import vec_zero


def state_well_formed(s: State, *, d: int, num: Arithmetic) -> bool:
    """A state without a maximum holds nothing: l = 0 and o = 0.

    Lean: `Attention.Spec.Online.State.WellFormed`.
    """
    return s.m is not None or (s.l == num.value(0) and s.o == vec_zero(d=d, zero=num.value(0)))


@dataclass(frozen=True)
class MergeTreeLeaf:
    """The state of a block, computed from scratch.

    Lean: `Attention.Spec.Online.MergeTree.leaf`.
    """

    block: list[ScoredValue]


@dataclass(frozen=True)
class MergeTreeNode:
    """The merge of the states of two trees.

    Lean: `Attention.Spec.Online.MergeTree.node`.
    """

    left: MergeTree
    right: MergeTree


# In which order states are merged: a binary tree with a block of keys at each leaf. Lean:
# `Attention.Spec.Online.MergeTree`.
MergeTree: TypeAlias = MergeTreeLeaf | MergeTreeNode


def merge_tree_keys(merge_tree: MergeTree) -> list[ScoredValue]:
    """All keys of a tree, from left to right.

    Lean: `Attention.Spec.Online.MergeTree.keys`.
    """
    if isinstance(merge_tree, MergeTreeLeaf):
        return merge_tree.block
    return merge_tree_keys(merge_tree.left) + merge_tree_keys(merge_tree.right)


def merge_tree_eval(merge_tree: MergeTree, *, d: int, num: Arithmetic) -> State:
    """The state at the root of a tree.

    Lean: `Attention.Spec.Online.MergeTree.eval`.
    """
    if isinstance(merge_tree, MergeTreeLeaf):
        return of_block(merge_tree.block, d=d, num=num)
    return merge(
        merge_tree_eval(merge_tree.left, d=d, num=num),
        merge_tree_eval(merge_tree.right, d=d, num=num),
        num=num,
    )
