"""Jobs done by other processes, so that one that crashes or hangs costs its own job and no other.

Every finding is written down when it comes. A job that takes longer than it may is ended with its
process, and so is one that is under way when its stage is over; only the first counts as done.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from bench.hour.findings import Record

ROOT = Path(__file__).resolve().parents[2]
# So many processes in a row that end without having done anything: then there is no sense in more.
HOPELESS = 3
# Seconds that a job may go on after its stage: less than a new process costs.
GRACE = 8.0


@dataclass(frozen=True)
class Job:
    """kind and given as `bench.hour.jobs` takes them; name: its name in the findings; seconds:
    after which it is ended; overlay: of the process that is to do it (`bench.hour.worker`)."""

    kind: str
    name: str
    given: dict[str, Any] = field(hash=False)
    seconds: float = 60.0
    overlay: str = ""


@dataclass(frozen=True)
class Done:
    """The end of a job. Beside the statuses of `bench.hour.jobs` and `worker` "late": it took too
    long; "cut": its stage was over."""

    status: str
    reason: str | None = None


class Child:
    """A process that does jobs one after the other."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: IO[bytes]
    ) -> None:
        # A session of its own: the processes that it starts end with it.
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=log, start_new_session=True,
        )  # fmt: skip
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._ends = self._was_ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    @property
    def alive(self) -> bool:
        """Whether it can be given another job."""
        return not self._ends and self._process.poll() is None

    def do(self, job: Job, until: float, found: Callable[[str, dict[str, Any]], object]) -> Done:
        """Do a job until this time of `time.monotonic`; `found` gets its findings."""
        own = time.monotonic() + job.seconds
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"kind": job.kind, "given": job.given}).encode())
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
            while True:
                line = self._lines.get(timeout=max(0.0, min(own, until) - time.monotonic()))
                if line is None:
                    break
                answer = json.loads(line)
                if "status" in answer:
                    self._ends = answer["ends"]
                    return Done(answer["status"], answer["reason"])
                found(answer.pop("what"), answer)
        except queue.Empty:
            self.end()
            if own <= until:
                return Done("late", f"it took more than {job.seconds:g} s")
            return Done("cut")
        except OSError:
            pass  # It ended before it took the job.
        status = self._process.wait()
        if self._was_ended:
            return Done("cut")
        return Done("crashed", f"its process ended with status {status}")

    def end(self) -> None:
        """End it, whatever it does."""
        # The process id of one that was waited for may be another's by now.
        self._was_ended = True
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Lane:
    """`count` processes side by side.

    start: makes a process for an overlay. Of the same overlay one process does job after job.
    """

    def __init__(self, record: Record, start: Callable[[str], Child], count: int = 1) -> None:
        self._record, self._start = record, start
        self._children: list[tuple[str, Child] | None] = [None] * count
        self._taking = threading.Lock()

    def run(
        self,
        jobs: Iterable[Job],
        until: float,
        done: Callable[[Job, Done], None] = lambda job, done: None,
    ) -> None:
        """Begin the jobs until this time of `time.monotonic`, in their order if there is one
        process; `done` gets the end of each."""
        each = iter(jobs)
        threads = [
            threading.Thread(target=self._work, args=(place, each, until, done), daemon=True)
            for place in range(len(self._children))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def warm(self, overlay: str = "") -> None:
        """Start the processes before there are jobs: they import meanwhile."""
        for place in range(len(self._children)):
            self._child(place, overlay)

    def end(self) -> None:
        """End the processes."""
        for child in self._children:
            if child is not None:
                child[1].end()

    def _work(
        self, place: int, jobs: Iterator[Job], until: float, done: Callable[[Job, Done], None]
    ) -> None:
        idle = 0
        while time.monotonic() < until and idle < HOPELESS:
            with self._taking:
                job = next(jobs, None)
            if job is None:
                return
            came = self._did(self._child(place, job.overlay), job, until + GRACE)
            idle = idle + 1 if came.status == "crashed" else 0
            done(job, came)

    def _did(self, child: Child, job: Job, until: float) -> Done:
        start = self._record.seconds()
        came = child.do(job, until, lambda what, x: self._record.add(what, job=job.name, **x))
        if came.status != "cut":
            seconds = round(self._record.seconds() - start, 2)
            self._record.add(
                "job", job=job.name, status=came.status, reason=came.reason, seconds=seconds
            )
        return came

    def _child(self, place: int, overlay: str) -> Child:
        known = self._children[place]
        if known is not None and (known[0] != overlay or not known[1].alive):
            known[1].end()
            known = None
        if known is None:
            known = self._children[place] = (overlay, self._start(overlay))
        return known[1]


def worker(log: IO[bytes], environment: Mapping[str, str]) -> Callable[[str], Child]:
    """A function that starts a process of `bench.hour.worker`, for an overlay."""

    def start(overlay: str) -> Child:
        command = [sys.executable, "-m", "bench.hour.worker"]
        more = ["--overlay", overlay] if overlay else []
        return Child([*command, *more], environment, log)

    return start
