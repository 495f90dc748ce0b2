"""Several heads of several entries of a batch in one call, of which some rows are judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bridge.conformance.batch import DTYPES, Batch, Misbehaviour, Outputs
from bridge.conformance.judge import form_error
from bridge.vectors.by_spec import Integers
from bridge.vectors.model.operations import ComesToAttention
from bridge.vectors.model.sampled import SampledVector


def whole_batch(vector: SampledVector, dtype: str, device: str) -> Batch:
    """What the function is given: query [batch, heads, q_len, head_dim], and so on."""

    def tensor(numbers: Integers) -> Tensor:
        return torch.from_numpy(numbers).to(DTYPES[dtype]).to(device)

    asked = vector.asked()
    return Batch(
        asked,
        tensor(vector.q),
        tensor(vector.k),
        tensor(vector.v),
        None,
        asked[0].natural_scale,
        default_scale=vector.scale is None,
        window=vector.mask.window,
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
    """What an adapter has whose function takes several heads and a batch."""

    operations = frozenset({SampledVector.operation})

    def run_vector(self: Any, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        """Raises TypeError for a vector of another operation."""
        if not isinstance(vector, SampledVector):
            raise TypeError(f"there is no argument for {vector.operation}")
        return sample_rows(vector, whole_batch(vector, dtype, device), self.run)
