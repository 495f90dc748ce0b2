"""Models of diffusers call SDPA: with `sdpa_replaced` they attend by this attention, with the same
results.

diffusers is no dependency of the project; without it these tests are skipped:

    .venv/bin/python -m pip install 'diffusers>=0.42'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from pyimpl.integrations import sdpa
from pyimpl.integrations.sdpa import sdpa_replaced

diffusers = pytest.importorskip("diffusers", reason="needs diffusers")
pytestmark = pytest.mark.usefixtures("in_float64")


def unet() -> tuple[Any, Callable[[Any], Tensor], int]:
    """Self-attention, and cross-attention with a mask: a model, a call, how often it attends."""
    model = diffusers.UNet2DConditionModel(
        sample_size=8, in_channels=4, out_channels=4, block_out_channels=(8, 16), norm_num_groups=4,
        layers_per_block=1, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), cross_attention_dim=12,
        attention_head_dim=4,
    )  # fmt: skip
    mask = torch.tensor([[True, True, True, False, False], [True] * 5])
    sample, context = torch.randn(2, 4, 8, 8), torch.randn(2, 5, 12)
    return model, lambda m: m(sample, 7, context, encoder_attention_mask=mask).sample, 8


def flux() -> tuple[Any, Callable[[Any], Tensor], int]:
    """Joint attention of two streams, and of one."""
    model = diffusers.FluxTransformer2DModel(
        patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16,
        num_attention_heads=2, joint_attention_dim=12, pooled_projection_dim=12,
        axes_dims_rope=(4, 4, 8),
    )  # fmt: skip
    given = {
        "hidden_states": torch.randn(1, 6, 4),
        "encoder_hidden_states": torch.randn(1, 3, 12),
        "pooled_projections": torch.randn(1, 12),
        "timestep": torch.tensor([0.5]),
        "img_ids": torch.arange(18.0).reshape(6, 3),
        "txt_ids": torch.zeros(3, 3),
    }
    return model, lambda m: m(**given).sample, 2


def run(model: Any, call: Callable[[Any], Tensor]) -> list[Tensor]:
    """The output, and the gradients of all parameters."""
    model.zero_grad(set_to_none=True)
    out = call(model)
    (out**2).sum().backward()
    return [out.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]


@pytest.mark.parametrize("make", [unet, flux])
def test_output_and_gradients_are_what_they_were(
    make: Callable[[], tuple[Any, Callable[[Any], Tensor], int]],
) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, call, attends = make()
    model.eval()
    expected = run(model, call)
    with sdpa_replaced() as replaced:
        found = run(model, call)
    assert replaced.calls == attends
    torch.testing.assert_close(found, expected)


def test_a_mask_that_is_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, call, _ = unet()
    expected = run(model.eval(), call)
    attention = sdpa.attention
    monkeypatch.setattr(
        sdpa, "attention", lambda *a, attn_mask=None, **options: attention(*a, **options)
    )
    with sdpa_replaced():
        found = run(model, call)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(found[0], expected[0])
