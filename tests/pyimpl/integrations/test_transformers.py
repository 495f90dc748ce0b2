"""`pyimpl.integrations.transformers`: models with random weights, tiny and in float32, with this
attention and with their own ("eager"): logits, gradients and generated tokens.

`tests/suites/test_hugging_face.py` compares each call inside of a model, by tolerances that are
derived; through whole models there are none, and `suite_checks.LOGITS` is used.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from integration_checks import examples, imported_anew
from suite_checks import LOGITS, MISTAKE
from torch import Tensor, nn

from pyimpl import attention
from pyimpl.integrations import transformers as integration
from pyimpl.integrations.transformers import HARMLESS, attention_forward, register

transformers = pytest.importorskip("transformers", reason="needs the package transformers")
sdpa_mask = transformers.masking_utils.sdpa_mask

SIZES = {"vocab_size": 40, "initializer_range": 0.3, "bos_token_id": 1, "eos_token_id": None}
SIZES |= {"pad_token_id": 0}
DECODER = SIZES | {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64,
}  # fmt: skip
WINDOW = {"sliding_window": 3}
ALTERNATING = {"layer_types": ["sliding_attention", "full_attention"]}
# Configurations by model type, of decoders and of encoders with decoders.
CAUSAL: dict[str, dict[str, Any]] = {
    "llama": DECODER,
    "mistral": DECODER | WINDOW,
    "gemma2": DECODER | WINDOW | ALTERNATING
    | {"attn_logit_softcapping": 1.0, "query_pre_attn_scalar": 8},
    "gemma3_text": DECODER | WINDOW | ALTERNATING,
    "gpt2": SIZES | {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    | {f"{name}_pdrop": 0.0 for name in ("attn", "embd", "resid")},
    "gpt_oss": DECODER | WINDOW | ALTERNATING | {
        "num_local_experts": 2, "num_experts_per_tok": 1,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    },
    "qwen2": DECODER | WINDOW | ALTERNATING | {"use_sliding_window": True},
    "qwen3": DECODER,
}  # fmt: skip
SEQ2SEQ: dict[str, dict[str, Any]] = {
    "t5": {
        "vocab_size": 40, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
        "dropout_rate": 0.0, "decoder_start_token_id": 0, "eos_token_id": None,
    },
    "bart": SIZES | {
        "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
        "max_position_embeddings": 64, "dropout": 0.0, "init_std": 0.3,
        "decoder_start_token_id": 1, "forced_eos_token_id": None,
    },
}  # fmt: skip
TOKENS = torch.randint(3, 40, (2, 9), generator=torch.Generator().manual_seed(0))
ALL = torch.ones_like(TOKENS)
# The first sequence is three tokens shorter: decoders are padded on the left, encoders on the
# right.
LEFT, RIGHT = ALL.clone(), ALL.clone()
LEFT[0, :3] = 0
RIGHT[0, 6:] = 0


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    """transformers speaks of each configuration that it has not seen before."""
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    yield
    transformers.logging.set_verbosity(before)


def model_of(kind: str, implementation: str = "eager") -> Any:
    """A model in float32 with weights from a fixed seed."""
    if kind == "vit":
        config: Any = transformers.ViTConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
            image_size=8, patch_size=4, initializer_range=0.3,
        )  # fmt: skip
        auto: Any = transformers.AutoModelForImageClassification
    elif kind in SEQ2SEQ:
        config = transformers.AutoConfig.for_model(kind, **SEQ2SEQ[kind])
        auto = transformers.AutoModelForSeq2SeqLM
    else:
        config = transformers.AutoConfig.for_model(kind, **CAUSAL[kind])
        auto = transformers.AutoModelForCausalLM
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = auto.from_config(config, attn_implementation=implementation).eval()
        for name, parameter in model.named_parameters():
            # Sinks and the like begin at 0 or where memory was.
            if name.endswith(("sinks", "relative_attention_bias.weight")):
                nn.init.normal_(parameter)
    return model


def both(kind: str) -> tuple[Any, Any]:
    """The model with this attention, and its equal with its own."""
    ours, theirs = model_of(kind, register()), model_of(kind)
    assert ours.config._attn_implementation == "pyimpl"
    return ours, theirs


def inputs(kind: str) -> dict[str, Tensor]:
    if kind == "vit":
        generator = torch.Generator().manual_seed(0)
        return {"pixel_values": torch.randn(2, 3, 8, 8, generator=generator)}
    if kind in SEQ2SEQ:
        return {"input_ids": TOKENS, "attention_mask": RIGHT, "decoder_input_ids": TOKENS[:, :5]}
    positions = (LEFT.cumsum(-1) - 1).clamp(min=0)
    return {"input_ids": TOKENS, "attention_mask": LEFT, "position_ids": positions}


def visible_logits(kind: str, logits: Tensor) -> Tensor:
    """Those of tokens that are not padding."""
    return logits[LEFT.bool()] if kind in CAUSAL else logits


def apart(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference, as a part of the largest number."""
    assert bool(ours.isfinite().all())
    return float((ours - theirs).abs().max() / theirs.abs().max())


def test_the_example_of_the_page_runs() -> None:
    names: dict[str, Any] = {}
    torch.manual_seed(4)  # with these weights the second new token is the one that ends a text
    exec(compile(examples()[1], "docs/integrations.md", "exec"), names)
    assert names["tokens"].shape == (1, 7)
    assert names["model"].config._attn_implementation == "pyimpl"


@pytest.mark.parametrize("kind", [*CAUSAL, *SEQ2SEQ, "vit"])
def test_logits_and_gradients(kind: str) -> None:
    """With padding; of all parameters. In training mode, which has no dropout here but drops
    the paths of inference."""
    found, cacheless = [], {"use_cache": False} if kind in CAUSAL else {}
    for model in both(kind):
        logits = visible_logits(kind, model.train()(**inputs(kind), **cacheless).logits)
        logits.square().mean().backward()
        gradients = {n: p.grad.float() for n, p in model.named_parameters() if p.grad is not None}
        found.append((logits.detach(), gradients))
    (ours, our_gradients), (theirs, their_gradients) = found
    assert apart(ours, theirs) < LOGITS
    assert len(our_gradients) > 10
    assert our_gradients.keys() == their_gradients.keys()
    largest = max(float(gradient.abs().max()) for gradient in their_gradients.values())
    for name, gradient in our_gradients.items():
        assert float((gradient - their_gradients[name]).abs().max()) < LOGITS * largest, name


@pytest.mark.parametrize("kind", [*CAUSAL, *SEQ2SEQ])
def test_generation(kind: str) -> None:
    """Greedy and with beams; with a cache that grows, with a static one, and with none."""
    ours, theirs = both(kind)
    given = {k: x for k, x in inputs(kind).items() if k in ("input_ids", "attention_mask")}
    for options in (
        {},
        {"num_beams": 2},
        {"cache_implementation": "static"},
        {"use_cache": False},
    ):
        call = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0} | options
        found = [model.generate(**given, **call) for model in (ours, theirs)]
        assert torch.equal(*found), options
        assert found[0].shape[1] >= 5


@pytest.mark.parametrize("kind", CAUSAL)
@pytest.mark.parametrize("static", [False, True], ids=["growing", "static"])
def test_pieces_with_a_cache(kind: str, static: bool) -> None:
    """A prompt, one token, two at once and one, with padding: the logits of eager."""
    ours, theirs = both(kind)
    positions = inputs(kind)["position_ids"]
    logits = []
    for model in (ours, theirs):
        cache = (
            transformers.StaticCache(config=model.config, max_cache_len=16)
            if static
            else transformers.DynamicCache(config=model.config)
        )
        parts = []
        with torch.no_grad():
            for some in (slice(0, 5), slice(5, 6), slice(6, 8), slice(8, 9)):
                out = model(
                    input_ids=TOKENS[:, some], attention_mask=LEFT[:, : some.stop],
                    position_ids=positions[:, some], past_key_values=cache, use_cache=True,
                )  # fmt: skip
                parts.append(out.logits)
        logits.append(visible_logits(kind, torch.cat(parts, 1)))
    assert apart(*logits) < LOGITS


def test_an_empty_static_cache_needs_no_mask() -> None:
    """Without padding transformers makes no mask for the prompt: its causality is aligned top-left,
    and the places of the cache behind it are hidden."""
    module = nn.Module()
    query, key = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 8, 4)
    out, _ = attention_forward(module, query, key, key, None)
    expected = attention(query, key[:, :, :3], key[:, :, :3], is_causal=True)
    assert torch.equal(out, expected.transpose(1, 2))


class TestMistakes:
    """Each is a step that an integration can leave out; the logits tell."""

    @pytest.mark.parametrize(
        ("kind", "change"),
        [
            ("llama", {"attention_mask": None}),
            ("mistral", {"attention_mask": None}),
            ("gemma2", {"softcap": None}),
            ("gpt_oss", {"s_aux": None}),
            ("t5", {"position_bias": None}),
            ("bart", {"attention_mask": None}),
            ("vit", {"is_causal": True}),
            ("gpt2", {"scaling": 0.3}),
        ],
    )
    def test_in_what_is_passed(self, kind: str, change: dict[str, Any]) -> None:
        def wrong(module: Any, query: Any, key: Any, value: Any, mask: Any, **given: Any) -> Any:
            given["attention_mask"] = mask
            return attention_forward(module, query, key, value, **(given | change))

        transformers.AttentionInterface.register("wrong", wrong)
        transformers.AttentionMaskInterface.register("wrong", sdpa_mask)
        self.differ(kind, model_of(kind, "wrong"), model_of(kind))

    def test_the_function_of_masks_is_not_registered(self) -> None:
        """transformers hands over no masks for such a name."""
        transformers.AttentionInterface.register("no-masks", attention_forward)
        self.differ("llama", model_of("llama", "no-masks"), model_of("llama"))

    def differ(self, kind: str, ours: Any, theirs: Any) -> None:
        with torch.no_grad():
            logits = [
                visible_logits(kind, model(**inputs(kind)).logits) for model in (ours, theirs)
            ]
        assert apart(*logits) > MISTAKE


def test_every_argument_that_a_model_passes_is_known() -> None:
    """Used, harmless or refused, of each call in the library; these are refused: the keys that a
    sparse attention picks, and sinks of another meaning."""
    refused = {"block_indices", "indices", "sinks"}
    used = set(inspect.signature(attention_forward).parameters)
    passed: set[str] = {"output_attentions"}
    for path in Path(transformers.__file__).parent.glob("models/*/modeling_*.py"):
        text = path.read_text("utf-8")
        if "attention_interface(" in text:
            passed |= keywords_of(text)
    from transformers.utils import TransformersKwargs

    passed |= set(TransformersKwargs.__annotations__)
    assert passed >= {"softcap", "s_aux", "sliding_window", "position_bias"}
    assert passed - used - HARMLESS - refused == {"output_attentions"}
    assert refused <= passed
    assert not HARMLESS & used


def keywords_of(text: str) -> set[str]:
    """By which the calls of attention in a source text name their arguments."""
    names: set[str] = set()
    for found in re.finditer(r"(?<!def )attention_interface\(", text):
        end, open_ = found.end(), 1
        while open_:
            open_ += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        call = ast.parse(text[found.start() : end], mode="eval").body
        assert isinstance(call, ast.Call)
        names |= {keyword.arg for keyword in call.keywords if keyword.arg is not None}
    return names


QUERY = torch.randn(2, 4, 3, 8, generator=torch.Generator().manual_seed(0))
KEY = torch.randn(2, 2, 3, 8, generator=torch.Generator().manual_seed(1))


class TestFunction:
    def call(self, *tensors: Tensor, mask: Tensor | None = None, **named: Any) -> Tensor:
        return attention_forward(nn.Module(), *(tensors or (QUERY, KEY, KEY)), mask, **named)[0]

    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            ({"output_attentions": True}, "output_attentions must be False"),
            ({"indices": torch.zeros(1)}, "indices must be None: this attention does not take it"),
            ({"head_mask": 1}, "head_mask must be None"),
            ({"sliding_window": 2, "is_causal": False}, "must hold the sliding_window of 2"),
            ({"cu_seq_lens_q": torch.tensor([0, 3])}, "cu_seq_lens_k must be given"),
            (
                {n: torch.tensor([0, 3]) for n in ("cu_seq_lens_q", "cu_seq_lens_k")},
                "query must have a batch of 1",
            ),
        ],
    )
    def test_refusals(self, given: dict[str, Any], sentence: str) -> None:
        with pytest.raises(ValueError, match=sentence):
            self.call(**given)

    def test_packed_sequences(self) -> None:
        """Each sequence as if it were alone; a mask beside the prefix sums is refused."""
        sums = torch.tensor([0, 1, 3])
        call = {"cu_seq_lens_q": sums, "cu_seq_lens_k": sums, "max_length_q": 2}
        query, key = QUERY[:1], KEY[:1]
        out = self.call(query, key, key, **call)
        for some in (slice(0, 1), slice(1, 3)):
            alone = self.call(query[:, :, some], key[:, :, some], key[:, :, some])
            torch.testing.assert_close(out[:, some], alone)
        with pytest.raises(ValueError, match="attention_mask must be None"):
            self.call(query, key, key, mask=torch.ones(3, 3) > 0, **call)

    def test_a_window_without_a_mask(self) -> None:
        expected = attention(QUERY, KEY, KEY, is_causal=True, window=(1, None), enable_gqa=True)
        assert torch.equal(self.call(sliding_window=2), expected.transpose(1, 2))

    def test_floating_masks(self) -> None:
        """Added to the scores, to a bias of positions too."""
        mask, bias = torch.randn(2, 1, 3, 3), torch.randn(1, 4, 3, 3)
        expected = attention(QUERY, KEY, KEY, bias=mask + bias, enable_gqa=True)
        out = self.call(mask=mask, position_bias=bias)
        assert torch.equal(out, expected.transpose(1, 2))

    def test_one_query_for_a_whole_batch(self) -> None:
        """Learned queries come with a batch of 1."""
        out = self.call(QUERY[:1], KEY, KEY)
        assert torch.equal(out, self.call(QUERY[:1].expand(2, -1, -1, -1), KEY, KEY))

    def test_dropout_is_seeded_by_pytorch(self) -> None:
        torch.manual_seed(1)
        first = self.call(dropout=0.5)
        second = self.call(dropout=0.5)
        torch.manual_seed(1)
        assert torch.equal(self.call(dropout=0.5), first)
        assert not torch.equal(second, first)


class TestRegister:
    def test_under_a_name_and_on_a_backend(self) -> None:
        assert register("in float64", backend="reference") == "in float64"
        model = model_of("gpt2", "in float64")
        with torch.no_grad():
            logits = [m(**inputs("gpt2")).logits for m in (model, model_of("gpt2"))]
        assert apart(*[visible_logits("gpt2", x) for x in logits]) < LOGITS

    @pytest.mark.parametrize("name", ["sdpa", "eager", 3])
    def test_a_name_that_is_taken(self, name: Any) -> None:
        with pytest.raises(ValueError, match="name must be"):
            register(name)

    def test_by_an_earlier_import_of_the_module(self) -> None:
        assert imported_anew(integration).register("imported anew") == "imported anew"
        assert register("imported anew") == "imported anew"

    def test_a_name_that_another_function_has_taken_since(self) -> None:
        register("another's")
        transformers.AttentionInterface.register("another's", attention_forward)
        with pytest.raises(ValueError, match="name must be none that transformers has already"):
            register("another's")

    def test_no_backend(self) -> None:
        unknown: Any = "cudnn"
        with pytest.raises(ValueError, match="backend must be one of"):
            register(backend=unknown)
