"""Attention with dropout, with temperatures, and of packed sequences of several heads, by the
formula in float32, with one bug past a tile of 64.

`MUTANTS` says which, and the family that shows it. Those of gradients compute the scores and the
weights again for the backward pass, and are right forwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bridge.conformance.adapters.differentiate import Found
from bridge.conformance.adapters.own import PyimplTiled
from bridge.conformance.adapters.whole_batches import sample_rows, whole_batch
from bridge.conformance.tensors.batch import Batch, Outputs
from bridge.conformance.tensors.gradient_inputs import floats, inputs_of
from bridge.vectors.model.attention import Exact
from bridge.vectors.model.dropout import DropoutVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import ComesToAttention, VarlenVector
from bridge.vectors.model.philox import keep
from bridge.vectors.model.sampled import Packed, SampledGradientVector, SampledVector, visible_pairs
from pyimpl.backends import reference

_DROPOUT, _TEMPERATURE, _PACKED = (
    f"past-tiles-{name}" for name in ("dropout", "temperature", "packed")
)
# By the name of each mutant, its description and the family that shows it.
MUTANTS = {
    "keys_off_diagonal": ("draws by the key's place in its tile, off the first ones", _DROPOUT),
    "rows_off_diagonal": ("draws by the query's place in its tile, off the first ones", _DROPOUT),
    "first_head_draws": ("draws for the first head of all from key 64 on", _DROPOUT),
    "entry_draws": ("counts heads from 0 in each sequence from key 64 on", _DROPOUT),
    "backward_keys": ("draws by the key's place in its tile", f"gradient-{_DROPOUT}"),
    "backward_rows": ("draws by the query's place in its tile", f"gradient-{_DROPOUT}"),
    "backward_entry": ("counts heads from 0 in each sequence", f"gradient-{_DROPOUT}"),
    "dv_undropped": ("drops nothing in dV from key 64 on", f"gradient-{_DROPOUT}"),
    "first_temperature": ("has the first head's from key 64 on", _TEMPERATURE),
    "first_temperature_rows": ("has the first head's from query 64 on", _TEMPERATURE),
    "first_tile_heated": ("has none from key 64 on", _TEMPERATURE),
    "dk_unheated": ("has none in dK from key 64 on", f"gradient-{_TEMPERATURE}"),
    "dq_unheated": ("has none in dQ from query 64 on", f"gradient-{_TEMPERATURE}"),
    "dt_of_first_rows": ("sums queries below 64 in that by it", f"gradient-{_TEMPERATURE}"),
    "dt_of_first_keys": ("sums keys below 64 in that by it", f"gradient-{_TEMPERATURE}"),
    "strides_of_one_head": ("reads key 64 on as if there were one head", _PACKED),
    "start_forgotten": ("reads key 64 on from sequence 0 in heads from 1 on", _PACKED),
    "grouped_modulo": ("takes head h % num_kv_heads from key 64 on", _PACKED),
    "dk_first_rows": ("sums queries below 64 of a sequence in dK", f"gradient-{_PACKED}"),
    "dk_first_head": ("sums a group's first head in dK from query 64 on", f"gradient-{_PACKED}"),
    "dv_strides_of_one_head": ("has dV at other strides from key 64 on", f"gradient-{_PACKED}"),
    "dq_start_forgotten": ("reads them so in the backward pass", f"gradient-{_PACKED}"),
}  # fmt: skip
_TILE = 64


@dataclass(frozen=True)
class _Given:
    """The inputs of one call. query [batch, heads, q_len, head_dim], and so on; seen: booleans that
    broadcast to the pairs; added: numbers that broadcast so too; drop: p, seed; None: nothing is
    dropped. packed: whether this is one of several sequences."""

    query: Tensor
    key: Tensor
    value: Tensor
    scale: float
    seen: Tensor
    softcap: float | None = None
    added: Sequence[Tensor] = ()
    sinks: Tensor | None = None
    temperature: Tensor | None = None
    drop: tuple[Exact, int] | None = None
    packed: bool = False


def _straight(forwards: Tensor, backwards: Tensor) -> Tensor:
    """The one forwards and the other's gradient."""
    return forwards.detach() + (backwards - backwards.detach())


def _factors(given: _Given, mutant: str) -> Tensor:
    """The factors of the weights: [batch, heads, q_len, kv_len]."""
    assert given.drop is not None
    p, seed = given.drop
    (batch, heads, q_len, _), kv_len = given.query.shape, given.key.shape[-2]
    numbers = range(batch * heads)
    kept = np.stack([keep(p, seed, h, range(q_len), kv_len) for h in numbers])
    heads_of, rows, keys = np.ogrid[: batch * heads, :q_len, :kv_len]
    past, off = keys >= _TILE, (keys >= _TILE) & (rows >= _TILE)
    if mutant == "keys_off_diagonal":
        keys = np.where(off, keys % _TILE, keys)
    if mutant == "rows_off_diagonal":
        rows = np.where(off, rows % _TILE, rows)
    if mutant == "backward_keys":
        keys = keys % _TILE
    if mutant == "backward_rows":
        rows = rows % _TILE
    if mutant == "first_head_draws":
        heads_of = np.where(past, 0, heads_of)
    if mutant == "entry_draws":
        heads_of = np.where(past, heads_of % heads, heads_of)
    if mutant == "backward_entry":
        heads_of = heads_of % heads
    found = torch.from_numpy(kept[heads_of, rows, keys]).to(given.query.dtype) / (1 - float(p))
    return found.reshape(batch, heads, q_len, kv_len)


def _heat(given: _Given, scores: Tensor, product: Any, mutant: str) -> Tensor:
    """The scores times the temperature of the head. product: of queries and keys, to scores."""
    t = given.temperature
    if t is None:
        return scores
    t = t.to(scores.dtype)[:, None, None].expand(scores.shape)
    rows, keys = torch.arange(t.shape[-2])[:, None], torch.arange(t.shape[-1])
    past, below = keys >= _TILE, rows >= _TILE
    if mutant == "first_temperature":
        t = torch.where(past, t[:, :1], t)
    if mutant == "first_temperature_rows":
        t = torch.where(below, t[:, :1], t)
    if mutant == "first_tile_heated":
        t = torch.where(past, 1.0, t)
    if mutant == "dt_of_first_rows":
        t = torch.where(below, t.detach(), t)
    if mutant == "dt_of_first_keys":
        t = torch.where(past, t.detach(), t)
    heated = t * scores
    if mutant == "dk_unheated":
        other = t * product(given.query, given.key.detach()) + product(
            given.query.detach(), given.key
        )
        return torch.where(past, _straight(heated, other), heated)
    if mutant == "dq_unheated":
        other = t * product(given.query.detach(), given.key) + product(
            given.query, given.key.detach()
        )
        return torch.where(below, _straight(heated, other), heated)
    return heated


def _attend(given: _Given, mutant: str) -> tuple[Tensor, Tensor]:
    (_, heads, q_len, _), kv_len = given.query.shape, given.key.shape[-2]
    group = heads // given.key.shape[1]
    rows, keys = torch.arange(q_len)[:, None], torch.arange(kv_len)
    own = torch.arange(heads)[:, None, None]

    def product(query: Tensor, key: Tensor) -> Tensor:
        found = query @ key.repeat_interleave(group, 1).mT * given.scale
        if mutant == "grouped_modulo" and given.packed:
            other = query @ key[:, torch.arange(heads) % key.shape[1]].mT * given.scale
            found = torch.where(keys >= _TILE, other, found)
        if mutant in ("dk_first_rows", "dk_first_head") and given.packed:
            left_out = rows >= _TILE
            if mutant == "dk_first_head":
                left_out = left_out & (own % group > 0)
            other = query @ key.detach().repeat_interleave(group, 1).mT * given.scale
            found = torch.where(left_out, _straight(found, other), found)
        return found

    scores = _heat(given, product(given.query, given.key), product, mutant)
    if given.softcap is not None:
        scores = given.softcap * torch.tanh(scores / given.softcap)
    for added in given.added:
        scores = scores + added
    scores = scores.masked_fill(~given.seen, -torch.inf)
    whole = scores
    if given.sinks is not None:
        sinks = given.sinks.to(scores.dtype)[:, None, None].expand(*scores.shape[:-1], 1)
        whole = torch.cat((scores, sinks), -1)
    dead = torch.isneginf(whole).all(-1, keepdim=True)
    lse = whole.masked_fill(dead, 0.0).logsumexp(-1, keepdim=True)
    weights = torch.exp(scores - lse)
    value = given.value.repeat_interleave(group, 1)
    if given.drop is None:
        out = weights @ value
    else:
        z = _factors(given, mutant)
        out = (weights * z) @ value
        if mutant == "dv_undropped":
            other = (weights * z) @ value.detach() + weights.detach() @ torch.where(
                keys[:, None] >= _TILE, value, value.detach()
            )
            below = (weights * z).detach() @ torch.where(
                keys[:, None] >= _TILE, value.detach(), value
            )
            out = _straight(out, other + below)
    return out, lse.masked_fill(dead, -torch.inf)[..., 0]


def _read(tensor: Tensor, start: int, stop: int, way: str) -> Tensor:
    """The rows of a sequence of each head, [1, heads, length, size], of a packed tensor."""
    _, heads, _, size = tensor.shape
    tokens = tensor[0].transpose(0, 1).reshape(-1, size)
    place, head = torch.arange(stop - start), torch.arange(heads)[:, None]
    row = (place + start) * heads + head
    if way == "start_forgotten":
        row = torch.where((place >= _TILE) & (head > 0), place * heads + head, row)
    if way == "strides_of_one_head":
        row = torch.where(place >= _TILE, start * heads + place + head, row)
    return tokens[row][None]


def _attend_packed(given: _Given, packed: Packed, mutant: str) -> tuple[Tensor, Tensor]:
    key_way = {"dq_start_forgotten": "start_forgotten"}.get(mutant, mutant)
    value_way = {"dv_strides_of_one_head": "strides_of_one_head"}.get(mutant, key_way)
    sums = zip(pairwise(packed.cu_seqlens_q), pairwise(packed.cu_seqlens_k), strict=True)
    parts = []
    for ((q0, q1), (k0, k1)), mask in zip(sums, packed.masks, strict=True):
        seen = torch.from_numpy(visible_pairs(mask, tuple(range(q1 - q0)), k1 - k0))
        one = replace(
            given,
            query=given.query[:, :, q0:q1],
            key=_read(given.key, k0, k1, key_way),
            value=_read(given.value, k0, k1, value_way),
            seen=seen.reshape(q1 - q0, k1 - k0),
            packed=True,
        )
        parts.append(_attend(one, mutant))
    return torch.cat([out for out, _ in parts], 2), torch.cat([lse for _, lse in parts], 2)


class Parts(PyimplTiled):
    """`pyimpl`'s tile loop, but for dropout, packed sequences, vectors that are drawn, and
    gradients, which have the bug; "": none."""

    def __init__(self, mutant: str) -> None:
        super().__init__()
        family = MUTANTS[mutant][1] if mutant else ""
        self.backward_mutant = mutant if family.startswith("gradient-") else ""
        self.mutant = "" if self.backward_mutant else mutant

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        match vector:
            case SampledVector():
                batch = whole_batch(vector, dtype, device)
                return sample_rows(vector, batch, lambda batch: self._run_sampled(vector, batch))
            case DropoutVector():
                return self._run_dropout(vector)
            case VarlenVector():
                return self._varlen(vector)
        return super().run_vector(vector, dtype, device)

    def _run_sampled(self, vector: SampledVector, batch: Batch) -> Outputs:
        (_, _, q_len, _), kv_len = batch.query.shape, batch.key.shape[2]
        seen = batch.boolean
        added = [] if batch.bias is None else [batch.bias]
        slopes = batch.slopes()
        if slopes is not None and batch.alibi is not None:
            place = torch.arange(q_len)[:, None] + batch.alibi.shift
            added.append(-slopes[:, None, None] * (place - torch.arange(kv_len)).abs())
        t, p = vector.temperature, vector.dropout_p
        given = _Given(
            batch.query, batch.key, batch.value, batch.scale,
            torch.ones(q_len, kv_len, dtype=torch.bool) if seen is None else seen,
            batch.softcap, added, batch.of_heads().get("sinks"),
            None if t is None else torch.tensor([float(x) for x in t]),
            None if p is None else (p, vector.dropout_seed),
        )  # fmt: skip
        if vector.packed is not None:
            return Outputs(*_attend_packed(given, vector.packed, self.mutant))
        return Outputs(*_attend(given, self.mutant))

    def _run_dropout(self, vector: DropoutVector) -> list[Outputs]:
        query, key, value = (
            torch.from_numpy(floats(x)).float().reshape(vector.batch, -1, *floats(x).shape[1:])
            for x in (vector.q, vector.k, vector.v)
        )
        rows = tuple(range(vector.q_len))
        seen = torch.from_numpy(visible_pairs(vector.mask, rows, vector.kv_len))
        scale = vector.natural_scale
        drop = vector.dropout_p, vector.dropout_seed
        if vector.dropout_p == 1:
            return super().run_vector(vector, "float32", "cpu")
        given = _Given(query, key, value, scale, seen, drop=drop)
        out, lse = _attend(given, self.mutant)
        return [
            Outputs(out[b : b + 1, h : h + 1], lse[b : b + 1, h : h + 1])
            for b, h in np.ndindex(*out.shape[:2])
        ]

    def _varlen(self, vector: VarlenVector) -> list[Outputs]:
        query, key, value = (
            torch.from_numpy(floats([x])).float()[None] for x in (vector.q, vector.k, vector.v)
        )
        packed = Packed(vector.cu_seqlens_q, vector.cu_seqlens_k, vector.masks, vector.alignment)
        scale = vector.natural_scale
        given = _Given(query, key, value, scale, torch.ones(1, 1, dtype=torch.bool))
        out, lse = _attend_packed(given, packed, self.mutant)
        return [Outputs(out[:, :, a:b], lse[:, :, a:b]) for a, b in pairwise(vector.cu_seqlens_q)]

    def gradients(self, vector: GradientVector, dtype: str, device: str) -> list[Found]:
        if vector.dropout and vector.dropout[0].p == 1:
            return super().gradients(vector, dtype, device)
        packed = vector.packed if isinstance(vector, SampledGradientVector) else None
        zero_bias = packed is None
        inputs = inputs_of(vector, torch.float32, zero_bias=zero_bias, requires_grad=True)
        options = inputs.options
        seen = reference.window(options, vector.q_len, vector.kv_len, torch.device("cpu"))
        if options.mask is not None:
            seen = seen & options.mask
        added = [] if options.bias is None else [options.bias]
        if options.alibi_slopes is not None:
            place = torch.arange(vector.q_len)[:, None] + options.shift
            distance = (place - torch.arange(vector.kv_len)).abs()
            added.append(-options.alibi_slopes[..., None, None] * distance)
        drop = None
        if options.dropout is not None:
            drop = vector.dropout[0].p, vector.dropout_seed
        given = _Given(
            *inputs[:3], options.scale, seen, options.softcap, added, options.sinks,
            options.temperature, drop,
        )  # fmt: skip

        def attend(mutant: str) -> tuple[Tensor, Tensor]:
            if packed is not None:
                return _attend_packed(given, packed, mutant)
            return _attend(given, mutant)

        right = attend("")
        outputs = right
        if self.backward_mutant:
            # Minus infinity less itself is no number.
            wrong = attend(self.backward_mutant)
            out, lse = (
                torch.where(x.isfinite() & y.isfinite(), _straight(y, x), y)
                for x, y in zip(wrong, right, strict=True)
            )
            outputs = out, lse
        by = inputs.by()
        lse_grad = torch.where(right[1].isfinite(), inputs.grad_lse, 0.0)
        found = torch.autograd.grad(
            outputs, list(by.values()), (inputs.grad_out, lse_grad), allow_unused=True
        )
        return [{n: g for n, g in zip(by, found, strict=True) if g is not None}]
