"""By how much a correct Transformer of a dtype may be off: its layers computed in float64, each
number with the largest error that it may have, carried from operation to operation.

What enters an operation with an error leaves it with what the operation makes of that and what it
rounds itself (Higham 2002, "Accuracy and stability of numerical algorithms", sections 3.1, 3.5):
u is the unit roundoff of the dtype. A decoder that computes position by position does the same
operations on the same numbers in sums of another order, so the bound holds for it as well, and two
correct computations differ by at most twice of it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from attention_checks import NAMES
from module_checks import attended, linear_error
from torch import Tensor, nn

from bridge.conformance.profile import FORMATS
from pyimpl.modules import DecoderLayer, EncoderLayer, FeedForward, Transformer
from pyimpl.modules.positions import sinusoidal_encoding
from pyimpl.modules.residual import Residual

Bounded = tuple[Tensor, Tensor]
"""Numbers in float64, and the largest error of each."""


def unit(module: nn.Module) -> float:
    """The unit roundoff of the module's dtype."""
    return FORMATS[NAMES[next(module.parameters()).dtype]].unit


def exactly(x: Tensor) -> Bounded:
    """Numbers that are given."""
    return x.double(), torch.zeros_like(x).double()


def total(a: Bounded, b: Bounded, u: float) -> Bounded:
    """The sum, rounded."""
    (x, dx), (y, dy) = a, b
    return x + y, dx + dy + u * ((x + y).abs() + dx + dy)


def normed(a: Bounded, norm: nn.LayerNorm) -> Bounded:
    """Layer normalisation: c / s · gain + bias with c = x − μ and s = √(mean c² + ε).

    An error e of x moves c by at most e + mean e. Whatever the order of its sums, the arithmetic
    moves it by at most (n + 8)u of the sizes that enter it, |x| and their mean; one pass over the
    numbers finds s with a relative error of at most n u rms(x) / s (Chan, Golub and LeVeque 1983,
    table 1), which is covered by that. s is a norm of (c, √ε), so an error f of c moves it by at
    most rms(f).
    """
    (x, e), u = a, unit(norm)
    n = x.shape[-1]
    share = (n + 8) * u / (1 - (n + 8) * u)
    size = x.abs() + e
    c = x - x.mean(-1, keepdim=True)
    f = e + e.mean(-1, keepdim=True) + share * (size + size.mean(-1, keepdim=True))
    s = (c.square().mean(-1, keepdim=True) + norm.eps).sqrt()
    ds = f.square().mean(-1, keepdim=True).sqrt() + 4 * u * s
    assert bool((ds < s).all()), "an error as large as the deviation bounds nothing"
    t = c / s
    dt = (f + t.abs() * ds) / (s - ds)
    dt = dt + 4 * u * (t.abs() + dt)
    gain = norm.weight.double()
    bias = torch.zeros(()).double() if norm.bias is None else norm.bias.double()
    out = t * gain + bias
    return out, gain.abs() * dt + 3 * u * (gain.abs() * (t.abs() + dt) + bias.abs())


def forwarded(a: Bounded, module: FeedForward) -> Bounded:
    """max(0, ·) enlarges no error."""
    dtype = module.linear1.weight.dtype
    hidden, error = linear_error(*a, module.linear1, dtype)
    return linear_error(hidden.clamp(min=0), error, module.linear2, dtype)


def residual(a: Bounded, module: Residual, sublayer: Callable[[Bounded], Bounded]) -> Bounded:
    u = unit(module)
    if module.norm_first:
        return total(a, sublayer(normed(a, module.norm)), u)
    return normed(total(a, sublayer(a), u), module.norm)


def encoder_layer(a: Bounded, layer: EncoderLayer, visible: Tensor | None) -> Bounded:
    """`visible` broadcasts to `[batch, heads, length, length]`."""
    a = residual(a, layer.residual1, lambda x: attended(layer.self_attn, [x] * 3, visible=visible))
    return residual(a, layer.residual2, lambda x: forwarded(x, layer.feed_forward))


def decoder_layer(
    a: Bounded,
    memory: Bounded,
    layer: DecoderLayer,
    visible: Tensor | None = None,
    memory_visible: Tensor | None = None,
) -> Bounded:
    """`visible` beside causality."""
    length = a[0].shape[1]
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    causal = causal if visible is None else causal & visible
    a = residual(a, layer.residual1, lambda x: attended(layer.self_attn, [x] * 3, visible=causal))
    a = residual(
        a, layer.residual2,
        lambda x: attended(layer.cross_attn, [x, memory, memory], visible=memory_visible),
    )  # fmt: skip
    return residual(a, layer.residual3, lambda x: forwarded(x, layer.feed_forward))


def embedded(tokens: Tensor, embedding: nn.Embedding, model: Transformer) -> Bounded:
    """Scaled by a number that is rounded, and added to an encoding that is."""
    u = unit(model)
    x = embedding.weight.double()[tokens] * model.embedding_scale
    places = sinusoidal_encoding(
        tokens.shape[1], model.d_model, arrangement=model.positions, dtype=torch.float64
    )
    places = places.expand_as(x)
    return total((x, 3 * u * x.abs()), (places, 2 * u * places.abs()), u)


@torch.no_grad()
def logits(
    model: Transformer, src: Tensor, tgt: Tensor, src_key_mask: Tensor | None = None
) -> Bounded:
    """The logits, and by how much a correct model of this dtype may be off."""
    visible = None if src_key_mask is None else src_key_mask[:, None, None]
    memory = embedded(src, model.src_embedding, model)
    for layer in model.encoder.layers:
        memory = encoder_layer(memory, layer, visible)
    memory = memory if model.encoder.norm is None else normed(memory, model.encoder.norm)
    x = embedded(tgt, model.tgt_embedding, model)
    for layer in model.decoder.layers:
        x = decoder_layer(x, memory, layer, None, visible)
    x = x if model.decoder.norm is None else normed(x, model.decoder.norm)
    return linear_error(*x, model.output, model.output.weight.dtype)


def judge(result: Tensor, expected: Tensor, allowed: Tensor) -> None:
    """Fail unless `result` is within `allowed` of `expected`."""
    error = (result.double() - expected.double()).abs()
    assert bool((error <= allowed).all()), f"{(error - allowed).max()} over the allowance"
