"""The layers of the Transformer equal `torch.nn`'s with the same weights, within both tolerances;
and features that torch lacks: rows without keys, and layers position by position."""

from __future__ import annotations

import copy
import re
from typing import Any
from unittest import mock

import pytest
import torch
from module_checks import judge, normal, randomise
from torch import Tensor, nn

from bridge.conformance.tolerances.module_tolerance import decoder_layer, encoder_layer, exactly
from pyimpl.internal.dropout import Dropout
from pyimpl.modules import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    Transformer,
)
from pyimpl.modules import decoder as implementation
from pyimpl.modules import sinusoidal_encoding as encoding

BATCH, LENGTH, MEMORY, WIDTH, HEADS, HIDDEN = 2, 5, 7, 12, 3, 20
X, CONTEXT = normal(BATCH, LENGTH, WIDTH, seed=0), normal(BATCH, MEMORY, WIDTH, seed=1)
PADDING = torch.tensor([[True] * LENGTH, [True] * 3 + [False] * 2])
MEMORY_PADDING = torch.tensor([[True] * 4 + [False] * 3, [False] + [True] * 6])
CAUSAL = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
OPTIONS = [
    {"norm_first": first, "bias": bias, "layer_norm_eps": eps}
    for first, bias, eps in [(True, True, 1e-5), (False, True, 1e-5), (True, False, 1e-2)]
]
DTYPES = [torch.float64, torch.float32]


def of_torch(kind: type[nn.Module], dtype: torch.dtype, **options) -> nn.Module:
    layer = kind(WIDTH, HEADS, HIDDEN, 0.0, batch_first=True, dtype=dtype, **options)
    return randomise(layer).requires_grad_(False)


def check_encoder(theirs: nn.Module, ours: EncoderLayer, mask: str) -> None:
    """`ours` of its dtype against `theirs` in float64; torch takes its slow path in training mode,
    where there is no dropout."""
    x = X.to(ours.feed_forward.linear1.weight.dtype)
    exact = copy.deepcopy(theirs).double()
    visible = {"none": None, "keys": PADDING[:, None, None], "causal": CAUSAL}[mask]
    given = {"none": {}, "keys": {"key_mask": PADDING}, "causal": {"is_causal": True}}[mask]
    wanted = {
        "none": {},
        "keys": {"src_key_padding_mask": ~PADDING},
        "causal": {"src_mask": ~CAUSAL},
    }[mask]
    out = ours(x, **given)
    allowed = encoder_layer(exactly(X), ours, visible)[1]
    allowed = allowed + encoder_layer(exactly(X), copy.deepcopy(ours).double(), visible)[1]
    judge(out, exact(X, **wanted), allowed)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("mask", ["none", "keys", "causal"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_encoder_layer_is_that_of_torch(options, mask: str, dtype: torch.dtype) -> None:
    theirs = of_torch(nn.TransformerEncoderLayer, dtype, **options)
    check_encoder(theirs, EncoderLayer.from_torch(theirs), mask)


def check_decoder(theirs: nn.Module, ours: DecoderLayer) -> None:
    dtype = ours.feed_forward.linear1.weight.dtype
    expected = copy.deepcopy(theirs).double()(
        X, CONTEXT, tgt_mask=~CAUSAL, tgt_key_padding_mask=~PADDING,
        memory_key_padding_mask=~MEMORY_PADDING,
    )  # fmt: skip
    out = ours(
        X.to(dtype), CONTEXT.to(dtype), key_mask=PADDING, memory_key_mask=MEMORY_PADDING
    )  # fmt: skip
    masks = (PADDING[:, None, None], MEMORY_PADDING[:, None, None])
    given = (exactly(X), exactly(CONTEXT))
    allowed = decoder_layer(*given, ours, *masks)[1]
    allowed = allowed + decoder_layer(*given, copy.deepcopy(ours).double(), *masks)[1]
    judge(out, expected, allowed)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_decoder_layer_is_that_of_torch(options, dtype: torch.dtype) -> None:
    theirs = of_torch(nn.TransformerDecoderLayer, dtype, **options)
    check_decoder(theirs, DecoderLayer.from_torch(theirs))


def exchange(layer: DecoderLayer) -> None:
    layer.residual1, layer.residual2 = layer.residual2, layer.residual1


def other_order(layer: DecoderLayer) -> None:
    layer.residual3.norm_first = not layer.residual3.norm_first


def other_eps(layer: DecoderLayer) -> None:
    layer.residual2.norm.eps = 0.5


def no_hidden_bias(layer: DecoderLayer) -> None:
    layer.feed_forward.linear1.bias.zero_()


def one_attention(layer: DecoderLayer) -> None:
    layer.cross_attn = layer.self_attn


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "mutant", [exchange, other_order, other_eps, no_hidden_bias, one_attention]
)
def test_mutants_of_a_layer_are_seen(mutant, dtype: torch.dtype) -> None:
    theirs = of_torch(nn.TransformerDecoderLayer, dtype)
    ours = DecoderLayer.from_torch(theirs)
    check_decoder(theirs, ours)
    right = copy.deepcopy(ours)
    mutant(ours)
    out = [m(X.to(dtype), CONTEXT.to(dtype), key_mask=PADDING) for m in (ours, right)]
    allowed = 2 * decoder_layer(exactly(X), exactly(CONTEXT), right, PADDING[:, None, None])[1]
    with pytest.raises(AssertionError, match="over the tolerance"):
        judge(*out, allowed)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("kinds", [("Encoder", EncoderLayer), ("Decoder", DecoderLayer)], ids=str)
def test_the_gradients_are_those_of_torch(kinds, norm_first: bool) -> None:
    name, kind = kinds
    layer = of_torch(
        getattr(nn, f"Transformer{name}Layer"), torch.float64, norm_first=norm_first
    ).requires_grad_(True)  # fmt: skip
    ours = kind.from_torch(layer)
    found = []
    for module in (layer, ours):
        inputs = [x.clone().requires_grad_() for x in (X, CONTEXT)]
        if name == "Encoder":
            out = module(inputs[0])
        elif module is layer:
            out = module(*inputs, tgt_mask=~CAUSAL)
        else:
            out = module(*inputs)
        out.backward(normal(*out.shape, seed=8))
        found.append([x.grad for x in inputs if x.grad is not None])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    for mine, theirs in (("feed_forward.linear1", "linear1"), ("residual2.norm", "norm2")):
        one, other = ours.get_submodule(mine), layer.get_submodule(theirs)
        torch.testing.assert_close(one.weight.grad, other.weight.grad)
        torch.testing.assert_close(one.bias.grad, other.bias.grad)


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_row_without_keys_gets_the_bias_of_attention(norm_first: bool) -> None:
    """So says torch's as well in this mode; where it computes the weights it says NaN."""
    theirs = of_torch(nn.TransformerDecoderLayer, torch.float64, norm_first=norm_first)
    ours = DecoderLayer.from_torch(theirs)
    nothing = torch.zeros(BATCH, MEMORY, dtype=torch.bool)
    with_nothing = ours(X, CONTEXT, memory_key_mask=nothing)
    ours.cross_attn.v_proj.weight.zero_()
    ours.cross_attn.v_proj.bias.zero_()
    judge(
        with_nothing, ours(X, CONTEXT),
        2 * decoder_layer(exactly(X), exactly(CONTEXT), ours)[1],
    )  # fmt: skip
    theirs = of_torch(nn.TransformerEncoderLayer, torch.float64, norm_first=norm_first)
    padded = EncoderLayer.from_torch(theirs)(X, key_mask=torch.zeros_like(PADDING))
    assert bool(padded.isfinite().all())


def decoder(dtype: torch.dtype, norm_first: bool = True, norm: bool = True) -> Decoder:
    layers = [
        DecoderLayer(WIDTH, HEADS, HIDDEN, 0.0, norm_first=norm_first, dtype=dtype)
        for _ in range(2)
    ]
    module = Decoder(layers, nn.LayerNorm(WIDTH, dtype=dtype) if norm else None)
    return randomise(module).requires_grad_(False)


@pytest.mark.parametrize("norm", [True, False])
def test_stacks_are_layers_in_a_row(norm: bool) -> None:
    stack = decoder(torch.float64, norm=norm)
    expected = X
    for layer in stack.layers:
        expected = layer(expected, CONTEXT, key_mask=PADDING, memory_key_mask=MEMORY_PADDING)
    expected = stack.norm(expected) if norm else expected
    out = stack(X, CONTEXT, key_mask=PADDING, memory_key_mask=MEMORY_PADDING)
    assert torch.equal(out, expected)
    layers = [EncoderLayer(WIDTH, HEADS, HIDDEN, 0.0, dtype=torch.float64) for _ in range(2)]
    encoder = randomise(Encoder(layers, stack.norm))
    expected = layers[1](layers[0](X, key_mask=PADDING), key_mask=PADDING)
    expected = stack.norm(expected) if norm else expected
    assert torch.equal(encoder(X, key_mask=PADDING), expected)


def test_inputs_without_a_batch() -> None:
    stack = decoder(torch.float64)
    assert torch.equal(stack(X[0], CONTEXT[0]), stack(X[:1], CONTEXT[:1])[0])
    out, cache = stack.extend(X[0], stack.start(CONTEXT[0]))
    assert (out.shape, cache.length) == (X[0].shape, LENGTH)


@pytest.mark.parametrize("length", [0, 1])
def test_few_positions(length: int) -> None:
    stack = decoder(torch.float64)
    assert stack(X[:, :length], CONTEXT).shape == (BATCH, length, WIDTH)
    assert bool(stack(X, CONTEXT[:, :length]).isfinite().all())


def test_what_the_cache_holds() -> None:
    """The memory is projected once, and cached rows of the targets are not computed again."""
    stack = decoder(torch.float64)
    cache = stack.start(CONTEXT)
    kept = [layer.memory for layer in cache.layers]
    _, first = stack.extend(X[:, :3], cache)
    _, second = stack.extend(X[:, 3:], first)
    assert (cache.length, first.length, second.length) == (0, 3, 5)
    for layer, memory, before in zip(second.layers, kept, first.layers, strict=True):
        assert layer.memory is memory
        assert layer.targets is not None
        assert before.targets is not None
        assert torch.equal(layer.targets.keys[:, :3], before.targets.keys)
        assert torch.equal(layer.targets.values[:, :3], before.targets.values)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "transformer"])
def test_all_dropout_is_drawn_from_a_seed(kind: str) -> None:
    """From no generator, the same in each call, other numbers by another seed, and by the same in
    another layer and at another site."""
    tokens = torch.zeros(2, 5, dtype=torch.int64)
    options: dict[str, Any] = {"dropout": 0.5, "dtype": torch.float64}
    if kind == "transformer":
        module: nn.Module = Transformer(3, 3, WIDTH, 2, 1, 1, HIDDEN, **options)
        given = (tokens, tokens)
    elif kind == "encoder":
        module = Encoder([EncoderLayer(WIDTH, 2, HIDDEN, **options) for _ in range(2)])
        given = (X,)
    else:
        module = Decoder([DecoderLayer(WIDTH, 2, HIDDEN, **options) for _ in range(2)])
        given = (X, X)
    drawn: list[Tensor] = []
    kept_numbers = Dropout.kept_numbers

    def note(self: Dropout, *args: Any) -> Tensor:
        drawn.append(self.seed)
        return kept_numbers(self, *args)

    state = torch.get_rng_state()
    with mock.patch.object(Dropout, "kept_numbers", note):
        first = module(*given, dropout_seed=1)
    # Each layer at three sites or at four, and two sums of embeddings and positions.
    assert len(drawn) == {"encoder": 6, "decoder": 8, "transformer": 9}[kind]
    assert len({int(seed) for seed in drawn}) == len(drawn)
    assert torch.equal(module(*given, dropout_seed=torch.tensor(1)), first)
    assert not torch.equal(module(*given, dropout_seed=2), first)
    assert torch.equal(torch.get_rng_state(), state)
    module.eval()
    assert torch.equal(module(*given, dropout_seed=1), module(*given))


def test_a_seed_of_dropout_is_refused_with_targets_in_the_cache() -> None:
    model = Transformer(3, 3, WIDTH, 2, 1, 1, HIDDEN).eval()
    tokens = torch.zeros(1, 2, dtype=torch.int64)
    _, cache = model.extend(tokens, model.start_decoding(model.encode(tokens)), dropout_seed=1)
    with pytest.raises(ValueError, match="must be None where the cache has targets"):
        model.extend(tokens, cache, dropout_seed=1)


def test_dropout_is_in_training_mode_alone() -> None:
    layer = EncoderLayer(WIDTH, HEADS, HIDDEN, 0.5, dtype=torch.float64)
    assert not torch.equal(layer(X), layer(X))
    assert torch.equal(layer.eval()(X), layer(X))
    everything = EncoderLayer(WIDTH, HEADS, HIDDEN, 1.0, dtype=torch.float64)
    assert torch.equal(everything(X), X)
    feed_forward = FeedForward(WIDTH, HIDDEN, dropout=1.0, dtype=torch.float64)
    assert torch.equal(feed_forward(X), torch.zeros_like(X))


def test_the_encoding_is_that_of_the_paper() -> None:
    table = encoding(40, 6, dtype=torch.float64)
    for p, row in enumerate(table.tolist()):
        for i in range(3):
            angle = torch.tensor(p / 10000 ** (2 * i / 6), dtype=torch.float64)
            assert row[2 * i : 2 * i + 2] == [float(angle.sin()), float(angle.cos())]
    halves = encoding(40, 6, arrangement="halves", dtype=torch.float64)
    assert torch.equal(halves, torch.cat((table[:, ::2], table[:, 1::2]), 1))
    assert torch.equal(encoding(30, 6, start=10, dtype=torch.float64), table[10:])


REFUSED: list[tuple[type[nn.Module], dict[str, object], str]] = [
    (EncoderLayer, {"d_model": 5, "num_heads": 2}, "d_model must be a multiple of num_heads, 2"),
    (EncoderLayer, {"d_model": 4, "num_heads": 0}, "num_heads must be at least 1"),
    (DecoderLayer, {"d_model": 4, "num_heads": 2, "dim_feedforward": 2.0},
     "dim_feedforward must be a whole number, not 2.0"),
    (DecoderLayer, {"d_model": 4, "num_heads": 2, "dropout": 2}, "dropout must be from 0 to 1"),
    (DecoderLayer, {"d_model": 4, "num_heads": 2, "norm_first": 1}, "norm_first must be True or"),
    (FeedForward, {"d_model": 4, "dtype": torch.int64}, "dtype must be float64, float32"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options", "sentence"), REFUSED)
def test_what_is_refused(kind, options, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(sentence)):
        kind(**options)


ENCODINGS: list[tuple[dict[str, object], str]] = [
    ({"length": -1}, "length must be at least 0 and below 2³¹, not -1"),
    ({"length": 10**400}, "length must be at least 0 and below 2³¹, not 1000"),
    ({"length": "a"}, "length must be a whole number, not 'a'"),
    ({"length": True}, "length must be a whole number, not True"),
    ({"start": 1.5}, "start must be a whole number, not 1.5"),
    ({"start": 2**52}, "start must be at least −2⁵² and below 2⁵², not 4503599627370496"),
    ({"d_model": 3}, "d_model must be even, not 3"),
    ({"dtype": torch.int64}, "dtype must be float64, float32, float16 or bfloat16, not torch.int"),
]


@pytest.mark.parametrize(("given", "sentence"), ENCODINGS)
def test_encodings_that_are_refused(given, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(sentence)):
        encoding(**{"length": 4, "d_model": 6, **given})


def test_what_is_not_converted() -> None:
    gelu = nn.TransformerEncoderLayer(WIDTH, HEADS, activation="gelu")
    with pytest.raises(ValueError, match="activation of layer must be relu"):
        EncoderLayer.from_torch(gelu)
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.TransformerDecoderLayer, not T"):
        DecoderLayer.from_torch(gelu)  # type: ignore[arg-type]


def test_projected_keys_are_checked() -> None:
    layer = DecoderLayer(WIDTH, HEADS, HIDDEN, dtype=torch.float64)
    kept = layer.cross_attn.project(CONTEXT)
    with pytest.raises(ValueError, match="key and value must be None with projected"):
        layer.cross_attn(X, CONTEXT, projected=kept)
    with pytest.raises(ValueError, match=r"keys of projected must be of shape \[1, 7, 12\]"):
        layer.cross_attn(X[:1], projected=kept)
    with pytest.raises(TypeError, match="projected must be the result of project, not Tensor"):
        layer.cross_attn(X, projected=CONTEXT)
    other = implementation.KeysValues(kept.keys, kept.values[:, 1:])
    with pytest.raises(ValueError, match=r"values of projected must be of shape \[2, 7, 12\]"):
        layer.cross_attn(X, projected=other)


def test_projecting_before_is_projecting_inside() -> None:
    layer = DecoderLayer(WIDTH, HEADS, HIDDEN, 0.0, dtype=torch.float64)
    attention = randomise(layer.cross_attn)
    values: Tensor = normal(BATCH, MEMORY, WIDTH, seed=5)
    kept = attention.project(CONTEXT, values)
    out = attention(X, CONTEXT, values)
    assert torch.equal(attention(X, projected=kept), out)
    alone = attention.project(CONTEXT[0], values[0])
    assert torch.equal(attention(X[0], projected=alone), attention(X[0], CONTEXT[0], values[0]))
    attention.batch_first = False
    turned = [x.transpose(0, 1) for x in (X, CONTEXT, values)]
    found = attention(turned[0], projected=attention.project(*turned[1:]))
    assert torch.equal(found, attention(*turned))


def test_other_sequences_do_not_follow() -> None:
    stack = decoder(torch.float64)
    _, cache = stack.extend(X, stack.start(CONTEXT))
    with pytest.raises(ValueError, match=r"batch and width of these, \[2, 12\], not \[1, 12\]"):
        stack.extend(X[:1], cache)
