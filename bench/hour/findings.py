"""The findings, one JSON object a line, written down at once: so those of a run that is killed are
there. A line that was being written at that moment is left out when the file is read.

Every finding has `run`, the number of the run in the file, `what`, its kind, and `at`, seconds
since the run began. Those of a job have its name as `job`, and the last of them `status`. Their
other fields stand where they are made, in `bench.hour.jobs`.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.report import finite

Finding = dict[str, Any]

FILE = "found.jsonl"


class Record:
    """The file `path`, which is made, or gone on with. Several threads may add to it."""

    def __init__(
        self, path: Path, earlier: Iterable[Finding] = (), *, now: Callable[[], float] = time.time
    ) -> None:
        """earlier: findings to begin a new file with."""
        self._now, self._began, self._lock = now, now(), threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        known = read(path) if path.exists() else []
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            os.write(self._file, b"\n")
        self.findings = known
        for finding in () if known else earlier:
            self._write(finding)
        self.run = 1 + max((int(x.get("run", 0)) for x in self.findings), default=0)

    def seconds(self) -> float:
        """Since the run began."""
        return self._now() - self._began

    def add(self, what: str, **fields: Any) -> Finding:
        """Write a finding down."""
        finding = {"run": self.run, "what": what, "at": round(self.seconds(), 2), **fields}
        self._write(finding)
        return finding

    def _write(self, finding: Finding) -> None:
        line = json.dumps(finite(finding), ensure_ascii=False, allow_nan=False) + "\n"
        with self._lock:
            # One call: a reader of the file meanwhile finds whole lines, and the system has them
            # even if this process is killed.
            os.write(self._file, line.encode())
            self.findings.append(finding)


def read(path: Path) -> list[Finding]:
    """The findings of a file, without lines that are no finding. Raises OSError."""
    found = []
    for line in path.read_bytes().splitlines():
        try:
            finding = json.loads(line)
        except ValueError:  # UnicodeDecodeError is one too
            continue
        if isinstance(finding, dict) and "what" in finding:
            found.append(finding)
    return found


@dataclass(frozen=True)
class Known:
    """Which jobs have been done already, by runs on the same kind of machine with the same sources
    and packages, and the findings of these runs."""

    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, findings: Sequence[Finding], identity: Sequence[str]) -> Known:
        """identity: of this machine, sources and packages, as "start" has it."""
        runs = {
            x["run"]
            for x in findings
            if x["what"] == "start" and list(x.get("identity", ())) == list(identity)
        }
        return cls(tuple(x for x in findings if x.get("run") in runs))

    @property
    def jobs(self) -> set[str]:
        """The names of those that came to an end, whichever."""
        return {x["job"] for x in self.findings if "job" in x and "status" in x}
