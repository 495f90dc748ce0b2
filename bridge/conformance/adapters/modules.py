"""The vectors of layers and of a transformer through `pyimpl.modules`: the modules with a vector's
parameters, their results, and how far these may be from the enclosed result."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import pyimpl.modules
from bridge.conformance.tolerances import first_order
from bridge.conformance.tolerances.first_order import Rounded, tolerance
from bridge.vectors.model import transformers as given
from bridge.vectors.model.attention import Mask, Matrix
from bridge.vectors.model.transformers import Enclosed, LayerVector, TransformerVector

Layered = LayerVector | TransformerVector


def tensor(rows: Sequence[Any], dtype: torch.dtype) -> Tensor:
    """Exact numbers. Raises ValueError where one is not exact in the dtype."""
    exact = [[Fraction(x) for x in row] for row in rows]
    found = torch.tensor([[float(x) for x in row] for row in exact], dtype=dtype)
    held = bool(found.isfinite().all())
    if not held or [[Fraction(x) for x in row] for row in found.tolist()] != exact:
        raise ValueError(f"a number of the vector is not exact in {dtype}")
    return found


class Builder:
    """Modules with the parameters of a vector. package: `pyimpl.modules`, or a package in its
    place."""

    def __init__(self, vector: Layered, dtype: torch.dtype, package: ModuleType) -> None:
        self.vector, self.dtype, self.package = vector, dtype, package

    def _copy(self, parameter: Tensor, numbers: Sequence[Any]) -> None:
        rows = numbers if parameter.dim() == 2 else [numbers]
        with torch.no_grad():
            parameter.copy_(tensor(rows, self.dtype).reshape(parameter.shape))

    def linear(self, module: nn.Linear, part: given.Linear) -> None:
        self._copy(module.weight, part.weight)
        if module.bias is not None:
            self._copy(module.bias, part.bias)

    def norm(self, module: nn.LayerNorm, part: given.LayerNorm) -> nn.LayerNorm:
        self._copy(module.weight, part.gain)
        self._copy(module.bias, part.bias)
        return module

    def feed_forward(self, part: given.FeedForward) -> Any:
        width, hidden = len(part.output.bias), len(part.hidden.bias)
        module = self.package.FeedForward(width, hidden, dtype=self.dtype)
        self.linear(module.linear1, part.hidden)
        self.linear(module.linear2, part.output)
        return module

    def attention(self, part: given.MultiHead) -> Any:
        heads, inside, scale = self.vector.num_heads, len(part.query.bias), self.vector.scale
        module = self.package.MultiHeadAttention(
            len(part.output.bias),
            heads,
            head_dim=inside // heads,
            scale=None if scale is None else float(scale),
            dtype=self.dtype,
        )
        names = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
        for mine, name in names.items():
            self.linear(getattr(module, mine), getattr(part, name))
        return module

    def residual(self, width: int, part: given.LayerNorm, *, norm_first: bool) -> Any:
        residual = importlib.import_module(f"{self.package.__name__}.residual")
        module = residual.Residual(
            width,
            norm_first=norm_first,
            dropout=0.0,
            eps=float(self.vector.eps),
            bias=True,
            dtype=self.dtype,
        )
        self.norm(module.norm, part)
        return module

    def layer(self, part: given.EncoderLayer | given.DecoderLayer) -> Any:
        """The layer."""
        width, vector = len(part.attention.output.bias), self.vector
        first = vector.norm_first if isinstance(vector, LayerVector) else True
        decodes = isinstance(part, given.DecoderLayer)
        kind = self.package.DecoderLayer if decodes else self.package.EncoderLayer
        # Made with other sizes, its parts are replaced by those of the vector.
        module = kind(width, 1, 1, 0.0, norm_first=first, dtype=self.dtype)
        norms = [part.attention_norm, part.feed_forward_norm]
        module.self_attn = self.attention(part.attention)
        if isinstance(part, given.DecoderLayer):
            module.cross_attn = self.attention(part.cross)
            norms.insert(1, part.cross_norm)
        for i, norm in enumerate(norms, 1):
            setattr(module, f"residual{i}", self.residual(width, norm, norm_first=first))
        module.feed_forward = self.feed_forward(part.feed_forward)
        return module

    def behind(self) -> nn.LayerNorm | None:
        """The normalisation behind a stack of layers, if the vector has one."""
        vector = self.vector
        if not isinstance(vector, LayerVector) or vector.norm is None:
            return None
        module = nn.LayerNorm(len(vector.norm.bias), float(vector.eps), dtype=self.dtype)
        return self.norm(module, vector.norm)

    def encoder(self, layers: Sequence[Any]) -> Any:
        return self.package.Encoder([self.layer(part) for part in layers], self.behind())

    def decoder(self, layers: Sequence[Any]) -> Any:
        return self.package.Decoder([self.layer(part) for part in layers], self.behind())

    def transformer(self, vector: TransformerVector) -> Any:
        part = vector.parameters
        model = self.package.Transformer(
            len(part.source),
            len(part.target),
            len(part.source[0]),
            1,
            1,
            1,
            1,
            0.0,
            final_norm=False,
            scale_embeddings=False,
            tie_embeddings=vector.tied,
            positions=tensor(vector.positions, self.dtype),
            dtype=self.dtype,
        )
        self._copy(model.src_embedding.weight, part.source)
        self._copy(model.tgt_embedding.weight, part.target)
        self.linear(model.output, part.output)
        model.encoder, model.decoder = self.encoder(part.encoder), self.decoder(part.decoder)
        return model.eval()


def keys(mask: Mask, length: int) -> Tensor | None:
    """Which keys a mask of padding leaves, `[length]`; None: all."""
    if mask.kind == "none":
        return None
    return torch.tensor([mask.visible(0, j) for j in range(length)])


def _own_keys(mask: Mask, length: int) -> Tensor | None:
    """The keys that a decoder may attend to beside causality, None: all."""
    kept = given.keys_of_decoder(mask, length)
    return None if kept is None or all(kept) else torch.tensor(kept)


def _options(mask: Mask, q_len: int, kv_len: int) -> dict[str, Any]:
    """The mask as arguments of `MultiHeadAttention`."""
    shift = mask.shift
    alignment = {"causal_alignment": "bottom-right" if shift else "top-left"}
    match mask.kind:
        case "none":
            return {}
        case "causal" | "causal-bottom-right":
            return {"is_causal": True, **alignment}
        case "window":
            return {"window": (mask.left, mask.right), **alignment}
        case "key-length" | "key-padding":
            return {"key_mask": keys(mask, kv_len)}
    return {"attn_mask": _visible(mask, q_len, kv_len)}


def _visible(mask: Mask, q_len: int, kv_len: int) -> Tensor:
    rows = [[mask.visible(i, j) for j in range(kv_len)] for i in range(q_len)]
    return torch.tensor(rows)


class Part(NamedTuple):
    """One result of a vector. name: the field of the expected result, and how it was computed."""

    name: str
    result: Tensor
    expected: Enclosed
    allowed: Tensor


@torch.no_grad()
def parts(
    vector: Layered, dtype: torch.dtype, package: ModuleType = pyimpl.modules
) -> Iterator[Part]:
    """The results of `package`'s modules for the vector, and their tolerances.

    Raises ValueError where the vector cannot be given to modules of this dtype (NoBound: where
    nothing can be said of the result).
    """
    if isinstance(vector, TransformerVector):
        yield from _of_transformer(vector, dtype, package)
        return
    allowed = _tolerances(vector, dtype, first_order.SECOND_ORDER)
    for name, result in _of_layer(vector, Builder(vector, dtype, package)):
        yield Part(name, result, vector.expected, allowed)


@lru_cache(maxsize=1024)
def _tolerances(vector: Layered, dtype: torch.dtype, _factor: float) -> Tensor:
    """The largest error of each element of correct modules' results; of logits and probabilities,
    side by side. It takes longer than the modules, and is asked for again with every package that
    is judged. _factor: that of the second order, on which it depends."""
    build = Builder(vector, dtype, pyimpl.modules)
    if isinstance(vector, TransformerVector):
        compute = _both(vector, build.transformer(vector).requires_grad_(False))
    else:
        compute = _reference_layer(vector, build)
    return tolerance(compute, dtype)[1]


def _of_layer(vector: LayerVector, build: Builder) -> Iterator[tuple[str, Tensor]]:
    x, part = tensor(vector.x, build.dtype), vector.parameters
    match part:
        case given.Linear():
            module = build.package.FeedForward(len(x[0]), len(part.bias), dtype=build.dtype)
            build.linear(module.linear1, part)
            yield "expected", module.linear1(x)
        case given.LayerNorm():
            # The normalisation of a sum to which nothing is added.
            residual = build.residual(len(x[0]), part, norm_first=False)
            yield "expected", residual(x, torch.zeros_like)
        case given.FeedForward():
            yield "expected", build.feed_forward(part)(x)
        case given.MultiHead():
            inputs = [tensor(rows, build.dtype) for rows in _keys_values(vector)]
            options = _options(vector.mask, len(x), len(inputs[0]))
            yield "expected", build.attention(part)(x, *inputs, **options)
        case _:
            yield from _of_layers(vector, x, build)


def _keys_values(vector: LayerVector) -> tuple[Matrix, Matrix]:
    """The rows from which keys and from which values are made."""
    context = vector.x if vector.context is None else vector.context
    return context, context if vector.values is None else vector.values


def _of_layers(vector: LayerVector, x: Tensor, build: Builder) -> Iterator[tuple[str, Tensor]]:
    """Decoders also row by row, with their cache."""
    single = len(vector.layers) == 1 and vector.norm is None
    if vector.layer == "encoder":
        encoder = build.layer(vector.layers[0]) if single else build.encoder(vector.layers)
        yield "expected", encoder(x, key_mask=keys(vector.mask, len(x)))
        return
    context = tensor(vector.context or (), build.dtype)
    own, others = _own_keys(vector.mask, len(x)), keys(vector.context_mask, len(context))
    decoder = build.layer(vector.layers[0]) if single else build.decoder(vector.layers)
    yield "expected", decoder(x, context, key_mask=own, memory_key_mask=others)
    cache = decoder.start(context) if single else decoder.start(context, others)
    options = {"memory_key_mask": others} if single else {}
    rows = []
    for i, row in enumerate(torch.split(x, 1)):
        so_far = None if own is None else own[: i + 1]
        out, cache = decoder.extend(row, cache, key_mask=so_far, **options)
        rows.append(out)
    yield "expected (with a cache)", torch.cat(rows)


def _reference_layer(vector: LayerVector, build: Builder) -> Callable[[Rounded], Tensor]:
    """The layer as it should be, its roundings marked."""
    rows, part = tensor(vector.x, build.dtype).double(), vector.parameters
    count = len(rows)
    match part:
        case given.Linear():
            module = nn.Linear(rows.shape[1], len(part.bias), dtype=build.dtype)
            build.linear(module, part)
            return lambda r: r.linear(rows, module)
        case given.LayerNorm():
            norm = build.residual(rows.shape[1], part, norm_first=True).norm
            return lambda r: r.layer_norm(rows, norm)
        case given.FeedForward():
            feed_forward = build.feed_forward(part)
            return lambda r: r.feed_forward(rows, feed_forward)
        case given.MultiHead():
            attention = build.attention(part)
            keys, values = (tensor(x, build.dtype).double() for x in _keys_values(vector))
            seen = _visible(vector.mask, count, len(keys))
            return lambda r: r.attend(attention, rows, keys, values, seen)
    visible = _visible(vector.mask, count, count)
    layers, norm = [build.layer(one) for one in vector.layers], build.behind()
    context = tensor(vector.context or (), build.dtype).double()
    seen = _visible(vector.context_mask, count, len(context))

    def compute(r: Rounded) -> Tensor:
        x = rows
        for layer in layers:
            if vector.layer == "encoder":
                x = r.encoder_layer(x, layer, visible)
            else:
                x = r.decoder_layer(x, context, layer, visible, seen)
        return x if norm is None else r.layer_norm(x, norm)

    return compute


def _both(vector: TransformerVector, model: Any) -> Callable[[Rounded], Tensor]:
    """The logits and the probabilities of the model as it should be, side by side, its roundings
    marked."""
    s, t = len(vector.source_tokens), len(vector.target_tokens)
    masks = (
        _visible(vector.source_mask, s, s),
        _visible(vector.mask, t, t),
        _visible(vector.context_mask, t, s),
    )

    def compute(r: Rounded) -> Tensor:
        x, y = (
            r.embed(tokens, embedding.weight, model.position_table)
            for tokens, embedding in (
                (vector.source_tokens, model.src_embedding),
                (vector.target_tokens, model.tgt_embedding),
            )
        )
        for layer in model.encoder.layers:
            x = r.encoder_layer(x, layer, masks[0])
        for layer in model.decoder.layers:
            y = r.decoder_layer(y, x, layer, *masks[1:])
        logits = r.linear(y, model.output)
        return torch.cat((logits, r.shares(logits)), 1)

    return compute


def _of_transformer(
    vector: TransformerVector, dtype: torch.dtype, package: ModuleType
) -> Iterator[Part]:
    """Logits of the whole and token by token, and probabilities."""
    allowed, allowed_shares = _tolerances(vector, dtype, first_order.SECOND_ORDER).chunk(2, 1)
    src, tgt = (torch.tensor([x]) for x in (vector.source_tokens, vector.target_tokens))
    source, context, own = (
        None if kept is None else kept[None]
        for kept in (
            keys(vector.source_mask, src.shape[1]),
            keys(vector.context_mask, src.shape[1]),
            _own_keys(vector.mask, tgt.shape[1]),
        )
    )
    model = Builder(vector, dtype, package).transformer(vector)
    logits = vector.expected_logits
    if vector.source_mask == vector.context_mask:
        whole = model(src, tgt, src_key_mask=source, tgt_key_mask=own)
        shares = model.probabilities(src, tgt, src_key_mask=source, tgt_key_mask=own)
    else:
        encoded = model.encode(src, src_key_mask=source)
        whole = model.decode(tgt, encoded, tgt_key_mask=own, memory_key_mask=context)
        shares = whole.softmax(-1)
    yield Part("expected_logits", whole[0], logits, allowed)
    cache, rows = model.start_decoding(model.encode(src, src_key_mask=source), context), []
    for i, token in enumerate(torch.split(tgt, 1, dim=1)):
        so_far = None if own is None else own[:, : i + 1]
        out, cache = model.extend(token, cache, tgt_key_mask=so_far)
        rows.append(out)
    yield Part("expected_logits (with a cache)", torch.cat(rows, 1)[0], logits, allowed)
    expected = vector.expected_probabilities
    yield Part("expected_probabilities", shares[0], expected, allowed_shares)


def wrong(
    vector: Layered, dtype: torch.dtype, package: ModuleType = pyimpl.modules
) -> Iterator[str]:
    """A clause for every number that is further from the enclosed one than a correct module's may
    be, and for every token that is not the likeliest where the logits tell. As `parts`."""
    for part in parts(vector, dtype, package):
        if list(part.result.shape) != [len(part.expected.lower), len(part.expected.lower[0])]:
            yield f"{part.name} is of shape {list(part.result.shape)}"
            return
        if part.result.dtype != dtype:
            yield f"{part.name} is of {part.result.dtype}"
            return
        yield from _too_far(part)
        if isinstance(vector, TransformerVector) and part.expected is vector.expected_logits:
            yield from _wrong_tokens(vector, part, package)


def _too_far(part: Part) -> Iterator[str]:
    uncertainty = part.expected.uncertainty
    rows = zip(part.result.tolist(), part.allowed.tolist(), part.expected.middle, strict=True)
    for i, (got, allowed, middle) in enumerate(rows):
        for j, (x, most, exact) in enumerate(zip(got, allowed, middle, strict=True)):
            place = f"{part.name}[{i}][{j}] is {x!r}, should be {float(exact)!r}"
            if not math.isfinite(x):
                yield place
            elif abs(Fraction(x) - exact) > Fraction(most) + uncertainty:
                far = float(abs(Fraction(x) - exact))
                times = far / most if most else math.inf
                yield f"{place}: {times:.3g} times the tolerance away"


def _wrong_tokens(vector: TransformerVector, part: Part, package: ModuleType) -> Iterator[str]:
    """A sentence for each wrong token that errors of the logits do not explain."""
    generation = importlib.import_module(f"{package.__name__}.internal.generation")
    found = generation.next_token(part.result, None, None, None).tolist()
    for i, (token, wanted) in enumerate(zip(found, vector.expected_tokens, strict=True)):
        row, allowed = part.expected.middle[i], part.allowed[i].tolist()
        best = row.index(max(row))
        beaten = all(
            row[best] - x > Fraction(allowed[best] + most)
            for n, (x, most) in enumerate(zip(row, allowed, strict=True))
            if n != best
        )
        if beaten and token != wanted:
            yield f"the token after target {i} is {token}, should be {wanted} ({part.name})"
