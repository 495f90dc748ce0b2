"""The run as text and as JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from bench.cases import Operation
from bench.measure import Measured, Result
from bench.timing import Rate

FORMAT = "attention-bench-1"
_ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("torch", "triton", "numpy", "flash-attn", "flash-attn-3", "nvidia-cudnn-cu12")


@dataclass(frozen=True)
class Machine:
    """The machine and the versions of a run. load_average: of the last minute, at the start; None
    where the system keeps none. commit: of the sources, with "+" if they were changed."""

    device: str
    processor: str
    cpu_threads: int
    load_average: float | None
    python: str
    versions: dict[str, str]
    commit: str | None

    @classmethod
    def here(cls, device: torch.device) -> Machine:
        """This one, now."""
        processor = f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}"
        name = processor if device.type == "cpu" else torch.cuda.get_device_name(device)
        return cls(
            name,
            processor,
            torch.get_num_threads(),
            load_average(),
            platform.python_version(),
            dict(_versions()),
            _commit(),
        )


def load_average() -> float | None:
    """How many processes wanted a processor in the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _versions() -> Iterator[tuple[str, str]]:
    for package in _PACKAGES:
        try:
            yield package, version(package)
        except PackageNotFoundError:
            continue
    if torch.version.cuda is not None:
        yield "cuda", torch.version.cuda


def _commit() -> str | None:
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def utc_now() -> str:
    """Date and time, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def heading(command: str, date: str, machine: Machine) -> list[str]:
    """The lines that a run begins with."""
    load = "" if machine.load_average is None else f", load average {machine.load_average}"
    packages = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    commit = "" if machine.commit is None else f", commit {machine.commit}"
    return [
        f"$ {command}",
        f"{date}, {machine.device}, {machine.cpu_threads} CPU threads{load}",
        f"Python {machine.python}, {packages}{commit}",
    ]


def rate_line(rate: Rate) -> str:
    """A measured rate in words."""
    if rate.dtype == "bytes":
        number = f"{rate.per_second / 1e9:.1f} GB/s"
    else:
        number = f"{rate.per_second / 1e12:.3f} TFLOP/s"
    return f"{rate.what}, {rate.dtype} ({rate.detail}): {number}, {rate.ms:.3f} ms"


@dataclass(frozen=True)
class _Column:
    heading: str
    width: int
    form: str
    number: Callable[[Result], float | None]

    def cell(self, result: Result) -> str:
        number = self.number(result)
        return f"{'–' if number is None else format(number, self.form):>{self.width}}"


_MS = _Column("ms", 11, ".3f", lambda r: r.ms)
_ISSUE = _Column("issue ms", 10, ".3f", lambda r: r.issue_ms)
_TFLOPS = _Column("TFLOP/s", 10, ".3g", lambda r: r.tflops)
_MATMUL = _Column("of matmul", 11, ".1%", lambda r: r.share_of_matmul)
_GBPS = _Column("GB/s", 9, ".3g", lambda r: r.gbps)
_COPY = _Column("of copy", 9, ".1%", lambda r: r.share_of_copy)
_RATIO = _Column("pyimpl/it", 11, ".2f", lambda r: r.speed_ratio)
_ROUNDS = _Column("rounds", 8, "d", lambda r: r.rounds)
_ERROR = _Column("error/allowed", 15, ".2g", lambda r: r.error_over_tolerance)


def _columns(operation: Operation, on_gpu: bool) -> list[_Column]:
    issue = [_ISSUE] if on_gpu else []
    own = [_TFLOPS, _GBPS, _COPY] if operation == "decode" else [_TFLOPS, _MATMUL]
    return [_MS, *issue, *own, _RATIO, _ROUNDS, _ERROR]


# The share of the time of a call from which on it is bound by the host.
ISSUE_SHARE = 0.8
HOST_BOUND = "bound by the host"


def headings(operation: Operation, on_gpu: bool) -> str:
    """The names of the columns of `case_lines`."""
    return f"{operation:<18}" + "".join(
        f"{column.heading:>{column.width}}" for column in _columns(operation, on_gpu)
    )


def case_lines(measured: Measured, on_gpu: bool) -> list[str]:
    """The case, and a line for each implementation that was timed."""
    columns = _columns(measured.case.operation, on_gpu)
    timed = [result for result in measured.results if result.status == "timed"]
    return [str(measured.case)] + [
        f"  {result.name:<16}"
        + "".join(column.cell(result) for column in columns)
        + (f"  {HOST_BOUND}" if on_gpu and is_host_bound(result) else "")
        for result in timed
    ]


def is_host_bound(result: Result) -> bool:
    """Whether issuing the call takes about as long as the device needs for it, or longer: one after
    the other, such calls take as long as the host does."""
    if result.ms is None or result.issue_ms is None:
        return False
    return result.issue_ms >= ISSUE_SHARE * result.ms


def summary(run: Sequence[Measured], on_gpu: bool = False) -> list[str]:
    """For each case the best peer and our speed relative to its; cases not timed, and why."""
    lines = ["", "Speed of pyimpl relative to the best peer's (above 1: pyimpl is faster)"]
    width = max((len(str(one.case)) for one in run), default=0)
    for one in run:
        if one.ratio_to_best is None:
            found = "no peer to compare with" if _is_timed(one) else "pyimpl was not timed"
        else:
            found = f"{one.ratio_to_best:.2f} of {one.best_peer}"
            if on_gpu and is_host_bound(one.results[0]):
                found += f", {HOST_BOUND}"
        lines.append(f"  {one.case!s:<{width}}  {found}")
    missing: dict[tuple[str, str], int] = {}
    for result in (result for one in run for result in one.results if result.status != "timed"):
        key = (result.name, f"{result.status}: {result.reason}")
        missing[key] = missing.get(key, 0) + 1
    if missing:
        lines += ["", "Not timed"]
    for (name, why), count in missing.items():
        lines.append(f"  {name}, {count} of {len(run)} cases, {why}")
    return lines


def _is_timed(measured: Measured) -> bool:
    return measured.results[0].status == "timed"


def as_json(
    command: str,
    date: str,
    machine: Machine,
    rates: Iterable[Rate],
    run: Sequence[Measured],
    after: float | None = None,
) -> str:
    """The run with everything that was found; the fields are described beside `Result`, `Measured`,
    `Case`, `Rate` and `Machine`. after: the load average at its end, None where it is not known. A
    number that is infinite is null."""
    cases = []
    for one in run:
        entry = asdict(one)
        case = one.case
        entry["case"] |= {"flops": case.flops, "bytes": case.bytes, "shown": case.shown}
        cases.append(entry)
    whole = {
        "format": FORMAT,
        "command": command,
        "date": date,
        "machine": asdict(machine),
        "load_average_after": after,
        "rates": [asdict(rate) for rate in rates],
        "cases": cases,
    }
    return json.dumps(finite(whole), indent=1, allow_nan=False) + "\n"


def finite(value: object) -> object:
    """The value with None for a number that is infinite or none, which JSON cannot say."""
    if isinstance(value, dict):
        return {name: finite(x) for name, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(x) for x in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value
