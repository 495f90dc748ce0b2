"""By how much a correct module of `pyimpl.modules` may be off: its operations computed in float64,
each number with the largest error that it may have, carried from operation to operation.

An operation passes on its inputs' errors as it changes them, and adds its own rounding errors
(Higham 2002, "Accuracy and stability of numerical algorithms", sections 3.1, 3.5):
u is the unit roundoff of the dtype, and a number that is stored below the normal ones is off by η.
A decoder that computes position by position does the same operations on the same numbers in sums of
another order, so the bound holds for it as well, and two correct computations differ by at most
twice of it. `docs/tolerances.md` says more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from bridge.conformance.tolerances.rounding_model import FORMATS, Format, RoundingModel
from bridge.conformance.tolerances.row_weights import ScoreChanges
from bridge.conformance.tolerances.tolerance import attention_tolerance
from pyimpl.modules import DecoderLayer, EncoderLayer, FeedForward, MultiHeadAttention, Transformer
from pyimpl.modules.decoder import Decoder
from pyimpl.modules.encoder import Encoder
from pyimpl.modules.positions import sinusoidal_encoding
from pyimpl.modules.residual import Residual

Bounded = tuple[Tensor, Tensor]
"""Numbers in float64, and the largest error of each."""


class NoBound(ValueError):
    """The errors that enter an operation are so large that nothing can be said of its output."""


def format_of(dtype: torch.dtype) -> Format:
    """The format of a dtype."""
    return FORMATS[str(dtype).removeprefix("torch.")]


def _of(module: nn.Module) -> Format:
    """The format of the module's parameters."""
    return format_of(next(module.parameters()).dtype)


def _storing_error(size: Tensor, form: Format, roundings: int = 1) -> Tensor:
    """The largest error of storing numbers of at most this size so many times."""
    return roundings * (form.unit * size + form.underflow(False))


def exactly(x: Tensor) -> Bounded:
    """Numbers that are given."""
    return x.double(), torch.zeros_like(x).double()


def total(a: Bounded, b: Bounded, form: Format) -> Bounded:
    """The sum, rounded."""
    (x, dx), (y, dy) = a, b
    error = dx + dy
    return x + y, error + _storing_error((x + y).abs() + error, form)


def linear(a: Bounded, module: nn.Linear, dtype: torch.dtype | None = None) -> Bounded:
    """The products are summed in float32 or wider (Higham's γ), the sum and the sum with the bias
    are stored. dtype: in which the module computes; that of its weight if None."""
    (x, error), weight = a, module.weight.double()
    bias = torch.zeros(()).double() if module.bias is None else module.bias.double()
    form = format_of(module.weight.dtype if dtype is None else dtype)
    rounding = (x.shape[-1] + 2) * min(form.unit, FORMATS["float32"].unit)
    size = (x.abs() + error) @ weight.abs().mT + bias.abs()
    summed = rounding / (1 - rounding) * size
    return x @ weight.mT + bias, error @ weight.abs().mT + summed + _storing_error(
        size + summed, form, 2
    )


def layer_norm(a: Bounded, norm: nn.LayerNorm) -> Bounded:
    """Layer normalisation: c / s · gain + bias with c = x − μ and s = √(mean c² + ε).

    An error e of x moves c by at most e + mean e. Whatever the order of its sums, the arithmetic,
    in float32 or wider, moves it by at most (n + 8)u of the sizes that enter it, |x| and their
    mean; one pass over the numbers finds s with a relative error of at most n u rms(x) / s (Chan,
    Golub and LeVeque 1983, table 1), which is covered by that. s is a norm of (c, √ε), so an error
    f of c moves it by at most rms(f). Raises NoBound where that is as large as s.
    """
    (x, e), form = a, _of(norm)
    n, u = x.shape[-1], min(form.unit, FORMATS["float32"].unit)
    share = (n + 8) * u / (1 - (n + 8) * u)
    size = x.abs() + e
    c = x - x.mean(-1, keepdim=True)
    f = e + e.mean(-1, keepdim=True) + share * (size + size.mean(-1, keepdim=True))
    s = (c.square().mean(-1, keepdim=True) + norm.eps).sqrt()
    ds = f.square().mean(-1, keepdim=True).sqrt() + 4 * u * s
    if not bool((ds < s).all()):
        raise NoBound("an error as large as the deviation bounds nothing")
    t = c / s
    dt = (f + t.abs() * ds) / (s - ds)
    dt = dt + 4 * u * (t.abs() + dt)
    gain = norm.weight.double()
    bias = torch.zeros(()).double() if norm.bias is None else norm.bias.double()
    stored = _storing_error(gain.abs() * (t.abs() + dt) + bias.abs(), form, 3)
    return t * gain + bias, gain.abs() * dt + stored


def relu(a: Bounded, module: FeedForward) -> Bounded:
    """max(0, ·) enlarges no error."""
    hidden, error = linear(a, module.linear1)
    return linear((hidden.clamp(min=0), error), module.linear2)


@torch.no_grad()
def attend(
    module: MultiHeadAttention,
    inputs: Sequence[Bounded],
    *,
    visible: Tensor | None = None,
    added: Tensor | None = None,
) -> Bounded:
    """The output of the module whose query, key and value are: `inputs`, `[batch, length, width]`.
    visible, added: boolean and floating masks that broadcast to `[batch, heads, q_len, kv_len]`.

    The errors of the projections shift a score by at most δ, so that each weight changes by at most
    a factor e^{2δ}; to the resulting error is added the tolerance of attention itself, twice, since
    it is computed from exact projections. Raises NoBound where e^{2δ} is beyond float64.
    """
    layers = (module.q_proj, module.k_proj, module.v_proj)
    pairs = [linear(*pair) for pair in zip(inputs, layers, strict=True)]
    appended = 0
    extra: list[tuple[Tensor, Tensor]] = []
    if module.bias_k is not None and module.bias_v is not None:
        extra.append((module.bias_k, module.bias_v))
    if module.add_zero_attn:
        extra.append((torch.zeros(1), torch.zeros(1)))
    for one in extra:
        for i, added_row in zip((1, 2), one, strict=True):
            x, error = pairs[i]
            row = added_row.double().expand(x.shape[0], 1, x.shape[2])
            pairs[i] = (torch.cat((x, row), 1), torch.cat((error, torch.zeros_like(row)), 1))
        appended += 1
    group = module.num_heads // module.num_kv_heads
    heads = (module.num_heads, module.num_kv_heads, module.num_kv_heads)
    (q, dq), (k, dk), (v, dv) = (
        [_heads(x, h).repeat_interleave(r, 1) for x in pair]
        for pair, h, r in zip(pairs, heads, (1, group, group), strict=True)
    )
    scale = module.head_dim**-0.5 if module.scale is None else module.scale
    sizes = (*q.shape[:3], inputs[1][0].shape[1])
    mask = torch.ones(sizes, dtype=torch.bool) if visible is None else visible.expand(sizes)
    bias = torch.zeros(sizes).double() if added is None else added.double().expand(sizes)
    mask = nn.functional.pad(mask & (bias > -torch.inf), (0, appended), value=True)
    bias = nn.functional.pad(bias, (0, appended)).masked_fill(~mask, 0.0)
    scores = (scale * q @ k.mT + bias).masked_fill(~mask, -torch.inf)
    weights = torch.nan_to_num(scores.softmax(-1))
    out = weights @ v
    error = torch.zeros_like(out)
    if mask.shape[-1]:
        shift = abs(scale) * (dq @ (k.abs() + dk).mT + q.abs() @ dk.mT)
        factor = (2 * shift.masked_fill(~mask, 0.0).amax(-1, keepdim=True)).exp()
        if not bool(factor.isfinite().all()):
            raise NoBound("scores with errors beyond those of any number bound nothing")
        spread = (weights.unsqueeze(-1) * (v.unsqueeze(2) - out.unsqueeze(3)).abs()).sum(3)
        error = factor * (weights @ dv) + (factor - 1) * spread
    own = attention_tolerance(
        q.numpy(),
        k.numpy(),
        v.numpy(),
        scale=scale,
        mask=mask.numpy(),
        rounding=rounding_of(module.q_proj.weight.dtype),
        changes=ScoreChanges(added=bias.numpy()),
    )
    error = error + 2 * torch.from_numpy(own)
    out, error = (x.transpose(1, 2).flatten(-2) for x in (out, error))
    return linear((out, error), module.out_proj)


def _heads(x: Tensor, count: int) -> Tensor:
    """`[batch, length, count · width]` as `[batch, count, length, width]`."""
    return x.reshape(*x.shape[:-1], count, x.shape[-1] // count).transpose(1, 2)


def rounding_of(dtype: torch.dtype) -> RoundingModel:
    """The roundings of `pyimpl.attention` on a processor."""
    wide = "float64" if dtype == torch.float64 else "float32"
    return RoundingModel.widened(format_of(dtype).name, accumulator=wide)


@torch.no_grad()
def module_tolerance(
    module: MultiHeadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    visible: Tensor | None = None,
    added: Tensor | None = None,
) -> Tensor:
    """Largest error of a correct module of this dtype, `[batch, q_len, output_dim]`, float64; the
    inputs as the module receives them, masks as for `attend`."""
    inputs = [exactly(x) for x in (query, key, value)]
    return attend(module, inputs, visible=visible, added=added)[1]


def residual(a: Bounded, module: Residual, sublayer: Callable[[Bounded], Bounded]) -> Bounded:
    """A sublayer with its sum and its normalisation."""
    form = _of(module)
    if module.norm_first:
        return total(a, sublayer(layer_norm(a, module.norm)), form)
    return layer_norm(total(a, sublayer(a), form), module.norm)


def encoder_layer(a: Bounded, layer: EncoderLayer, visible: Tensor | None = None) -> Bounded:
    """`visible` broadcasts to `[batch, heads, length, length]`."""
    a = residual(a, layer.residual1, lambda x: attend(layer.self_attn, [x] * 3, visible=visible))
    return residual(a, layer.residual2, lambda x: relu(x, layer.feed_forward))


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

    def attend_memory(x: Bounded) -> Bounded:
        return attend(layer.cross_attn, [x, memory, memory], visible=memory_visible)

    a = residual(a, layer.residual1, lambda x: attend(layer.self_attn, [x] * 3, visible=causal))
    a = residual(a, layer.residual2, attend_memory)
    return residual(a, layer.residual3, lambda x: relu(x, layer.feed_forward))


def encoder(a: Bounded, module: Encoder, visible: Tensor | None = None) -> Bounded:
    """Layers one after another."""
    for layer in module.layers:
        assert isinstance(layer, EncoderLayer)
        a = encoder_layer(a, layer, visible)
    return a if module.norm is None else layer_norm(a, module.norm)


def decoder(
    a: Bounded,
    memory: Bounded,
    module: Decoder,
    visible: Tensor | None = None,
    memory_visible: Tensor | None = None,
) -> Bounded:
    """Layers one after another, each with the same memory."""
    for layer in module.layers:
        assert isinstance(layer, DecoderLayer)
        a = decoder_layer(a, memory, layer, visible, memory_visible)
    return a if module.norm is None else layer_norm(a, module.norm)


def embed(tokens: Tensor, embedding: nn.Embedding, model: Transformer) -> Bounded:
    """Scaled by a number that is rounded, and added to an encoding that is."""
    form = _of(model)
    x = embedding.weight.double()[tokens] * model.embedding_scale
    if model.position_table is not None:
        places = model.position_table[: tokens.shape[1]].double()
    else:
        places = sinusoidal_encoding(
            tokens.shape[1],
            model.d_model,
            arrangement=model.positions or "interleaved",
            dtype=torch.float64,
        )
    places = places.expand_as(x)
    pair = ((x, _storing_error(x.abs(), form, 3)), (places, _storing_error(places.abs(), form, 2)))
    return total(*pair, form)


@torch.no_grad()
def logits(
    model: Transformer, src: Tensor, tgt: Tensor, src_key_mask: Tensor | None = None
) -> Bounded:
    """The logits, and by how much a correct model of this dtype may be off."""
    visible = None if src_key_mask is None else src_key_mask[:, None, None]
    memory = encoder(embed(src, model.src_embedding, model), model.encoder, visible)
    x = embed(tgt, model.tgt_embedding, model)
    return linear(decoder(x, memory, model.decoder, None, visible), model.output)
