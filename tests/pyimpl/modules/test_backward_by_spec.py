"""The gradients that autograd computes through the modules against the backward passes of the Spec
in Python (`bridge/spec/backward_layers.py`, `backward_transformer.py`), which are proved to be the
gradients: over fractions without any error where floating point has none, otherwise over decimal
numbers of 50 digits, within `torch.testing`'s tolerance for float64. Wrong gradients are seen."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, TypeVar

import pytest
import torch
from module_checks import normal, randomise
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
    of_norm,
    rows,
    scale,
)
from torch import Tensor, nn

from bridge.spec import backward_layers, backward_transformer, transformer, transformer_norms
from bridge.spec.core import EXACT
from pyimpl.modules import (
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    Transformer,
    residual,
    sinusoidal_encoding,
)

DY = normal(LENGTH, WIDTH, seed=3)
SEEN = torch.tensor([True, False, True, True])


@pytest.fixture(autouse=True)
def many_digits() -> Iterator[None]:
    with localcontext(DIGITS):
        yield


M = TypeVar("M", bound=nn.Module)


def gradients(module: M) -> M:
    """A module whose parameters are the gradients by the module's, to be read as these are."""
    of_parameters = copy.deepcopy(module)
    for there, parameter in zip(of_parameters.parameters(), module.parameters(), strict=True):
        assert parameter.grad is not None
        there.data = parameter.grad
    return of_parameters


def leaf(x: Tensor) -> Tensor:
    return x.clone().requires_grad_()


def grad(x: Tensor, number: Callable[[float], Any] = Decimal) -> list[list[Any]]:
    assert x.grad is not None
    return rows(x.grad, number)


def numbers(x: Any) -> Iterator[Any]:
    """All numbers of parameters, in the order of the definitions' fields, none of None."""
    if x is None:
        return
    if isinstance(x, Sequence):
        for part in x:
            yield from numbers(part)
    elif is_dataclass(x):
        for field in fields(x):
            yield from numbers(getattr(x, field.name))
    else:
        yield x


def doubles(x: Any) -> Tensor:
    return torch.tensor([float(a) for a in numbers(x)], dtype=torch.float64)


def check(found: Any, expected: Any) -> None:
    torch.testing.assert_close(doubles(found), doubles(expected))


def test_the_feed_forward_network_is_exact_over_whole_numbers() -> None:
    """No sum of these is rounded. A hidden unit at 0 is off, as the definition has it."""
    module = FeedForward(WIDTH, HIDDEN, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)

    def eighths(*size: int) -> Tensor:
        return torch.randint(-64, 65, size, generator=generator).double() / 8

    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(eighths(*parameter.shape))
        module.linear1.bias[0] = 0
    x, dy = eighths(LENGTH, WIDTH), eighths(LENGTH, WIDTH)
    x[0] = 0
    x.requires_grad_()
    hidden = module.linear1(x)
    assert hidden[0, 0] == 0
    assert bool((hidden < 0).any())
    module(x).backward(dy)
    assert (dy[0] @ module.linear2.weight)[0] != 0
    expected = backward_layers.feed_forward_rows_vjp(
        of_feed_forward(module, Fraction), rows(x, Fraction), rows(dy, Fraction),
        m=LENGTH, d=WIDTH, d_ff=HIDDEN, num=EXACT,
    )  # fmt: skip
    assert (of_feed_forward(gradients(module), Fraction), grad(x, Fraction)) == expected


def normalisation() -> None:
    module = nn.LayerNorm(WIDTH, float(EPS), dtype=torch.float64)
    randomise(module)
    x = leaf(X)
    module(x).backward(DY)
    expected = backward_layers.layer_norm_rows_vjp(
        Decimal.sqrt, EPS, of_norm(module), rows(x), rows(DY), m=LENGTH, d=WIDTH, num=NUM
    )
    check((of_norm(gradients(module)), grad(x)), expected)


def test_layer_normalisation() -> None:
    normalisation()


@pytest.mark.parametrize("visible", [VISIBLE, NOTHING], ids=["some keys", "no keys"])
def test_multi_head_attention(visible: Tensor) -> None:
    module = MultiHeadAttention(WIDTH, HEADS, dtype=torch.float64)
    randomise(module)
    q, k, v = leaf(X), leaf(CONTEXT), leaf(normal(MEMORY, WIDTH, seed=4))
    module(q, k, v, key_mask=visible).backward(DY)
    expected = backward_transformer.multi_head_rows_vjp(
        scale(), keys(visible), of_attention(module), rows(q), rows(k), rows(v), rows(DY),
        q_len=LENGTH, kv_len=MEMORY, num_heads=HEADS, d=WIDTH // HEADS, d_model=WIDTH, num=NUM,
    )  # fmt: skip
    check([of_attention(gradients(module)), grad(q), grad(k), grad(v)], expected)


def encoder_layer(norm_first: bool) -> None:
    layer = EncoderLayer(WIDTH, HEADS, HIDDEN, 0.0, norm_first=norm_first, dtype=torch.float64)
    randomise(layer)
    x = leaf(X)
    layer(x, key_mask=SEEN).backward(DY)
    definition = (
        backward_transformer.encoder_layer_pre_norm_vjp
        if norm_first
        else backward_transformer.encoder_layer_post_norm_vjp
    )
    expected = definition(
        Decimal.sqrt, EPS, scale(), keys(SEEN), of_encoder(layer), rows(x), rows(DY),
        n=LENGTH, num=NUM, **SIZES,
    )  # fmt: skip
    check([of_encoder(gradients(layer)), grad(x)], expected)


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_encoder_layer(norm_first: bool) -> None:
    encoder_layer(norm_first)


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_decoder_layer(norm_first: bool) -> None:
    layer = DecoderLayer(WIDTH, HEADS, HIDDEN, 0.0, norm_first=norm_first, dtype=torch.float64)
    randomise(layer)
    x, context = leaf(X), leaf(CONTEXT)
    layer(x, context, memory_key_mask=VISIBLE).backward(DY)
    definition = (
        backward_transformer.decoder_layer_pre_norm_vjp
        if norm_first
        else backward_transformer.decoder_layer_post_norm_vjp
    )
    expected = definition(
        Decimal.sqrt, EPS, scale(), causal(), keys(VISIBLE), of_decoder(layer), rows(context),
        rows(x), rows(DY), s=MEMORY, t=LENGTH, num=NUM, **SIZES,
    )  # fmt: skip
    check([of_decoder(gradients(layer)), grad(context), grad(x)], expected)


def of_transformer(model: Transformer) -> transformer.Transformer:
    return transformer.Transformer(
        rows(model.src_embedding.weight), rows(model.tgt_embedding.weight),
        [of_encoder(layer) for layer in model.encoder.layers],
        [of_decoder(layer) for layer in model.decoder.layers], of_linear(model.output),
    )  # fmt: skip


def of_final_norms(model: Transformer) -> transformer_norms.FinalNorms:
    norms = (model.encoder.norm, model.decoder.norm)
    return transformer_norms.FinalNorms(*(None if n is None else of_norm(n) for n in norms))


def training_step(norm_first: bool, final_norm: bool) -> None:
    """The mean cross-entropy of two layers of each kind, tokens that occur twice among them."""
    model = Transformer(
        VOCAB, VOCAB, WIDTH, HEADS, 2, 2, HIDDEN, 0.0, norm_first=norm_first, final_norm=final_norm,
        positions="halves", scale_embeddings=False, tie_embeddings=False, dtype=torch.float64,
    )  # fmt: skip
    randomise(model)
    src, tgt, y = torch.tensor([[4, 0, 2, 2, 1]]), torch.tensor([[1, 3, 3, 0]]), [3, 3, 0, 2]
    logits = model(src, tgt, src_key_mask=VISIBLE[None])[0]
    nn.functional.cross_entropy(logits, torch.tensor(y)).backward()
    places = rows(sinusoidal_encoding(10, WIDTH, arrangement="halves", dtype=torch.float64))
    expected = backward_transformer.transformer_loss_vjp(
        Decimal.sqrt, EPS, scale(), norm_first, of_final_norms(model), places.__getitem__,
        keys(VISIBLE), causal(), keys(VISIBLE), of_transformer(model), src[0].tolist(),
        tgt[0].tolist(), y, [Decimal(1) / LENGTH] * LENGTH,
        s=MEMORY, t=LENGTH, s_vocab=VOCAB, t_vocab=VOCAB, num=NUM, **SIZES,
    )  # fmt: skip
    found = gradients(model)
    assert len(list(numbers(expected[1]))) == (4 * WIDTH if final_norm else 0)
    check([of_transformer(found), of_final_norms(found)], expected)


@pytest.mark.parametrize("final_norm", [False, True], ids=["nothing last", "normalised last"])
@pytest.mark.parametrize("norm_first", [True, False], ids=["before", "after"])
def test_training(norm_first: bool, final_norm: bool) -> None:
    training_step(norm_first, final_norm)


def statistics_detached(monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(self: nn.LayerNorm, x: Tensor) -> Tensor:
        root = (x.var(-1, correction=0, keepdim=True) + self.eps).sqrt()
        return (x - x.mean(-1, keepdim=True)) / root.detach() * self.weight + self.bias

    monkeypatch.setattr(nn.LayerNorm, "forward", forward)


def straight_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "relu", lambda x: x + (x.clamp(min=0) - x).detach())


def skip_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(self: residual.Residual, x: Tensor, sublayer: Any, drops: Any = None) -> Tensor:
        return x.detach() + sublayer(self._norm(x))

    monkeypatch.setattr(residual.Residual, "forward", forward)


def skip_forgotten_after(monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(self: residual.Residual, x: Tensor, sublayer: Any, drops: Any = None) -> Tensor:
        return self._norm(x.detach() + sublayer(x))

    monkeypatch.setattr(residual.Residual, "forward", forward)


def final_norm_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder's last normalisation passes the gradient by its rows on unchanged."""
    encode = Encoder.forward

    def forward(self: Encoder, x: Tensor, **options: Any) -> Tensor:
        norm, self.norm = self.norm, None
        memory = encode(self, x, **options)
        self.norm = norm
        assert norm is not None
        normalised: Tensor = norm(memory.detach())
        return normalised + (memory - memory.detach())

    monkeypatch.setattr(Encoder, "forward", forward)


def stored_embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of the first place of a token alone, where all should be summed."""

    def forward(self: nn.Embedding, tokens: Tensor) -> Tensor:
        seen = [token in tokens[0, :i] for i, token in enumerate(tokens[0])]
        embedded = nn.functional.embedding(tokens, self.weight)
        return torch.where(torch.tensor(seen)[:, None], embedded.detach(), embedded)

    monkeypatch.setattr(nn.Embedding, "forward", forward)


@pytest.mark.parametrize(
    ("mistake", "step"),
    [
        (statistics_detached, normalisation),
        (straight_through, lambda: encoder_layer(True)),
        (skip_forgotten, lambda: encoder_layer(True)),
        (skip_forgotten_after, lambda: training_step(norm_first=False, final_norm=False)),
        (final_norm_passed_by, lambda: training_step(norm_first=False, final_norm=True)),
        (stored_embedding, lambda: training_step(norm_first=True, final_norm=False)),
    ],
    ids=[
        "statistics detached",
        "straight through",
        "skip forgotten",
        "skip of a layer normalised after",
        "last normalisation passed by",
        "stored embedding",
    ],
)
def test_wrong_gradients_are_seen(
    monkeypatch: pytest.MonkeyPatch,
    mistake: Callable[[pytest.MonkeyPatch], None],
    step: Callable[[], None],
) -> None:
    mistake(monkeypatch)
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        step()
