"""The exact vectors through the simulated Gluon kernels, with no tolerance at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bridge.gluon.kernels import GluonKernels
from bridge.ttir import vectors
from bridge.vectors.model.attention import AttentionVector, Vector
from bridge.vectors.model.operations import GroupedQueryVector

_OPTIONS = ("softcap", "alibi", "bias", "sink", "sinks")


def not_run(vector: Vector) -> str | None:
    """Why `differences` does not take a vector; None: it does."""
    reason = vectors.not_run(vector)
    if reason is not None:
        return reason
    if not isinstance(vector, AttentionVector | GroupedQueryVector):
        return f"no Gluon kernel is known for {vector.operation}"
    given = [name for name in _OPTIONS if getattr(vector, name, None) is not None]
    if given:
        return f"the Gluon kernel takes no {given[0]}"
    if vector.mask.kind != "none" and vector.mask.window is None:
        return "the Gluon kernel takes no mask but a window"
    if 0 in (vector.q_len, vector.kv_len):
        return "the Gluon kernel takes no empty tensors"
    if vector.scale == 0:
        return "the Gluon kernel takes no scale of 0"
    return None


def differences(vector: Vector, **kernels: Any) -> Iterator[str]:
    """A sentence for each number that the kernel finds otherwise than the vector says.

    kernels: the fields of `GluonKernels`. Raises ValueError for a vector that `not_run` gives a
    reason for, and as `GluonKernels.forward` does.
    """
    reason = not_run(vector)
    if reason is not None:
        raise ValueError(f"vector {vector.id} cannot run: {reason}")
    yield from vectors.differences(vector, make=GluonKernels, **kernels)
