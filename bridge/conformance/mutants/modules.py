"""Mutants of `pyimpl.modules`: mistakes that real transformers had or could have.

Each must be caught by a vector of the families that are made for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bridge.conformance.adapters.modules import wrong
from bridge.conformance.mutants.planted_package import copied_modules
from bridge.conformance.mutants.planting import Mutant, mutants_of
from bridge.conformance.tolerances.module_tolerance import NoBound
from bridge.vectors.model.attention import Family
from bridge.vectors.model.transformers import LayerVector, TransformerVector

_NORM = "out: Tensor = self.norm(x)"
_BEFORE = "x + drops.drop(self.dropout, sublayer(self._norm(x)))"
_AFTER = "self._norm(x + drops.drop(self.dropout, sublayer(x)))"


def _norm(deviation: str) -> str:
    """A normalisation with another deviation."""
    return (
        "c = x - x.mean(-1, keepdim=True)\n"
        f"        deviation = {deviation}\n"
        "        out: Tensor = c / deviation * self.norm.weight + self.norm.bias"
    )


_in_residual = mutants_of("modules/residual.py")
_in_feed_forward = mutants_of("modules/feed_forward.py")
_in_attention = mutants_of("modules/multi_head_attention.py")
_in_encoder = mutants_of("modules/encoder.py")
_in_decoder = mutants_of("modules/decoder.py")
_in_cache = mutants_of("modules/keys_values.py")
_in_model = mutants_of("modules/transformer.py")
_in_internal_generation = mutants_of("modules/internal/generation.py")

MODULE_MUTANTS: tuple[Mutant, ...] = (
    _in_residual(
        "normalised-after", "layers that are to be normalised before are normalised after",
        _BEFORE, _AFTER, ("encoder-layer", "decoder-layer"),
    ),
    _in_residual(
        "normalised-before", "layers that are to be normalised after are normalised before",
        _AFTER, _BEFORE, ("encoder-layer", "decoder-layer"),
    ),
    _in_residual(
        "no-residual",
        "the output of attention or of the feed-forward network takes the place of the sum",
        _BEFORE, "drops.drop(self.dropout, sublayer(self._norm(x)))",
        ("encoder-layer", "decoder-layer"),
    ),
    _in_residual(
        "residual-of-the-normalised", "the output is added to the normalised input",
        _BEFORE, "self._norm(x) + drops.drop(self.dropout, sublayer(self._norm(x)))",
        ("encoder-layer", "decoder-layer"),
    ),
    _in_residual(
        "eps-outside-the-root", "ε is added to the deviation, not to the variance",
        _NORM, _norm("c.square().mean(-1, keepdim=True).sqrt() + self.norm.eps"), ("layer-norm",),
    ),
    _in_residual(
        "no-eps", "nothing is added to the variance",
        _NORM, _norm("c.square().mean(-1, keepdim=True).sqrt()"), ("layer-norm",),
    ),
    _in_residual(
        "divisor-less-one", "the variance is that of a sample, with the divisor n − 1",
        _NORM,
        _norm("(c.square().sum(-1, keepdim=True) / (c.shape[-1] - 1) + self.norm.eps).sqrt()"),
        ("layer-norm",),
    ),
    _in_residual(
        "mean-not-taken", "the root of the mean square is divided by, and no mean is taken away",
        "out: Tensor = self.norm(x)",
        "c = x\n"
        "        deviation = (c.square().mean(-1, keepdim=True) + self.norm.eps).sqrt()\n"
        "        out: Tensor = c / deviation * self.norm.weight + self.norm.bias",
        ("layer-norm",),
    ),
    _in_feed_forward(
        "no-relu", "the feed-forward network is two linear maps",
        "torch.relu(self.linear1(x))", "self.linear1(x)", ("feed-forward",),
    ),
    _in_feed_forward(
        "another-activation", "the feed-forward network has GELU",
        "torch.relu(self.linear1(x))", "nn.functional.gelu(self.linear1(x))", ("feed-forward",),
    ),
    _in_attention(
        "heads-interleaved", "head h has every num_heads-th column, not those from h · head_dim on",
        "projected.reshape(*projected.shape[:-1], count, width)",
        "projected.reshape(*projected.shape[:-1], width, count).transpose(-1, -2)",
        ("multi-head-layer",),
    ),
    _in_attention(
        "heads-not-transposed", "the numbers of a sequence are cut into heads as they lie",
        "projected.reshape(*projected.shape[:-1], count, width)",
        "projected.reshape(projected.shape[0], count, -1, width).transpose(1, 2)",
        ("multi-head-layer",),
    ),
    _in_attention(
        "heads-joined-by-columns", "the heads' outputs are put side by side column by column",
        "out = heads.flatten(-2)", "out = heads.transpose(-1, -2).flatten(-2)",
        ("multi-head-layer",),
    ),
    _in_attention(
        "no-scale", "the scores are not scaled",
        'changes["scale"] = self.scale', 'changes["scale"] = 1.0', ("multi-head-layer",),
    ),
    _in_attention(
        "scale-of-the-model", "the scale is 1/√d_model",
        'changes["scale"] = self.scale', 'changes["scale"] = self.query_dim**-0.5',
        ("multi-head-layer",),
    ),
    _in_attention(
        "keys-and-values-exchanged",
        "keys are projected from the values' input, and values from the keys' input",
        "KeysValues(self._sequences(self.k_proj(key)), self._sequences(self.v_proj(value)))",
        "KeysValues(self._sequences(self.k_proj(value)), self._sequences(self.v_proj(key)))",
        ("multi-head-layer",),
    ),
    _in_attention(
        "output-not-projected", "the heads' outputs are given out side by side",
        "result: Tensor = self.out_proj(out)", "result: Tensor = out[..., : self.output_dim]",
        ("multi-head-layer",),
    ),
    _in_encoder(
        "padding-attended", "an encoder attends to padding",
        "x, attn_mask=attn_mask, key_mask=key_mask, is_causal=is_causal,\n"
        "                dropout_seed=drops.site(0)",
        "x, attn_mask=attn_mask, is_causal=is_causal,\n"
        "                dropout_seed=drops.site(0)",
        ("encoder-layer",),
    ),
    _in_encoder(
        "no-norm-behind-the-encoder", "the normalisation behind an encoder is left out",
        "return x if self.norm is None else self.norm(x)", "return x", ("encoder-stack",),
    ),
    _in_encoder(
        "last-layer-dropped", "the last layer of an encoder is left out",
        "enumerate(self.layers)", "enumerate(list(self.layers)[:-1])", ("encoder-stack",),
    ),
    _in_decoder(
        "not-causal", "targets attend to later ones",
        "is_causal=True", "is_causal=False", ("decoder-layer", "decoder-stack"),
    ),
    _in_decoder(
        "causal-from-the-first", "with a cache the last query stands at the first key",
        'causal_alignment="bottom-right"', 'causal_alignment="top-left"', ("cached-decoding",),
    ),
    _in_decoder(
        "context-unmasked", "a decoder attends to padding of the encoder's output",
        "projected=cache.memory, key_mask=memory_key_mask", "projected=cache.memory, key_mask=None",
        ("decoder-layer", "cached-decoding"),
    ),
    _in_decoder(
        "targets-unmasked", "a decoder attends to padding among its targets",
        "x, projected=own, key_mask=key_mask", "x, projected=own, key_mask=None",
        ("decoder-layer", "decoder-stack"),
    ),
    _in_decoder(
        "context-by-the-other-attention",
        "keys and values of the context are projected by self-attention",
        "LayerCache(None, self.cross_attn.project(memory))",
        "LayerCache(None, self.self_attn.project(memory))", ("decoder-layer",),
    ),
    _in_decoder(
        "no-norm-behind-the-decoder", "the normalisation behind a decoder is left out",
        "x = x if self.norm is None else self.norm(x)", "x = x", ("decoder-stack",),
    ),
    _in_cache(
        "cache-forgets-the-first", "the cache is one row short: the oldest goes with each new one",
        "torch.cat((self.keys, later.keys), 1), torch.cat((self.values, later.values), 1)",
        "torch.cat((self.keys[:, 1:], later.keys), 1),\n"
        "            torch.cat((self.values[:, 1:], later.values), 1),",
        ("cached-decoding",),
    ),
    _in_decoder(
        "cache-without-the-new-row",
        "the cache is one row behind: a query does not see its own key",
        "own = own if cache.targets is None else cache.targets.concatenate(own)",
        "own = own if cache.targets is None else cache.targets", ("cached-decoding",),
    ),
    _in_cache(
        "cached-values-in-another-order",
        "a new value goes before those of the cache, its key behind",
        "torch.cat((self.values, later.values), 1)", "torch.cat((later.values, self.values), 1)",
        ("cached-decoding",),
    ),
    _in_model(
        "places-from-zero", "with a cache each token stands at place 0",
        "self._embed(tgt, self.tgt_embedding, cache.length, drops.site(2))",
        "self._embed(tgt, self.tgt_embedding, drops=drops.site(2))",
        ("transformer", "transformer-positions"),
    ),
    _in_model(
        "no-positions", "the embeddings enter without the numbers of their positions",
        "x + self._places(start, tokens.shape[1], x)", "x",
        ("transformer-positions",),
    ),
    _in_model(
        "one-embedding", "targets have the embeddings of the sources",
        "self._embed(tgt, self.tgt_embedding, cache.length, drops.site(2))",
        "self._embed(tgt.clamp(max=len(self.src_embedding.weight) - 1), self.src_embedding,"
        " cache.length, drops.site(2))",
        ("transformer",),
    ),
    _in_model(
        "embeddings-scaled", "embeddings are multiplied by √d_model although they are not to be",
        "x = embedding(tokens) * self.embedding_scale",
        "x = embedding(tokens) * math.sqrt(self.d_model)", ("transformer", "transformer-tied"),
    ),
    _in_model(
        "shares-of-the-targets", "the probabilities are taken along the targets",
        "self.forward(src, tgt, **options).softmax(-1)",
        "self.forward(src, tgt, **options).softmax(-2)", ("transformer",),
    ),
    _in_internal_generation(
        "least-likely-token", "the token with the smallest logit is taken",
        "return logits.argmax(-1)", "return logits.argmin(-1)", ("transformer",),
    ),
)  # fmt: skip


def catch(mutant: Mutant, families: Sequence[Family], dtype: torch.dtype) -> tuple[str, str] | None:
    """The first vector of the families that are made for the mutant which catches it, and its
    finding; None if none does. Raises MutantError where the mutant no longer applies."""
    with copied_modules(mutant.file, mutant.apply) as package:
        for family in (f for name in mutant.promising for f in families if f.name == name):
            for vector in family.vectors:
                assert isinstance(vector, (LayerVector, TransformerVector))
                try:
                    found = next(wrong(vector, dtype, package), None)
                except NoBound:
                    continue
                if found is not None:
                    return vector.id, found
    return None
