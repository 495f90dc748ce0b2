"""`MultiHeadAttention` in training: the gradients of `torch.nn.MultiheadAttention`, and a step."""

from __future__ import annotations

import pytest
import torch
from module_checks import normal, randomise
from torch import Tensor, nn

from pyimpl.internal.dropout import Dropout
from pyimpl.modules import MultiHeadAttention

BATCH, Q_LEN, KV_LEN, DIM, HEADS = 3, 5, 7, 12, 2
BACKENDS = ["tiled", "reference"]


def gradients_in_torch(theirs: nn.MultiheadAttention) -> dict[str, Tensor]:
    """The gradients of the parameters, by the names of ours."""
    found: dict[str, Tensor] = {}
    thirds = {"weight": theirs.in_proj_weight, "bias": theirs.in_proj_bias}
    for name, parameter in thirds.items():
        if parameter is not None:
            for letter, part in zip("qkv", parameter.grad.chunk(3), strict=True):
                found[f"{letter}_proj.{name}"] = part
    for letter in "qkv":
        weight = getattr(theirs, f"{letter}_proj_weight")
        if weight is not None:
            found[f"{letter}_proj.weight"] = weight.grad
    for name, parameter in theirs.named_parameters():
        if name.startswith("out_proj") or name in ("bias_k", "bias_v"):
            found[name] = parameter.grad
    return found


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"kdim": 8, "vdim": 10},
        {"add_bias_kv": True, "add_zero_attn": True},
    ],
    ids=str,
)
def test_the_gradients_are_those_of_torch(options, backend: str) -> None:
    theirs = nn.MultiheadAttention(DIM, HEADS, batch_first=True, dtype=torch.float64, **options)
    randomise(theirs)
    ours = MultiHeadAttention.from_torch(theirs)
    inputs = [
        normal(BATCH, Q_LEN, DIM, seed=3),
        normal(BATCH, KV_LEN, options.get("kdim", DIM), seed=4),
        normal(BATCH, KV_LEN, options.get("vdim", DIM), seed=5),
    ]
    mask = normal(Q_LEN, KV_LEN, seed=6)
    visible = torch.rand(BATCH, KV_LEN, generator=torch.Generator().manual_seed(7)) < 0.7
    visible[:, 0] = True
    upstream = normal(BATCH, Q_LEN, DIM, seed=8)
    found: list[list[Tensor]] = []
    for module in (theirs, ours):
        leaves = [x.clone().requires_grad_() for x in (*inputs, mask)]
        if module is theirs:
            hidden = torch.zeros(BATCH, KV_LEN, dtype=torch.float64)
            hidden = hidden.masked_fill(~visible, -torch.inf)
            out = theirs(
                *leaves[:3], attn_mask=leaves[3], key_padding_mask=hidden, need_weights=False
            )[0]
        else:
            out = ours(*leaves[:3], attn_mask=leaves[3], key_mask=visible, backend=backend)
        out.backward(upstream)
        found.append([x.grad for x in leaves])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    expected = gradients_in_torch(theirs)
    named = dict(ours.named_parameters())
    assert sorted(named) == sorted(expected)
    for name, parameter in named.items():
        torch.testing.assert_close(parameter.grad, expected[name], msg=name)


def test_a_training_step_lowers_the_loss() -> None:
    torch.manual_seed(0)
    module = MultiHeadAttention(DIM, HEADS, num_kv_heads=1)
    x, goal = torch.randn(2, BATCH, Q_LEN, DIM).unbind(0)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
    losses = []
    for _ in range(10):
        loss = (module(x, is_causal=True) - goal).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True}, {"add_zero_attn": True}], ids=str)
def test_dropout_is_that_of_torch_with_the_same_weights(
    options, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch, which draws other numbers, is given ours."""
    theirs = randomise(
        nn.MultiheadAttention(
            DIM, HEADS, dropout=0.4, batch_first=True, dtype=torch.float64, **options
        )
    )
    ours = MultiHeadAttention.from_torch(theirs)
    assert ours.dropout == ours.to_torch().dropout == 0.4
    assert "dropout=0.4" in repr(ours)
    x = normal(BATCH, Q_LEN, DIM, seed=3)

    def drop(weights: Tensor, p: float, training: bool = True) -> Tensor:
        sizes = (BATCH, HEADS, range(Q_LEN), range(weights.shape[-1]))
        return weights * Dropout(p, torch.tensor(9)).kept_weights(*sizes).view_as(weights) / (1 - p)

    with monkeypatch.context() as patch, torch.no_grad():
        patch.setattr(nn.functional, "dropout", drop)
        expected = theirs(x, x, x)[0]
    with torch.no_grad():
        torch.testing.assert_close(ours(x, dropout_seed=9), expected)
        torch.manual_seed(0)
        first, second = ours(x), ours(x)
        torch.manual_seed(0)
        assert torch.equal(ours(x), first)
        assert not torch.equal(first, second)
        assert torch.equal(ours.eval()(x), ours(x, dropout_seed=9))
        torch.testing.assert_close(ours(x), theirs.eval()(x, x, x)[0])
