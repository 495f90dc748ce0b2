"""One case: every implementation is prepared, checked, and timed in turns with ours."""

from __future__ import annotations

import gc
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from bench.cases import Case, Inputs, make_inputs
from bench.check import Check, rounding_of
from bench.check_gradients import CheckGradients, gradient_rounding
from bench.peers import OURS, Peer, Refused
from bench.timing import Clock, Rate, Runner, Sample, in_turns

Status = Literal["timed", "refused", "wrong", "out of memory", "not run"]


@dataclass(frozen=True)
class Result:
    """The result of one implementation in one case.

    reason: why it was not timed. rows_checked, max_error, error_over_tolerance: as
    `bench.check.Verdict`. rounds: how often it was timed. ms: median time of a call; issue_ms:
    median time until the call returned. tflops: 10¹² operations a second; gbps: 10⁹ bytes a second.
    share_of_matmul, share_of_copy: of the measured rates. speed_ratio: median over the rounds of
    its time divided by ours, so above 1 ours is faster.
    """

    name: str
    status: Status
    reason: str | None = None
    rows_checked: int | None = None
    max_error: float | None = None
    error_over_tolerance: float | None = None
    rounds: int | None = None
    ms: float | None = None
    issue_ms: float | None = None
    tflops: float | None = None
    gbps: float | None = None
    share_of_matmul: float | None = None
    share_of_copy: float | None = None
    speed_ratio: float | None = None


@dataclass(frozen=True)
class Measured:
    """A case with a result for each implementation, ours first.

    best_peer: the timed peer of the lowest `speed_ratio`; ratio_to_best: that ratio, ours
    relative to its speed. None where ours or every peer was not timed.
    """

    case: Case
    results: tuple[Result, ...]
    best_peer: str | None
    ratio_to_best: float | None


class Bench:
    """The settings that all cases share: whom to measure, where, with which clock, how often.

    rates: the measured rates, by dtype, "bytes" for that of copying.
    """

    def __init__(
        self,
        ours: Peer,
        peers: Mapping[str, Peer],
        device: torch.device,
        clock: Clock,
        *,
        rounds: int,
        rates: Mapping[str, Rate],
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.ours, self.peers, self.device, self.clock = ours, peers, device, clock
        self.rounds, self.rates, self.now = rounds, rates, now

    def run(self, cases: Sequence[Case], seconds: float) -> Iterator[Measured]:
        """The cases in order, within `seconds` all together: each may take an equal share of the
        rest; time that one leaves, the others have. Where nothing is left the rest is "not run"."""
        end = self.now() + seconds
        for index, case in enumerate(cases):
            left = end - self.now()
            yield self.measure(case, left / (len(cases) - index), end)

    def measure(self, case: Case, seconds: float, end: float = float("inf")) -> Measured:
        """One case within `seconds`, beyond which it goes only to compile, and for the few rounds
        that a median needs; no implementation is begun after `end`."""
        share_end = self.now() + seconds
        names = [OURS, *self.peers]
        too_late = "the limit of time was reached"
        if self.now() >= end:
            return _measure(case, [Result(name, "not run", too_late) for name in names])
        try:
            inputs = make_inputs(case, self.device)
            check = CheckGradients(inputs) if case.gradients else Check(inputs)
        except Exception as error:
            status = _status(error)
            reason = "the inputs could not be made: " + error_line(error)
            return _measure(case, [Result(name, status, reason) for name in names])
        ours, our_result = self._prepare(OURS, self.ours, inputs, check)
        our_samples: list[Sample] = []
        results: dict[str, Result] = {}
        runners: dict[str, Runner] = {}
        for name, peer in self.peers.items():
            if self.now() >= end:
                results[name] = Result(name, "not run", too_late)
                continue
            runner, results[name] = self._prepare(name, peer, inputs, check)
            if runner is not None:
                runners[name] = runner
            self._tidy(results[name])
        while runners:
            for_it = (share_end - self.now()) / len(runners)
            name = next(iter(runners))
            runner = runners.pop(name)
            if self.now() >= end:
                results[name] = replace(results[name], status="not run", reason=too_late)
                continue
            results[name], samples = self._time(results[name], ours, runner, case, for_it)
            our_samples += samples
            self._tidy(results[name])
        if ours is not None and our_result.status == "timed":
            if not our_samples:
                our_result, our_samples = self._time(
                    our_result, None, ours, case, share_end - self.now()
                )
            if our_samples:
                our_result = self._with_times(our_result, case, our_samples)
        return _measure(case, [our_result, *results.values()])

    def _prepare(
        self, name: str, peer: Peer, inputs: Inputs, check: Check | CheckGradients
    ) -> tuple[Runner | None, Result]:
        """A runner whose answer is right, or the result that says why there is none."""
        case, is_peer = inputs.case, name != OURS
        if case.gradients:
            rounding = gradient_rounding(case, self.device, is_peer=is_peer)
        else:
            rounding = rounding_of(case.dtype, self.device, is_peer=is_peer)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                runner = peer(inputs)
                verdict = check(runner.run(), rounding)
            except Exception as error:
                told = [str(w.message) for w in warned]
                return None, Result(name, _status(error), error_line(error, told))
        result = Result(
            name,
            "wrong" if verdict.wrong else "timed",
            verdict.wrong,
            verdict.rows,
            verdict.max_error,
            verdict.error_over_tolerance,
        )
        return (None if verdict.wrong else runner), result

    def _time(
        self, result: Result, ours: Runner | None, runner: Runner, case: Case, seconds: float
    ) -> tuple[Result, list[Sample]]:
        """The result with its times, and the samples of ours (of `runner`, if there is no ours)."""
        runners = [runner] if ours is None else [ours, runner]
        try:
            found = in_turns(self.clock, runners, self.rounds, seconds, self.now)
        except Exception as error:
            return replace(result, status=_status(error), reason=error_line(error)), []
        theirs = [samples[-1] for samples in found]
        result = self._with_times(result, case, theirs)
        if ours is not None:
            ratios = [samples[-1].seconds / samples[0].seconds for samples in found]
            result = replace(result, speed_ratio=statistics.median(ratios))
            return result, [samples[0] for samples in found]
        return result, theirs if result.name == OURS else []

    def _with_times(self, result: Result, case: Case, samples: list[Sample]) -> Result:
        seconds = statistics.median(sample.seconds for sample in samples)
        flops, moved = case.flops / seconds, case.bytes / seconds
        matmul, copy = self.rates.get(case.dtype), self.rates.get("bytes")
        return replace(
            result,
            rounds=len(samples),
            ms=1e3 * seconds,
            issue_ms=1e3 * statistics.median(sample.issue for sample in samples),
            tflops=flops / 1e12,
            gbps=moved / 1e9,
            share_of_matmul=None if matmul is None else flops / matmul.per_second,
            share_of_copy=None if copy is None else moved / copy.per_second,
        )

    def _tidy(self, result: Result) -> None:
        """Memory that a peer held is there for the next."""
        if result.status == "out of memory":
            gc.collect()  # takes seconds, where a compiler is loaded
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def _measure(case: Case, results: list[Result]) -> Measured:
    ratios = {r.name: r.speed_ratio for r in results if r.speed_ratio is not None}
    best = min(ratios, key=lambda name: ratios[name], default=None)
    return Measured(case, tuple(results), best, None if best is None else ratios[best])


def _status(error: Exception) -> Status:
    # The allocator of a CPU raises a plain RuntimeError.
    short = isinstance(error, (torch.OutOfMemoryError, MemoryError))
    return "out of memory" if short or "can't allocate memory" in str(error) else "refused"


def error_line(error: Exception, warned: Sequence[str] = ()) -> str:
    """The first line of an error, and of the warnings that came with it: SDPA says there why."""
    lines = []
    for text in (str(error), *warned):
        line = (text.strip().splitlines() or [""])[0]
        # PyTorch's source file and line of a warning are left out.
        line = line.partition(" (Triggered internally at ")[0][:300]
        if line and line not in lines:
            lines.append(line)
    text = "; ".join(lines)
    if isinstance(error, Refused):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
