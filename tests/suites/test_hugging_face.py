"""Models of Hugging Face's transformers, tiny and with random weights, with this attention in place
of their own: no downloads.

`Adapter` stands for the function that `pyimpl.integrations.transformers` registers, and looks at
each of its calls. The model's own attention, "eager", is plain PyTorch in float32. Compared are:

- every call inside the model with eager's result for the same tensors; the two may be apart by the
  sum of both tolerances;
- the logits of the whole model at all tokens that are not padding: prefill, prefill with padding on
  the left, and decoding with a cache, token by token and two at a time.

| model | its peculiarity |
| --- | --- |
| Llama | grouped query heads |
| GPT-2 | learned positions; as many key heads as query heads |
| Mistral | sliding window |
| Gemma 2 | softcap; sliding window in every other layer |
| GPT-OSS | sinks; sliding window in every other layer |

Each of them twice: by the registered function with the mask that transformers makes, and by
`pyimpl.attention` without, by `is_causal`, aligned bottom-right, and `window`. A sliding window of
n is n keys, the query's own among them.

One difference is known: eager masks with the lowest number, so that a query that is padding gets
the mean of the values, and here 0. The results of such queries are no key that anyone sees.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from attention_checks import kernel_rounding, tiled_rounding
from suite_checks import BACKENDS, LOGITS, MISTAKE, agree, find_tolerances
from torch import Tensor

from bridge.conformance.tolerances.rounding_model import RoundingModel
from pyimpl import attention
from pyimpl.integrations.transformers import attention_forward

transformers = pytest.importorskip("transformers", reason="needs the package transformers")

# Not that of `register`, which takes no name that another function has.
NAME = "looked-at"
EAGER = RoundingModel.sdpa_math("float32")


@dataclass
class Adapter:
    """`attention_forward` as an attention function of transformers; without masks
    `pyimpl.attention`, for caches that hold no more keys than were seen (all but `StaticCache`).
    """

    backend: str = "auto"
    # Whether the model hands over a mask; if not, all are causal and there is no padding.
    masks: bool = True
    alignment: str = "bottom-right"
    # Other arguments than those that the model gives, by mistake.
    changes: tuple[tuple[str, object], ...] = ()
    judged: bool = True
    calls: int = 0

    def __call__(
        self,
        module: torch.nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        *,
        scaling: float | None = None,
        sliding_window: int | None = None,
        softcap: float | None = None,
        s_aux: Tensor | None = None,
        dropout: float = 0.0,
        **others: Any,
    ) -> tuple[Tensor, None]:
        """`attention_mask`: booleans, the window among them, or None: causal."""
        left = None if attention_mask is not None or sliding_window is None else sliding_window - 1
        call: dict[str, Any]
        if self.masks:
            call = others | {
                "attention_mask": attention_mask, "scaling": scaling, "softcap": softcap,
                "sliding_window": sliding_window, "s_aux": s_aux, "dropout": dropout,
                "backend": self.backend,
            } | dict(self.changes)  # fmt: skip
            out = attention_forward(module, query, key, value, **call)[0].transpose(1, 2)
        else:
            call = {
                "is_causal": True, "causal_alignment": self.alignment, "window": (left, None),
                "softcap": softcap, "sinks": s_aux, "scale": scaling, "dropout_p": dropout,
                "enable_gqa": True, "backend": self.backend,
            } | dict(self.changes)  # fmt: skip
            out = attention(query, key, value, **call)
        self.calls += 1
        if self.judged:
            q_len, kv_len = query.shape[2], key.shape[2]
            visible = torch.ones(1, 1, q_len, kv_len, dtype=torch.bool).tril(kv_len - q_len)
            if left is not None:
                visible = visible.triu(kv_len - q_len - left)
            if attention_mask is not None:
                visible = attention_mask
            tensors = (query, key, value)
            self._judge(module, out, tensors, visible, scaling, softcap=softcap, sinks=s_aux)
        return out.transpose(1, 2).contiguous(), None

    def _judge(
        self,
        module: torch.nn.Module,
        ours: Tensor,
        tensors: tuple[Tensor, Tensor, Tensor],
        visible: Tensor,
        scaling: float,
        **options: Any,
    ) -> None:
        """Fail unless eager makes the same of the same tensors."""
        eager = sys.modules[type(module).__module__].eager_attention_forward
        mask = torch.where(visible, 0.0, torch.finfo(torch.float32).min)
        theirs, _ = eager(module, *tensors, mask, scaling=scaling, softcap=options["softcap"])
        rounding = (kernel_rounding if self.backend == "triton" else tiled_rounding)(torch.float32)
        tolerance, _ = find_tolerances(
            *tensors, scale=scaling, visible=visible, rounding_models=[rounding, EAGER], **options
        )
        empty = ~visible.any(-1, keepdim=True)
        agree(ours, theirs.transpose(1, 2).masked_fill(empty, 0.0), tolerance)


SIZES = {"vocab_size": 40, "initializer_range": 0.3, "bos_token_id": 1, "eos_token_id": 2}
DECODER = SIZES | {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64,
}  # fmt: skip
# The classes' names without "Config" and "ForCausalLM" or "LMHeadModel".
MODELS: dict[str, dict[str, Any]] = {
    "Llama": DECODER,
    "GPT2": SIZES | {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "Mistral": DECODER | {"sliding_window": 3},
    "Gemma2": DECODER | {
        "sliding_window": 3, "attn_logit_softcapping": 1.0, "query_pre_attn_scalar": 8,
    },
    "GptOss": DECODER | {
        "sliding_window": 3, "num_local_experts": 2, "num_experts_per_tok": 1,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    },
}  # fmt: skip
TOKENS = torch.randint(3, 40, (2, 9), generator=torch.Generator().manual_seed(0))
ALL = torch.ones_like(TOKENS)
# The first sequence is three tokens shorter.
PADDED = ALL.clone()
PADDED[0, :3] = 0


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """transformers speaks of each configuration that it has not seen before."""
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    yield
    transformers.logging.set_verbosity(before)


def model_of(name: str) -> Any:
    """A model in float32 with weights from a fixed seed."""
    suffix = "LMHeadModel" if name == "GPT2" else "ForCausalLM"
    config = getattr(transformers, f"{name}Config")(**MODELS[name])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return getattr(transformers, name + suffix)(config).eval()


def use(model: Any, adapter: Adapter | None) -> None:
    """Have the model attend by the adapter, or by its own functions."""
    if adapter is not None:
        from transformers.masking_utils import sdpa_mask

        mask = sdpa_mask if adapter.masks else lambda *sizes, **more: None
        transformers.AttentionInterface.register(NAME, adapter)
        transformers.AttentionMaskInterface.register(NAME, mask)
    model.set_attn_implementation("eager" if adapter is None else NAME)


@torch.no_grad()
def logits(model: Any, adapter: Adapter | None, mask: Tensor, steps: list[int]) -> Tensor:
    """`[batch, tokens, vocabulary]` from as many tokens at a time as `steps` say, with a cache."""
    use(model, adapter)
    cache, parts, first = None, [], 0
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    for count in steps:
        some = slice(first, first + count)
        first += count
        result = model(
            input_ids=TOKENS[:, some], attention_mask=mask[:, :first],
            position_ids=positions[:, some], past_key_values=cache, use_cache=True,
        )  # fmt: skip
        cache = result.past_key_values
        parts.append(result.logits)
    return torch.cat(parts, 1)


def apart(name: str, adapter: Adapter, mask: Tensor, steps: list[int]) -> float:
    """How far the logits are from eager's, at tokens that are not padding."""
    model = model_of(name)
    expected = logits(model, None, mask, steps)
    ours = logits(model, adapter, mask, steps)
    assert adapter.calls == 2 * len(steps)
    assert float(expected.abs().max()) < 16
    assert bool(ours.isfinite().all())
    return float((ours - expected).abs()[mask[:, : sum(steps)].bool()].max())


PREFILL, DECODING = [9], [4, 1, 1, 1, 2]


@pytest.mark.parametrize("steps", [PREFILL, DECODING], ids=["prefill", "decoding"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MODELS)
class TestLogits:
    """Of the model with this attention and with its own."""

    @pytest.mark.sampled(2)
    def test_with_the_masks_of_transformers(
        self, name: str, backend: str, steps: list[int]
    ) -> None:
        assert apart(name, Adapter(backend), ALL, steps) < LOGITS

    @pytest.mark.sampled(2)
    def test_without_masks(self, name: str, backend: str, steps: list[int]) -> None:
        assert apart(name, Adapter(backend, masks=False), ALL, steps) < LOGITS

    @pytest.mark.sampled(2)
    def test_padding_on_the_left(self, name: str, backend: str, steps: list[int]) -> None:
        assert apart(name, Adapter(backend), PADDED, steps) < LOGITS


@pytest.mark.parametrize("name", ["Llama", "GPT2"])
def test_by_the_interpreted_kernels(name: str) -> None:
    assert apart(name, Adapter("triton"), PADDED, [6, 1]) < LOGITS


MISTAKES = {
    "top-left": ("Llama", Adapter(alignment="top-left", masks=False)),
    "not causal": ("Llama", Adapter(changes=(("is_causal", False),), masks=False)),
    "no mask": ("GPT2", Adapter(changes=(("attention_mask", None), ("is_causal", False)))),
    "another scale": ("GPT2", Adapter(changes=(("scaling", 0.3),))),
    "no window": ("Mistral", Adapter(changes=(("window", (None, None)),), masks=False)),
    "window off by one": ("Mistral", Adapter(changes=(("window", (3, None)),), masks=False)),
    "no softcap": ("Gemma2", Adapter(changes=(("softcap", None),))),
    "no sinks": ("GptOss", Adapter(changes=(("s_aux", None),))),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_adapter_is_caught(mistake: str) -> None:
    """By the logits alone, and by the first call whose result is not as eager's."""
    name, adapter = MISTAKES[mistake]
    mask = PADDED if adapter.masks else ALL
    adapter.judged = False
    assert apart(name, adapter, mask, DECODING) > MISTAKE
    adapter.judged = True
    with pytest.raises(AssertionError, match="over the tolerance"):
        apart(name, adapter, mask, DECODING)
