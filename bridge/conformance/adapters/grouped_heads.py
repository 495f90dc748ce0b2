"""Functions that take fewer heads of keys and values than of queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from bridge.conformance.adapters.differentiate import in_one_call
from bridge.conformance.adapters.whole_batches import WholeBatches
from bridge.conformance.tensors.batch import Batch, Outputs
from bridge.vectors.model.operations import ComesToAttention, GroupedQueryVector


def run_grouped(
    vector: GroupedQueryVector, dtype: str, device: str, run: Callable[[Batch], Outputs]
) -> list[Outputs]:
    """The results of a vector of grouped heads by one call, with fewer heads in key and value than
    in query."""
    group = vector.num_heads // vector.num_kv_heads
    out, lse = _outputs(run(in_one_call(vector.attentions(), group, dtype, device)))
    return [
        Outputs(out[:, h : h + 1], None if lse is None else lse[:, h : h + 1])
        for h in range(vector.num_heads)
    ]


def _outputs(found: Outputs) -> tuple[Tensor, Tensor | None]:
    return found.out, found.lse


class GroupedHeads(WholeBatches):
    """The part of adapters whose function takes fewer heads of keys and values than of queries."""

    operations = WholeBatches.operations | {GroupedQueryVector.operation}

    def run_vector(self: Any, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        if isinstance(vector, GroupedQueryVector):
            return run_grouped(vector, dtype, device, self.run)
        return super().run_vector(vector, dtype, device)
