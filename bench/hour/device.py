"""The device of the work: a CUDA device, or one that stands in for it.

`StandIn` is all that is faked where there is no GPU: times are made up, nothing is captured, and
the kernels run in Triton's interpreter (TRITON_INTERPRET=1) on the CPU. Kernels are compiled for
the GPU all the same.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import torch

from bench.timing import FLUSHED_BYTES, Clock, EventClock, Runner, Sample, capture_graph
from pyimpl.backends.kernels.parts.launch import capability


class Device(Protocol):
    """A device. name, capability: of the measured one; where: of the tensors."""

    name: str
    capability: int
    where: torch.device

    def clock(self, flushed_bytes: int = FLUSHED_BYTES) -> Clock:
        """A clock that empties a cache of so many bytes before."""

    def capture(self, runner: Runner) -> Runner:
        """The same call without the time to issue it."""

    def synchronize(self) -> None:
        """Wait; raises RuntimeError where the device has come to harm."""


class Cuda:
    """The first CUDA device."""

    def __init__(self) -> None:
        self.where = torch.device("cuda")
        self.name = torch.cuda.get_device_name()
        self.capability = capability(self.where)

    def clock(self, flushed_bytes: int = FLUSHED_BYTES) -> Clock:
        """Time between events."""
        return EventClock(self.where, flushed_bytes)

    def capture(self, runner: Runner) -> Runner:
        """The same call as a CUDA graph."""
        return capture_graph(runner)

    def synchronize(self) -> None:
        """Wait for all that was started."""
        torch.cuda.synchronize()


class StandIn:
    """No device: every call takes as long as the one before and a thousandth."""

    name, capability, where = "stand-in", 90, torch.device("cpu")

    def __init__(self) -> None:
        self._ms = 1.0

    def clock(self, flushed_bytes: int = FLUSHED_BYTES) -> Clock:
        """Makes the call, and a time for it up."""

        def sample(runner: Runner) -> Sample:
            runner.run()
            self._ms *= 1.001
            return Sample(self._ms / 1e3, 1e-5)

        return sample

    def capture(self, runner: Runner) -> Runner:
        """The runner itself."""
        return runner

    def synchronize(self) -> None:
        """There is nothing to wait for."""


def device_here() -> Device:
    """The device that this process was told to use. Raises RuntimeError where there is no CUDA
    device."""
    return StandIn() if os.environ.get("ATTENTION_HOUR") == "stand-in" else Cuda()


class Offline:
    """A driver of Triton's that names a target and has nothing to run on: it has all that
    `Launch.compile` needs. With it Triton's cache gets the same entries as on the device."""

    def __init__(self, capability: int) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget("cuda", capability, 32)

    def get_current_target(self) -> Any:
        """The target to compile for."""
        return self._target

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def get_current_stream(self, device: int) -> int:
        """The only one."""
        return 0
