"""Whether a result has the form that a batch asks for."""

from __future__ import annotations

from typing import Any

from bridge.conformance.tensors.batch import Batch, Outputs, kind_of, tensor_error


def form_error(batch: Batch, outputs: Any) -> str | None:
    """The mistake in the form of a result, or that there is none; None if its form is right."""
    if not isinstance(outputs, Outputs):
        return f"returned {kind_of(outputs)} instead of Outputs"
    query, wanted = batch.query, (*batch.query.shape[:-1], batch.value.shape[-1])
    error = tensor_error(outputs.out, wanted, query.dtype, query.device)
    if error is not None or outputs.lse is None:
        return error
    return tensor_error(outputs.lse, wanted[:-1], None, query.device, "a log-sum-exp")
