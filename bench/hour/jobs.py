"""The jobs of a worker: `JOBS`, by name. A job is a generator of its findings, each a kind and its
fields, and returns its status. Its arguments are those of `bench.hour.plan`, as JSON.

Statuses: "ok"; "wrong": an answer is outside its tolerance, or not always the same; "refused": a
kernel needs more shared memory than there is. `bench.hour.worker` turns exceptions into other
statuses.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import subprocess
import time
from collections.abc import Callable, Generator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import triton
from torch import Tensor

from bench.cases import Case, Inputs, make_inputs
from bench.check import Check, Verdict, rounding_of
from bench.check_gradients import CheckGradients, gradient_rounding
from bench.hour.candidates import Candidate, Sizes, candidate_of, case_of, ragged_case
from bench.hour.device import Device, Offline, device_here
from bench.hour.kernels import KERNELS
from bench.hour.prepared import Prepared
from bench.measure import Bench, error_line
from bench.peers import PEERS, Peer, ours
from bench.report import Machine, utc_now
from bench.timing import Rate, Runner, Sample, copy_rate, in_turns, matmul_rate
from pyimpl.backends.kernels.offline.compile import SHARED_MEMORY, resources, sources

Fields = dict[str, Any]
Job = Generator[tuple[str, Fields], None, str]

# How often a candidate is timed, and for how many seconds at most.
ROUNDS, SECONDS = 9, 1.0
META = torch.device("meta")
# Bytes of the inputs that are kept for the next jobs.
KEPT = 32 << 30
VECTORS = Path(__file__).resolve().parents[2] / "tests" / "vectors"


class Work:
    """The state that the jobs of one process share: the device, a clock, and the inputs of the last
    cases with their checks. spent: whether the process should end after this job, since something
    in it may be left half done."""

    def __init__(self, device: Device | None = None) -> None:
        self._device, self.spent = device, False
        self._cases: dict[tuple[Case, bool], tuple[Inputs, Check | CheckGradients]] = {}

    @property
    def device(self) -> Device:
        """Found when it is first asked for: compiling needs none."""
        if self._device is None:
            self._device = device_here()
        return self._device

    def of(self, case: Case, every_row: bool) -> tuple[Inputs, Check | CheckGradients]:
        """The inputs of a case, and the check of an answer to them."""
        key = (case, every_row)
        if key not in self._cases:
            if sum(of.bytes for of, _ in self._cases) + case.bytes > KEPT:
                self.forget()
            try:
                inputs = make_inputs(case, self.device.where)
            except torch.OutOfMemoryError:
                self.forget()
                inputs = make_inputs(case, self.device.where)
            check: Check | CheckGradients
            check = CheckGradients(inputs) if case.gradients else Check(inputs, every_row=every_row)
            self._cases[key] = inputs, check
        return self._cases[key]

    def forget(self) -> None:
        """Give the memory of all cases back."""
        self._cases.clear()
        if self.device.where.type == "cuda":
            torch.cuda.empty_cache()


def machine(work: Work, given: Fields) -> Job:
    """The machine, and the facts by which its results are told from others': "identity"."""
    device = work.device
    here = asdict(Machine.here(device.where))
    text = ""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        text = subprocess.run(
            ["nvidia-smi", "-q", "-d", "CLOCK,POWER,TEMPERATURE,PERFORMANCE"],
            capture_output=True, text=True, timeout=20,
        ).stdout[:6000]  # fmt: skip
    identity = [device.name, triton.__version__, torch.__version__, sources()]
    yield "start", {
        "date": utc_now(), "identity": identity, "capability": device.capability,
        "machine": here | {"device": device.name}, "nvidia_smi": text,
    }  # fmt: skip
    return "ok"


def ceilings(work: Work, given: Fields) -> Job:
    """The machine's rates: matrix products, copies, and how long the least launch takes."""
    device = work.device
    clock = device.clock()
    for dtype in (torch.bfloat16, torch.float16):
        yield "rate", {"rate": asdict(matmul_rate(clock, dtype, device.where))}
    yield "rate", {"rate": asdict(copy_rate(clock, device.where))}
    # Fits into the level-2 cache of every device that is meant.
    source = torch.randn(1 << 21, device=device.where)
    target, one = torch.empty_like(source), torch.zeros(1, device=device.where)
    calls = {
        "copy of 8 MiB": Runner(lambda: target.copy_(source)),
        "one addition": Runner(lambda: one.add_(1.0)),
    }
    for name, eager in calls.items():
        for how, runner in (("eager", eager), ("captured", device.capture(eager))):
            for cache, of in (("cold", clock), ("hot", device.clock(1))):
                found = _median(in_turns(of, [runner], 20, 1.0))
                yield "latency", {"call": name, "how": how, "cache": cache, **found}
    return "ok"


def compile_candidate(work: Work, given: Fields) -> Job:
    """A candidate's kernels into Triton's cache, for a compute capability and without a device."""
    one = candidate_of(given["candidate"])
    triton.runtime.driver.set_active(Offline(given["capability"]))
    start = time.perf_counter()
    kernels: dict[str, Fields] = {}
    for case in (one.case, ragged_case(one.case, Sizes(**given["sizes"]))):
        prepared = _prepare(one, make_inputs(case, META), given["capability"])
        for launch in prepared.launches:
            compiled = launch.compile()
            if compiled.hash in kernels:
                continue
            found = kernels[compiled.hash] = {"shared": compiled.metadata.shared}
            with contextlib.suppress(OSError, RuntimeError, subprocess.SubprocessError):
                registers, spilled = resources(compiled.asm["cubin"])
                found |= {"registers": registers, "spilled": spilled}
    seconds = round(time.perf_counter() - start, 2)
    yield "compiled", {"candidate": given["candidate"], "seconds": seconds, "kernels": kernels}
    shared = max((found["shared"] for found in kernels.values()), default=0)
    return "ok" if shared <= SHARED_MEMORY[given["capability"]] else "refused"


def candidate(work: Work, given: Fields) -> Job:
    """Judge a candidate, on every row of a small case and some of its own, and if it is right and
    its time is asked for, time it. One that leaves something out is not judged."""
    one = candidate_of(given["candidate"])
    inputs, _ = work.of(one.case, False)
    if not one.variant:
        small = ragged_case(one.case, Sizes(**given["sizes"]))
        for case, every_row in ((small, True), (one.case, False)):
            on, judge = work.of(case, every_row)
            verdict = _judge(work, _prepare(one, on, work.device.capability), on, judge)
            yield "checked", {
                "candidate": given["candidate"], "on": str(case), "rows": verdict.rows,
                "error_over_tolerance": verdict.error_over_tolerance, "wrong": verdict.wrong,
            }  # fmt: skip
            if verdict.wrong:
                return "wrong"
    if given["timed"]:
        prepared = _prepare(one, inputs, work.device.capability)
        runner, reason = _runner(work, prepared), None
        if given["capture"]:
            try:
                runner = work.device.capture(runner)
            except Exception as error:
                # The capture that it began may be left open.
                work.spent, reason = True, error_line(error)
        found = _median(in_turns(work.device.clock(), [runner], ROUNDS, SECONDS))
        seconds = found["ms"] / 1e3
        yield "timed", {
            "candidate": given["candidate"], **found, "not_captured": reason,
            "tflops": one.case.flops / seconds / 1e12, "gbps": one.case.bytes / seconds / 1e9,
        }  # fmt: skip
    return "ok"


def against_peers(work: Work, given: Fields) -> Job:
    """`bench` for one case. captured: each call as a CUDA graph."""
    case, device = case_of(given["case"]), work.device
    work.forget()
    wrap = _capture(device) if given["captured"] else lambda peer: peer
    work.spent = given["captured"]
    bench = Bench(
        # In the interpreter "auto" would be plain PyTorch.
        wrap(ours("auto" if device.where.type == "cuda" else "triton")),
        {name: wrap(PEERS[name]) for name in given["peers"]},
        device.where,
        device.clock(),
        rounds=given["rounds"],
        rates={name: Rate(**rate) for name, rate in given["rates"].items()},
    )
    measured = bench.measure(case, given["seconds"])
    yield "peers", {"captured": given["captured"], "measured": asdict(measured)}
    return "wrong" if any(x.status == "wrong" for x in measured.results) else "ok"


def race(work: Work, given: Fields) -> Job:
    """Whether the same inputs give the same bits."""
    one = candidate_of(given["candidate"])
    status = "ok"
    for case in (ragged_case(one.case, Sizes(**given["sizes"])), one.case):
        prepared = _prepare(one, work.of(case, False)[0], work.device.capability)
        first: list[Tensor] = []
        different = 0
        for _ in range(given["runs"]):
            prepared.poison()
            prepared.run()
            bits = [_bits(x) for x in prepared.outputs if x is not None]
            if not first:
                first = [x.clone() for x in bits]
            different += not all(map(torch.equal, bits, first))
        if different:
            status = "wrong"
        yield "race", {
            "candidate": given["candidate"], "on": str(case), "runs": given["runs"],
            "different": different,
        }  # fmt: skip
    return status


def vectors(work: Work, given: Fields) -> Job:
    """One file of this project's vectors in one dtype, by `backend="triton"`."""
    from bridge.conformance.adapters.builtin import builtin
    from bridge.conformance.judging.run import run
    from bridge.vectors.load import read_trusted

    family = read_trusted(VECTORS / f"{given['family']}.json")
    result = run(builtin("pyimpl-triton"), [family], given["dtype"], work.device.where.type)
    counts = dict.fromkeys(("passed", "failed", "unsupported"), 0)
    for vector in result.vectors:
        counts[vector.status] += 1
    failures = [str(vector) for vector in result.failures[:8]]
    yield "vectors", {**given, "counts": counts, "ratio": result.ratio, "failures": failures}
    return "wrong" if failures else "ok"


JOBS: dict[str, Callable[[Work, Fields], Job]] = {
    "machine": machine,
    "ceilings": ceilings,
    "compile": compile_candidate,
    "candidate": candidate,
    "peers": against_peers,
    "race": race,
    "vectors": vectors,
}


def _prepare(one: Candidate, inputs: Inputs, capability: int) -> Prepared:
    return KERNELS[one.kernel].prepare(inputs, dict(one.options), capability)


def _judge(
    work: Work, prepared: Prepared, inputs: Inputs, check: Check | CheckGradients
) -> Verdict:
    prepared.poison()
    prepared.run()
    work.device.synchronize()
    where = work.device.where
    if isinstance(check, CheckGradients):
        return check(prepared.outputs, gradient_rounding(inputs.case, where, is_peer=False))
    (out,) = prepared.outputs
    assert out is not None
    return check(out, rounding_of(inputs.case.dtype, where, is_peer=False))


def _runner(work: Work, prepared: Prepared) -> Runner:
    (answer, *_) = [x for x in prepared.outputs if x is not None]

    def call() -> Tensor:
        prepared.run()
        return answer

    return Runner(call)


def _capture(device: Device) -> Callable[[Peer], Peer]:
    return lambda peer: lambda inputs: device.capture(peer(inputs))


def _median(found: list[tuple[Sample, ...]]) -> dict[str, float]:
    """The median of the samples, and how far apart the quarters are, as a share of it."""
    times = sorted(sample.seconds for (sample,) in found)
    middle = statistics.median(times)
    spread = times[math.ceil(0.75 * len(times)) - 1] - times[len(times) // 4]
    issue = statistics.median(sample.issue for (sample,) in found)
    return {"ms": 1e3 * middle, "spread": spread / middle, "issue_ms": 1e3 * issue}


def _bits(x: Tensor) -> Tensor:
    return x.view({2: torch.int16, 4: torch.int32}[x.element_size()])
