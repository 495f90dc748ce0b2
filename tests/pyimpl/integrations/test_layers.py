"""`pyimpl.integrations.layers`: models of PyTorch's layers, before and after the swap."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from integration_checks import examples
from torch import Tensor, nn

from pyimpl.integrations import sdpa
from pyimpl.integrations.layers import swap_attention, swap_back

X = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
PADDING = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])


def transformer(training: bool) -> nn.Transformer:
    model = nn.Transformer(8, 2, 2, 1, 16, dropout=0.0, batch_first=True, dtype=torch.float64)
    return model.train(training)


def call(model: nn.Module) -> Tensor:
    out: Tensor = model(X, X, src_key_padding_mask=PADDING, memory_key_padding_mask=PADDING)
    return out


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A line for each time that this attention is called in the place of PyTorch's."""
    found: list[Any] = []
    real = sdpa._attend

    def count_calls(*args: Any, **named: Any) -> Tensor:
        found.append(named["backend"])
        return real(*args, **named)

    monkeypatch.setattr(sdpa, "_attend", count_calls)
    return found


def test_the_example_of_the_page_runs() -> None:
    exec(compile(examples()[2], "docs/integrations.md", "exec"), {})


@pytest.mark.parametrize("gradients", [True, False], ids=["grad", "no_grad"])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_a_transformer(training: bool, gradients: bool, calls: list[Any]) -> None:
    """Two layers of an encoder and one of a decoder attend four times; the memory of padding is
    hidden. Undone, the model is PyTorch's again."""
    model = transformer(training)
    names, before = set(model.state_dict()), list(model.parameters())
    with torch.set_grad_enabled(gradients):
        expected = call(model)
        assert swap_attention(model, backend="reference") == 4
        assert swap_attention(model, backend="reference") == 0
        out = call(model)
        assert calls == ["reference"] * 4
        torch.testing.assert_close(out, expected)
        assert set(model.state_dict()) == names
        assert all(a is b for a, b in zip(before, model.parameters(), strict=True))
        if gradients:
            both = [torch.autograd.grad(x.square().sum(), before) for x in (out, expected)]
            torch.testing.assert_close(*both)
        assert swap_back(model) == 4
        torch.testing.assert_close(call(model), expected)
    assert len(calls) == 4
    assert torch.backends.mha.get_fastpath_enabled()


def test_without_the_hook_the_fast_path_is_taken(calls: list[Any]) -> None:
    """The mistake that the hook is for: PyTorch's layer does not ask its attention."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    swap_attention(layer)
    with torch.no_grad():
        layer(X.float())
        assert len(calls) == 1
        layer.self_attn._hook.remove()
        layer(X.float())
    assert len(calls) == 1


def test_what_is_left_alone_and_refused() -> None:
    class Own(nn.MultiheadAttention):
        pass

    assert swap_attention(nn.ModuleList([Own(8, 2), nn.Linear(2, 2)])) == 0
    layer = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    expected = layer(X, X, X, need_weights=False)[0]
    assert swap_attention(layer) == 1
    torch.testing.assert_close(layer(X, X, X, need_weights=False)[0], expected)
    with pytest.raises(ValueError, match="need_weights must be False"):
        layer(X, X, X)
    unknown: Any = "cudnn"
    with pytest.raises(ValueError, match="backend must be one of"):
        swap_attention(layer, backend=unknown)


def test_a_swapped_model_can_be_saved(tmp_path: Any) -> None:
    model = transformer(training=False)
    expected = call(model)
    swap_attention(model)
    torch.save(model, tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)
    torch.testing.assert_close(call(loaded), expected)
