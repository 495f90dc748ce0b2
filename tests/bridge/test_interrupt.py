"""Ctrl-C: everything ends, without a traceback, and finished work is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import committed
import psutil
import pytest
from small_verify import ROOT, SmallVerify

from bridge.interrupt import STATUS
from bridge.limits import Limit, communicate

# From Ctrl-C to the end: of the processor's time, or without any of it.
WITHIN = Limit(3.0, idle_s=3.0)

# In place of Lean, a process that does not end by itself.
AUDIT = "subprocess.run(['sleep', '100000']); raise ToolchainError('the audit was ended')"
WHAT = {
    "adapters": ["pyimpl-reference", "pyimpl-tiled", "pyimpl-state", "pyimpl-triton"],
    "mutants": ["lse-base-2"],
    "workers": 1,
}


def until(process: subprocess.Popen[str], seen: Callable[[], object]) -> None:
    """Wait for something; however long it takes, as long as the process lives."""
    while not seen():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def commands(session: int) -> list[str]:
    """The command lines of the processes of a session."""
    found = []
    for process in psutil.process_iter():
        # One that is ending has no command line any more.
        with suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == session and (words := process.cmdline()):
                found.append(" ".join(words))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("whole_group", [True, False], ids=["terminal", "kill"])
def test_verify_ends_and_goes_on_from_there(whole_group: bool, tmp_path: Path) -> None:
    run = SmallVerify(tmp_path, [*committed.some("causal", 6), *committed.some("gradient", 6)])
    process = run.start(AUDIT, **WHAT)
    until(process, run.kept_files)
    assert any(line.startswith("sleep") for line in commands(process.pid))
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    output, errors = communicate(process, WITHIN)
    assert process.returncode == STATUS, output + errors
    assert "Traceback" not in output + errors
    assert "– Audit of every declaration: ended by Ctrl-C" in output
    assert "– Implementations on the vectors: ended by Ctrl-C: " in output
    assert "What was done is kept; the next run goes on from there." in output
    assert "Ended by Ctrl-C." in errors
    assert "leaked" not in errors
    kept = run.kept_files()
    assert kept
    # Whoever is left is stopped by no one: it was not told to end.
    assert [line for line in commands(process.pid) if "resource_tracker" not in line] == []
    assert len(kept) < 15
    if not whole_group:
        return
    # One more run makes the others, and not these.
    status, output = run.whole("raise ToolchainError('none')", **WHAT)
    assert status == 1, output
    assert len(run.report()["implementations"]["results"]) == 15
    assert kept.items() <= run.kept_files().items()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("when", ["zygote", "call"])
def test_conform_ends_without_a_traceback(when: str, tmp_path: Path) -> None:
    """While the process from which functions are forked imports its modules, and while the function
    runs."""
    source, said = tmp_path / "endless.py", tmp_path / "said"
    source.write_text(
        "import time\n"
        "def attention(query, key, value):\n"
        "    print('called', flush=True)\n"
        "    time.sleep(100000)\n"
    )
    with open(said, "w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "bridge", "conform", f"{source}:attention",
             "--family", "one-key"],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
            start_new_session=True, stdout=subprocess.PIPE, stderr=errors,
        )  # fmt: skip
    if when == "zygote":
        until(process, lambda: any("zygote.main" in line for line in commands(process.pid)))
    else:
        until(process, lambda: "called" in said.read_text())
    os.killpg(process.pid, signal.SIGINT)
    output, _ = communicate(process, WITHIN)
    assert process.returncode == STATUS, output + said.read_text()
    assert "Traceback" not in output + said.read_text()
    assert said.read_text().endswith("Ended by Ctrl-C.\n")
