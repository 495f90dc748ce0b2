"""Clocks, turns and rates."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from bench_fakes import CPU, FakeClock

from bench import timing
from bench.timing import (
    AHEAD,
    EventClock,
    Runner,
    WallClock,
    clock_for,
    copy_rate,
    in_turns,
    matmul_rate,
)

NOTHING = torch.zeros(())


def test_the_calls_take_turns_after_one_of_each_to_warm_up() -> None:
    called: list[str] = []

    def runner(name: str) -> Runner:
        return Runner(lambda: (called.append(name), NOTHING)[1])

    clock = FakeClock([10.0, 20.0, 1.0, 2.0, 3.0, 4.0])
    rounds = in_turns(clock, [runner("a"), runner("b")], 2, 100.0, clock.now)
    assert called == ["a", "b"] * 3
    assert [[sample.seconds for sample in one] for one in rounds] == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("rounds", "seconds", "expected"),
    [(50, 10.5, 10), (50, 0.0, 3), (50, -1.0, 3), (2, 0.0, 2), (5, 100.0, 5)],
)
def test_rounds_end_with_the_time_but_are_enough_for_a_median(
    rounds: int, seconds: float, expected: int
) -> None:
    clock = FakeClock([1.0])
    assert len(in_turns(clock, [Runner(lambda: NOTHING)], rounds, seconds, clock.now)) == expected


def test_python_collects_no_garbage_while_calls_are_timed() -> None:
    enabled: list[bool] = []
    runner = Runner(lambda: (enabled.append(gc.isenabled()), NOTHING)[1])
    in_turns(FakeClock([1.0]), [runner], 1, 1.0)
    assert enabled == [False, False]
    assert gc.isenabled()


def test_the_context_is_entered_before_the_clock_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    @contextmanager
    def context() -> Iterator[None]:
        order.append("entered")
        yield

    times = iter([1.0, 3.5])
    monkeypatch.setattr(
        timing.time, "perf_counter", lambda: (order.append("clock"), next(times))[1]
    )
    sample = WallClock()(Runner(lambda: (order.append("call"), NOTHING)[1], context))
    assert order == ["entered", "clock", "call", "clock"]
    assert sample.seconds == sample.issue == 2.5


def test_the_clock_of_a_gpu_reads_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            order.append("record")

        def synchronize(self) -> None:
            order.append("synchronize")

        def elapsed_time(self, end: Event) -> float:
            return 1500.0

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.Tensor, "zero_", lambda x: order.append("flush"))
    sample = EventClock(CPU, 8)(Runner(lambda: (order.append("call"), NOTHING)[1]))
    # The device has something to do while the call is issued.
    assert order == ["flush"] * AHEAD + ["record", "call", "record", "synchronize"]
    assert sample.seconds == 1.5
    assert 0.0 <= sample.issue < 1.5


def test_the_cpu_has_a_wall_clock() -> None:
    assert isinstance(clock_for(CPU), WallClock)


def test_the_rate_of_matrix_products_is_that_of_the_fastest() -> None:
    rate = matmul_rate(FakeClock([9.0, 2.0, 0.5, 1.0], run=False), torch.float32, CPU)
    assert rate.dtype == "float32"
    assert rate.per_second == 2 * 2048**3 / 0.5
    assert rate.ms == 500.0
    assert "2048 × 2048, no TF32" in rate.detail


def test_float32_says_when_tf32_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    rate = matmul_rate(FakeClock([3.0], run=False), torch.float32, CPU)
    assert rate.detail.endswith("precision 'high': TF32 may be used")


def test_the_rate_of_copying_counts_what_is_read_and_what_is_written() -> None:
    rate = copy_rate(FakeClock([3.0], run=False), CPU)
    assert rate.per_second == 2 * 2**28 / 3.0
