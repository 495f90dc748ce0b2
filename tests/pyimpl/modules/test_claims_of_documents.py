"""The claims of `docs/claims.md` about multi-head attention and values, for `pyimpl` as it runs:
the examples have the shapes claimed, changes that are proved to leave the output unchanged do so,
and refuted ones change it."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from module_checks import judge_module, normal, randomise
from torch import Tensor

from pyimpl.modules import MultiHeadAttention

X = normal(2, 5, 8, seed=0)
CONTEXT = normal(2, 7, 8, seed=1)
# An orthogonal map of a head's four components that no number is rounded by.
TURN = torch.tensor([[0, 0, -1, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, -1, 0, 0]], dtype=torch.float64)
# A map that is not orthogonal, and its inverse; exact as well.
STRETCH = torch.diag(torch.tensor([2.0, 0.5, -1.0, 4.0], dtype=torch.float64)) @ TURN
SHRINK = TURN.mT @ torch.diag(torch.tensor([0.5, 2.0, -1.0, 0.25], dtype=torch.float64))


@pytest.fixture
def ours() -> MultiHeadAttention:
    """Two heads of four components, float64, with random parameters."""
    return randomise(MultiHeadAttention(8, 2, dtype=torch.float64)).requires_grad_(False)


def after(linear: torch.nn.Linear, head: int, by: Tensor) -> None:
    """A map put after a head's projection."""
    rows = slice(4 * head, 4 * head + 4)
    linear.weight[rows] = by @ linear.weight[rows]
    linear.bias[rows] = by @ linear.bias[rows]


def rotate_queries_and_keys(module: MultiHeadAttention) -> None:
    after(module.q_proj, 1, TURN)
    after(module.k_proj, 1, TURN)


def map_values(module: MultiHeadAttention) -> None:
    after(module.v_proj, 1, STRETCH)
    module.out_proj.weight[:, 4:] = module.out_proj.weight[:, 4:] @ SHRINK


def exchange_heads(module: MultiHeadAttention) -> None:
    for linear in (module.q_proj, module.k_proj, module.v_proj):
        linear.weight[:] = linear.weight.roll(4, 0)
        linear.bias[:] = linear.bias.roll(4, 0)
    module.out_proj.weight[:] = module.out_proj.weight.roll(4, 1)


def rotate_queries(module: MultiHeadAttention) -> None:
    after(module.q_proj, 1, TURN)


def map_values_alone(module: MultiHeadAttention) -> None:
    after(module.v_proj, 1, STRETCH)


def exchange_heads_but_their_blocks(module: MultiHeadAttention) -> None:
    exchange_heads(module)
    module.out_proj.weight[:] = module.out_proj.weight.roll(4, 1)


def turn_output(module: MultiHeadAttention) -> None:
    module.out_proj.weight[:] = -module.out_proj.weight
    module.out_proj.bias[:] = -module.out_proj.bias


Change = Callable[[MultiHeadAttention], None]


def judge(ours: MultiHeadAttention, change: Change) -> None:
    """Fail unless the module's output is the same as before the change, up to rounding."""
    changed = copy.deepcopy(ours)
    change(changed)
    judge_module(changed(X, CONTEXT), ours(X, CONTEXT), changed, X, CONTEXT, CONTEXT)


@pytest.mark.parametrize("change", [rotate_queries_and_keys, map_values, exchange_heads])
def test_what_is_proved_to_change_nothing(ours: MultiHeadAttention, change: Change) -> None:
    """projectedMultiHead_rotate, projectedMultiHead_values, projectedMultiHead_permute."""
    judge(ours, change)


@pytest.mark.parametrize(
    "change",
    [rotate_queries, turn_output, map_values_alone, exchange_heads_but_their_blocks],
)
def test_what_is_refuted_changes_the_output(ours: MultiHeadAttention, change: Change) -> None:
    """headsInvariance_refuted, multiheadAttentionInvariance_refuted, and halves of true claims."""
    with pytest.raises(AssertionError, match="over the tolerance"):
        judge(ours, change)


def test_self_attention_of_512_components_and_8_heads() -> None:
    tokens = normal(1, 3, 512, seed=2)
    assert MultiHeadAttention(512, 8, dtype=torch.float64)(tokens).shape == (1, 3, 512)


def test_cross_attention_of_512_128_512_components_and_8_heads() -> None:
    cross = MultiHeadAttention(
        128, 8, key_dim=512, value_dim=512, output_dim=512, dtype=torch.float64
    )
    query, context = normal(1, 3, 128, seed=3), normal(1, 4, 512, seed=4)
    assert cross(query, context, context).shape == (1, 3, 512)


@pytest.mark.parametrize("num_heads", [3, 5])
def test_heads_that_do_not_divide_the_width_are_refused(num_heads: int) -> None:
    """concat_width_refuted: three heads of 10 / 3 would be 9 wide; five are 10."""
    if num_heads == 5:
        assert MultiHeadAttention(10, num_heads).head_dim == 2
        return
    with pytest.raises(ValueError, match="num_heads"):
        MultiHeadAttention(10, num_heads)
