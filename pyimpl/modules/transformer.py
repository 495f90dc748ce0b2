"""The Transformer: from tokens to the logits of the next ones, as a module."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pyimpl.backends.dispatch import Backend
from pyimpl.internal import arguments as check
from pyimpl.internal.implements import implements
from pyimpl.modules.decoder import Decoder, DecoderCache, DecoderLayer
from pyimpl.modules.encoder import Encoder, EncoderLayer
from pyimpl.modules.internal.drops import PYTORCH, Drops
from pyimpl.modules.internal.generation import generate
from pyimpl.modules.internal.in_shards import checked_context, together
from pyimpl.modules.internal.padding import checked_padding, checked_tokens
from pyimpl.modules.internal.sizes import check_like_module, heads_of_model, positive
from pyimpl.modules.positions import Arrangement, encodings_at, sinusoidal_encoding

if TYPE_CHECKING:
    from pyimpl.distributed import ContextParallel


def _checked_table(given: Tensor, width: int) -> Tensor:
    """A table of positions; raises TypeError or ValueError unless it is one of this width."""
    check.check_floating({"positions": given}, ("max_len", "d_model"))
    if given.shape[1] != width:
        raise ValueError(
            f"positions must be [max_len, d_model] with d_model = {width}, not of shape "
            f"{check.shape(given)}"
        )
    return given.detach()


class Transformer(nn.Module):
    """Encoder and decoder over embedded tokens, and a linear map from the decoder's output to the
    logits of the next token: without scale_embeddings `Attention.Spec.Transformer.logitsNormed`,
    which with norm_first and without final_norm is `Attention.Spec.Transformer.logits`.

    Vaswani et al. 2017, "Attention Is All You Need", section 3. The sizes have the names that they
    have for `torch.nn.Transformer`, but for `num_heads` (its nhead); that one has no embeddings, no
    positional encoding and no logits, and leaves causality to a mask.

    Args:
        src_vocab_size, tgt_vocab_size: numbers of tokens, which are 0, …, size − 1.
        d_model: width of every layer, even unless positions is a table.
        num_heads: heads of attention, a number that divides d_model.
        num_encoder_layers, num_decoder_layers: how many, each at least 1.
        dim_feedforward: width inside the feed-forward networks.
        dropout: the probability with which numbers are dropped in training mode: in the layers
            (`EncoderLayer`), and of the sums of embeddings and positional encodings.
        norm_first: normalise the input of each sublayer, not its residual sum.
        final_norm: a layer normalisation behind the encoder and one behind the decoder.
        tie_embeddings: one matrix E embeds the tokens of both sides and maps to the logits, x Eᵀ,
            without a bias; the vocabularies are one.
        scale_embeddings: multiply embeddings by √d_model before the positional encoding is added
            (Vaswani et al., section 3.4).
        positions: the columns of the positional encoding, as for `sinusoidal_encoding`; or a table
            `[max_len, d_model]` whose rows are added, kept as a buffer and not trained.
        layer_norm_eps: added to the variance.
        bias: whether linear maps and normalisations add a bias.
        device, dtype: of the parameters.

    Raises:
        TypeError, ValueError: an argument that is none of these.
    """

    position_table: Tensor | None

    def __init__(
        self,
        src_vocab_size: int,
        tgt_vocab_size: int,
        d_model: int = 512,
        num_heads: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        *,
        norm_first: bool = True,
        final_norm: bool = True,
        tie_embeddings: bool = False,
        scale_embeddings: bool = True,
        positions: Arrangement | Tensor = "interleaved",
        layer_norm_eps: float = 1e-5,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = {"src_vocab_size": src_vocab_size, "tgt_vocab_size": tgt_vocab_size}
        sources, targets = (positive(name, size) for name, size in sizes.items())
        width, heads = heads_of_model(d_model, num_heads)
        flags = {
            "final_norm": final_norm,
            "tie_embeddings": tie_embeddings,
            "scale_embeddings": scale_embeddings,
        }
        for name, flag in flags.items():
            check.check_bool(name, flag)
        if tie_embeddings and sources != targets:
            raise ValueError(
                f"tgt_vocab_size must be src_vocab_size, {sources}, with tie_embeddings, not "
                f"{targets}"
            )
        table = None
        if isinstance(positions, Tensor):
            table = _checked_table(positions, width).to(device=device, dtype=dtype, copy=True)
        else:
            # An arrangement that does not exist is refused before the first tokens come.
            sinusoidal_encoding(0, width, arrangement=positions)
        self.d_model = width
        self.positions: Arrangement | None = None if isinstance(positions, Tensor) else positions
        self.register_buffer("position_table", table)
        self.embedding_scale = math.sqrt(width) if scale_embeddings else 1.0
        self.src_embedding = nn.Embedding(sources, width, device=device, dtype=dtype)
        self.tgt_embedding = (
            self.src_embedding
            if tie_embeddings
            else nn.Embedding(targets, width, device=device, dtype=dtype)
        )
        self.dropout = nn.Dropout(dropout)

        def norm() -> nn.LayerNorm | None:
            if not final_norm:
                return None
            return nn.LayerNorm(width, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        counts = (
            positive("num_encoder_layers", num_encoder_layers),
            positive("num_decoder_layers", num_decoder_layers),
        )
        sizes_of_layer = (width, heads, dim_feedforward, dropout)
        options: dict[str, Any] = {
            "norm_first": norm_first,
            "layer_norm_eps": layer_norm_eps,
            "bias": bias,
            "device": device,
            "dtype": dtype,
        }
        encoders = [EncoderLayer(*sizes_of_layer, **options) for _ in range(counts[0])]
        self.encoder = Encoder(encoders, norm())
        decoders = [DecoderLayer(*sizes_of_layer, **options) for _ in range(counts[1])]
        self.decoder = Decoder(decoders, norm())
        self.output = nn.Linear(
            width, targets, bias=bias and not tie_embeddings, device=device, dtype=dtype
        )
        if tie_embeddings:
            self._tie()
        self.reset_parameters()

    @implements("Attention.Spec.tiedOutput")
    def _tie(self) -> None:
        """One matrix for embeddings and logits."""
        self.output.weight = self.tgt_embedding.weight

    def reset_parameters(self) -> None:
        """Embeddings and output uniform after Glorot and Bengio (Xavier), its bias 0; the layers
        initialise themselves."""
        nn.init.xavier_uniform_(self.src_embedding.weight)
        if self.tgt_embedding is not self.src_embedding:
            nn.init.xavier_uniform_(self.tgt_embedding.weight)
            nn.init.xavier_uniform_(self.output.weight)
        if self.output.bias is not None:
            nn.init.zeros_(self.output.bias)

    @implements("Attention.Spec.Transformer.logitsNormed")
    @implements("Attention.Spec.Transformer.logits")
    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        *,
        src_lens: Tensor | None = None,
        src_key_mask: Tensor | None = None,
        tgt_lens: Tensor | None = None,
        tgt_key_mask: Tensor | None = None,
        dropout_seed: int | Tensor | None = None,
        context_parallel: ContextParallel | None = None,
        backend: Backend = "auto",
    ) -> Tensor:
        """The logits `[batch, tgt_len, tgt_vocab_size]` of the token after each of `tgt`.

        Args:
            src: `[batch, src_len]`, int32 or int64, at least 0 and below src_vocab_size.
            tgt: `[batch, tgt_len]`, likewise.
            src_lens: `[batch]`, int32 or int64: how many tokens of each source are there; those
                behind are padding, to which nothing attends.
            src_key_mask: `[batch, src_len]`, boolean, True = may be attended to; instead of
                `src_lens`.
            tgt_lens, tgt_key_mask: the same of the targets. With padding behind them they change
                no logits but those of the padding: the decoder is causal.
            dropout_seed: all dropout is drawn from it, a number by its place, as for
                `EncoderLayer`; from PyTorch's generators if None.
            context_parallel: src and tgt are the parts of the sequences that this process holds,
                and so are the logits; its shards are those of the targets, its key_shards those of
                the sources. Lengths and masks are of the whole sequences, the same in every
                process. With dropout in training mode dropout_seed must be given. The gradients of
                the parameters are by the logits of this process: their sum over the processes is
                that of all.
            backend: as for `pyimpl.attention`.

        Where a source is padding alone, attention over it adds the bias of its output, never NaN.

        Raises:
            TypeError, ValueError: an argument that is none of these.
        """
        context = checked_context(context_parallel)

        def prepare() -> tuple[Tensor | None, Tensor | None]:
            of_sources = None if context is None else context.of_keys()
            padding = self._checked_source(src, src_lens, src_key_mask, of_sources)
            self._checked_target(tgt, context)
            if src.shape[0] != tgt.shape[0]:
                raise ValueError(
                    f"tgt must have the batch of src, {src.shape[0]}, not {tgt.shape[0]}"
                )
            length = None if context is None else context.shards.length
            return padding, checked_padding("tgt", tgt, tgt_lens, tgt_key_mask, length)

        src_key_mask, tgt_key_mask = together(
            context, "Transformer", self.output.weight, prepare,
            lambda found: dict(zip(("src_key_mask", "tgt_key_mask"), found, strict=True)),
        )  # fmt: skip
        memory = self.encode(
            src, src_key_mask=src_key_mask, dropout_seed=dropout_seed, context_parallel=context,
            backend=backend,
        )  # fmt: skip
        return self.decode(
            tgt, memory, tgt_key_mask=tgt_key_mask, memory_key_mask=src_key_mask,
            dropout_seed=dropout_seed, context_parallel=context, backend=backend,
        )  # fmt: skip

    @implements("Attention.Spec.Transformer.probabilities")
    def probabilities(self, src: Tensor, tgt: Tensor, **options: Any) -> Tensor:
        """The probabilities of the token after each of `tgt`, the softmax of the logits, of their
        shape; arguments as for `forward`."""
        return self.forward(src, tgt, **options).softmax(-1)

    @implements("Attention.Spec.Transformer.encode")
    def encode(
        self,
        src: Tensor,
        *,
        src_lens: Tensor | None = None,
        src_key_mask: Tensor | None = None,
        dropout_seed: int | Tensor | None = None,
        context_parallel: ContextParallel | None = None,
        backend: Backend = "auto",
    ) -> Tensor:
        """The encoder's output, the memory `[batch, src_len, d_model]`. As for `forward`."""
        context = checked_context(context_parallel)
        context = None if context is None else context.of_keys()
        drops = Drops.of(dropout_seed, context, self.output.weight)
        mask = together(
            context, "Transformer.encode", self.output.weight,
            lambda: self._checked_source(src, src_lens, src_key_mask, context),
            lambda found: {"src_key_mask": found},
        )  # fmt: skip
        memory: Tensor = self.encoder(
            self._embed(src, self.src_embedding, drops=drops.site(0)), key_mask=mask,
            dropout_seed=drops.site(1).seed, context_parallel=context, backend=backend,
        )  # fmt: skip
        return memory

    def decode(
        self,
        tgt: Tensor,
        memory: Tensor,
        *,
        tgt_key_mask: Tensor | None = None,
        memory_key_mask: Tensor | None = None,
        dropout_seed: int | Tensor | None = None,
        context_parallel: ContextParallel | None = None,
        backend: Backend = "auto",
    ) -> Tensor:
        """The logits of the token after each of `tgt`, from the result of `encode`. As for
        `forward`; `memory_key_mask` is its src_key_mask."""
        cache = self.start_decoding(memory, memory_key_mask)
        return self.extend(
            tgt, cache, tgt_key_mask=tgt_key_mask, dropout_seed=dropout_seed,
            context_parallel=context_parallel, backend=backend,
        )[0]  # fmt: skip

    def start_decoding(self, memory: Tensor, memory_key_mask: Tensor | None = None) -> DecoderCache:
        """The decoder's cache before the first target: the keys and values of the memory, projected
        once."""
        check.check_floating({"memory": memory}, ("batch", "src_len", "d_model"))
        if memory.shape[2] != self.d_model:
            raise ValueError(
                f"the last dimension of memory must be d_model, {self.d_model}, not "
                f"{memory.shape[2]}"
            )
        first: Any = self.decoder.layers[0]
        check_like_module("memory", memory, first.cross_attn.q_proj.weight)
        return self.decoder.start(memory, memory_key_mask)

    def extend(
        self,
        tgt: Tensor,
        cache: DecoderCache,
        *,
        tgt_key_mask: Tensor | None = None,
        dropout_seed: int | Tensor | None = None,
        context_parallel: ContextParallel | None = None,
        backend: Backend = "auto",
    ) -> tuple[Tensor, DecoderCache]:
        """The logits `[batch, new, tgt_vocab_size]` after each of the tokens `tgt` `[batch, new]`,
        which follow those of the cache, and the cache with them. Earlier tokens are not computed
        again; `tgt_key_mask` is of all tokens so far. dropout_seed,
        context_parallel: as for `forward`, before the first targets alone."""
        context = checked_context(context_parallel)
        drops = Drops.of(dropout_seed, context, self.output.weight)

        def prepare() -> None:
            self._checked_target(tgt, context)
            self.decoder.check_cache(cache)
            batch = cache.layers[0].memory.keys.shape[0]
            if tgt.shape[0] != batch:
                raise ValueError(f"tgt must have the batch of memory, {batch}, not {tgt.shape[0]}")

        together(context, "Transformer.extend", self.output.weight, prepare, lambda _: {})
        x = self._embed(tgt, self.tgt_embedding, cache.length, drops.site(2))
        x, cache = self.decoder.extend(
            x, cache, key_mask=tgt_key_mask, dropout_seed=drops.site(3).seed,
            context_parallel=context, backend=backend,
        )  # fmt: skip
        return self.output(x), cache

    def _checked_source(
        self,
        src: Tensor,
        lens: Tensor | None,
        key_mask: Tensor | None,
        context: ContextParallel | None,
    ) -> Tensor | None:
        """Which sources are there; context: of sources. Raises TypeError or ValueError."""
        checked_tokens("src", src, self.src_embedding.num_embeddings)
        if context is not None:
            context.check_length("src", src.shape[1])
        length = None if context is None else context.shards.length
        return checked_padding("src", src, lens, key_mask, length)

    def _checked_target(self, tgt: Tensor, context: ContextParallel | None) -> None:
        """Raises TypeError or ValueError unless these are targets."""
        checked_tokens("tgt", tgt, self.tgt_embedding.num_embeddings)
        if context is not None:
            context.check_length("tgt", tgt.shape[1])

    def generate(
        self,
        src: Tensor,
        max_len: int,
        *,
        bos: int,
        eos: int,
        src_lens: Tensor | None = None,
        src_key_mask: Tensor | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        generator: torch.Generator | None = None,
        backend: Backend = "auto",
    ) -> Tensor:
        """The targets that the model gives to `src`, token by token with a cache: `[batch, length]`
        with length ≤ max_len, int64, without `bos`. Behind the first `eos` of a target stand more
        of them; it ends when all targets have one.

        Args:
            src, src_lens, src_key_mask, backend: as for `forward`.
            max_len: at most so many tokens, `eos` among them.
            bos, eos: the tokens before the first and behind the last.
            temperature: None for the likeliest token at each position (the first of several);
                otherwise tokens are drawn from softmax(logits / temperature), above 0.
            top_k: draw from the top_k likeliest tokens alone (and those as likely as the last).
            generator: of the random numbers; PyTorch's default for the device if None.

        Dropout is as the mode of the module says: call `eval()` first.

        Raises:
            TypeError, ValueError: an argument that is none of these.
        """
        return generate(
            self, src, max_len, bos=bos, eos=eos, src_lens=src_lens, src_key_mask=src_key_mask,
            temperature=temperature, top_k=top_k, generator=generator, backend=backend,
        )  # fmt: skip

    @implements("Attention.Spec.addPositions")
    @implements("Attention.Spec.embed")
    def _embed(
        self, tokens: Tensor, embedding: nn.Embedding, start: int = 0, drops: Drops = PYTORCH
    ) -> Tensor:
        """The embeddings of tokens at the positions from `start` on, or at those that their shard
        holds, with their encodings; dropout is drawn from `drops`."""
        x = embedding(tokens) * self.embedding_scale
        if drops.context is None:
            return drops.drop(self.dropout, x + self._places(start, tokens.shape[1], x))
        return drops.drop(self.dropout, x + self._places_in_shards(drops.context, x))

    def _places_in_shards(self, context: ContextParallel, like: Tensor) -> Tensor:
        """The encodings of the positions of this process's queries, `[length, d_model]`."""
        places = context.places(like.device)
        if self.position_table is None:
            arrangement = self.positions or "interleaved"
            return encodings_at(places.double(), self.d_model, arrangement, like.dtype)
        self._check_table(context.shards.length)
        return self.position_table[places].to(like.dtype)

    def _places(self, start: int, length: int, like: Tensor) -> Tensor:
        """The encodings of the positions from `start` on, `[length, d_model]`."""
        if self.position_table is None:
            return sinusoidal_encoding(
                length, self.d_model, start=start, arrangement=self.positions or "interleaved",
                device=like.device, dtype=like.dtype,
            )  # fmt: skip
        self._check_table(start + length)
        return self.position_table[start : start + length].to(like.dtype)

    def _check_table(self, length: int) -> None:
        """Raises ValueError where the table has fewer places."""
        if self.position_table is not None and length > len(self.position_table):
            raise ValueError(
                f"positions has {len(self.position_table)} places, fewer than the {length} tokens"
            )

    def extra_repr(self) -> str:
        """The options that the parts do not show."""
        tied = self.tgt_embedding is self.src_embedding
        return (
            f"d_model={self.d_model}, tie_embeddings={tied}, "
            f"scale_embeddings={self.embedding_scale != 1.0}, "
            f"positions={self.positions or 'a table'!r}"
        )
