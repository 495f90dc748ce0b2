"""The Transformer: decoding with the cache is decoding of the whole, padding changes nothing, and
the results of `generate`."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch
from module_checks import judge, normal, randomise
from torch import Tensor

from bridge.conformance.tolerances.module_tolerance import logits
from pyimpl.modules import KeysValues, Transformer
from pyimpl.modules import sinusoidal_encoding as encoding
from pyimpl.modules import transformer as implementation
from pyimpl.modules.internal.generation import next_token

BATCH, SRC_LEN, TGT_LEN, VOCAB, WIDTH = 3, 7, 6, 9, 12
LENS = torch.tensor([7, 4, 0])
BOS, EOS = 1, 2
SHAPES = [
    {},
    {"norm_first": False},
    {"final_norm": False, "bias": False},
    {"tie_embeddings": True, "scale_embeddings": False, "positions": "halves"},
    {"positions": normal(SRC_LEN, WIDTH, seed=3)},
]


def model(**options) -> Transformer:
    """In float64: in float32 the bound of so many layers in a row is too large to show a mutant."""
    made = Transformer(VOCAB, VOCAB, WIDTH, 3, 2, 2, 20, dtype=torch.float64, **options)
    return randomise(made).requires_grad_(False).eval()


def tokens(length: int, seed: int, batch: int = BATCH) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(VOCAB, (batch, length), generator=generator)


SRC, TGT = tokens(SRC_LEN, 0), tokens(TGT_LEN, 1)
VISIBLE = torch.arange(SRC_LEN) < LENS[:, None]


def step_by_step(ours: Transformer, pieces: list[int]) -> Tensor:
    """The logits of all targets, computed in pieces of these lengths with the cache."""
    cache = ours.start_decoding(ours.encode(SRC, src_lens=LENS), VISIBLE)
    found = []
    for some in TGT.split(pieces, dim=1):
        out, cache = ours.extend(some, cache)
        found.append(out)
    return torch.cat(found, dim=1)


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_decoding_with_the_cache_is_decoding_of_the_whole(options) -> None:
    ours = model(**options)
    allowed = 2 * logits(ours, SRC, TGT, VISIBLE)[1]
    whole = ours(SRC, TGT, src_lens=LENS)
    assert whole.shape == (BATCH, TGT_LEN, VOCAB)
    for pieces in ([1] * TGT_LEN, [TGT_LEN], [2, 1, 3], [0, 4, 0, 2]):
        judge(step_by_step(ours, pieces), whole, allowed)


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_the_logits_are_the_definition(options) -> None:
    ours = model(**options)
    exact, allowed = logits(ours, SRC, TGT, VISIBLE)
    judge(ours(SRC, TGT, src_lens=LENS), exact, 2 * allowed)


def places_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    right = implementation.sinusoidal_encoding

    def wrong(length: int, d_model: int, **options) -> Tensor:
        return right(length, d_model, **{**options, "start": 0})

    monkeypatch.setattr(implementation, "sinusoidal_encoding", wrong)


def first_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    right = KeysValues.concatenate

    def wrong(self: KeysValues, later: KeysValues) -> KeysValues:
        return right(KeysValues(self.keys[:, 1:], self.values[:, 1:]), later)

    monkeypatch.setattr(KeysValues, "concatenate", wrong)


def values_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    right = KeysValues.concatenate

    def wrong(self: KeysValues, later: KeysValues) -> KeysValues:
        both = right(self, later)
        return KeysValues(both.keys, both.values.roll(1, 1))

    monkeypatch.setattr(KeysValues, "concatenate", wrong)


def memory_unmasked(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Transformer.start_decoding
    monkeypatch.setattr(
        Transformer, "start_decoding", lambda self, memory, mask=None: right(self, memory)
    )


def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeysValues, "concatenate", lambda self, later: later)


@pytest.mark.parametrize(
    "mutant",
    [places_from_zero, first_forgotten, values_in_another_order, memory_unmasked, nothing_kept],
)
def test_mutants_of_the_cache_are_seen(mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = model()
    whole, allowed = ours(SRC, TGT, src_lens=LENS), 2 * logits(ours, SRC, TGT, VISIBLE)[1]
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match="over the tolerance"):
        judge(step_by_step(ours, [1] * TGT_LEN), whole, allowed)


def test_what_is_padding_changes_nothing() -> None:
    ours = model()
    expected = ours(SRC, TGT, src_lens=LENS)
    other = SRC.masked_fill(~VISIBLE, 5)
    assert torch.equal(ours(other, TGT, src_lens=LENS), expected)
    assert torch.equal(ours(SRC, TGT, src_key_mask=VISIBLE), expected)
    assert bool(expected.isfinite().all())
    alone = ours(SRC[1:2, :4], TGT[1:2])
    judge(expected[1:2], alone, 2 * logits(ours, SRC[1:2, :4], TGT[1:2])[1])
    assert not torch.equal(ours(SRC, TGT), expected)


def test_a_table_of_positions() -> None:
    """It takes the place of the encoding, moves with the module, and has to be long enough."""
    places = encoding(SRC_LEN, WIDTH, arrangement="halves", dtype=torch.float64)
    given, made = model(positions=places), model(positions="halves")
    assert torch.equal(given(SRC, TGT), made(SRC, TGT))
    assert torch.equal(step_by_step(given, [2, 4]), step_by_step(made, [2, 4]))
    assert "position_table" in given.state_dict()
    odd = Transformer(VOCAB, VOCAB, 9, 3, 1, 1, 20, positions=torch.ones(SRC_LEN, 9))
    assert odd(SRC, TGT).shape == (BATCH, TGT_LEN, VOCAB)
    assert odd.position_table.requires_grad is False
    with pytest.raises(ValueError, match="positions has 7 places, fewer than the 8 tokens"):
        given(SRC, tokens(8, 2))


def test_the_decoder_is_causal() -> None:
    """Later targets change no logits, and padding behind them neither."""
    ours = model()
    expected, changed = ours(SRC, TGT), TGT.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % VOCAB
    assert torch.equal(ours(SRC, changed)[:, :4], expected[:, :4])
    assert not torch.equal(ours(SRC, changed)[:, 4:], expected[:, 4:])
    padded = ours(SRC, TGT, tgt_lens=torch.tensor([4, 6, 5]))
    allowed = 2 * logits(ours, SRC, TGT)[1]
    judge(padded[:, :4], expected[:, :4], allowed[:, :4])
    in_front = torch.tensor([[False] * 2 + [True] * 4] * BATCH)
    assert not torch.equal(ours(SRC, TGT, tgt_key_mask=in_front)[:, 4:], expected[:, 4:])


def test_tied_embeddings_are_one_parameter() -> None:
    tied = model(tie_embeddings=True)
    names = dict(tied.named_parameters())
    assert tied.output.weight is tied.src_embedding.weight is tied.tgt_embedding.weight
    assert tied.output.bias is None
    assert "output.weight" not in names
    assert len(list(model().named_parameters())) == len(names) + 3
    again = model(tie_embeddings=True)
    again.load_state_dict(tied.state_dict())
    assert torch.equal(again(SRC, TGT), tied(SRC, TGT))


@pytest.mark.parametrize("options", [{}, {"tie_embeddings": True}], ids=str)
def test_greedy_decoding_takes_the_likeliest(options) -> None:
    """Against the whole decoder, run anew for each token."""
    ours = model(**options)
    found = ours.generate(SRC, 8, bos=BOS, eos=EOS, src_lens=LENS)
    expected = torch.full((BATCH, 1), BOS)
    for _ in range(8):
        last = ours(SRC, expected, src_lens=LENS)[:, -1].argmax(-1)
        last[(expected[:, 1:] == EOS).any(1)] = EOS
        expected = torch.cat((expected, last[:, None]), 1)
    length = found.shape[1]
    assert torch.equal(found, expected[:, 1 : length + 1])
    assert length == 8 or bool((found == EOS).any(1).all())
    assert found.dtype == torch.int64


def test_a_target_that_ended_stays_so() -> None:
    ours = model()
    ours.output.bias[EOS] = 100.0
    assert torch.equal(ours.generate(SRC, 8, bos=BOS, eos=EOS), torch.full((BATCH, 1), EOS))
    ours.output.bias[EOS] = -100.0
    assert ours.generate(SRC, 8, bos=BOS, eos=EOS).shape == (BATCH, 8)
    ended = ours.generate(tokens(5, 3, 64), 40, bos=BOS, eos=5, temperature=2.0)
    behind = (ended == 5).cumsum(1) > 0
    assert bool((ended[behind] == 5).all())


def test_sampling_is_from_the_softmax() -> None:
    """The share of each token among n is within 6 standard deviations, which one in 10⁸ misses."""
    n = 20000
    scores = torch.tensor([2.0, 0.0, 1.0, -1.0, 1.0], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    for temperature, top_k in ((1.0, None), (0.5, None), (2.0, 3), (1.0, 2), (1.0, 9)):
        kept = scores.clone()
        if top_k is not None and top_k < 5:
            kept[scores < scores.topk(top_k).values[-1]] = -torch.inf
        expected = (kept / temperature).softmax(-1)
        drawn = next_token(scores.expand(n, -1), temperature, top_k, generator)
        share = drawn.bincount(minlength=5).double() / n
        allowed = 6 * (expected * (1 - expected) / n).sqrt()
        assert bool(((share - expected).abs() <= allowed).all())


def test_sampling_follows_its_generator() -> None:
    ours = model()

    def generate_drawn(seed: int, **options) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return ours.generate(SRC, 8, bos=BOS, eos=EOS, generator=generator, **options)

    greedy = ours.generate(SRC, 8, bos=BOS, eos=EOS)
    assert torch.equal(generate_drawn(0, temperature=3.0), generate_drawn(0, temperature=3.0))
    assert not torch.equal(
        generate_drawn(0, temperature=3.0)[:, 0], generate_drawn(2, temperature=3.0)[:, 0]
    )
    assert torch.equal(generate_drawn(0, temperature=3.0, top_k=1), greedy)
    assert torch.equal(generate_drawn(0, temperature=1e-300), greedy)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_any_temperature(dtype: torch.dtype) -> None:
    """At the smallest the likeliest tokens are drawn alone, at the largest all that are kept."""
    scores = torch.tensor([2.0, 0.0, 1.0, -1.0, 2.0], dtype=dtype).expand(200, -1)
    generator = torch.Generator().manual_seed(0)
    for temperature in (5e-324, 1e-50, 1e-40):
        for top_k in (None, 3):
            drawn = next_token(scores, temperature, top_k, generator)
            assert set(drawn.tolist()) == {0, 4}
    for top_k, kept in ((None, {0, 1, 2, 3, 4}), (3, {0, 2, 4})):
        assert set(next_token(scores, 1.7e308, top_k, generator).tolist()) == kept


def test_the_gradients_reach_every_parameter() -> None:
    ours = Transformer(VOCAB, VOCAB, WIDTH, 3, 2, 2, 20, dtype=torch.float64)
    ours(SRC, TGT, src_lens=LENS).square().sum().backward()
    for name, parameter in ours.named_parameters():
        assert parameter.grad is not None, name
        # A key's bias adds the same to all scores of a query: the softmax takes no notice.
        if not name.endswith("k_proj.bias"):
            assert bool(parameter.grad.any()), name


@pytest.mark.thorough
def test_compiles_as_one_graph() -> None:
    ours = model()
    torch.compiler.reset()
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(SRC, TGT, src_lens=LENS), ours(SRC, TGT, src_lens=LENS))


MADE: list[tuple[dict[str, object], str]] = [
    ({"src_vocab_size": 0}, "src_vocab_size must be at least 1"),
    ({"tgt_vocab_size": 4, "tie_embeddings": True}, "tgt_vocab_size must be src_vocab_size, 9"),
    ({"d_model": 9}, "d_model must be even, not 9"),
    ({"d_model": 10}, "d_model must be a multiple of num_heads, 3, not 10"),
    ({"num_decoder_layers": 0}, "num_decoder_layers must be at least 1"),
    ({"positions": "learned"}, "arrangement must be one of 'interleaved', 'halves'"),
    (
        {"positions": torch.ones(4, 9)},
        "positions must be [max_len, d_model] with d_model = 12",
    ),
    ({"positions": torch.ones(12)}, "positions must be"),
    ({"tie_embeddings": 1}, "tie_embeddings must be True or False, not 1"),
]


@pytest.mark.parametrize(("options", "sentence"), MADE)
def test_models_that_are_refused(options, sentence: str) -> None:
    given = {"src_vocab_size": 9, "tgt_vocab_size": 9, "d_model": 12, "num_heads": 3, **options}
    with pytest.raises((TypeError, ValueError), match=re.escape(sentence)):
        Transformer(**given)


CALLS: list[tuple[dict[str, object], str]] = [
    ({"src": SRC.float()}, "src must be a torch.Tensor of int32 or int64, not torch.float32"),
    ({"src": SRC[0]}, "src must be [batch, length], not of shape [7]"),
    ({"tgt": TGT + VOCAB}, "tgt must hold tokens from 0 to 8, not "),
    ({"tgt": TGT - VOCAB}, "tgt must hold tokens from 0 to 8, not -"),
    ({"tgt": TGT[:2]}, "tgt must have the batch of src, 3, not 2"),
    ({"src_lens": LENS + 1}, "src_lens must be from 0 to the length, 7, not 8"),
    ({"src_lens": LENS[:2]}, "src_lens must be of shape [3], [batch], not [2]"),
    ({"src_lens": LENS, "src_key_mask": VISIBLE}, "src_lens and src_key_mask say the same"),
    ({"src_key_mask": VISIBLE[:, 1:]}, "src_key_mask must be [batch, length] = [3, 7], not"),
    ({"tgt_key_mask": TGT}, "tgt_key_mask must be a boolean torch.Tensor or None, not torch.int64"),
]


@pytest.mark.parametrize(("given", "sentence"), CALLS)
def test_calls_that_are_refused(given, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(sentence)):
        model()(**{"src": SRC, "tgt": TGT, **given})


def test_decodings_that_are_refused() -> None:
    ours = model()
    memory = ours.encode(SRC)
    cache = ours.start_decoding(memory)
    for call, sentence in (
        (lambda: ours.decode(TGT, memory[0]), "memory must be [batch, src_len, d_model], not of"),
        (lambda: ours.decode(TGT, None), "memory must be a torch.Tensor, not NoneType"),
        (
            lambda: ours.decode(TGT, memory[..., 1:]),
            "the last dimension of memory must be d_model, 12, not 11",
        ),
        (
            lambda: ours.decode(TGT, memory.float()),
            "memory must have the dtype of the module, torch.float64, not torch.float32",
        ),
        (
            lambda: ours.decode(TGT, memory.to("meta")),
            "memory must be on the device of the module, cpu, not on meta",
        ),
        (lambda: ours.decode(TGT[:2], memory), "tgt must have the batch of memory, 3, not 2"),
        (lambda: ours.extend(TGT, None), "cache must be a DecoderCache, not NoneType"),
        (lambda: ours.decoder.extend(memory, 3), "cache must be a DecoderCache, not int"),
        (
            lambda: ours.extend(TGT, replace(cache, layers=cache.layers[:1])),
            "cache must be of as many layers as the decoder has, 2, not 1",
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=f"^{re.escape(sentence)}"):
            call()


@pytest.mark.thorough
def test_exports_with_lengths_of_their_own() -> None:
    length = torch.export.Dim
    for strict in (False, True):
        program = torch.export.export(
            model(), (SRC, TGT), strict=strict,
            dynamic_shapes={"src": {1: length("src_len")}, "tgt": {1: length("tgt_len")}},
        )  # fmt: skip
        src, tgt = tokens(SRC_LEN + 4, 2), tokens(TGT_LEN - 2, 3)
        assert torch.equal(program.module()(src, tgt), model()(src, tgt))


GENERATED: list[tuple[dict[str, object], str]] = [
    ({"max_len": 0}, "max_len must be at least 1"),
    ({"bos": 9}, "bos must be a token from 0 to 8, not 9"),
    ({"bos": 10**5000}, "bos must be a token from 0 to 8, not so long a int"),
    ({"eos": 1.0}, "eos must be a whole number, not 1.0"),
    ({"temperature": 0}, "temperature must be finite and above 0, not 0; None takes"),
    ({"temperature": "1"}, "temperature must be a number or None, not '1'"),
    ({"temperature": 10**400}, "temperature must be finite and above 0, not 1000"),
    ({"generator": 3}, "generator must be a torch.Generator or None, not 3"),
    ({"top_k": 2}, "top_k needs a temperature"),
    ({"top_k": 0, "temperature": 1.0}, "top_k must be at least 1"),
    ({"src": SRC[0]}, "src must be [batch, length], not of shape [7]"),
]


@pytest.mark.parametrize(("given", "sentence"), GENERATED)
def test_generations_that_are_refused(given, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(sentence)):
        model().generate(**{"src": SRC, "max_len": 4, "bos": BOS, "eos": EOS, **given})
