"""A clock and implementations that are told what to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from bench.cases import Case, Inputs, Mask
from bench.measure import Bench
from bench.peers import Peer
from bench.timing import Rate, Runner, Sample

CPU = torch.device("cpu")


def case(**changes: object) -> Case:
    """A small causal case of forward."""
    fields = {
        "operation": "forward", "dtype": "float32", "batch": 1, "heads": 2, "kv_heads": 2,
        "q_len": 4, "kv_len": 4, "head_dim": 8, "mask": Mask("causal", None, 0),
    }  # fmt: skip
    return Case(**fields | changes)  # type: ignore[arg-type]


def exact(inputs: Inputs) -> Tensor:
    """The right answer, by the formula."""
    case = inputs.case
    group = case.heads // case.kv_heads
    key, value = (x.double().repeat_interleave(group, 1) for x in (inputs.key, inputs.value))
    scores = inputs.query.double() @ key.transpose(-1, -2) / math.sqrt(case.head_dim)
    scores = scores.masked_fill(~inputs.dense_mask(), -math.inf)
    return (scores.softmax(-1) @ value).to(inputs.query.dtype)


def peer(change: Callable[[Tensor], Tensor] = lambda out: out) -> Peer:
    """One that is right, but for the change made to its answer."""
    return lambda inputs: Runner(lambda: change(exact(inputs)))


def raising(error: Exception) -> Peer:
    """One that takes nothing."""

    def prepare(inputs: Inputs) -> Runner:
        raise error

    return prepare


class FakeClock:
    """Says that calls take these numbers of seconds, one after the other, and counts them; `time`
    goes on by as much. run: make the calls, too."""

    def __init__(self, seconds: list[float], run: bool = True) -> None:
        self.seconds, self.run, self.time, self.calls = seconds, run, 0.0, 0

    def __call__(self, runner: Runner) -> Sample:
        if self.run:
            runner.run()
        seconds = self.seconds[self.calls % len(self.seconds)]
        self.calls += 1
        self.time += seconds
        return Sample(seconds, seconds / 2)

    def now(self) -> float:
        return self.time


def fake_bench(
    clock: FakeClock,
    peers: Mapping[str, Peer],
    *,
    ours: Peer | None = None,
    rounds: int = 3,
    rates: Mapping[str, Rate] | None = None,
) -> Bench:
    """A bench over fakes on the CPU."""
    return Bench(ours or peer(), peers, CPU, clock, rounds=rounds, rates=rates or {}, now=clock.now)
