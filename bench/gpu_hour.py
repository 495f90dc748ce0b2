"""Everything that only a GPU can decide, in one command of ten minutes:

    python -m bench.gpu_hour --out DIR --seconds 560
    python -m bench.gpu_hour --out DIR2 --resume DIR/found.jsonl    # goes on, on any machine
    python -m bench.gpu_hour --plan                                 # its plan
    python -m bench.gpu_hour --out DIR --stand-in                   # its logic, without a GPU
    python -m bench.gpu_report DIR/found.jsonl

Each finding is appended to `DIR/found.jsonl` at once, so that a command that is killed has lost
nothing. Compiled kernels are packed into `DIR/cache-*.zip`, which `--resume` takes from beside the
file. docs/performance.md says more.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from bench import gpu_report
from bench.__main__ import Parser, positive
from bench.hour import cache, what_if
from bench.hour.candidates import SMALL, case_of
from bench.hour.findings import FILE, Finding, Known, Record, read
from bench.hour.jobs import VECTORS
from bench.hour.kernels import KERNELS
from bench.hour.lane import Done, Job, Lane, worker
from bench.hour.plan import (
    COMPILING_UNTIL,
    STAGES,
    Plan,
    Settings,
    Stage,
    compilation_of,
    table,
)
from bench.measure import error_line
from bridge.vectors.format.index import INDEX

# Not compiled as well while they would be needed otherwise: the process that computes, and this.
OWN_CORES = 2


def parser() -> Parser:
    """The command line."""
    p = Parser(prog="python -m bench.gpu_hour", description="Measure all that needs a GPU.")
    p.add_argument("--out", type=Path, metavar="DIR", help="folder of the findings")
    p.add_argument("--seconds", type=positive, default=560, metavar="N", help="for everything")
    p.add_argument("--resume", type=Path, metavar="FILE", help="go on from these findings")
    p.add_argument("--plan", action="store_true", help="print the plan, and stop")
    p.add_argument(
        "--stages", nargs="+", choices=[x.name for x in STAGES], metavar="STAGE",
        default=[x.name for x in STAGES], help=", ".join(x.name for x in STAGES),
    )  # fmt: skip
    p.add_argument(
        "--kernels", nargs="+", choices=KERNELS, metavar="KERNEL", default=list(KERNELS),
        help=", ".join(KERNELS),
    )  # fmt: skip
    p.add_argument("--cores", type=positive, metavar="N", help="processes that compile")
    p.add_argument(
        "--cache", type=Path, metavar="DIR", help="of compiled kernels, beside DIR if not given"
    )
    p.add_argument(
        "--stand-in", action="store_true",
        help="no GPU: small cases in Triton's interpreter, with times that are made up",
    )  # fmt: skip
    return p


def complete_options(p: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """The options; misuse ends the program before anything is done."""
    options = p.parse_args(arguments)
    options.cores = options.cores or max(1, (os.cpu_count() or 1) - OWN_CORES)
    options.earlier = []
    if options.resume is not None:
        try:
            options.earlier = read(options.resume)
        except OSError as error:
            p.error(f"argument --resume: {options.resume} cannot be read: {error.strerror}")
    if options.plan:
        return options
    if options.out is None:
        p.error("argument --out: a folder is needed, unless --plan is given")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        p.error(f"argument --out: {options.out} cannot be made: {error.strerror}")
    own = options.out / FILE
    if options.resume is not None and own.exists() and not own.samefile(options.resume):
        p.error(f"argument --resume: {own} exists already, and is another file")
    if options.cache is None:
        options.cache = Path(tempfile.gettempdir()) / f"attention-gpu-hour-{os.getuid()}"
    return options


class Hour:
    """A run: the file, the processes, and when it began."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._begun = time.monotonic()
        self._record = Record(options.out / FILE, options.earlier)
        # Unbuffered: the last words of a process that is killed are there. Closed as `run` ends, so
        # no `with` (SIM115).
        self._log: IO[bytes] = open(options.out / "log.txt", "ab", buffering=0)  # noqa: SIM115
        self._device = Lane(self._record, worker(self._log, _environment(options, False)))
        compilers = worker(self._log, _environment(options, True))
        self._compilers = Lane(self._record, compilers, options.cores)
        self._crowd = Lane(
            self._record, worker(self._log, _environment(options, False)), options.cores
        )
        self._identity: list[str] = []
        self._compiled: dict[str, str | None] = {}
        self._compiling = threading.Event()

    def run(self) -> int:
        """All stages; the exit status."""
        try:
            return self._run()
        finally:
            for lane in (self._device, self._compilers, self._crowd):
                lane.end()
            self._log.close()

    def _run(self) -> int:
        options, record = self._options, self._record
        unpacked = cache.unpack(options.resume.parent, _triton(options)) if options.resume else 0
        self._compilers.warm()
        came: list[Done] = []
        self._device.run(
            [Job("machine", "machine", {}, 120.0)], self._time(1.0), lambda _, x: came.append(x)
        )
        here = [x for x in record.findings if x["what"] == "start" and x["run"] == record.run]
        if not here:
            reason = came[0].reason if came else "the time was over"
            print(f"python -m bench.gpu_hour: there is no device to measure: {reason}", flush=True)
            return 1
        self._say(f"{here[0]['machine']['device']}, {unpacked} compiled kernels brought along")
        self._identity = here[0]["identity"]
        plan = Plan(settings(options, here[0]["capability"]), self._read_known(), self._overlays())
        print(*table(plan, options.seconds), sep="\n", flush=True)
        todo = plan.compilations(options.stages)
        self._compiled = dict.fromkeys(job.name for job in todo)
        self._compiling.set()
        compiling = threading.Thread(target=self._compile, args=(todo,), daemon=True)
        compiling.start()
        for stage in STAGES:
            if stage.name in options.stages:
                try:
                    self._stage(stage, plan)
                except Exception as error:  # the others are worth their time all the same
                    self._note_failure(stage.name, error)
        self._compiling.clear()
        compiling.join(max(0.0, self._time(1.0) - time.monotonic()))
        packed = cache.pack(_triton(options), options.out)
        record.add("end", seconds=round(record.seconds(), 1), packed=[x.name for x in packed])
        print(*gpu_report.summary(record.findings), sep="\n", flush=True)
        return 0

    def _overlays(self) -> dict[str, str]:
        found = {}
        for name in what_if.WHAT_IFS:
            try:
                found[name] = str(what_if.write(name, self._options.cache / "what-if"))
            except (OSError, ValueError) as error:
                self._note_failure(name, error)
        return found

    def _note_failure(self, what: str, error: Exception) -> None:
        reason = error_line(error)
        self._say(f"{what}: {reason}")
        self._record.add("error", of=what, reason=reason)

    def _time(self, share: float) -> float:
        return self._begun + share * float(self._options.seconds)

    def _say(self, text: str) -> None:
        print(f"{self._record.seconds():6.1f} s  {text}", flush=True)

    def _compile(self, jobs: list[Job]) -> None:
        def finish(job: Job, came: Done) -> None:
            self._compiled[job.name] = came.status

        until = self._time(COMPILING_UNTIL)
        self._compilers.run(self._while_compiling(jobs), until, finish)
        self._compiling.clear()
        self._compilers.end()
        states = list(self._compiled.values())
        self._say(f"compiled {states.count('ok')} of {len(states)} candidates")
        cache.pack(_triton(self._options), self._options.out)

    def _while_compiling(self, jobs: list[Job]) -> Iterator[Job]:
        for job in jobs:
            if not self._compiling.is_set():
                return
            yield job

    def _stage(self, stage: Stage, plan: Plan) -> None:
        record = self._record
        # The kernels of one that is wrong are not tuned.
        wrong = self._wrong()
        jobs = [x for x in plan.jobs(stage.name, self._rates()) if _kernel_of(x) not in wrong]
        statuses: dict[str, int] = {}

        def finish(job: Job, came: Done) -> None:
            statuses[came.status] = statuses.get(came.status, 0) + 1
            if came.status not in ("ok", "cut"):
                self._say(
                    f"  {came.status}: {job.name}" + (f": {came.reason}" if came.reason else "")
                )

        lane = self._crowd if stage.name == "vectors" else self._device
        until = self._time(stage.until)
        lane.run(self._ready(jobs, until), until, finish)
        left = len(jobs) - sum(n for status, n in statuses.items() if status != "cut")
        counts = ", ".join(f"{n} {status}" for status, n in sorted(statuses.items()))
        self._say(f"{stage.name}: {counts or 'nothing'}" + (f", {left} left out" if left else ""))
        record.add("stage", stage=stage.name, statuses=statuses, left=left)

    def _ready(self, jobs: list[Job], until: float) -> Iterator[Job]:
        """The jobs whose kernels are compiled, in their order; it waits for those that are not, as
        long as compiling goes on and this time of `time.monotonic` has not come."""
        waiting = list(jobs)
        while waiting and time.monotonic() < until:
            going_on = self._compiling.is_set()
            place = next((n for n, job in enumerate(waiting) if self._is_compiled(job)), None)
            if place is not None:
                job = waiting.pop(place)
                if job.given.get("capture") and self._cannot_capture():
                    job = replace(job, given={**job.given, "capture": False})
                yield job
            elif going_on:
                time.sleep(0.05)
            else:
                return

    def _is_compiled(self, job: Job) -> bool:
        name = compilation_of(job)
        # A candidate that is not on the list was compiled by an earlier run.
        return name is None or self._compiled.get(name, "ok") == "ok"

    def _cannot_capture(self) -> bool:
        run = self._record.run
        return any(x.get("not_captured") and x["run"] == run for x in self._record.findings)

    def _read_known(self) -> Known:
        """The findings on this machine with these sources."""
        return Known.of(self._record.findings, self._identity)

    def _wrong(self) -> set[tuple[str, str]]:
        """The kernels and cases that were wrong with the options of `launch_options`."""
        return {
            (x["candidate"]["kernel"], str(case_of(x["candidate"]["case"])))
            for x in self._read_known().findings
            if x["what"] == "checked" and x["wrong"] and x["job"].startswith("correct ")
        }

    def _rates(self) -> dict[str, dict[str, Any]]:
        return {
            x["rate"]["dtype"]: x["rate"]
            for x in self._read_known().findings
            if x["what"] == "rate"
        }


def _kernel_of(job: Job) -> tuple[str, str] | None:
    """The kernel and the case of a job that is about a kernel's speed or races."""
    plain = job.given.get("candidate")
    if plain is None or job.name.startswith("correct "):
        return None
    return plain["kernel"], str(case_of(plain["case"]))


def settings(options: argparse.Namespace, capability: int = 90) -> Settings:
    """The jobs' settings, from the options."""
    files = sorted(VECTORS.glob("*.json"), key=lambda path: path.stat().st_size)
    found = Settings(
        kernels=tuple(options.kernels),
        capability=capability,
        cores=options.cores,
        families=tuple(path.stem for path in files if path.name != INDEX),
    )
    if options.stand_in:
        found = replace(
            found,
            kernels=tuple(name for name in options.kernels if KERNELS[name].interpreted),
            sizes=SMALL,
            most=6,
            rounds=3,
            runs=3,
            families=found.families[:1],
            dtypes=("bfloat16",),
        )
    return found


def _triton(options: argparse.Namespace) -> Path:
    cache: Path = options.cache / "triton"
    return cache


def _environment(options: argparse.Namespace, compiles: bool) -> dict[str, str]:
    """The environment of a process that compiles, or of one that computes."""
    found = {
        name: value
        for name, value in os.environ.items()
        if name not in ("TRITON_INTERPRET", "ATTENTION_TUNE", "ATTENTION_HOUR")
    }
    found |= {
        "TRITON_CACHE_DIR": str(_triton(options)),
        "TORCHINDUCTOR_CACHE_DIR": str(options.cache / "inductor"),
        "OMP_NUM_THREADS": "1",
    }
    if compiles:
        # No context on a device that others time; and of each kernel only its binary.
        found |= {"CUDA_VISIBLE_DEVICES": "", "TRITON_STORE_BINARY_ONLY": "1"}
    elif options.stand_in:
        found |= {"TRITON_INTERPRET": "1", "ATTENTION_HOUR": "stand-in"}
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line described at the top of this module; the exit status."""
    p = parser()
    options = complete_options(p, sys.argv[1:] if arguments is None else arguments)
    if options.plan:
        known: tuple[Finding, ...] = tuple(options.earlier)
        overlays = dict.fromkeys(what_if.WHAT_IFS, "left out")
        print(*table(Plan(settings(options), Known(known), overlays), options.seconds), sep="\n")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return Hour(options).run()


if __name__ == "__main__":
    sys.exit(main())
