"""Decoding, token by token, with a cache: `Transformer.generate`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pyimpl.backends.dispatch import Backend
from pyimpl.internal import arguments as check
from pyimpl.internal.implements import implements
from pyimpl.modules.internal.padding import checked_padding, checked_tokens
from pyimpl.modules.internal.sizes import positive

if TYPE_CHECKING:
    from pyimpl.modules.transformer import Transformer


@torch.no_grad()
def generate(
    model: Transformer,
    src: Tensor,
    max_len: int,
    *,
    bos: int,
    eos: int,
    src_lens: Tensor | None,
    src_key_mask: Tensor | None,
    temperature: float | None,
    top_k: int | None,
    generator: torch.Generator | None,
    backend: Backend,
) -> Tensor:
    """`Transformer.generate` of `model`."""
    max_len = positive("max_len", max_len)
    vocab_size = model.tgt_embedding.num_embeddings
    for name, given in (("bos", bos), ("eos", eos)):
        if not check.is_whole(given):
            raise TypeError(f"{name} must be a whole number, not {check.describe(given)}")
        if not 0 <= given < vocab_size:
            raise ValueError(
                f"{name} must be a token from 0 to {vocab_size - 1}, not {check.describe(given)}"
            )
    temperature = _checked_temperature(temperature)
    if top_k is not None:
        top_k = positive("top_k", top_k)
        if temperature is None:
            raise ValueError("top_k needs a temperature: without one the likeliest token is taken")
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator or None, not {check.describe(generator)}"
        )
    checked_tokens("src", src, model.src_embedding.num_embeddings)
    mask = checked_padding("src", src, src_lens, src_key_mask)
    memory = model.encode(src, src_key_mask=mask, backend=backend)
    cache = model.start_decoding(memory, mask)
    token = torch.full((src.shape[0],), bos, device=src.device)
    ended = torch.zeros_like(token, dtype=torch.bool)
    tokens = []
    for _ in range(max_len):
        logits, cache = model.extend(token[:, None], cache, backend=backend)
        token = next_token(logits[:, -1], temperature, top_k, generator).masked_fill(ended, eos)
        tokens.append(token)
        ended = ended | (token == eos)
        if bool(ended.all()):
            break
    return torch.stack(tokens, dim=1)


@implements("Attention.Spec.argmax")
def next_token(
    logits: Tensor,
    temperature: float | None,
    top_k: int | None,
    generator: torch.Generator | None,
) -> Tensor:
    """One token for each row of `logits` `[batch, vocab_size]`, `[batch]`; arguments as for
    `Transformer.generate`."""
    if temperature is None:
        return logits.argmax(-1)
    # It holds every temperature, and the sum of many small probabilities.
    logits = logits.double()
    if top_k is not None and top_k < logits.shape[-1]:
        least = logits.topk(top_k, dim=-1).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    # The largest is taken away first: a small temperature would make it infinite. The 0 left of it
    # stays where a device multiplies by 1 / temperature, which may be infinite too.
    below = logits - logits.amax(-1, keepdim=True)
    weights = torch.where(below == 0.0, 0.0, below / temperature).softmax(-1)
    return torch.multinomial(weights, 1, generator=generator)[:, 0]


def _checked_temperature(given: object) -> float | None:
    """A finite number above 0, or None; raises TypeError or ValueError for anything else."""
    if given is None:
        return None
    number = check._as_float("temperature", given)
    if not 0.0 < number < math.inf:
        raise ValueError(
            f"temperature must be finite and above 0, not {check.describe(given)}; None takes the "
            "likeliest token"
        )
    return number
