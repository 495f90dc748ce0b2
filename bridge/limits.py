"""Limits that a busy machine does not pass: processor time, or none of it for long.

How long something takes by the clock depends on the load of the machine. A limit here is passed
by a tree of processes that has used the processor for so many seconds (and has had as many by the
clock: several processors use them up sooner), or that has used practically none for so long that
nothing but a deadlock is left. Processes that ended count; one that is ready to run, or waits for a
disk, is not idle; and time in which the watching process did not run itself (a machine that was
suspended) is nobody's.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import psutil

# Less than this share of one processor is none: threads that poll use as much.
_SHARE = 0.02
# Processor time is told in ticks of 10 ms.
_TICKS_S = 0.02
# Between two looks, in seconds: at first and at most; a longer gap is not idleness of the tree.
_SHORT, _LONG = 0.02, 1.0
_GAP_S = 5 * _LONG
# So many looks at least find it idle before it is called so.
_LOOKS = 10
# The kernel has 15 characters of it; more is from the command line, which can be of any length.
_MOST_OF_A_NAME = 40
_WAITS = {psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP}


@dataclass(frozen=True)
class Limit:
    """processor_s: seconds of processor time, user and system, of a tree of processes; idle_s:
    seconds by the clock in which it uses practically none. Raises ValueError unless both are
    numbers above 0."""

    processor_s: float
    idle_s: float = 600.0

    def __post_init__(self) -> None:
        for name in ("processor_s", "idle_s"):
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"{name} must be a number of seconds above 0, not {value!r}")


@dataclass(frozen=True)
class Passed:
    """A limit that was passed, with all that was seen. As text, half a sentence: "used …"."""

    limit: Limit
    used_s: float
    elapsed_s: float
    idle: bool
    load: float
    processes: tuple[str, ...]

    def __str__(self) -> str:
        load = f"load average {self.load:.1f} on {os.cpu_count()} processors"
        used = f"{_seconds(self.used_s)} of processor time"
        if self.idle:
            asleep = f"; {', '.join(self.processes)}" if self.processes else ""
            return (
                f"used practically no processor time for {self.limit.idle_s:g} s ({used} in "
                f"{_seconds(self.elapsed_s)} altogether; {load}{asleep})"
            )
        return (
            f"used {used}, of {self.limit.processor_s:g} s allowed, in {_seconds(self.elapsed_s)} "
            f"({load})"
        )


def _as_text(name: str) -> str:
    """The beginning of a name that a process can give itself, with unprintable characters
    replaced."""
    return "".join(x if x.isprintable() else "\ufffd" for x in name[:_MOST_OF_A_NAME])


def _descendants(process: psutil.Process, *, every: bool) -> list[psutil.Process]:
    """All processes that descend from one.

    psutil reads the parent of each process of the machine. Linux can list the children of a thread,
    and may leave some out while another ends: `every` asks for psutil's way.
    """
    listed = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
    if every or not os.path.exists(listed):
        return process.children(recursive=True)
    # Another process can have the number of one that has ended.
    found, parents = [], [process.pid] if process.is_running() else []
    for parent in parents:
        for pid in _children(parent):
            with contextlib.suppress(psutil.Error):
                child = psutil.Process(pid)
                if child.ppid() == parent:
                    found.append(child)
                    parents.append(pid)
    return found


def _children(pid: int) -> Iterator[int]:
    """Those that Linux lists for the threads of a process."""
    threads = []
    with contextlib.suppress(OSError):
        threads = os.listdir(f"/proc/{pid}/task")
    for thread in threads:
        with (
            contextlib.suppress(OSError),
            open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as children,
        ):
            yield from map(int, children.read().split())


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


class LimitPassed(Exception):
    """Something was ended at its limit. The message is one sentence that says what was seen.
    output: that of a command until then."""

    def __init__(self, sentence: str, output: str = "") -> None:
        super().__init__(sentence)
        self.output = output


@dataclass
class Watch:
    """A process, and all that descend from it, under a limit that counts from now on.

    pid: of the process, which may be the own one.
    """

    pid: int
    limit: Limit
    used_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        # Of each process, its own time and that of the children that it has seen end.
        self._seen: dict[psutil.Process, float] = {}
        # The processor time that looking took, which is no work of the own process.
        self._looking = 0.0
        with contextlib.suppress(psutil.Error):
            self._seen[psutil.Process(self.pid)] = 0.0
        self.restart()
        self._begin()

    def _begin(self) -> None:
        self._look_at_all()
        self._before = sum(self._seen.values())
        self._begun = True

    def restart(self, limit: Limit | None = None) -> None:
        """Count from now on, or from the next look, under this limit if one is given."""
        self.limit = limit or self.limit
        # Looking takes milliseconds, and many calls are shorter.
        self._begun = False
        self.used_s = 0.0
        self._start = self._last = time.monotonic()
        self._idle = self._used_idly = 0.0

    def measure(self) -> float:
        """The processor time used until now, in seconds."""
        self._look_at_all()
        self.used_s = max(self.used_s, sum(self._seen.values()) - self._before)
        return self.used_s

    @property
    def processes(self) -> tuple[psutil.Process, ...]:
        """Those that the last look found."""
        return tuple(self._seen)

    @property
    def pause(self) -> float:
        """How long to wait until a look may show something new, in seconds."""
        longest = min(_LONG, self.limit.idle_s / _LOOKS)
        return max(_SHORT, min(longest, (time.monotonic() - self._start) / 20))

    def look(self) -> Passed | None:
        """The limit if it is passed now. May be called often: it looks when `pause` is over."""
        now = time.monotonic()
        if now - self._last < self.pause:
            return None
        gap, self._last = now - self._last, now
        if not self._begun:
            self._begin()
            return None
        active, waits = self._look_at_all()
        self.used_s = max(self.used_s, sum(self._seen.values()) - self._before)
        self._used_idly += active
        if not waits:
            self._idle += min(gap, _GAP_S, self.limit.idle_s / _LOOKS)
        if self._used_idly > _SHARE * self._idle + _TICKS_S:
            self._idle = self._used_idly = 0.0
        elapsed = now - self._start
        idle = self._idle >= self.limit.idle_s
        if not idle and min(self.used_s, elapsed) < self.limit.processor_s:
            return None
        load = psutil.getloadavg()[0]
        return Passed(self.limit, self.used_s, elapsed, idle, load, self._describe_processes())

    def end(self) -> None:
        """Kill all of them, but the own process."""
        self._look_at_all(every=True)
        for process in self._seen:
            if process.pid != os.getpid():
                with contextlib.suppress(psutil.Error):
                    process.kill()

    def _look_at_all(self, *, every: bool = False) -> tuple[float, bool]:
        """Bring `_seen` up to date: the processor time used meanwhile, and whether one of them
        waits for a processor or a disk. every: miss none of them, which takes longer."""
        began = time.thread_time()
        tree = dict.fromkeys(self._seen)
        inside = {process.pid for process in self._seen}
        for process in self._seen:
            with contextlib.suppress(psutil.Error):
                # A process that has lost its parent is still one of them.
                if process.pid == self.pid or process.ppid() not in inside:
                    tree |= dict.fromkeys(_descendants(process, every=every))
        active, waits = 0.0, False
        seen: dict[psutil.Process, float] = {}
        for process in tree:
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    # The own process runs now, since it looks.
                    own = process.pid == os.getpid()
                    waits |= not own and process.status() in _WAITS
            except psutil.Error:
                continue
            children = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
            seen[process] = times.user + times.system + children - own * self._looking
            active += max(0.0, seen[process] - self._seen.get(process, 0.0))
        self._seen = seen
        self._looking += time.thread_time() - began
        return active, waits

    def _describe_processes(self) -> tuple[str, ...]:
        """Some of the processes, each with its state."""
        found = []
        for process in list(self._seen)[:5]:
            with contextlib.suppress(psutil.Error):
                found.append(f"{_as_text(process.name())} {process.status()}")
        return tuple(found)


def until(done: Callable[[], object], watch: Watch, waited_for: str) -> None:
    """Wait until it is true. Raises LimitPassed when the limit of the watched process is passed,
    and leaves the processes as they are."""
    while not done():
        if (passed := watch.look()) is not None:
            raise LimitPassed(f"{waited_for} was waited for by process {watch.pid}, which {passed}")
        time.sleep(min(watch.pause, 0.1))


@contextlib.contextmanager
def watch_process(pid: int, limit: Limit, at_end: Callable[[Passed], None]) -> Iterator[Watch]:
    """A block in which the process is watched from a thread: when the limit is passed, `at_end` is
    called there, and then the processes are killed."""
    watch = Watch(pid, limit)
    over = threading.Event()

    def look() -> None:
        while not over.wait(watch.pause):
            if (passed := watch.look()) is not None:
                at_end(passed)
                watch.end()
                return

    thread = threading.Thread(target=look, name="limits", daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()


def run(
    command: Sequence[str | os.PathLike[str]] | str,
    limit: Limit,
    *,
    input: str | None = None,
    check: bool = False,
    merged: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """A command, its output kept as text. input: its standard input; check: an exit status that is
    not 0 raises CalledProcessError; merged: standard error goes to standard output; options: of
    `subprocess.Popen`.

    Raises LimitPassed, when the processes have been killed, and OSError if it does not start.
    """
    with contextlib.ExitStack() as stack:
        # From a file: `communicate`, when it is called again, does not go on writing to a pipe.
        given: Any = subprocess.DEVNULL
        if input is not None:
            given = stack.enter_context(tempfile.TemporaryFile("w+"))
            given.write(input)
            given.seek(0)
        process = stack.enter_context(
            subprocess.Popen(
                command,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if merged else subprocess.PIPE,
                text=True,
                **options,
            )
        )
        out, err = communicate(process, limit)
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def communicate(process: subprocess.Popen[str], limit: Limit) -> tuple[str, str]:
    """The output of a process that runs, and has no pipe to its standard input, until it ends, to
    standard output and standard error. Raises LimitPassed; then, and on any other exception, the
    processes have been killed."""
    watch = Watch(process.pid, limit)
    try:
        while (passed := watch.look()) is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.communicate(timeout=min(watch.pause, 0.1))
    except BaseException:
        watch.end()
        raise
    watch.end()
    out, err = process.communicate()
    command: Any = process.args
    shown = command if isinstance(command, str) else " ".join(map(str, command))
    shown = shown if len(shown) <= 200 else f"{shown[:200]}…"
    said = "\n".join(text for text in (out, err) if text)
    last = (said.strip().splitlines() or ["nothing"])[-1][:300]
    raise LimitPassed(f"{shown} was ended, since it {passed}; it last said: {last}", said)
