"""The adapter of a problem's model: a `ModelNew` of KernelBench's form, as a function of the
operation that the problem's own `Model` computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from bridge.conformance.adapters.adapter import Given
from bridge.conformance.adapters.whole_batches import WholeBatches
from bridge.conformance.functions.features import Function
from bridge.conformance.functions.operation import Operation
from bridge.conformance.tensors.batch import Batch, Misbehaviour, Outputs, Unread
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.vectors.model.attention import AttentionVector


@dataclass
class ModelAdapter(Given, WholeBatches):
    """A model that is called with query, key and value by position, in the problem's layout.

    refuses: why it takes no other sizes than the problem's; None if it does.
    """

    name: str
    function: Function
    operation: Operation
    dtypes: tuple[str, ...]
    _rounding: Callable[[str], RoundingModel]
    refuses: str | None = None

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        own = self.operation
        sizes = vector.q_len, vector.kv_len, vector.head_dim, vector.value_dim
        if vector.scale is not None:
            return "the problem's attention has the default scale"
        if (why := own.why_not(vector.mask, vector.q_len, vector.kv_len)) is not None:
            return why
        if vector.value_dim != vector.head_dim and own.value_dim == own.head_dim:
            return "the problem has as many columns in values as in keys"
        if self.refuses is not None and sizes != own.sizes():
            return f"takes the problem's own sizes alone: {self.refuses}"
        return None

    def run(self, batch: Batch) -> Outputs:
        given = [self.lay_out(x) for x in batch.qkv]
        return Outputs(self.read(batch, self.function(*given)))

    def lay_out(self, x: Tensor) -> Tensor:
        """[batch, heads, length, dim] in the problem's layout. One head stands for all where the
        problem says how many there are."""
        match self.operation.layout:
            case "batch, heads, length, dim":
                return x
            case "batch, length, heads, dim":
                return x.transpose(1, 2).contiguous()
            case "batch, length, dim":
                return x.flatten(0, 1)
        if x.shape[1] == 1:
            x = x.expand(-1, self.operation.heads, -1, -1)
        return x.transpose(1, 2).flatten(2).contiguous()

    def read(self, batch: Batch, result: Any) -> Any:
        """The result as [batch, heads, q_len, value_dim]. Raises Misbehaviour for a tensor of
        another shape, and for a tuple."""
        if isinstance(result, tuple):
            raise Misbehaviour("returned a tuple instead of a tensor")
        if not isinstance(result, (Tensor, Unread)):
            return result
        size, heads, q_len, _ = batch.query.shape
        whole = torch.empty(size, heads, q_len, batch.value.shape[-1], device="meta")
        shape, wanted = tuple(result.shape), tuple(self.lay_out(whole).shape)
        if shape != wanted:
            raise Misbehaviour(f"returned an output of shape {shape} instead of {wanted}")
        if isinstance(result, Unread):
            return replace(result, shape=tuple(whole.shape))
        match self.operation.layout:
            case "batch, heads, length, dim":
                return result
            case "batch, length, heads, dim":
                return result.transpose(1, 2)
            case "batch, length, dim":
                return result.reshape(whole.shape)
        split = result.reshape(size, q_len, -1, whole.shape[-1])
        return split.transpose(1, 2)[:, :heads]
