"""Sequences in shards by the code of `pyimpl.distributed`: all devices in one process, each of
which takes in the keys of the others in the order of their arrival."""

from __future__ import annotations

import math
import sys
from types import ModuleType

import torch
from torch import Tensor

import pyimpl.distributed.internal.ring
from bridge.conformance.tensors.batch import Outputs, array
from bridge.vectors.model.shards import ShardsVector
from pyimpl.backends.dispatch import Backend
from pyimpl.distributed.internal.passing import Processes
from pyimpl.distributed.internal.shards import Shards
from pyimpl.internal.arguments import compute_dtype
from pyimpl.internal.scores import ScoreOptions


def shards_of(vector: ShardsVector, kind: type[Shards] = Shards) -> tuple[Shards, Shards]:
    """The shards of the queries and of the keys: by the name of the layout, which has to give the
    places of the vector, or where it has none by these places."""
    devices = vector.devices

    def of(length: int, places: list[tuple[int, ...]]) -> Shards:
        if vector.layout == "places":
            return kind.of_places(torch.tensor(some, dtype=torch.int64) for some in places)
        named: Shards = getattr(kind, vector.layout)(length, len(devices))
        return named

    return (
        of(vector.q_len, [device.queries for device in devices]),
        of(vector.kv_len, [device.keys for device in devices]),
    )


def _nothing(query: Tensor, value_dim: int) -> tuple[Tensor, Tensor]:
    """Outputs and log-sum-exps of queries that have met no keys."""
    wide = compute_dtype(query.dtype)
    out = query.new_zeros(*query.shape[:-1], value_dim, dtype=wide)
    return out, query.new_full(query.shape[:-1], -math.inf, dtype=wide)


class OnDevice(Processes):
    """One of the devices, to which no message is sent."""

    def __init__(self, rank: int, count: int) -> None:
        self.group = None
        self.rank, self.count = rank, count


def attend(
    vector: ShardsVector,
    backend: Backend,
    dtype: torch.dtype,
    device: torch.device,
    module: ModuleType = pyimpl.distributed.internal.ring,
) -> list[Outputs]:
    """The partial results of each device, in order of arrival, and the merged one.

    Partial results are merged before they are rounded. module: `pyimpl.distributed.internal.ring`,
    or a copy of it.
    """
    # The classes that the module itself has: those of a copy may have other code.
    kind = sys.modules[module.Sequence.__module__].Shards
    queries, keys = shards_of(vector, kind)
    left, right, shift = vector.mask.window or (None, None, 0)
    sequence = module.Sequence(queries, keys, None, left, right, shift)
    options = ScoreOptions(vector.natural_scale)
    q, k, v = (
        torch.from_numpy(array(rows)).to(dtype).to(device)[None, None]
        for rows in (vector.q, vector.k, vector.v)
    )
    found: list[Outputs] = []
    for rank, held in enumerate(vector.devices):
        ring = module.Ring(OnDevice(rank, len(vector.devices)), sequence, backend)
        query = queries.take(q, rank)
        merged = _nothing(query, vector.value_dim)
        for source in held.arrivals:
            part = _nothing(query, vector.value_dim)
            ring.take_in(*part, source, query, keys.take(k, source), keys.take(v, source), options)
            found.append(Outputs(part[0].to(dtype), part[1]))
            outs, lses = (torch.stack(pair) for pair in zip(merged, part, strict=True))
            merged = module.combine(outs, lses)
        found.append(Outputs(merged[0].to(dtype), merged[1]))
    return found
