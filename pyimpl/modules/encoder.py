"""The layer of a Transformer's encoder, and the encoder: layers one after another."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn

from pyimpl.backends.dispatch import Backend
from pyimpl.internal.implements import implements
from pyimpl.modules.feed_forward import FeedForward
from pyimpl.modules.internal import layer_conversion
from pyimpl.modules.internal.drops import Drops
from pyimpl.modules.internal.in_shards import checked_context
from pyimpl.modules.internal.sizes import heads_of_model
from pyimpl.modules.multi_head_attention import MultiHeadAttention
from pyimpl.modules.residual import Residual

if TYPE_CHECKING:
    from pyimpl.distributed import ContextParallel


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each in a `Residual`:
    `Attention.Spec.EncoderLayer.preNorm` with `norm_first`, otherwise `.postNorm`.

    Vaswani et al. 2017, "Attention Is All You Need", section 3.1. The arguments are those of
    `torch.nn.TransformerEncoderLayer`, but for `num_heads` (its nhead), `norm_first`, which is True
    here unless told otherwise, and the layout, which is always `[batch, length, d_model]`; the
    activation is max(0, x).

    Args:
        d_model: width of input and output.
        num_heads: heads of attention, a number that divides d_model.
        dim_feedforward: width inside the feed-forward network.
        dropout: the probability with which weights of attention, numbers between the two maps of
            the feed-forward network, and numbers of either output are dropped in training mode.
        norm_first: normalise the input of each sublayer, not its residual sum.
        layer_norm_eps: added to the variance.
        bias: whether linear maps and normalisations add a bias.
        device, dtype: of the parameters.

    Raises:
        TypeError, ValueError: an argument that is none of these.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        *,
        norm_first: bool = True,
        layer_norm_eps: float = 1e-5,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        width, heads = heads_of_model(d_model, num_heads)
        self.self_attn = MultiHeadAttention(
            width, heads, dropout=dropout, bias=bias, device=device, dtype=dtype
        )
        self.feed_forward = FeedForward(
            width, dim_feedforward, dropout=dropout, bias=bias, device=device, dtype=dtype
        )
        self.residual1, self.residual2 = (
            Residual(
                width, norm_first=norm_first, dropout=dropout, eps=layer_norm_eps, bias=bias,
                device=device, dtype=dtype,
            )
            for _ in range(2)
        )  # fmt: skip

    @implements("Attention.Spec.EncoderLayer.postNorm")
    @implements("Attention.Spec.EncoderLayer.preNorm")
    def forward(
        self,
        x: Tensor,
        *,
        attn_mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        is_causal: bool = False,
        dropout_seed: int | Tensor | None = None,
        context_parallel: ContextParallel | None = None,
        backend: Backend = "auto",
    ) -> Tensor:
        """The output, of the shape of `x`, `[batch, length, d_model]` or `[length, d_model]`.

        attn_mask, key_mask, is_causal, context_parallel, backend: as for `MultiHeadAttention`: True
        = may attend. dropout_seed: all of the layer's dropout is drawn from it, whether in shards
        or not, and so the same is dropped; in training mode it must be given with context_parallel,
        unless dropout is 0. Without it dropout is drawn from PyTorch's generators. Where nothing
        may be attended to, attention adds the bias of its output. Raises as it does.
        """
        context = checked_context(context_parallel)
        drops = Drops.of(dropout_seed, context, self.self_attn.q_proj.weight)

        def attend(x: Tensor) -> Tensor:
            out: Tensor = self.self_attn(
                x, attn_mask=attn_mask, key_mask=key_mask, is_causal=is_causal,
                dropout_seed=drops.site(0).seed, context_parallel=context, backend=backend,
            )  # fmt: skip
            return out

        x = self.residual1(x, attend, drops.site(1))
        feed_forward = partial(self.feed_forward, drops=drops.site(2))
        out: Tensor = self.residual2(x, feed_forward, drops.site(3))
        return out

    @classmethod
    def from_torch(cls, layer: nn.TransformerEncoderLayer) -> Self:
        """A layer with copies of the parameters, and the mode, of torch's, whose outputs it equals.

        Raises:
            TypeError: `layer` is something else.
            ValueError: its activation is not max(0, x).
        """
        return layer_conversion.encoder_layer(cls, layer)


class Encoder(nn.Module):
    """Layers one after another, and a layer normalisation behind them, if one is given: pre-norm
    layers leave their output unnormalised. `Attention.Spec.encode`, `.encodePostNorm`."""

    def __init__(self, layers: Iterable[EncoderLayer], norm: nn.LayerNorm | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    @implements("Attention.Spec.encodePostNorm")
    @implements("Attention.Spec.encode")
    def forward(
        self,
        x: Tensor,
        *,
        attn_mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        is_causal: bool = False,
        dropout_seed: int | Tensor | None = None,
        context_parallel: ContextParallel | None = None,
        backend: Backend = "auto",
    ) -> Tensor:
        """The output, of the shape of `x`; arguments as for `EncoderLayer`, the same in each layer,
        but for the seed, of which each layer has its own."""
        context = checked_context(context_parallel)
        drops = Drops.of(dropout_seed, context, x)
        for i, layer in enumerate(self.layers):
            x = layer(
                x, attn_mask=attn_mask, key_mask=key_mask, is_causal=is_causal,
                dropout_seed=drops.site(i).seed, context_parallel=context, backend=backend,
            )  # fmt: skip
        return x if self.norm is None else self.norm(x)
