"""Whether a result has the form that a batch asks for."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge.conformance.tensors.batch import Batch, Outputs, Unread


def form_error(batch: Batch, outputs: Any) -> str | None:
    """The mistake in the form of a result, or that there is none; None if its form is right."""
    if not isinstance(outputs, Outputs):
        return f"returned {_kind(outputs)} instead of Outputs"
    wanted = (*batch.query.shape[:-1], batch.value.shape[-1])
    out, lse = outputs.out, outputs.lse
    if not isinstance(out, (Tensor, Unread)):
        return f"returned {_kind(out)} instead of a tensor"
    if lse is not None and not isinstance(lse, (Tensor, Unread)):
        return f"returned {_kind(lse)} as log-sum-exp instead of a tensor"
    if tuple(out.shape) != wanted:
        return f"returned an output of shape {tuple(out.shape)} instead of {wanted}"
    if out.dtype != batch.query.dtype:
        return f"returned an output of {out.dtype} instead of {batch.query.dtype}"
    if out.device != batch.query.device:
        return f"returned an output on {out.device} instead of {batch.query.device}"
    if out.layout != torch.strided:
        return f"returned an output of layout {out.layout} instead of torch.strided"
    if lse is not None and tuple(lse.shape) != wanted[:-1]:
        return f"returned a log-sum-exp of shape {tuple(lse.shape)} instead of {wanted[:-1]}"
    if lse is not None and not lse.is_floating_point():
        return f"returned a log-sum-exp of {lse.dtype}"
    if lse is not None and lse.device != batch.query.device:
        return f"returned a log-sum-exp on {lse.device} instead of {batch.query.device}"
    if lse is not None and lse.layout != torch.strided:
        return f"returned a log-sum-exp of layout {lse.layout} instead of torch.strided"
    return None


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
