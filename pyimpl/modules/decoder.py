"""The layer of a Transformer's decoder, and the decoder, over whole targets or position by
position with a cache of keys and values.

There is one computation for both: over whole targets it is that of the positions which follow an
empty cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Self, cast

import torch
from torch import Tensor, nn

from pyimpl.backends.dispatch import Backend
from pyimpl.internal.implements import implements
from pyimpl.modules.feed_forward import FeedForward
from pyimpl.modules.internal import layer_conversion
from pyimpl.modules.internal.drops import Drops
from pyimpl.modules.internal.in_shards import checked_context
from pyimpl.modules.internal.sizes import heads_of_model
from pyimpl.modules.keys_values import KeysValues
from pyimpl.modules.multi_head_attention import MultiHeadAttention
from pyimpl.modules.residual import Residual

if TYPE_CHECKING:
    from pyimpl.distributed import ContextParallel


@dataclass(frozen=True)
class LayerCache:
    """The state of a decoder layer: the keys and values of the targets so far, None for none, and
    those of the memory, projected once."""

    targets: KeysValues | None
    memory: KeysValues


@dataclass(frozen=True)
class DecoderCache:
    """The state of a decoder: that of each layer, which positions of the memory may be attended to,
    `[batch, memory_len]` (None: all), and how many targets there are so far."""

    layers: tuple[LayerCache, ...]
    memory_key_mask: Tensor | None
    length: int = 0


class DecoderLayer(nn.Module):
    """Causal self-attention, attention over the memory, then the feed-forward network, each in a
    `Residual`: `Attention.Spec.DecoderLayer.preNorm` with `norm_first`, otherwise `.postNorm`.

    Vaswani et al. 2017, section 3.1. The arguments are those of `EncoderLayer`. Self-attention is
    always causal, which `torch.nn.TransformerDecoderLayer` leaves to a mask.
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
        self.self_attn, self.cross_attn = (
            MultiHeadAttention(
                width, heads, dropout=dropout, bias=bias, device=device, dtype=dtype
            )
            for _ in range(2)
        )  # fmt: skip
        self.feed_forward = FeedForward(
            width, dim_feedforward, dropout=dropout, bias=bias, device=device, dtype=dtype
        )
        self.residual1, self.residual2, self.residual3 = (
            Residual(
                width, norm_first=norm_first, dropout=dropout, eps=layer_norm_eps, bias=bias,
                device=device, dtype=dtype,
            )
            for _ in range(3)
        )  # fmt: skip

    @implements("Attention.Spec.DecoderLayer.postNorm")
    @implements("Attention.Spec.DecoderLayer.preNorm")
    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        key_mask: Tensor | None = None,
        memory_key_mask: Tensor | None = None,
        dropout_seed: int | Tensor | None = None,
        context_parallel: ContextParallel | None = None,
        backend: Backend = "auto",
    ) -> Tensor:
        """The output, of the shape of `x`, `[batch, length, d_model]` or `[length, d_model]`.

        memory: the encoder's output, `[batch, memory_len, d_model]` or `[memory_len, d_model]`.
        key_mask, memory_key_mask: which positions of `x` and of `memory` may be attended to, as
        `key_mask` of `MultiHeadAttention`. dropout_seed: as for `EncoderLayer`. context_parallel:
        as for `MultiHeadAttention`; its key_shards are those of the memory. Raises as that does.
        """
        return self.extend(
            x, self.start(memory), key_mask=key_mask, memory_key_mask=memory_key_mask,
            dropout_seed=dropout_seed, context_parallel=context_parallel, backend=backend,
        )[0]  # fmt: skip

    def start(self, memory: Tensor) -> LayerCache:
        """The cache before the first target."""
        return LayerCache(None, self.cross_attn.project(memory))

    @implements("Attention.Spec.DecoderLayer.step")
    def extend(
        self,
        x: Tensor,
        cache: LayerCache,
        *,
        key_mask: Tensor | None = None,
        memory_key_mask: Tensor | None = None,
        dropout_seed: int | Tensor | None = None,
        context_parallel: ContextParallel | None = None,
        backend: Backend = "auto",
    ) -> tuple[Tensor, LayerCache]:
        """The output at the positions `x`, which follow those of the cache, and the cache with
        them; `key_mask` is of all these positions. One position is `Attention.Spec`'s step.

        dropout_seed, context_parallel: as for `forward`, before the first targets alone.
        """
        context = checked_context(context_parallel)
        if cache.targets is not None and (context is not None or dropout_seed is not None):
            raise ValueError(
                "dropout_seed and context_parallel must be None where the cache has targets: they "
                "are for all targets at once"
            )
        drops = Drops.of(dropout_seed, context, self.self_attn.q_proj.weight)
        own_context = None if context is None else context.of_queries()
        kept = cache

        def attend_targets(x: Tensor) -> Tensor:
            nonlocal kept
            own = self.self_attn.project(x)
            own = own if cache.targets is None else cache.targets.concatenate(own)
            kept = replace(cache, targets=own)
            out: Tensor = self.self_attn(
                x, projected=own, key_mask=key_mask, is_causal=True,
                causal_alignment="bottom-right", dropout_seed=drops.site(0).seed,
                context_parallel=own_context, backend=backend,
            )  # fmt: skip
            return out

        def attend_memory(x: Tensor) -> Tensor:
            out: Tensor = self.cross_attn(
                x, projected=cache.memory, key_mask=memory_key_mask,
                dropout_seed=drops.site(2).seed, context_parallel=context, backend=backend,
            )  # fmt: skip
            return out

        x = self.residual1(x, attend_targets, drops.site(1))
        x = self.residual2(x, attend_memory, drops.site(3))
        feed_forward = partial(self.feed_forward, drops=drops.site(4))
        return self.residual3(x, feed_forward, drops.site(5)), kept

    @classmethod
    def from_torch(cls, layer: nn.TransformerDecoderLayer) -> Self:
        """A layer with copies of the parameters, and the mode, of torch's, whose outputs it equals
        when that is given a causal mask.

        Raises:
            TypeError: `layer` is something else.
            ValueError: its activation is not max(0, x).
        """
        return layer_conversion.decoder_layer(cls, layer)


class Decoder(nn.Module):
    """Layers one after another, and a layer normalisation behind them, if one is given:
    `Attention.Spec.decode`, `.decodePostNorm`."""

    def __init__(self, layers: Iterable[DecoderLayer], norm: nn.LayerNorm | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    @implements("Attention.Spec.decodePostNorm")
    @implements("Attention.Spec.decode")
    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        key_mask: Tensor | None = None,
        memory_key_mask: Tensor | None = None,
        dropout_seed: int | Tensor | None = None,
        context_parallel: ContextParallel | None = None,
        backend: Backend = "auto",
    ) -> Tensor:
        """The output, of the shape of `x`; arguments as for `DecoderLayer`, but for the seed, of
        which each layer has its own."""
        cache = self.start(memory, memory_key_mask)
        return self.extend(
            x, cache, key_mask=key_mask, dropout_seed=dropout_seed,
            context_parallel=context_parallel, backend=backend,
        )[0]  # fmt: skip

    def start(self, memory: Tensor, memory_key_mask: Tensor | None = None) -> DecoderCache:
        """The cache before the first target."""
        return DecoderCache(tuple(layer.start(memory) for layer in self._layers()), memory_key_mask)

    @implements("Attention.Spec.decodeCached")
    @implements("Attention.Spec.decodeStep")
    def extend(
        self,
        x: Tensor,
        cache: DecoderCache,
        *,
        key_mask: Tensor | None = None,
        dropout_seed: int | Tensor | None = None,
        context_parallel: ContextParallel | None = None,
        backend: Backend = "auto",
    ) -> tuple[Tensor, DecoderCache]:
        """The output at the positions `x`, which follow those of the cache, and the cache with
        them; `key_mask` is of all these positions. dropout_seed, context_parallel: as for
        `forward`, before the first targets alone."""
        self.check_cache(cache)
        context = checked_context(context_parallel)
        drops = Drops.of(dropout_seed, context, x)
        length, layers = cache.length + x.shape[-2], []
        for i, (layer, own) in enumerate(zip(self._layers(), cache.layers, strict=True)):
            x, own = layer.extend(
                x, own, key_mask=key_mask, memory_key_mask=cache.memory_key_mask,
                dropout_seed=drops.site(i).seed, context_parallel=context, backend=backend,
            )  # fmt: skip
            layers.append(own)
        x = x if self.norm is None else self.norm(x)
        return x, replace(cache, layers=tuple(layers), length=length)

    def check_cache(self, cache: object) -> None:
        """Raises TypeError or ValueError unless this is a cache of so many layers."""
        if not isinstance(cache, DecoderCache):
            raise TypeError(f"cache must be a DecoderCache, not {type(cache).__name__}")
        if len(cache.layers) != len(self.layers):
            raise ValueError(
                f"cache must be of as many layers as the decoder has, {len(self.layers)}, not "
                f"{len(cache.layers)}"
            )

    def _layers(self) -> list[DecoderLayer]:
        """The layers by their type, which `ModuleList` does not keep."""
        return cast(list[DecoderLayer], list(self.layers))
