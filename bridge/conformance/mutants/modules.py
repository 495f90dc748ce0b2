"""Mutants of `pyimpl.modules`: mistakes that real transformers had or could have.

Each must be caught by a vector of the families that are made for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bridge.conformance.adapters.modules import wrong
from bridge.conformance.mutants.planted_package import copied_modules
from bridge.conformance.mutants.planting import Mutant
from bridge.conformance.tolerances.module_tolerance import NoBound
from bridge.vectors.model.attention import Family
from bridge.vectors.model.transformers import LayerVector, TransformerVector

_ATTENTION = "modules/multi_head_attention.py"
_RESIDUAL = "modules/residual.py"
_ENCODER = "modules/encoder.py"
_DECODER = "modules/decoder.py"
_CACHE = "modules/keys_values.py"
_MODEL = "modules/transformer.py"
_NORM = "out: Tensor = self.norm(x)"
_BEFORE = "x + self._drop(sublayer(self._norm(x)))"
_AFTER = "self._norm(x + self._drop(sublayer(x)))"


def _norm(deviation: str) -> str:
    """A normalisation with another deviation."""
    return (
        "c = x - x.mean(-1, keepdim=True)\n"
        f"        deviation = {deviation}\n"
        "        out: Tensor = c / deviation * self.norm.weight + self.norm.bias"
    )


MODULE_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "normalised-after",
        "layers that are to be normalised before are normalised after",
        _RESIDUAL,
        _BEFORE,
        _AFTER,
        promising=("encoder-layer", "decoder-layer"),
    ),
    Mutant(
        "normalised-before",
        "layers that are to be normalised after are normalised before",
        _RESIDUAL,
        _AFTER,
        _BEFORE,
        promising=("encoder-layer", "decoder-layer"),
    ),
    Mutant(
        "no-residual",
        "what attention and the feed-forward network give takes the place of the sum",
        _RESIDUAL,
        _BEFORE,
        "self._drop(sublayer(self._norm(x)))",
        promising=("encoder-layer", "decoder-layer"),
    ),
    Mutant(
        "residual-of-the-normalised",
        "what is added to is the normalised input",
        _RESIDUAL,
        _BEFORE,
        "self._norm(x) + self._drop(sublayer(self._norm(x)))",
        promising=("encoder-layer", "decoder-layer"),
    ),
    Mutant(
        "eps-outside-the-root",
        "ε is added to the deviation, not to the variance",
        _RESIDUAL,
        _NORM,
        _norm("c.square().mean(-1, keepdim=True).sqrt() + self.norm.eps"),
        promising=("layer-norm",),
    ),
    Mutant(
        "no-eps",
        "nothing is added to the variance",
        _RESIDUAL,
        _NORM,
        _norm("c.square().mean(-1, keepdim=True).sqrt()"),
        promising=("layer-norm",),
    ),
    Mutant(
        "divisor-less-one",
        "the variance is that of a sample, with the divisor n − 1",
        _RESIDUAL,
        _NORM,
        _norm("(c.square().sum(-1, keepdim=True) / (c.shape[-1] - 1) + self.norm.eps).sqrt()"),
        promising=("layer-norm",),
    ),
    Mutant(
        "mean-not-taken",
        "the root of the mean square is divided by, and no mean is taken away",
        _RESIDUAL,
        "out: Tensor = self.norm(x)",
        "c = x\n"
        "        deviation = (c.square().mean(-1, keepdim=True) + self.norm.eps).sqrt()\n"
        "        out: Tensor = c / deviation * self.norm.weight + self.norm.bias",
        promising=("layer-norm",),
    ),
    Mutant(
        "no-relu",
        "the feed-forward network is two linear maps",
        "modules/feed_forward.py",
        "torch.relu(self.linear1(x))",
        "self.linear1(x)",
        promising=("feed-forward",),
    ),
    Mutant(
        "another-activation",
        "the feed-forward network has GELU",
        "modules/feed_forward.py",
        "torch.relu(self.linear1(x))",
        "nn.functional.gelu(self.linear1(x))",
        promising=("feed-forward",),
    ),
    Mutant(
        "heads-interleaved",
        "head h has every num_heads-th column, not those from h · head_dim on",
        _ATTENTION,
        "projected.reshape(*projected.shape[:-1], count, width)",
        "projected.reshape(*projected.shape[:-1], width, count).transpose(-1, -2)",
        promising=("multi-head-layer",),
    ),
    Mutant(
        "heads-not-transposed",
        "the numbers of a sequence are cut into heads as they lie",
        _ATTENTION,
        "projected.reshape(*projected.shape[:-1], count, width)",
        "projected.reshape(projected.shape[0], count, -1, width).transpose(1, 2)",
        promising=("multi-head-layer",),
    ),
    Mutant(
        "heads-joined-by-columns",
        "the heads' outputs are put side by side column by column",
        _ATTENTION,
        "out = heads.flatten(-2)",
        "out = heads.transpose(-1, -2).flatten(-2)",
        promising=("multi-head-layer",),
    ),
    Mutant(
        "no-scale",
        "the scores are not scaled",
        _ATTENTION,
        "scale=self.scale if scale is None else scale",
        "scale=1.0",
        promising=("multi-head-layer",),
    ),
    Mutant(
        "scale-of-the-model",
        "the scale is 1/√d_model",
        _ATTENTION,
        "scale=self.scale if scale is None else scale",
        "scale=self.query_dim**-0.5",
        promising=("multi-head-layer",),
    ),
    Mutant(
        "keys-and-values-exchanged",
        "keys are made of what values are to be made of, and values of the other",
        _ATTENTION,
        "KeysValues(self._sequences(self.k_proj(key)), self._sequences(self.v_proj(value)))",
        "KeysValues(self._sequences(self.k_proj(value)), self._sequences(self.v_proj(key)))",
        promising=("multi-head-layer",),
    ),
    Mutant(
        "output-not-projected",
        "the heads' outputs are given out side by side",
        _ATTENTION,
        "result: Tensor = self.out_proj(out)",
        "result: Tensor = out[..., : self.output_dim]",
        promising=("multi-head-layer",),
    ),
    Mutant(
        "padding-attended",
        "an encoder attends to padding",
        _ENCODER,
        "x, attn_mask=attn_mask, key_mask=key_mask, is_causal=is_causal, backend=backend\n"
        "            )\n"
        "            return out",
        "x, attn_mask=attn_mask, is_causal=is_causal, backend=backend\n"
        "            )\n"
        "            return out",
        promising=("encoder-layer",),
    ),
    Mutant(
        "no-norm-behind-the-encoder",
        "the normalisation behind an encoder is left out",
        _ENCODER,
        "return x if self.norm is None else self.norm(x)",
        "return x",
        promising=("encoder-stack",),
    ),
    Mutant(
        "last-layer-dropped",
        "the last layer of an encoder is left out",
        _ENCODER,
        "for layer in self.layers:",
        "for layer in list(self.layers)[:-1]:",
        promising=("encoder-stack",),
    ),
    Mutant(
        "not-causal",
        "targets attend to later ones",
        _DECODER,
        "is_causal=True",
        "is_causal=False",
        promising=("decoder-layer", "decoder-stack"),
    ),
    Mutant(
        "causal-from-the-first",
        "with a cache the last query stands at the first key",
        _DECODER,
        'causal_alignment="bottom-right"',
        'causal_alignment="top-left"',
        promising=("cached-decoding",),
    ),
    Mutant(
        "context-unmasked",
        "a decoder attends to padding of the encoder's output",
        _DECODER,
        "projected=cache.memory, key_mask=memory_key_mask",
        "projected=cache.memory, key_mask=None",
        promising=("decoder-layer", "cached-decoding"),
    ),
    Mutant(
        "targets-unmasked",
        "a decoder attends to padding among its targets",
        _DECODER,
        "x, projected=own, key_mask=key_mask",
        "x, projected=own, key_mask=None",
        promising=("decoder-layer", "decoder-stack"),
    ),
    Mutant(
        "context-by-the-other-attention",
        "keys and values of the context are projected by self-attention",
        _DECODER,
        "LayerCache(None, self.cross_attn.project(memory))",
        "LayerCache(None, self.self_attn.project(memory))",
        promising=("decoder-layer",),
    ),
    Mutant(
        "no-norm-behind-the-decoder",
        "the normalisation behind a decoder is left out",
        _DECODER,
        "x = x if self.norm is None else self.norm(x)",
        "x = x",
        promising=("decoder-stack",),
    ),
    Mutant(
        "cache-forgets-the-first",
        "the cache is one row short: the oldest goes with each new one",
        _CACHE,
        "torch.cat((self.keys, later.keys), 1), torch.cat((self.values, later.values), 1)",
        "torch.cat((self.keys[:, 1:], later.keys), 1),\n"
        "            torch.cat((self.values[:, 1:], later.values), 1),",
        promising=("cached-decoding",),
    ),
    Mutant(
        "cache-without-the-new-row",
        "the cache is one row behind: a query does not see its own key",
        _DECODER,
        "own = own if cache.targets is None else cache.targets.followed_by(own)",
        "own = own if cache.targets is None else cache.targets",
        promising=("cached-decoding",),
    ),
    Mutant(
        "cached-values-in-another-order",
        "a new value goes before those of the cache, its key behind",
        _CACHE,
        "torch.cat((self.values, later.values), 1)",
        "torch.cat((later.values, self.values), 1)",
        promising=("cached-decoding",),
    ),
    Mutant(
        "places-from-zero",
        "with a cache each token stands at place 0",
        _MODEL,
        "self._embed(tgt, self.tgt_embedding, cache.length)",
        "self._embed(tgt, self.tgt_embedding)",
        promising=("transformer", "transformer-positions"),
    ),
    Mutant(
        "no-positions",
        "the embeddings enter without what is added at each place",
        _MODEL,
        "self.dropout(x + self._places(start, tokens.shape[1], x))",
        "self.dropout(x)",
        promising=("transformer-positions",),
    ),
    Mutant(
        "one-embedding",
        "targets have the embeddings of the sources",
        _MODEL,
        "self._embed(tgt, self.tgt_embedding, cache.length)",
        "self._embed(tgt.clamp(max=len(self.src_embedding.weight) - 1), self.src_embedding,"
        " cache.length)",
        promising=("transformer",),
    ),
    Mutant(
        "embeddings-scaled",
        "embeddings are multiplied by √d_model although they are not to be",
        _MODEL,
        "x = embedding(tokens) * self.embedding_scale",
        "x = embedding(tokens) * math.sqrt(self.d_model)",
        promising=("transformer", "transformer-tied"),
    ),
    Mutant(
        "shares-of-the-targets",
        "the probabilities are taken along the targets",
        _MODEL,
        "self.forward(src, tgt, **options).softmax(-1)",
        "self.forward(src, tgt, **options).softmax(-2)",
        promising=("transformer",),
    ),
    Mutant(
        "least-likely-token",
        "the token with the smallest logit is taken",
        "modules/internal/generation.py",
        "return logits.argmax(-1)",
        "return logits.argmin(-1)",
        promising=("transformer",),
    ),
)


def catch(mutant: Mutant, families: Sequence[Family], dtype: torch.dtype) -> tuple[str, str] | None:
    """The first vector of the families that are made for the mutant which catches it, and what it
    finds; None if none does. Raises MutantError where the mutant no longer applies."""
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
