"""Helpers of the modules' tests by the Spec in Python: sizes, inputs, and a module's parameters
as the definitions have them, in decimal numbers of 50 digits or others."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import torch
from module_checks import normal
from torch import Tensor, nn

from bridge.spec import feed_forward, layer_norm, linear, masks, multi_head
from bridge.spec import transformer_layer as layers
from bridge.spec.attention import Mask
from bridge.spec.core import Arithmetic
from pyimpl.modules import DecoderLayer, EncoderLayer, FeedForward, MultiHeadAttention

DIGITS = Context(prec=50)
NUM = Arithmetic(Decimal.exp, Decimal, Decimal)
LENGTH, MEMORY, WIDTH, HEADS, HIDDEN, VOCAB = 4, 5, 6, 2, 7, 5
SIZES = {"d_model": WIDTH, "num_heads": HEADS, "d": WIDTH // HEADS, "d_ff": HIDDEN}
EPS = Decimal.from_float(1e-5)
X, CONTEXT = normal(LENGTH, WIDTH, seed=0), normal(MEMORY, WIDTH, seed=1)
VISIBLE = torch.tensor([True, True, False, True, False])
NOTHING = torch.zeros(MEMORY, dtype=torch.bool)

Number = Callable[[float], Any]


def rows(x: Tensor, number: Number = Decimal) -> list[list[Any]]:
    return [[number(a) for a in row] for row in x.tolist()]


def vector(x: Tensor | None, width: int, number: Number = Decimal) -> list[Any]:
    return [number(0)] * width if x is None else [number(a) for a in x.tolist()]


def of_linear(module: nn.Linear, number: Number = Decimal) -> linear.Linear:
    bias = vector(module.bias, module.out_features, number)
    return linear.Linear(rows(module.weight, number), bias)


def of_norm(module: nn.LayerNorm) -> layer_norm.LayerNorm:
    return layer_norm.LayerNorm(vector(module.weight, 0), vector(module.bias, WIDTH))


def of_attention(module: MultiHeadAttention) -> multi_head.MultiHead:
    projections = (module.q_proj, module.k_proj, module.v_proj, module.out_proj)
    return multi_head.MultiHead(*map(of_linear, projections))


def of_feed_forward(module: FeedForward, number: Number = Decimal) -> feed_forward.FeedForward:
    maps = (of_linear(module.linear1, number), of_linear(module.linear2, number))
    return feed_forward.FeedForward(*maps)


def of_encoder(layer: EncoderLayer) -> layers.EncoderLayer:
    return layers.EncoderLayer(
        of_attention(layer.self_attn), of_norm(layer.residual1.norm),
        of_feed_forward(layer.feed_forward), of_norm(layer.residual2.norm),
    )  # fmt: skip


def of_decoder(layer: DecoderLayer) -> layers.DecoderLayer:
    return layers.DecoderLayer(
        of_attention(layer.self_attn), of_norm(layer.residual1.norm),
        of_attention(layer.cross_attn), of_norm(layer.residual2.norm),
        of_feed_forward(layer.feed_forward), of_norm(layer.residual3.norm),
    )  # fmt: skip


def keys(visible: Tensor) -> Mask:
    return masks.mask_key_padding(visible.tolist())


def causal() -> Mask:
    return masks.mask_causal(masks.Alignment.TOP_LEFT, q_len=LENGTH, kv_len=LENGTH)


def scale() -> Decimal:
    return 1 / Decimal(WIDTH // HEADS).sqrt()
