"""The `lake` command as a person meets it, and builds that something comes in the way of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import filelock
import psutil
import pytest
from processes import is_alive

from bridge import limits
from bridge.limits import Limit, Watch
from bridge.toolchain.embedded import _SHARED_FROM, EmbeddedLean
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.process import LeanProcess

Make = Callable[[dict[str, str]], EmbeddedLean]

LAKE = [sys.executable, "-c", "from bridge.toolchain.lake import main; main()"]
# Elaborates until it is stopped.
SLOW = "#eval (IO.sleep 600000 : IO Unit)\n"


def start(lean: EmbeddedLean, *arguments: str) -> subprocess.Popen[str]:
    """`lake` in the project, as the leader of a group as a shell would start it."""
    # A native lake would take over: only Node is wanted from PATH.
    return subprocess.Popen(
        [*LAKE, *arguments],
        cwd=lean.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background job has Ctrl-C ignored, and so have processes that the tests start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )


def children(pid: int) -> list[psutil.Process]:
    """The Leans that a process has started to build and that still run; a Node that is only asked
    for its version is none."""
    found = []
    for process in psutil.Process(pid).children():
        # One that has ended has no command line any more.
        with suppress(psutil.Error):
            if "--run" in process.cmdline():
                found.append(process)
    return found


def wait_for(what: Callable[[], object]) -> None:
    """Until it is true; the processes that are waited for are children of this one."""
    limits.until(what, Watch(os.getpid(), Limit(300, 120)), "what should happen")


def output(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Standard output and standard error of a process, when it has ended."""
    return limits.communicate(process, Limit(300, 120))


@pytest.mark.thorough  # 6 s; test_interrupt does the same with the whole of `bridge verify`
def test_the_command(make_project: Make) -> None:
    lean = make_project(
        {"A": "def a := 1\n", "B": "public import Small.A\ntheorem b : 1 = 2 := rfl"}
    )
    process = start(lean, "build")
    out, err = output(process)
    assert process.returncode == 1
    lines = out.splitlines()
    assert lines[0].startswith("✔ [1/3] Built Small.A (")
    assert lines[1].startswith("✖ [2/3] Building Small.B (")
    assert lines[2].startswith("error: Small/B.lean:3:")
    assert lines[-3:] == [
        "error: Lean exited with code 1",
        "Some required targets logged failures:",
        "- Small.B",
    ]
    assert err == "error: build failed\n"

    (lean.root / "Small" / "B.lean").write_bytes(b"module\r\npublic import Small.A\r\n-- \xff\r\n")
    process = start(lean, "build")
    assert "error: Small imports Small.B, but Small/B.lean is not UTF-8" in output(process)[1]
    assert process.returncode == 1

    process = start(lean, "build", "Small.A")
    assert output(process) == ("Build completed successfully (1 jobs).\n", "")
    assert process.returncode == 0

    process = start(lean, "frobnicate")
    assert "'frobnicate' is not a command" in output(process)[1]
    assert process.returncode == 2


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor: nothing is shared")
def test_an_interrupted_shared_build_leaves_no_process_behind(make_project: Make) -> None:
    lean = make_project({f"Slow{n}": SLOW for n in range(_SHARED_FROM)})
    process = start(lean, "build")
    wait_for(lambda: len(children(process.pid)) >= 2)
    drivers = children(process.pid)
    process.send_signal(signal.SIGINT)
    output(process)
    assert process.returncode == 130
    wait_for(lambda: not any(map(is_alive, drivers)))


@pytest.mark.thorough
def test_ctrl_c_leaves_no_process_behind_and_a_killed_lean_is_named(make_project: Make) -> None:
    lean = make_project({"A": "def a := 1\n", "Slow": f"public import Small.A\n{SLOW}"})
    # The default arguments bind the loop's values; mypy cannot infer their types in a lambda.
    for sent, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        process = start(lean, "build", "Small.Slow")
        wait_for(lambda process=process: children(process.pid))  # type: ignore[misc]
        wait_for(lambda: "Small.A" in lean.store.load())
        (node,) = children(process.pid)
        process.send_signal(sent)
        output(process)
        assert process.returncode == status
        wait_for(lambda node=node: not is_alive(node))  # type: ignore[misc]

    process = start(lean, "build", "Small.Slow")
    wait_for(lambda: children(process.pid))
    time.sleep(1)
    (node,) = children(process.pid)
    node.kill()
    assert "error: the embedded Lean was killed by signal 9" in output(process)[1]
    assert process.returncode == 1
    # Modules that were built before stay built.
    assert "Small.A" in lean.store.load()
    assert lean.build(["Small.A"]).built == ()


def test_a_folder_that_cannot_be_written(make_project: Make) -> None:
    lean = make_project({"A": "def a := 1\n"})
    (lean.root / "build").write_text("in the way")
    with pytest.raises(ToolchainError, match=r"build/lean cannot be written: Not a directory"):
        lean.build()


def test_two_builds_at_once(make_project: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    lean = make_project({"A": "def a := 1\n"})
    said: list[str] = []
    lock = filelock.FileLock(lean.folder / "lock")
    lean.folder.mkdir(parents=True)
    lock.acquire()

    def announce(text: str) -> None:
        said.append(text)
        lock.release()

    lean.announce = announce
    monkeypatch.setattr(lean, "_build", lambda *_: [])
    assert lean.build().ok
    assert said == ["another build of this project is running; waiting for it"]


@pytest.mark.thorough
def test_a_source_saved_during_its_build_is_built_again(
    exchange_project: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    lean = exchange_project({"A": "def a := 1\r\n"})
    source = lean.root / "Small" / "A.lean"
    ask = lean._drivers.ask

    def save_and_ask(request: str, stops: int) -> list[dict[str, Any]]:
        source.write_text("module\ndef a := 2\n", "utf-8")
        return ask(request, stops)

    with monkeypatch.context() as patch:
        patch.setattr(lean._drivers, "ask", save_and_ask)
        assert lean.build(["Small.A"]).built == ("Small.A",)
    assert lean.build(["Small.A"]).built == ("Small.A",)
    assert lean.build(["Small.A"]).built == ()


def test_what_is_handed_to_lean_after_the_end_starts_none(
    make_project: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interruption ends all drivers, and may come before a module has asked for one: that one
    would be started and waited for."""
    lean = make_project({"A": "def a := 1\n"})
    ask = lean._drivers.ask

    class Started(Exception):
        pass

    def start() -> LeanProcess:
        raise Started

    monkeypatch.setattr(lean._drivers, "_start", start)

    def end_and_ask(request: str, stops: int) -> list[dict[str, Any]]:
        lean._drivers.stop()
        return ask(request, stops)

    with monkeypatch.context() as patch:
        patch.setattr(lean._drivers, "ask", end_and_ask)
        with pytest.raises(ToolchainError, match="Lean was ended before it was asked"):
            lean.build(["Small.A"])
    # The next build starts one.
    with pytest.raises(Started):
        lean.build(["Small.A"])
