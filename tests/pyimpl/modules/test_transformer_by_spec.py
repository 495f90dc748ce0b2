"""The modules on drawn inputs against the Lean definitions in Python (`bridge/spec`), run over
decimal numbers of 50 digits, within the bound that is carried from operation to operation, whose
own numbers are compared with the definitions so; rational functions over fractions, without any
error where floating point has none. The vectors of layers, in `tests/generated`, are of chosen
inputs."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest
import torch
from module_checks import judge, randomise
from spec_parameters import (
    CONTEXT,
    DIGITS,
    EPS,
    HEADS,
    HIDDEN,
    LENGTH,
    MEMORY,
    NOTHING,
    NUM,
    SIZES,
    VISIBLE,
    VOCAB,
    WIDTH,
    X,
    causal,
    keys,
    of_attention,
    of_decoder,
    of_encoder,
    of_feed_forward,
    of_linear,
    rows,
    scale,
)
from torch import Tensor

from bridge.conformance.tolerances.module_tolerance import (
    Bounded,
    attend,
    decoder_layer,
    encoder_layer,
    exactly,
    logits,
)
from bridge.spec import (
    embedding,
    feed_forward,
    linear,
    multi_head,
    transformer,
    transformer_cache,
)
from bridge.spec import transformer_layer as layers
from bridge.spec.core import EXACT
from pyimpl.modules import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    Transformer,
    sinusoidal_encoding,
)


def check(out: Tensor, expected: list[list[Any]], bounded: Bounded) -> None:
    """`out`, in float64, against the definition, within the tolerance of a correct module; the
    bound's own numbers are those of the definition too."""
    exact = torch.tensor([[float(x) for x in row] for row in expected], dtype=torch.float64)
    value, allowed = (x.squeeze(0) for x in bounded)
    # `exact` is rounded once more.
    allowed = allowed + torch.finfo(torch.float64).eps * exact.abs()
    judge(out, exact, allowed)
    judge(value, exact, allowed)


@pytest.fixture(autouse=True)
def many_digits():
    with localcontext(DIGITS), torch.no_grad():
        yield


def test_feed_forward_is_exact_over_whole_numbers() -> None:
    """No sum of these is rounded: the module gives the definition's number."""
    module = FeedForward(WIDTH, HIDDEN, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.copy_(torch.randint(-64, 65, parameter.shape, generator=generator) / 8)
    x = torch.randint(-64, 65, (LENGTH, WIDTH), generator=generator).double() / 8
    expected = feed_forward.feed_forward_rows(
        of_feed_forward(module, Fraction), rows(x, Fraction), d=WIDTH, d_ff=HIDDEN, num=EXACT
    )
    assert rows(module(x), Fraction) == expected
    projected = linear.linear_rows(
        of_linear(module.linear1, Fraction), rows(x, Fraction), d_in=WIDTH, d_out=HIDDEN, num=EXACT
    )
    assert rows(module.linear1(x), Fraction) == projected
    assert any(a < 0 for row in projected for a in row)


@pytest.mark.parametrize("visible", [VISIBLE, NOTHING], ids=["some keys", "no keys"])
def test_multi_head_attention(visible: Tensor) -> None:
    module = randomise(MultiHeadAttention(WIDTH, HEADS, dtype=torch.float64))
    found = multi_head.multi_head_rows(
        scale(), keys(visible), of_attention(module), rows(X), rows(CONTEXT), rows(CONTEXT),
        q_len=LENGTH, kv_len=MEMORY, num_heads=HEADS, d=WIDTH // HEADS, d_model=WIDTH, num=NUM,
    )  # fmt: skip
    given = [exactly(x[None]) for x in (X, CONTEXT, CONTEXT)]
    bounded = attend(module, given, visible=visible)
    check(module(X, CONTEXT, key_mask=visible), found, bounded)
    kept = module.project(CONTEXT)
    attended = multi_head.multi_head_attend(
        scale(), keys(visible), of_attention(module), rows(module.q_proj(X)), rows(kept.keys[0]),
        rows(kept.values[0]), q_len=LENGTH, kv_len=MEMORY, num_heads=HEADS, d=WIDTH // HEADS,
        d_model=WIDTH, num=NUM,
    )  # fmt: skip
    check(module(X, projected=kept, key_mask=visible), attended, bounded)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("hides", [False, True])
def test_the_encoder_layer(norm_first: bool, hides: bool) -> None:
    layer = EncoderLayer(WIDTH, HEADS, HIDDEN, 0.0, norm_first=norm_first, dtype=torch.float64)
    randomise(layer)
    visible = torch.tensor([True, False, True, True]) if hides else torch.ones(4, dtype=torch.bool)
    definition = (
        layers.encoder_layer_pre_norm if norm_first else layers.encoder_layer_post_norm
    )  # fmt: skip
    found = definition(
        Decimal.sqrt, EPS, scale(), keys(visible), of_encoder(layer), rows(X),
        n=LENGTH, num=NUM, **SIZES,
    )  # fmt: skip
    check(layer(X, key_mask=visible), found, encoder_layer(exactly(X[None]), layer, visible))


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("visible", [VISIBLE, NOTHING], ids=["some keys", "no keys"])
def test_the_decoder_layer(norm_first: bool, visible: Tensor) -> None:
    layer = DecoderLayer(WIDTH, HEADS, HIDDEN, 0.0, norm_first=norm_first, dtype=torch.float64)
    randomise(layer)
    definition = (
        layers.decoder_layer_pre_norm if norm_first else layers.decoder_layer_post_norm
    )  # fmt: skip
    found = definition(
        Decimal.sqrt, EPS, scale(), causal(), keys(visible), of_decoder(layer),
        rows(CONTEXT), rows(X), s=MEMORY, t=LENGTH, num=NUM, **SIZES,
    )  # fmt: skip
    given = (exactly(X[None]), exactly(CONTEXT[None]))
    bounded = decoder_layer(*given, layer, None, visible)
    check(layer(X, CONTEXT, memory_key_mask=visible), found, bounded)
    cache, steps = layer.start(CONTEXT), []
    for i in range(LENGTH):
        out, cache = layer.extend(X[i : i + 1], cache, memory_key_mask=visible)
        steps.append(out)
    check(torch.cat(steps), found, bounded)
    if norm_first:
        cached = transformer_cache.decode_cached(
            Decimal.sqrt, EPS, scale(), visible.tolist().__getitem__, [of_decoder(layer)],
            rows(CONTEXT), rows(X), s=MEMORY, num=NUM, **SIZES,
        )  # fmt: skip
        check(torch.cat(steps), cached, bounded)


@pytest.mark.parametrize("tie_embeddings", [False, True])
def test_the_transformer(tie_embeddings: bool) -> None:
    model = Transformer(
        VOCAB, VOCAB, WIDTH, HEADS, 1, 1, HIDDEN, 0.0, final_norm=False, positions="halves",
        scale_embeddings=False, tie_embeddings=tie_embeddings, dtype=torch.float64,
    )  # fmt: skip
    randomise(model)
    src, tgt = torch.tensor([[4, 0, 2, 2, 1]]), torch.tensor([[1, 3, 3, 0]])
    output = of_linear(model.output)
    table = rows(model.src_embedding.weight)
    if tie_embeddings:
        assert embedding.tied_output(table, vocab=VOCAB, num=NUM) == output
    spec = transformer.Transformer(
        table, rows(model.tgt_embedding.weight), [of_encoder(model.encoder.layers[0])],
        [of_decoder(model.decoder.layers[0])], output,
    )  # fmt: skip
    # The numbers of `sinusoidal_encoding`, which the test below looks at.
    places = rows(sinusoidal_encoding(10, WIDTH, arrangement="halves", dtype=torch.float64))
    given = (
        Decimal.sqrt, EPS, scale(), places.__getitem__, keys(VISIBLE), causal(),
        keys(VISIBLE), spec, src[0].tolist(), tgt[0].tolist(),
    )  # fmt: skip
    sizes = {"s": MEMORY, "t": LENGTH, "t_vocab": VOCAB, "num": NUM, **SIZES}
    found = transformer.transformer_logits(*given, **sizes)
    bounded = logits(model, src, tgt, VISIBLE[None])
    check(model(src, tgt, src_key_mask=VISIBLE[None])[0], found, bounded)
    shares = transformer.transformer_probabilities(*given, **sizes)
    allowed = bounded[1].amax(-1, keepdim=True)
    # An error of at most δ in each logit changes a share by at most a factor e^{2δ}; the softmax
    # itself rounds as a tile of attention does, and the definition's float is rounded once.
    exact = torch.tensor([[float(p) for p in row] for row in shares], dtype=torch.float64)
    unit = torch.finfo(torch.float64).eps
    rounding = (2 * (VOCAB + 8) + found_size(found)) * unit
    probabilities = model.probabilities(src, tgt, src_key_mask=VISIBLE[None])[0]
    judge(probabilities, exact, (torch.expm1(2 * allowed[0]) + rounding) * 2 * exact)
    for row, likeliest in zip(found, probabilities.argmax(-1).tolist(), strict=True):
        assert transformer.argmax(row, n=VOCAB) == likeliest


def found_size(found: list[list[Any]]) -> float:
    """The largest difference of two logits, by which exp's argument is rounded."""
    return float(max(max(row) - min(row) for row in found))


def test_the_encoding_of_places() -> None:
    def angle(p: int, i: int) -> float:
        return p / 10000.0 ** (2 * i / WIDTH)

    table = sinusoidal_encoding(50, WIDTH, arrangement="halves", dtype=torch.float64)
    for p, row in enumerate(table):
        expected = embedding.sinusoids(
            lambda x: float(torch.tensor(x, dtype=torch.float64).sin()),
            lambda x: float(torch.tensor(x, dtype=torch.float64).cos()),
            angle, p, half=WIDTH // 2,
        )  # fmt: skip
        # Both take the angle as p / 10000^x, with a power that may differ in its last place; sine
        # and cosine change no more than it does.
        allowed = 4 * torch.finfo(torch.float64).eps * torch.tensor(1.0 + p, dtype=torch.float64)
        judge(row, torch.tensor(expected, dtype=torch.float64), allowed)
