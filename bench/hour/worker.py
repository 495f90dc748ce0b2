"""A process that does jobs: `python -m bench.hour.worker [--overlay FOLDER]`.

Jobs come in as lines of JSON, `{"kind": …, "given": …}` (`bench.hour.jobs`). For each it writes
lines of JSON to its output: `{"what": …, …}` for each finding, at once, and at last `{"status": …,
"reason": …, "ends": …}`; ends: it takes no more jobs. Prints of libraries go to the error
output.

overlay: a folder whose package `pyimpl` is taken instead of the project's.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from bench.hour.jobs import Work

# Exit status of a process whose device came to harm.
HARMED = 3


def main() -> int:
    """Do the jobs that come in until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if "--overlay" in sys.argv:
        sys.path.insert(0, sys.argv[sys.argv.index("--overlay") + 1])
    # Only now: they import pyimpl.
    from bench.hour.jobs import Work

    work = Work()
    for line in iter(sys.stdin.readline, ""):
        status, reason = run_job(work, json.loads(line), answers)
        ends = work.spent or status == "crashed"
        _say(answers, {"status": status, "reason": reason, "ends": ends})
        if status == "crashed":
            # The end of Python would touch the device once more.
            os._exit(HARMED)
        if ends:
            break
    return 0


def run_job(work: Work, job: Mapping[str, Any], answers: TextIO) -> tuple[str, str | None]:
    """Do a job; its status, and why it is not "ok"."""
    from triton.runtime.errors import OutOfResources, PTXASError

    from bench.hour.jobs import JOBS
    from bench.measure import error_line

    found = JOBS[job["kind"]](work, job["given"])
    try:
        while True:
            what, fields = next(found)
            _say(answers, {"what": what, **fields})
    except StopIteration as end:
        return end.value, None
    except (OutOfResources, PTXASError) as error:
        return "refused", error_line(error)
    except Exception as error:
        reason = error_line(error)
        if job["kind"] != "compile":
            try:
                work.device.synchronize()
                work.forget()
            except Exception:
                return "crashed", reason
        return "failed", reason


def _say(answers: TextIO, line: dict[str, Any]) -> None:
    from bench.report import finite

    answers.write(json.dumps(finite(line), ensure_ascii=False) + "\n")
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
