"""Parameters from the layers of `torch.nn`'s Transformer to those here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from pyimpl.modules.decoder import DecoderLayer
    from pyimpl.modules.encoder import EncoderLayer
    from pyimpl.modules.multi_head_attention import MultiHeadAttention

    OurEncoder = TypeVar("OurEncoder", bound=EncoderLayer)
    OurDecoder = TypeVar("OurDecoder", bound=DecoderLayer)


def encoder_layer(kind: type[OurEncoder], layer: nn.TransformerEncoderLayer) -> OurEncoder:
    """`EncoderLayer.from_torch` of the class `kind`."""
    ours = kind(**_options(layer, nn.TransformerEncoderLayer))
    ours.self_attn = _attention(type(ours.self_attn), layer.self_attn)
    _copy_rest(ours, layer, 2)
    return ours.train(layer.training)


def decoder_layer(kind: type[OurDecoder], layer: nn.TransformerDecoderLayer) -> OurDecoder:
    """`DecoderLayer.from_torch` of the class `kind`."""
    ours = kind(**_options(layer, nn.TransformerDecoderLayer))
    ours.self_attn = _attention(type(ours.self_attn), layer.self_attn)
    ours.cross_attn = _attention(type(ours.cross_attn), layer.multihead_attn)
    _copy_rest(ours, layer, 3)
    return ours.train(layer.training)


def _options(given: object, wanted: type[nn.Module]) -> dict[str, Any]:
    """The arguments for a layer of ours, on the meta device, where no random numbers are drawn."""
    if not isinstance(given, wanted):
        raise TypeError(f"layer must be a torch.nn.{wanted.__name__}, not {type(given).__name__}")
    layer: Any = given
    activation = layer.activation
    if activation is not nn.functional.relu and not isinstance(activation, nn.ReLU):
        raise ValueError(f"the activation of layer must be relu, not {activation!r}")
    return {
        "d_model": layer.linear1.in_features,
        "num_heads": layer.self_attn.num_heads,
        "dim_feedforward": layer.linear1.out_features,
        "dropout": layer.dropout.p,
        "norm_first": layer.norm_first,
        "layer_norm_eps": layer.norm1.eps,
        "bias": layer.linear1.bias is not None,
        "device": "meta",
        "dtype": layer.linear1.weight.dtype,
    }


def _attention(kind: type[MultiHeadAttention], theirs: nn.MultiheadAttention) -> MultiHeadAttention:
    ours = kind.from_torch(theirs)
    ours.batch_first = True  # The layers' layout, whatever theirs was; no parameter depends on it.
    return ours


def _copy_rest(ours: Any, theirs: Any, residuals: int) -> None:
    """Feed-forward network and normalisations."""
    ours.feed_forward.to_empty(device=theirs.linear1.weight.device)
    pairs = [(ours.feed_forward.linear1, theirs.linear1)]
    pairs.append((ours.feed_forward.linear2, theirs.linear2))
    for i in range(1, residuals + 1):
        residual = getattr(ours, f"residual{i}").to_empty(device=theirs.linear1.weight.device)
        pairs.append((residual.norm, getattr(theirs, f"norm{i}")))
    _copy(pairs)


@torch.no_grad()
def _copy(pairs: Iterable[tuple[nn.Module, nn.Module]]) -> None:
    for ours, theirs in pairs:
        given: dict[str, Tensor] = dict(theirs.named_parameters())
        for name, parameter in ours.named_parameters():
            parameter.copy_(given[name]).requires_grad_(given[name].requires_grad)
