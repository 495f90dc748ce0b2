"""How long a call takes, and two calls in turns.

On a CPU the time of a call is wall time. On a GPU it is the time between two events of the device,
recorded before and after the call, with the level-2 cache emptied before. The device is kept busy
with that (`AHEAD`) while the host issues the call, so that the time is that of the device's work
alone; a host that needs longer than that shows in it too, so the time until the call returned is
measured as well (`Sample.issue`).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

# Fewer rounds than this give no median worth the name; the limit of time does not go below it.
MIN_ROUNDS = 3
# Written before each call on a GPU: more than any level-2 cache holds.
FLUSHED_BYTES = 1 << 28
# How often it is written: on an H100 for almost 2 ms, more than a call takes to issue beside busy
# processors. With once, 0.1 ms, a call of 0.75 ms that took 0.17 to issue was seen as 0.83.
AHEAD = 20


# An output, or the gradients by query, key and value.
Answer = Tensor | tuple[Tensor, ...]


@dataclass(frozen=True)
class Runner:
    """A call to be timed, in a context that is entered before the clock starts."""

    call: Callable[[], Answer]
    context: Callable[[], AbstractContextManager[object]] = nullcontext

    def run(self) -> Answer:
        """The result of one call."""
        with self.context():
            return self.call()


@dataclass(frozen=True)
class Sample:
    """seconds: the time of the call; issue: seconds until it returned."""

    seconds: float
    issue: float


class Clock(Protocol):
    """Times one call."""

    def __call__(self, runner: Runner) -> Sample: ...


class WallClock:
    """Wall time, for a device that has done the work when the call returns."""

    def __call__(self, runner: Runner) -> Sample:
        with runner.context():
            start = time.perf_counter()
            runner.call()
            seconds = time.perf_counter() - start
        return Sample(seconds, seconds)


class EventClock:
    """Time between two events of a CUDA device."""

    def __init__(self, device: torch.device, flushed_bytes: int = FLUSHED_BYTES) -> None:
        self._flushed = torch.empty(flushed_bytes, dtype=torch.uint8, device=device)
        # Events are not typed in PyTorch.
        event: Any = torch.cuda.Event
        self._start, self._end = event(enable_timing=True), event(enable_timing=True)

    def __call__(self, runner: Runner) -> Sample:
        with runner.context():
            for _ in range(AHEAD):
                self._flushed.zero_()
            self._start.record()
            start = time.perf_counter()
            runner.call()
            issue = time.perf_counter() - start
            self._end.record()
            self._end.synchronize()
        return Sample(self._start.elapsed_time(self._end) / 1e3, issue)


def clock_for(device: torch.device) -> Clock:
    """The clock of a device."""
    return EventClock(device) if device.type == "cuda" else WallClock()


def capture_graph(runner: Runner) -> Runner:
    """The same call as a CUDA graph, which takes the host a few microseconds to start: for work
    that is shorter than its own issue. Raises RuntimeError for a call that waits for the device."""
    with runner.context():
        runner.call()  # loads and allocations that happen once are not captured
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            answer = runner.call()

    def replay() -> Answer:
        graph.replay()
        return answer

    return Runner(replay)


def in_turns(
    clock: Clock,
    runners: Sequence[Runner],
    rounds: int,
    seconds: float,
    now: Callable[[], float] = time.perf_counter,
) -> list[tuple[Sample, ...]]:
    """Rounds of one sample each, so that a change of clock speed or load meets all: `rounds` of
    them, fewer once `seconds` have passed, but at least `MIN_ROUNDS` unless fewer are asked for.

    One call of each before, to warm up, is not counted. Python collects no garbage meanwhile: with
    a compiler loaded that takes seconds, which would fall into some call.
    """
    end = now() + seconds
    found: list[tuple[Sample, ...]] = []
    with _no_collection():
        for runner in runners:
            clock(runner)
        while len(found) < min(rounds, MIN_ROUNDS) or (len(found) < rounds and now() < end):
            found.append(tuple(clock(runner) for runner in runners))
    return found


@contextmanager
def _no_collection() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@dataclass(frozen=True)
class Rate:
    """A rate that was measured in this process, the fastest of several runs: of what, in which
    dtype, how many in a second.

    detail: the sizes, and further facts about it.
    """

    what: str
    dtype: str
    detail: str
    ms: float
    per_second: float


def matmul_rate(clock: Clock, dtype: torch.dtype, device: torch.device) -> Rate:
    """Floating-point operations in a second of a large square matrix product."""
    size = 8192 if device.type == "cuda" else 2048 if dtype == torch.float32 else 1024
    left, right = torch.randn(2, size, size, device=device).to(dtype).unbind()
    seconds = _fastest(clock, Runner(lambda: left @ right))
    detail = f"{size} × {size}"
    if dtype == torch.float32:
        precision = torch.get_float32_matmul_precision()
        tf32 = "no TF32" if precision == "highest" else f"precision {precision!r}: TF32 may be used"
        detail += f", {tf32}"
    return Rate("matrix product", name_of(dtype), detail, 1e3 * seconds, 2 * size**3 / seconds)


def copy_rate(clock: Clock, device: torch.device) -> Rate:
    """Bytes in a second of a large copy, read and written ones both counted."""
    size = 1 << 30 if device.type == "cuda" else 1 << 28
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    seconds = _fastest(clock, Runner(lambda: target.copy_(source)))
    detail = f"{size >> 20} MiB, read and written"
    return Rate("copy", "bytes", detail, 1e3 * seconds, 2 * size / seconds)


def name_of(dtype: torch.dtype) -> str:
    """ "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


def _fastest(clock: Clock, runner: Runner) -> float:
    # The machine's own rate; the load of other jobs only ever adds to the time.
    return min(sample.seconds for (sample,) in in_turns(clock, [runner], 20, 2.0))
