"""Models of timm that call SDPA: with `sdpa_replaced` they attend by this attention, with the same
results.

timm is no dependency of the project; without it and torchvision these tests are skipped:

    .venv/bin/python -m pip install --no-deps 'timm>=1.0.20' torchvision==0.28.0  # of torch 2.13.0
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pyimpl.integrations import sdpa
from pyimpl.integrations.sdpa import sdpa_replaced

for package in ("timm", "torchvision"):
    if find_spec(package) is None:
        pytest.skip(f"needs {package}", allow_module_level=True)
# torchvision's build on PyPI is for CUDA: beside PyTorch's build for CPUs it finds no operators of
# its own, and cannot be imported where these two are not declared. No model here calls them.
for name in ("nms", "qnms"):
    if not hasattr(torch.ops.torchvision, name):
        torch.library.define(
            f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        )
timm = pytest.importorskip("timm", reason="needs timm")
pytestmark = pytest.mark.usefixtures("in_float64")

SMALL = {"img_size": 16, "patch_size": 4, "embed_dim": 16, "num_heads": 2, "num_classes": 3}
# By name: a model of timm's, and how often it attends.
MODELS: dict[str, tuple[str, dict[str, Any], int]] = {
    "ViT": ("vit_tiny_patch16_224", {"depth": 2}, 2),
    "one query for all patches": ("vit_base_patch16_siglip_224", {"depth": 1}, 2),
    "positions turned": ("eva02_tiny_patch14_224", {"depth": 1}, 1),
    "a bias for each pair of positions": ("beit_base_patch16_224", {"depth": 1}, 1),
    "a class that attends": ("cait_xxs24_224", {"depth": 1, "depth_token_only": 1}, 1),
}


def model_and_images(kind: str) -> tuple[Any, Tensor]:
    name, options, _ = MODELS[kind]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = timm.create_model(name, pretrained=False, **SMALL, **options)
        for parameter in model.parameters():
            # Much of it begins at 0, and then attention has no say.
            nn.init.normal_(parameter, std=0.5)
        return model, torch.randn(2, 3, 16, 16)


def run(model: Any, images: Tensor) -> list[Tensor]:
    """The output, and the gradients of all parameters."""
    model.zero_grad(set_to_none=True)
    out = model(images)
    out.square().sum().backward()
    return [out.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("kind", MODELS)
def test_output_and_gradients_are_what_they_were(kind: str, training: bool) -> None:
    model, images = model_and_images(kind)
    model.train(training)
    expected = run(model, images)
    assert len(expected) > 10
    with sdpa_replaced() as replaced:
        found = run(model, images)
    assert replaced.calls == MODELS[kind][2]
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("ViT", {"scale": 0.3}),
        ("a bias for each pair of positions", {"attn_mask": None}),
    ],
)
def test_a_mistake_is_noticed(
    kind: str, wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, images = model_and_images(kind)
    expected = run(model.eval(), images)
    attention = sdpa.attention
    monkeypatch.setattr(sdpa, "attention", lambda *a, **options: attention(*a, **options | wrong))
    with sdpa_replaced():
        found = run(model, images)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(found[0], expected[0])
