"""The vectors that `pyimpl.attention` with `part`, and `pyimpl.merge_states` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge, scale_of, tensor, vector_of, vectors
from torch import Tensor

import pyimpl
from bridge.vectors.model.shards import ShardsVector


def check(vector_id: str, dtype: torch.dtype) -> None:
    """Each device over each shard of keys, and these merged in the order of their arrival."""
    vector = vector_of(vector_id)
    results = []
    for device in vector.devices:
        partials = [
            over(vector, dtype, device.queries, vector.devices[source].keys)
            for source in device.arrivals
        ]
        results += [*partials, merged(partials)]
    judge(vector, dtype, *results)


def over(
    vector: ShardsVector, dtype: torch.dtype, queries: tuple[int, ...], keys: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Queries over keys at these places: each stretch over each, as a part of the whole."""
    rows = [
        merged([attend(vector, dtype, some, others) for others in stretches(keys)])
        for some in stretches(queries)
    ]
    outs, lses = zip(*rows, strict=True)
    return torch.cat(outs, 2), torch.cat(lses, 2)


def merged(parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    outs, lses = zip(*parts, strict=True)
    return pyimpl.merge_states(torch.stack(outs), torch.stack(lses))


def attend(
    vector: ShardsVector, dtype: torch.dtype, queries: range, keys: range
) -> tuple[Tensor, Tensor]:
    left, right, shift = vector.mask.window or (None, None, 0)
    out, lse = pyimpl.attention(
        tensor(vector.q, dtype)[None, None, queries.start : queries.stop],
        tensor(vector.k, dtype)[None, None, keys.start : keys.stop],
        tensor(vector.v, dtype)[None, None, keys.start : keys.stop],
        window=(left, right),
        causal_alignment="bottom-right" if shift else "top-left",
        scale=scale_of(vector),
        return_lse=True,
        backend="tiled",
        part=pyimpl.Part(
            (1, 1, vector.q_len, vector.kv_len), first_query=queries.start, first_key=keys.start
        ),
    )
    return out, lse


def stretches(places: tuple[int, ...]) -> list[range]:
    """The stretches of neighbouring places; an empty one if there are no places."""
    found: list[range] = []
    for place in places:
        if found and found[-1].stop == place:
            found[-1] = range(found[-1].start, place + 1)
        else:
            found.append(range(place, place + 1))
    return found or [range(0)]


@vectors("shards-contiguous", 9)
@dtypes
def test_shards_contiguous(vector_id: str, dtype: torch.dtype) -> None:
    """Devices of such a ring that stop after the last round in which some device needs the keys
    that it holds, and compute only with keys that they need, by the bounds of their shards: if
    every key is on exactly one device, and the scores outside of the window and of the documents
    are masked, then every interleaving ends, after at most n · (7 · rounds − 6) events, and where
    no event can happen each device has the attention of its queries over all keys.

    Theorem ring-net-skips, `Spec.RingNet.outputs`. A stretch of the sequence on each device, of
    lengths that differ by one where the number of devices does not divide the whole: masks go by
    places of the whole, and each device meets the keys of the others in its own order, those of the
    one before it first.
    """
    check(vector_id, dtype)


@vectors("shards-striped", 8)
@dtypes
def test_shards_striped(vector_id: str, dtype: torch.dtype) -> None:
    """Devices of such a ring that stop after the last round in which some device needs the keys
    that it holds, and compute only with keys that they need, by the bounds of their shards: if
    every key is on exactly one device, and the scores outside of the window and of the documents
    are masked, then every interleaving ends, after at most n · (7 · rounds − 6) events, and where
    no event can happen each device has the attention of its queries over all keys.

    Theorem ring-net-skips, `Spec.RingNet.outputs`. Every n-th place on each of n devices: under
    causality a device hides the diagonal of the keys of those after it and shows that of those
    before it, and a window is divided by the number of devices, rounded on each side.
    """
    check(vector_id, dtype)


@vectors("shards-uneven", 8)
@dtypes
def test_shards_uneven(vector_id: str, dtype: torch.dtype) -> None:
    """Devices of such a ring that stop after the last round in which some device needs the keys
    that it holds, and compute only with keys that they need, by the bounds of their shards: if
    every key is on exactly one device, and the scores outside of the window and of the documents
    are masked, then every interleaving ends, after at most n · (7 · rounds − 6) events, and where
    no event can happen each device has the attention of its queries over all keys.

    Theorem ring-net-skips, `Spec.RingNet.outputs`. Shards of any lengths, empty ones too, and of
    any places: a device without queries passes keys on, one without keys is met by nobody, and what
    it gives to the others is the result of no keys, 0 and −∞.
    """
    check(vector_id, dtype)


@vectors("shards-zigzag", 11)
@dtypes
def test_shards_zigzag(vector_id: str, dtype: torch.dtype) -> None:
    """Devices of such a ring that stop after the last round in which some device needs the keys
    that it holds, and compute only with keys that they need, by the bounds of their shards: if
    every key is on exactly one device, and the scores outside of the window and of the documents
    are masked, then every interleaving ends, after at most n · (7 · rounds − 6) events, and where
    no event can happen each device has the attention of its queries over all keys.

    Theorem ring-net-skips, `Spec.RingNet.outputs`. Two stretches on each device, one from each end
    of the sequence: the second does not follow the first, and where twice the number of devices
    does not divide the length no place is lost.
    """
    check(vector_id, dtype)
