"""A clock and implementations that behave as a test orders."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from bench.cases import Case, Inputs, Mask
from bench.measure import Bench
from bench.peers import Peer
from bench.timing import Answer, Rate, Runner, Sample

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


def exact_gradients(inputs: Inputs) -> tuple[Tensor, ...]:
    """The right gradients, by autograd of the formula."""
    leaves = [x.double().requires_grad_() for x in (inputs.query, inputs.key, inputs.value)]
    out = exact(replace(inputs, query=leaves[0], key=leaves[1], value=leaves[2]))
    assert inputs.grad_out is not None
    found = torch.autograd.grad(out, leaves, inputs.grad_out.double())
    return tuple(x.to(inputs.query.dtype) for x in found)


def peer(change: Callable[[Tensor], Tensor] = lambda out: out) -> Peer:
    """One that is right, but for the change made to its answer, to each gradient if it has
    several."""

    def run(inputs: Inputs) -> Answer:
        if inputs.case.gradients:
            return tuple(change(x) for x in exact_gradients(inputs))
        return change(exact(inputs))

    return lambda inputs: Runner(lambda: run(inputs))


def refusing_peer(error: Exception) -> Peer:
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
