"""The vectors that `pyimpl.state` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import math

import torch
from generated_checks import dtypes, judge, tensor, vector_of, vectors

from bridge.vectors.model.operations import MergeVector, Tree
from pyimpl import state


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)
    merged = state.merge_tree(states(vector, vector.tree, dtype))
    judge(vector, dtype, (state.finish(merged), state.log_sum_exp(merged)))


def states(vector: MergeVector, tree: Tree, dtype: torch.dtype) -> state.MergeTree:
    """The tree with the state of its block at each leaf; scores are in base 2."""
    if not isinstance(tree, int):
        return states(vector, tree[0], dtype), states(vector, tree[1], dtype)
    block = vector.blocks[tree]
    if not block:
        return state.empty((1, 1, 1), vector.value_dim, dtype=dtype, device=torch.device("cpu"))
    scores = [-math.inf if key.score is None else float(key.score) for key in block]
    values = tensor(tuple(key.value for key in block), dtype)
    return state.of_block(math.log(2.0) * torch.tensor([[[scores]]], dtype=dtype), values)


@vectors("merge", 16)
@dtypes
def test_merge(vector_id: str, dtype: torch.dtype) -> None:
    """For every binary tree of merges, and every row that is a permutation of the keys at its
    leaves, the finished root is the attention of the row.

    Theorem any-tree, `Spec.Online.merge`. States of blocks, merged in the order of a tree: any tree
    over any order of the blocks gives the state of all keys. Empty and masked blocks change
    nothing.
    """
    check(vector_id, dtype)
