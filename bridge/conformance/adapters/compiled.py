"""The Triton kernels as Triton compiles them, run without a GPU (`bridge.ptx`)."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from bridge.conformance.adapters.differentiate import Found
from bridge.conformance.adapters.own import PyimplTriton
from bridge.conformance.tensors.batch import Outputs
from bridge.vectors.model.attention import AttentionVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import ComesToAttention
from pyimpl.internal.scores import ScoreOptions

# Multiprocessors of the GPU that is not there, an A100: decoding splits its keys among them.
_PROCESSORS = 108


@contextmanager
def simulate(package: str = "pyimpl") -> Iterator[None]:
    """Launches on CPU tensors are compiled for compute capability 8.0 and run as PTX, for as long
    as the context lasts. Triton must not interpret in this process.

    package: `pyimpl`, or the name of a copy of it.
    """
    ptx = importlib.import_module("bridge.ptx.launch")
    launch = importlib.import_module(f"{package}.backends.kernels.parts.launch")
    kept = importlib.import_module(f"{package}.backends.kernels.parts.kept")

    def run(self: Any, device: torch.device) -> None:
        ptx.run(self)

    there = launch.StandIn(ptx.ARCHITECTURE, _PROCESSORS)
    with (
        mock.patch.object(launch, "stand_in", there),
        mock.patch.object(launch.Launch, "run", run),
        # A launch that is kept is started by Triton.
        mock.patch.object(kept, "_COMPILES", False),
    ):
        yield


def why_not_here() -> str | None:
    """Why Triton compiles nothing in this process; None if it does."""
    try:
        numerics = importlib.import_module("pyimpl.backends.kernels.parts.numerics")
    except ImportError as error:
        return f"Triton cannot be imported here: {error}"
    if numerics.INTERPRETED.value:
        return (
            "Triton interprets kernels in this process and compiles none: start it with "
            "TRITON_INTERPRET=0"
        )
    return None


class PyimplPtx(PyimplTriton):
    """`PyimplTriton`, whose launches run as PTX for compute capability 8.0 on a CPU.

    Where Triton interprets or is not installed no vector is supported.
    """

    name = "pyimpl-ptx"

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        if device != "cpu":
            return f"bridge.ptx runs kernels on CPU tensors, not on {device}"
        reason = why_not_here()
        if reason is not None:
            return reason
        with simulate():
            return super().why_unsupported(vector, dtype, device)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions) -> Outputs:
        with simulate():
            return super().forward(query, key, value, options)

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        with simulate():
            return super().run_vector(vector, dtype, device)

    def gradients(self, vector: GradientVector, dtype: str, device: str) -> list[Found]:
        with simulate():
            return super().gradients(vector, dtype, device)
