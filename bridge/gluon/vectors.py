"""The exact vectors through the simulated Gluon kernels, with no tolerance at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bridge.gluon.kernels import GluonKernels
from bridge.ttir import vectors
from bridge.ttir.memory import Memory
from bridge.ttir.rational import RationalDomain
from bridge.ttir.vector_runner import Runner
from bridge.vectors.model.attention import AttentionVector, Vector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import GroupedQueryVector


def not_run(vector: Vector) -> str | None:
    """Why `differences` does not take a vector; None: it does."""
    reason = vectors.not_run(vector)
    if reason is not None:
        return reason
    if not isinstance(vector, AttentionVector | GroupedQueryVector | GradientVector):
        return f"no Gluon kernel is known for {vector.operation}"
    given = sorted(vector.options) if not isinstance(vector, GroupedQueryVector) else []
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
    """A sentence for each number that differs between the kernel and the vector.

    kernels: the fields of `GluonKernels`. Raises ValueError for a vector that `not_run` gives a
    reason for, and as `GluonKernels.forward` does.
    """
    reason = not_run(vector)
    if reason is not None:
        raise ValueError(f"vector {vector.id} cannot run: {reason}")
    if isinstance(vector, GradientVector):
        yield from _gradients(vector, GluonKernels(Memory(RationalDomain()), **kernels))
    else:
        yield from vectors.differences(vector, make=GluonKernels, **kernels)


def _gradients(vector: GradientVector, kernels: GluonKernels) -> Iterator[str]:
    """The forward kernel, then the backward kernel with the sums for the queries' gradient, for
    heads for which it has them, and the one without beside the kernel for that gradient."""
    runner = Runner(kernels, 0)
    given = runner.backward_arguments(vector, vector.q)
    options = runner.options(vector, (1, vector.num_heads, vector.num_kv_heads))
    for atomics in (True, False) if kernels.has_sums(given[0], given[2]) else (False,):
        found = kernels.backward(*given, options, atomics=atomics)
        yield from runner.compare_gradients(vector, found)
