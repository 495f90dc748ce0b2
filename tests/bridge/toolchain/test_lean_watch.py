"""The watcher: rechecks saved files, survives errors and deleted files, and ends with Ctrl-C."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge import limits
from bridge.limits import Limit, Watch
from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.watch import not_imported

A = "module\npublic section\n@[expose] def a : Nat := 2\n"
B = "public import Small.A\npublic section\ntheorem a_two : a = 2 := rfl\n"


@pytest.mark.thorough
def test_watch(make_project: Callable[[dict[str, str]], EmbeddedLean]) -> None:
    lean = make_project({"A": A.removeprefix("module\n"), "B": B})
    file = lean.root / "Small" / "A.lean"
    code = (
        "import sys, pathlib, functools; from bridge.toolchain.watch import watch; "
        "watch(pathlib.Path(sys.argv[1]), functools.partial(print, flush=True))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(lean.root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A shell's background job has Ctrl-C ignored, and so have processes that the tests start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    lines: queue.Queue[str] = queue.Queue()
    out = process.stdout
    assert out is not None
    reader = threading.Thread(target=lambda: [lines.put(line) for line in out], daemon=True)
    reader.start()
    said: list[str] = []

    def until(text: str, most: float = 600) -> list[str]:
        """The lines up to the first with the text, for which it may use so much processor time."""
        found: list[str] = []
        watch = Watch(process.pid, Limit(most, 120))
        while not found or text not in found[-1]:
            ended = process.poll() is not None
            if not lines.empty():
                found.append(lines.get().rstrip("\n"))
                said.append(found[-1])
                continue
            assert not ended, said
            limits.until(lambda: not lines.empty() or process.poll() is not None, watch, text)
        assert watch.measure() < most, said
        return found

    try:
        until("watching; Ctrl-C ends")
        assert any(line.startswith("ok: 3 rechecked") for line in said)
        time.sleep(1)

        file.write_text(A.replace("2", "3"), "utf-8")
        found = until("errors")
        assert any(line.startswith("error: Small/B.lean:4:") for line in found)

        file.write_text("module\npublic section def\n", "utf-8")
        found = until("errors")
        assert any(
            line.startswith("error: Small/A.lean:3:0: unexpected end of input") for line in found
        )

        file.unlink()
        until("Small/A.lean cannot be read")

        file.write_text(A, "utf-8")
        until("ok: ")

        # A new file is checked when something imports it, and missed when it is taken away.
        root, new = lean.root / "Small.lean", lean.root / "Small" / "New.lean"
        new.write_text("module\ntheorem new : 1 = 1 := rfl\n", "utf-8")
        until("Small/New.lean is not imported by Small.lean: not checked")
        root.write_text("module\npublic import Small.New\n" + root.read_text("utf-8")[7:], "utf-8")
        assert any("Built Small.New" in line for line in until("ok: 2 rechecked"))
        new.unlink()
        until("Small/New.lean cannot be read")
        new.write_text("module\ntheorem new : 1 = 1 := rfl\n", "utf-8")
        until("ok: ", most=5)
        watch = Watch(process.pid, Limit(60, 60))
        process.send_signal(signal.SIGINT)
        limits.until(lambda: process.poll() is not None, watch, "the end")
        assert process.returncode == 0
        limits.until(lambda: not reader.is_alive(), Watch(os.getpid(), Limit(60, 60)), "the rest")
        assert lines.empty(), list(lines.queue)
    finally:
        process.kill()
        process.wait()


def test_which_saved_files_are_not_checked(tmp_path: Path) -> None:
    (tmp_path / "lakefile.lean").write_text("package p\nlean_lib Small\n", "utf-8")
    files = ("Small.lean", "Small/A.lean", "Small/New.lean", "Small/.#A.lean", ".x/B.lean")
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("module\n", "utf-8")
    (tmp_path / "Small.lean").write_text("module\nimport Small.A\n", "utf-8")
    saved = [tmp_path / name for name in (*files, "lakefile.lean", "Gone.lean")]
    assert not_imported(tmp_path, saved) == [
        "Small/New.lean is not imported by Small.lean: not checked"
    ]
    (tmp_path / "Small" / "A.lean").unlink()
    assert not_imported(tmp_path, saved) == []
