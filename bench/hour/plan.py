"""The jobs in their order, until when they run, and how long they are expected to take.

The stages follow each other; time that one leaves goes to the next ones. Meanwhile other processes
compile, in the order in which the stages will need the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from bench.cases import Case
from bench.hour.candidates import (
    LARGE,
    MOST,
    Candidate,
    Sizes,
    best_of,
    candidate_of,
    default,
    defaults,
    to_tune,
    tuned_cases,
)
from bench.hour.findings import Known
from bench.hour.kernels import KERNELS
from bench.hour.lane import Job
from bench.hour.what_if import WHAT_IFS

# Peers without a compilation of their own, and peers with one.
FAST_PEERS = ("sdpa-cudnn", "sdpa-flash", "flash-attn", "flash-attn-3")
SLOW_PEERS = ("flex",)


@dataclass(frozen=True)
class Stage:
    """until: the share of all seconds after which it is cut."""

    name: str
    until: float
    what: str


# While others compile come the jobs that are not timed, and those timed as CUDA graphs, which a
# busy host does not slow down; then the calls that the host issues one by one.
STAGES = (
    Stage("ceilings", 0.09, "the machine, its rates, the least launch"),
    Stage("correct", 0.24, "every kernel as launch_options has it, against float64"),
    Stage("races", 0.28, "the same inputs again and again, bits compared"),
    Stage("tune", 0.52, "launch options: each right, then timed"),
    Stage("peers", 0.74, "cuDNN, FlashAttention-2 and flash-attn, in turns with ours"),
    Stage("why", 0.82, "kernels with one thing left out"),
    Stage("vectors", 0.93, "this project's vectors, in several processes"),
    Stage("flex", 0.985, "decode as a CUDA graph, and FlexAttention"),
)
# Only the stage "tune" waits for compiling as long.
COMPILING_UNTIL = 0.48
# How long all implementations of one case are timed.
PEER_SECONDS = 5.0

# Seconds to compile one candidate: the mean of 629, with Triton 3.6.0 in 14 processes beside an
# H100, where all of them took 121 s; of Hopper's the mean of 375 in the same way.
COMPILE_SECONDS = {
    "forward": 2.8, "hopper": 2.1, "keys": 2.8, "hopper-keys": 5.9, "hopper-sums": 4.8,
    "hopper-queries": 2.5, "queries": 2.1, "sums": 3.9, "decode": 0.6, "paged": 0.8,
}  # fmt: skip
# The seconds of one job, measured there; "flex": of 15, on an H100 on 2026-11-27.
SECONDS = {
    "ceilings": 1.0, "correct": 0.7, "races": 0.3, "tune": 0.1, "peers": 1.3, "why": 0.1,
    "vectors": 5.0, "flex": 5.2,
}  # fmt: skip
# To start a process that computes, and to change to another copy of the sources.
START_SECONDS = 4.0


@dataclass(frozen=True)
class Settings:
    """sizes: of the cases; kernels: which are tuned; capability: of the device; cores: how many
    processes compile; most: how many candidates are timed; rounds: how often peers are timed; runs:
    how often the same inputs are given; families and dtypes: of the vectors."""

    sizes: Sizes = LARGE
    kernels: tuple[str, ...] = tuple(KERNELS)
    capability: int = 90
    cores: int = 14
    most: int = MOST
    rounds: int = 20
    runs: int = 50
    families: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("bfloat16", "float16", "float32")


class Plan:
    """The jobs of a run.

    known: the findings of earlier runs; jobs that they did are left out. overlays: by variant, of
    those that are timed, the folder of the sources where it is left out.
    """

    def __init__(self, settings: Settings, known: Known, overlays: dict[str, str]) -> None:
        self.settings, self._known, self._overlays = settings, known.jobs, overlays
        sizes, capability, kernels = settings.sizes, settings.capability, settings.kernels
        self._best = best_of(known.findings)
        # Kernels that could not be compiled are not tried again.
        self._without = {
            x["job"]
            for x in known.findings
            if x["what"] == "job" and x["job"].startswith("compile ") and x["status"] != "ok"
        }
        self.defaults = self._that_compile(defaults(sizes, capability, kernels))
        tuned = to_tune(sizes, capability, self._best, kernels, settings.most)
        self.tuned = self._that_compile(tuned)
        self.variants = self._that_compile(self._variants())

    def _that_compile(self, some: Iterable[Candidate]) -> list[Candidate]:
        return [one for one in some if compile_name(one) not in self._without]

    def _centre(self, kernel: str, case: Case) -> Candidate:
        options = self._best.get((kernel, case))
        if options is None:
            return default(kernel, case, self.settings.capability)
        return Candidate(kernel, case, tuple(sorted(options.items())))

    def _variants(self) -> Iterable[Candidate]:
        """For each kernel the whole, then all that leave something out: timed one after the
        other, whether or not launch options are."""
        leave_out: dict[str, list[str]] = {}
        for variant in self._overlays:
            for kernel in WHAT_IFS[variant].kernels:
                if kernel in self.settings.kernels:
                    leave_out.setdefault(kernel, [""]).append(variant)
        for kernel, variants in leave_out.items():
            full = [
                self._centre(kernel, case)
                for case in tuned_cases(kernel, self.settings.sizes)
                if case.mask.name == "full"
            ]
            yield from (replace(one, variant=variant) for variant in variants for one in full)

    def compilations(self, stages: Iterable[str] = ("correct", "tune", "why")) -> list[Job]:
        """The compilations for these stages, in order; none for jobs that are done already."""
        before = [f"correct {x.name}" for x in self.defaults]
        wanted = dict(zip(before, self.defaults, strict=True))
        near = len(self.defaults)
        wanted |= {f"tune {x.name}": x for x in self.tuned[:near]}
        wanted |= {f"why {x.name}": x for x in self.variants}
        wanted |= {f"tune {x.name}": x for x in self.tuned[near:]}
        todo = dict.fromkeys(
            x for name, x in wanted.items() if name not in self._known and name.split()[0] in stages
        )
        return [
            Job("compile", compile_name(x), self._fields(x), 90.0, self._overlay(x)) for x in todo
        ]

    def jobs(self, stage: str, rates: dict[str, dict[str, Any]]) -> list[Job]:
        """The jobs of a stage that have not been done. rates: that "ceilings" found, by dtype."""
        made = {
            "ceilings": lambda: [Job("ceilings", "ceilings", {}, 60.0)],
            "correct": lambda: [self._candidate("correct", x, False) for x in self.defaults],
            "peers": lambda: [self._peers(c, FAST_PEERS, rates, False) for c in self._peer_cases()],
            "tune": lambda: [self._candidate("tune", x, True) for x in self.tuned],
            "why": lambda: [self._candidate("why", x, True) for x in self.variants],
            "races": self._races,
            "flex": lambda: self._slow(rates),
            "vectors": self._vectors,
        }[stage]()
        return [job for job in made if job.name not in self._known]

    def _fields(self, one: Candidate) -> dict[str, Any]:
        settings = self.settings
        return {
            "candidate": one.plain, "capability": settings.capability,
            "sizes": asdict(settings.sizes),
        }  # fmt: skip

    def _overlay(self, one: Candidate) -> str:
        return self._overlays[one.variant] if one.variant else ""

    def _candidate(self, stage: str, one: Candidate, timed: bool) -> Job:
        given = {**self._fields(one), "timed": timed, "capture": True}
        return Job("candidate", f"{stage} {one.name}", given, 40.0, self._overlay(one))

    def _peer_cases(self) -> list[Case]:
        """Forward and backward by length, the middle one first, and decode."""
        sizes = self.settings.sizes
        lengths = (sizes.length, 4 * sizes.length, sizes.length // 4)
        found: list[Case] = []
        for length in lengths:
            scaled = replace(
                sizes, length=length, batch=max(1, sizes.batch * sizes.length // length)
            )
            for kernel in ("forward", "keys"):
                if kernel in self.settings.kernels:
                    found += tuned_cases(kernel, scaled)
        for keys in (sizes.keys, sizes.keys // 8):
            for kernel in ("decode", "paged"):
                if kernel in self.settings.kernels:
                    found += tuned_cases(kernel, replace(sizes, keys=keys))
        return found

    def _peers(
        self, case: Case, peers: Sequence[str], rates: dict[str, dict[str, Any]], captured: bool
    ) -> Job:
        given = {
            "case": asdict(case), "peers": peers, "captured": captured, "seconds": PEER_SECONDS,
            "rounds": self.settings.rounds, "rates": rates,
        }  # fmt: skip
        how = " as a CUDA graph" if captured else ""
        return Job("peers", f"{', '.join(peers)}: {case}{how}", given, 60.0)

    def _slow(self, rates: dict[str, dict[str, Any]]) -> list[Job]:
        sizes = self.settings.sizes
        found = []
        if "decode" in self.settings.kernels:
            short = replace(sizes, keys=sizes.keys // 8)
            for case in tuned_cases("decode", short):
                found.append(self._peers(case, FAST_PEERS, rates, True))
        for kernel in ("forward", "keys"):
            if kernel in self.settings.kernels:
                for case in tuned_cases(kernel, sizes):
                    found.append(self._peers(case, SLOW_PEERS, rates, False))
        return found

    def _races(self) -> list[Job]:
        return [
            Job(
                "race", f"race {one.name}", {**self._fields(one), "runs": self.settings.runs}, 60.0,
            )
            for kernel in self.settings.kernels
            if KERNELS[kernel].same_bits
            for one in (self._centre(kernel, x) for x in tuned_cases(kernel, self.settings.sizes))
        ]  # fmt: skip

    def _vectors(self) -> list[Job]:
        return [
            Job("vectors", f"vectors {family} {dtype}", {"family": family, "dtype": dtype}, 300.0)
            for dtype in self.settings.dtypes
            for family in self.settings.families
        ]


def compile_name(one: Candidate) -> str:
    """The name of the job that compiles a candidate."""
    return f"compile {one.name}"


def compilation_of(job: Job) -> str | None:
    """The name of the job that compiles the kernel of this one, if there is one."""
    plain = job.given.get("candidate")
    return None if plain is None else compile_name(candidate_of(plain))


def table(plan: Plan, seconds: float) -> list[str]:
    """The stages as text: how many jobs, how long they are expected to take, when they are cut."""
    compiled = plan.compilations()
    work = sum(COMPILE_SECONDS[job.given["candidate"]["kernel"]] for job in compiled)
    cores = plan.settings.cores
    cut = COMPILING_UNTIL * seconds
    lines = [
        f"{len(compiled)} candidates to compile: {work:.0f} s of work, {work / cores:.0f} s in "
        f"{cores} processes beside the stages, cut after {cut:.0f} s",
        f"{'stage':<10}{'jobs':>6}{'expected s':>12}{'ends by s':>11}  what",
    ]
    at = START_SECONDS
    for stage in STAGES:
        jobs = plan.jobs(stage.name, {})
        overlays = len({job.overlay for job in jobs} - {""})
        needed = SECONDS[stage.name] * len(jobs) + START_SECONDS * overlays
        if stage.name == "vectors":
            needed = needed / cores + (START_SECONDS if jobs else 0.0)
        end = stage.until * seconds
        at = min(end, at + needed)
        lines.append(
            f"{stage.name:<10}{len(jobs):>6}{needed:>12.0f}{end:>11.0f}  {stage.what}"
            + (f" (expected to be done after {at:.0f} s)" if at < end else " (will be cut)")
        )
    return lines
