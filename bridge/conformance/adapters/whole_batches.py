"""Several heads of several entries of a batch in one call, of which some rows are judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bridge.conformance.tensors.batch import DTYPES, Batch, Misbehaviour, Outputs
from bridge.conformance.tensors.form import form_error
from bridge.vectors.model.gradients import PER_HEAD
from bridge.vectors.model.operations import ComesToAttention
from bridge.vectors.model.sampled import Numbers, SampledVector, visible_pairs


def whole_batch(vector: SampledVector, dtype: str, device: str) -> Batch:
    """The function's inputs: query [batch, heads, q_len, head_dim], and so on. Masks that
    differ are [batch, heads, q_len, kv_len], and one that is no window [1, 1, q_len, kv_len]."""

    def tensor(numbers: Numbers) -> Tensor:
        return torch.from_numpy(numbers).to(DTYPES[dtype]).to(device)

    (batch, heads, q_len, _), kv_len = vector.q.shape, vector.k.shape[2]
    asked = vector.problems()
    first, (mask, *others) = asked[0], vector.masks
    boolean = None
    if others or (mask.kind != "none" and mask.window is None):
        seen = [visible_pairs(each, tuple(range(q_len)), kv_len) for each in vector.masks]
        shape = (batch, heads) if others else (1, 1)
        boolean = torch.from_numpy(np.stack(seen)).reshape(*shape, q_len, kv_len).to(device)
    slopes = () if vector.alibi is None else vector.alibi.slopes
    return Batch(
        asked,
        tensor(vector.q),
        tensor(vector.k),
        tensor(vector.v),
        boolean,
        vector.natural_scale,
        default_scale=vector.scale is None,
        window=None if others else mask.window,
        softcap=None if vector.softcap is None else float(vector.softcap),
        alibi=first.alibi,
        bias=None if vector.bias is None else tensor(vector.bias)[None].expand(batch, -1, -1, -1),
        sink=None if first.sink is None else float(first.sink),
        head_slopes=tuple(map(float, slopes)),
        per_head={
            name: tuple(map(float, each))
            for name in PER_HEAD
            if (each := getattr(vector, name)) is not None
        },
    )


def sample_rows(
    vector: SampledVector, batch: Batch, run: Callable[[Batch], Outputs]
) -> list[Outputs]:
    """The judged rows of each head of the batch, by one call. Raises Misbehaviour for a result of
    another form."""
    found = run(batch)
    wrong = form_error(batch, found)
    if wrong is not None:
        raise Misbehaviour(wrong)
    out, lse, rows = found.out, found.lse, list(vector.rows)
    return [
        Outputs(
            out[b : b + 1, h : h + 1, rows],
            lse[b : b + 1, h : h + 1, rows] if isinstance(lse, Tensor) else None,
        )
        for b, h in np.ndindex(*batch.query.shape[:2])
    ]


class WholeBatches:
    """The part of adapters whose function takes several heads and a batch."""

    operations = frozenset({SampledVector.operation})

    def run_vector(self: Any, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        """Raises TypeError for a vector of another operation."""
        if not isinstance(vector, SampledVector):
            raise TypeError(f"there is no argument for {vector.operation}")
        return sample_rows(vector, whole_batch(vector, dtype, device), self.run)
