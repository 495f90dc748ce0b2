"""The command `test`: the checks of `make test`, each kept until one of its inputs changes."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

import click
from rich.console import Console

from bridge import quick
from bridge.audit.second_kernel import check as second_kernel
from bridge.cache import Cache
from bridge.check_inputs import digests, facts
from bridge.command import Problem, checkout
from bridge.errors import MendableError
from bridge.quick import Selection
from bridge.report import timings
from bridge.report.timings import Times
from bridge.terminal import tell


def _pytest(workers: int) -> tuple[str, ...]:
    return (
        *("python", "-m", "pytest", "-n", str(min(workers, 4))),
        *("--dist", "loadfile", "--no-loadscope-reorder"),
    )


# A test worker often waits for processes that it started: two more than there are cores. It holds
# torch, and at times a Lean of 1.3 GB: no more than four. A file's tests stay on one worker: the
# copy from which the chain tests start is then made once. Files begin in the order of
# tests/conftest.py; xdist's own, by their number of tests, has the longest at the end.
PYTEST = _pytest((os.cpu_count() or 1) + 2)
# Each worker uses 9 s of processor time to collect the tests of a central change, of which
# `make quick` runs some: here no more than there are cores.
QUICK = _pytest(os.cpu_count() or 1)
LEAN = ("Attention/*", "Attention.lean", "lakefile.lean", "lean-toolchain", "bridge/toolchain/*")
# Seconds that a check has to end in after Ctrl-C; then it is killed.
_ENDING = 3.0
# Seconds between two looks at those that run.
_POLL = 0.05


@dataclass(frozen=True)
class Check:
    """One step.

    command: a program of the environment and its arguments. inputs: patterns of the files that its
    result depends on, where * stands for any path too; none: it is run always, since it keeps its
    own results. one_core: it uses one or little more, so that neighbours of which this is true run
    beside it; the one behind them, which uses all, begins once a core is free and none waits.
    after: the one of these neighbours that it waits for, whose kept results it takes. compiled:
    Triton compiles its kernels in it, where tests have them interpreted.
    """

    name: str
    title: str
    command: tuple[str, ...]
    inputs: tuple[str, ...]
    one_core: bool = False
    after: str = ""
    compiled: bool = False


@dataclass
class _Running:
    """A check that has begun. output: the file that has it, or none: it goes to the terminal, and
    the output of others comes after it."""

    check: Check
    process: subprocess.Popen[bytes]
    output: IO[bytes] | None
    start: float

    def poll(self) -> Times | None:
        """How long it took, or None: it runs."""
        found, status, used = os.wait4(self.process.pid, os.WNOHANG)
        if found == 0:
            return None
        self.process.returncode = os.waitstatus_to_exitcode(status)
        seconds, processor = time.monotonic() - self.start, used.ru_utime + used.ru_stime
        return {"seconds": round(seconds, 1), "processor_seconds": round(processor, 1)}


ISSUE_FORMS = ("feature", "statement", "wrong-result")
# Every list begins with them.
LINT = (
    Check("lint", "ruff check", ("python", "-m", "ruff", "check", "."), ("*.py", "*.toml")),
    Check(
        "format", "ruff format", ("python", "-m", "ruff", "format", "--check", "."),
        ("*.py", "*.md", "*.toml"),
    ),
    Check(
        "workflows", "GitHub's workflows, by their schema",
        ("python", "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows",
         ".github/workflows/ci.yml", ".github/workflows/release.yml",
         "examples/kernel_in_ci/attention.yml"),
        (".github/*", "examples/*"),
    ),
    Check(
        "workflow-actions", "the steps that its jobs share, by their schema",
        ("python", "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions",
         ".github/actions/environment/action.yml"),
        (".github/*",),
    ),
    Check(
        "issue-forms", "the forms of issues, by their schema",
        ("python", "-m", "check_jsonschema", "--builtin-schema", "vendor.github-issue-forms",
         *(f".github/ISSUE_TEMPLATE/{name}.yml" for name in ISSUE_FORMS)),
        (".github/*",),
    ),
    Check(
        "issue-config", "the choice of these forms, by its schema",
        ("python", "-m", "check_jsonschema", "--builtin-schema", "vendor.github-issue-config",
         ".github/ISSUE_TEMPLATE/config.yml"),
        (".github/*",),
    ),
    Check(
        "workflow-rules", "GitHub's workflows, by zizmor's rules",
        ("zizmor", "--offline", "--quiet", ".github", "examples/kernel_in_ci/attention.yml"),
        (".github/*", "examples/*"),
    ),
)  # fmt: skip
TYPES = Check(
    "types", "mypy",
    ("python", "-m", "mypy"), ("*.py", "*.pyi", "pyproject.toml"), one_core=True,
)  # fmt: skip

# Where the second kernel has checked the proofs in the check `index`, the other one does so, too.
REPLAY = Check(
    "replay", "Lean: every declaration by the embedded kernel, too",
    ("python", "-m", "bridge", "audit", "--replay"),
    (*LEAN, "bridge/*", "pyimpl/*", "docs/*.toml", "tests/vectors/*"), one_core=True, after="index",
)  # fmt: skip


# The thorough tests in parts, each with the folder of its tests but for those of the parts before
# it: a part that has passed is kept where a later one fails or is interrupted.
THOROUGH = {
    "kernels-ir": ("tests/bridge/ttir", "tests/bridge/ptx", "tests/bridge/gluon"),
    "conformance": ("tests/bridge/conformance",),
    "bridge": ("tests/bridge",),
    "pyimpl": ("tests/pyimpl",),
    "others": ("tests",),
}


def _thorough() -> Iterator[Check]:
    yield Check(
        "thorough-compiled", "thorough tests of kernels that Triton compiles",
        (*PYTEST, "-m", "thorough and compiled"), ("*",), compiled=True,
    )  # fmt: skip
    before: list[str] = []
    for name, folders in THOROUGH.items():
        ignored = (f"--ignore={folder}" for folder in before)
        yield Check(
            f"thorough-{name}", f"thorough tests: {name}",
            (*PYTEST, "-m", "thorough and not compiled", *folders, *ignored), ("*",),
        )  # fmt: skip
        before.extend(folders)


# Those that listed theorems and claims name are part of the library.
WRONG_VARIANTS = Check(
    "wrong-variants", "Lean: wrong variants of the theorems, refuted",
    ("python", "-m", "bridge", "audit", "Attention.WrongVariants"), LEAN, one_core=True,
)  # fmt: skip


def checks(*, everything: bool = False) -> tuple[Check, ...]:
    """The checks in their order, the quick ones first. everything: those of `make test-all`."""
    some = () if everything else ("--quick",)
    thorough = tuple(_thorough()) if everything else ()
    more = "-all" if everything else ""
    variants = (WRONG_VARIANTS,) if everything else ()
    replay = (REPLAY,) if everything and second_kernel.is_installed() else ()
    return (
        *LINT,
        Check(
            "library", "Lean: the library",
            ("lake", "build"), (),
        ),
        # These run beside each other; the longest begin first. The audit is this one's first part.
        Check(
            "index", "Lean: audit and index of every declaration",
            ("python", "-m", "bridge", "index"),
            (*LEAN, "bridge/*", "pyimpl/*", "docs/*.toml", "docs/*.json", "tests/vectors/*"),
            one_core=True,
        ),
        *variants,
        TYPES,
        Check(
            "translation", "Lean: bridge/spec agrees with Lean's terms",
            ("python", "-m", "bridge", "translate", "--check"),
            (*LEAN, "bridge/*", "pyproject.toml"), one_core=True, after="index",
        ),
        *replay,
        Check(
            "kernel texts", "Lean: Attention/Kernel/Generated agrees with Triton's compiler",
            ("python", "-m", "bridge.report.kernels"),
            ("Attention/Kernel/Generated/*", "bridge/*", "pyimpl/*"), one_core=True,
        ),
        Check(
            f"kernels{more}", "kernels compiled for sm_80, sm_90 and sm_100",
            ("python", "-m", "pyimpl.backends.kernels.offline.compile", *some), ("pyimpl/*",),
            # The quick ones use the cores that their neighbours leave.
            one_core=not everything,
        ),
        Check("tests", "the test-suite", PYTEST, ("*",)),
        *thorough,
    )  # fmt: skip


def quick_checks(selection: Selection, record: Path) -> tuple[Check, ...]:
    """The checks of `make quick`: none that starts Lean. record: see `bridge.quick.command`."""
    tests = Check(
        "changed-tests", "the tests of your changes",
        (*QUICK, *quick.command(selection, record)), (),
    )  # fmt: skip
    return (*LINT, TYPES, *([tests] if selection.chosen else []))


@click.command(name="test")
@click.argument("name", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Thorough tests and all kernels, too.")
@click.option("--quick", "quickly", is_flag=True, help="Linters, types, tests of your changes.")
@click.option("--fresh", is_flag=True, help="Run checks whose inputs are unchanged, too.")
@click.option("--record", is_flag=True, help="Write how long each check took into docs.")
def test(name: tuple[str, ...], everything: bool, quickly: bool, fresh: bool, record: bool) -> None:
    """Run the checks of make test: linters, Lean, kernels, tests.

    NAME: only these; default: all, up to the first that fails. A check that passed is skipped
    until one of its inputs changes. --quick runs those that need no Lean, and for a minute the
    tests that read a file changed since they passed, or since the branch left main, the nearest
    first.
    Exit status 0 if all pass, 1 if one fails, 130 after Ctrl-C.
    """
    if record and (name or everything or quickly):
        raise Problem("--record: takes the times of make test, and NAME, --all or --quick is given")
    if quickly and (name or everything):
        raise Problem("--quick: has checks of its own, and NAME or --all is given")
    root = checkout()
    chosen = checks(everything=everything)
    known = [check.name for check in chosen]
    for one in name:
        if one not in known:
            raise Problem(f"NAME: there is no check {one!r}; there are {', '.join(known)}")
    for package in ("ruff", "mypy", "pytest", "check_jsonschema"):
        if importlib.util.find_spec(package) is None:
            raise Problem(f"{sys.executable} has no package {package}; run make setup first")
    run = Run(root, Console(), fresh=fresh)
    if quickly:
        sys.exit(_quick(run))
    start = time.monotonic()
    status = run.all(check for check in chosen if not name or check.name in name)
    if status == 0 and "tests" in run.times:
        quick.keep(run.cache, run.facts, quick.Base(run.digests))
    if record and status == 0:
        _record(run, time.monotonic() - start)
    sys.exit(status)


def _quick(run: Run) -> int:
    """Run the checks of make quick; the exit status."""
    base = None if run.fresh else quick.last(run.cache, run.facts)
    selection = quick.select(run.root, run.digests, base)
    for sentence in selection.sentences():
        run.say(sentence)
    record = run.cache.folder / "quick-left.json"
    run.cache.folder.mkdir(parents=True, exist_ok=True)
    record.write_text("[]", "utf-8")
    status = run.all(quick_checks(selection, record))
    if status == 0:
        left = {*selection.left, *json.loads(record.read_text("utf-8"))}
        quick.keep(run.cache, run.facts, quick.Base(run.digests, tuple(sorted(left))))
    return status


def _record(run: Run, whole: float) -> None:
    # The writers of pages are needed here alone.
    from bridge.pages import written

    try:
        found = timings.of_test(run.times, whole)
    except MendableError as error:
        raise Problem(str(error)) from error
    written.record(run.root, "test", found)


class Run:
    """One run of checks below `root`."""

    def __init__(self, root: Path, console: Console, *, fresh: bool = False) -> None:
        self.root, self.console, self.fresh = root, console, fresh
        self.cache = Cache(root / "build" / "cache")
        self.digests = digests(root)
        self.facts = facts()
        self.steps: list[Check] = []
        self.running: list[_Running] = []
        # By check that passed, how long it took; None: it was kept.
        self.times: dict[str, Times | None] = {}

    def all(self, wanted: Iterable[Check]) -> int:
        """Run them up to the first that fails; the exit status."""
        self.steps = list(wanted)
        start, before = time.monotonic(), _processor()
        for several in _beside(self.steps):
            try:
                failed = self.together(several)
            except KeyboardInterrupt:
                # The terminal has told the checks as well.
                self.end()
                names = ", ".join(one.check.name for one in self.running)
                self.say(f"\nStopped in {names}; the next run goes on from there.")
                return 130
            if failed is not None:
                for one in self.running:
                    one.process.send_signal(signal.SIGINT)
                self.end()
                left = (
                    c.name for c in self.steps if c is not failed.check and c.name not in self.times
                )
                self.say(
                    f"✘ {failed.check.name} ended with status {failed.process.returncode}; "
                    f"not run: {', '.join(left) or 'nothing'}",
                    style="red",
                )
                return 1
        names = ", ".join(check.name for check in self.steps)
        kept = sum(times is None for times in self.times.values())
        self.say(
            f"✔ {len(self.steps)} checks pass ({names}): {kept} unchanged, "
            f"{len(self.steps) - kept} run in "
            f"{time.monotonic() - start:.0f} s, {_processor() - before:.0f} s of processor time",
            style="green",
        )
        return 0

    def together(self, several: Sequence[Check]) -> _Running | None:
        """Run checks beside each other, as many as there are cores; the first that fails, while
        others still run."""
        waiting = [check for check in several if not self.skip_unchanged(check)]
        captured = sum(check.one_core for check in waiting) > 1
        if len(waiting) > 1:
            self.say(f"      beside each other: {', '.join(check.name for check in waiting)}")
        ended: list[tuple[_Running, Times]] = []
        while waiting or self.running:
            for check in self.ready(waiting):
                waiting.remove(check)
                self.running.append(self.begin(check, captured=captured and check.one_core))
            for one in tuple(self.running):
                if (times := one.poll()) is None:
                    continue
                self.running.remove(one)
                if one.process.returncode != 0:
                    self.show(one)
                    return one
                self.keep(one.check, times)
                ended.append((one, times))
            if not any(one.output is None for one in self.running):
                for one, times in ended:
                    self.show(one)
                    self.say(
                        f"      passed in {times['seconds']:.1f} s, "
                        f"{times['processor_seconds']:.1f} s of processor time"
                    )
                ended.clear()
            time.sleep(_POLL)
        return None

    def ready(self, waiting: Sequence[Check]) -> list[Check]:
        """Those that wait for no other, as many as there are cores left."""
        ahead = {*(check.name for check in waiting), *(one.check.name for one in self.running)}
        free = (os.cpu_count() or 1) - len(self.running)
        found = [check for check in waiting if check.one_core and check.after not in ahead]
        return (found or [check for check in waiting if len(waiting) == 1])[: max(free, 0)]

    def skip_unchanged(self, check: Check) -> bool:
        """Whether it has passed with its present inputs; this is said."""
        if not check.inputs or self.fresh:
            return False
        if self.cache.find(_kept_results(check), self.key(check)) is None:
            return False
        self.times[check.name] = None
        self.head(check)
        self.say("      unchanged since it passed")
        return True

    def begin(self, check: Check, *, captured: bool) -> _Running:
        """Start a check. captured: its output waits until it has ended."""
        program, *arguments = check.command
        if not captured:
            self.head(check)
        # Read and closed once it is shown, so no `with` (SIM115).
        output = tempfile.TemporaryFile() if captured else None  # noqa: SIM115
        process = subprocess.Popen(
            [_program(program), *arguments], cwd=self.root, stdout=output,
            stderr=subprocess.STDOUT if captured else None,
            env={**os.environ, "TRITON_INTERPRET": "0"} if check.compiled else None,
        )  # fmt: skip
        return _Running(check, process, output, time.monotonic())

    def show(self, one: _Running) -> None:
        """The output of a check that has ended, if it waited."""
        if one.output is not None:
            self.head(one.check)
            with one.output as output:
                output.seek(0)
                self.console.file.write(output.read().decode(errors="replace"))

    def keep(self, check: Check, times: Times) -> None:
        """Record that it has passed."""
        self.times[check.name] = times
        if check.inputs:
            self.cache.keep(_kept_results(check), self.key(check), times)

    def end(self) -> None:
        """Wait until those that run have ended, and kill those that take longer."""
        for one in self.running:
            try:
                one.process.wait(_ENDING)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                one.process.kill()

    def head(self, check: Check) -> None:
        number = self.steps.index(check) + 1
        self.say(f"[{number}/{len(self.steps)}] {check.name}: {check.title}", style="bold")

    def key(self, check: Check) -> str:
        """A hash of all that the check depends on."""
        total = hashlib.sha256("\0".join((*check.command, *self.facts)).encode())
        for name, content in self.digests.items():
            if any(fnmatchcase(name, pattern) for pattern in check.inputs):
                total.update(f"{name}\0{content}\0".encode())
        return total.hexdigest()[:24]

    def say(self, text: str, style: str = "") -> None:
        tell(self.console, text, style)
        # The output of a check comes after it.
        self.console.file.flush()


def _beside(steps: Iterable[Check]) -> Iterator[Sequence[Check]]:
    """The checks in their order, in groups: neighbours that use one core, and the one behind."""
    group: list[Check] = []
    for check in steps:
        group.append(check)
        if not check.one_core:
            yield tuple(group)
            group = []
    if group:
        yield tuple(group)


def _program(name: str) -> str:
    """The path of a program of the environment, or of the one that the environment is put upon.
    Raises Problem where there is none."""
    own = Path(sys.executable).with_name(name)
    found = str(own) if own.exists() else shutil.which(name)
    if found is None:
        raise Problem(f"there is no program {name} beside {sys.executable}; run make setup first")
    return found


def _kept_results(check: Check) -> str:
    return f"check-{check.name}"


def _processor() -> float:
    """Seconds of processor time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
