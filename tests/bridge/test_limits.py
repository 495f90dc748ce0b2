"""Limits in processor time: work that passes them, work that does not, and the messages then."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from processes import is_alive

from bridge import limits
from bridge.limits import Limit, LimitPassed, Passed, Watch

# Uses the processor until it has used as much.
BURN = """
import os, subprocess, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
"""


def python(program: str, limit: Limit, **options: object) -> subprocess.CompletedProcess[str]:
    return limits.run([sys.executable, "-c", BURN + program], limit, **options)


def test_what_a_command_says_and_how_it_ends() -> None:
    program = "print(input()); print('aside', file=sys.stderr); sys.exit(3)"
    done = python(program, Limit(60, 60), input="given\n")
    assert (done.returncode, done.stdout, done.stderr) == (3, "given\n", "aside\n")
    both = python("print('one', flush=True); os.write(2, b'two')", Limit(60, 60), merged=True)
    assert (both.returncode, both.stdout) == (0, "one\ntwo")
    with pytest.raises(subprocess.CalledProcessError):
        python("sys.exit(1)", Limit(60, 60), check=True)
    # More than a pipe holds, in both directions.
    size = 300_000
    echo = python("sys.stdout.write(sys.stdin.read())", Limit(60, 60), input="x" * size)
    assert len(echo.stdout) == size


@pytest.mark.parametrize(
    ("program", "limit", "why", "output"),
    [
        ("burn(1000)", Limit(0.5, 60), r" of processor time, of 0\.5 s allowed, in ", "began\n"),
        ("time.sleep(1000)", Limit(60, 0.5), r"no processor time for 0\.5 s.* sleeping", "began\n"),
    ],
)
def test_one_that_passes_a_limit_is_ended(
    program: str, limit: Limit, why: str, output: str
) -> None:
    with pytest.raises(LimitPassed, match=rf"{why}.*it last said: began$") as caught:
        python(f"print('began', flush=True); {program}", limit)
    assert "load average" in str(caught.value)
    assert caught.value.output == output


def test_time_by_the_clock_alone_passes_no_limit() -> None:
    """Twice the limit by the clock, most of it asleep, as on a machine that is busy."""
    program = "for _ in range(40): burn(0.005); time.sleep(0.05)"
    start = time.monotonic()
    assert python(program, Limit(1.0, 1.0)).returncode == 0
    assert time.monotonic() - start > 2


def test_one_that_is_stopped_by_others_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that would run, if there were a processor for it."""
    watch = Watch(os.getpid(), Limit(60, 0.1))
    monkeypatch.setattr(watch, "_look_at_all", lambda: (0.0, True))
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        assert watch.look() is None
        time.sleep(0.02)


def test_a_watcher_that_did_not_run_has_not_seen_the_others_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine that was suspended for an hour."""
    now = [1000.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    watch = Watch(os.getpid(), Limit(60, 60))
    monkeypatch.setattr(watch, "_look_at_all", lambda: (0.0, False))
    now[0] += 3600
    assert watch.look() is None
    for _ in range(58):
        now[0] += 1
        passed = watch.look()
    assert passed.idle


def test_children_count_those_that_ended_too_and_all_are_ended() -> None:
    """Each child uses less than the limit."""
    child = f"{BURN}\nburn(0.2)"
    program = f"while True: subprocess.run([sys.executable, '-c', {child!r}])"
    with pytest.raises(LimitPassed, match="of 1 s allowed"):
        python(program, Limit(1.0, 60))
    program = f"subprocess.run([sys.executable, '-c', {BURN + 'burn(1000)'!r}])"
    with pytest.raises(LimitPassed, match=r"of 0\.5 s allowed"):
        python(program, Limit(0.5, 60))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux lists children")
def test_a_look_reads_no_other_processes_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds children of children, and those of threads, without psutil's search."""
    sleeper = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
    program = f"""{BURN}
import threading
thread = threading.Thread(target=subprocess.run, args=([sys.executable, "-c", {sleeper!r}],))
thread.start()
thread.join()
"""
    outer = f"{BURN}\nsubprocess.run([sys.executable, '-c', {program!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", outer], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        watch = Watch(process.pid, Limit(60))
        inner = psutil.Process(int(process.stdout.readline()))
        monkeypatch.setattr(psutil, "pids", pytest.fail)
        monkeypatch.setattr(psutil, "_ppid_map", pytest.fail)
        watch.measure()
        assert len(watch.processes) == 3
        assert inner in watch.processes
        process.stdin.close()


def test_one_without_a_parent_is_ended_too(tmp_path: Path) -> None:
    """A process starts a process, which starts another and ends when it is told to."""
    sleeper = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(1000)"
    program = f"""
if os.fork() == 0:
    subprocess.Popen([sys.executable, "-c", {sleeper!r}])
    while not os.path.exists("go"):
        time.sleep(0.01)
    os._exit(0)
os.wait()
print("ended", flush=True)
time.sleep(1000)
"""
    with subprocess.Popen(
        [sys.executable, "-c", BURN + program], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        watch, wait = Watch(process.pid, Limit(60)), Watch(os.getpid(), Limit(60, 60))
        orphan = psutil.Process(int(process.stdout.readline()))
        limits.until(lambda: watch.look() or orphan in watch.processes, wait, "a look")
        (tmp_path / "go").touch()
        assert process.stdout.readline() == "ended\n"
        watch.end()
        limits.until(lambda: not is_alive(orphan), wait, "the end")


def test_waiting_for_something_in_the_own_process() -> None:
    said: list[int] = []
    threading.Timer(0.1, said.append, (1,)).start()
    limits.until(lambda: said, Watch(os.getpid(), Limit(60, 60)), "the timer")
    with pytest.raises(LimitPassed, match="what does not come was waited for by process"):
        limits.until(lambda: False, Watch(os.getpid(), Limit(60, 0.3)), "what does not come")


def test_a_process_watched_from_a_thread() -> None:
    seen: list[Passed] = []
    with (
        subprocess.Popen([sys.executable, "-c", f"{BURN}\nburn(1000)"]) as process,
        limits.watch_process(process.pid, Limit(0.3), seen.append),
    ):
        process.wait()
    assert len(seen) == 1
    assert seen[0].used_s >= 0.3
    with (
        subprocess.Popen([sys.executable, "-c", "pass"]) as process,
        limits.watch_process(process.pid, Limit(30), seen.append),
    ):
        process.wait()
    assert process.returncode == 0
    assert len(seen) == 1


def test_a_watch_that_begins_anew_counts_from_there() -> None:
    with subprocess.Popen([sys.executable, "-c", f"{BURN}\nburn(1000)"]) as process:
        watch = Watch(process.pid, Limit(1000))
        wait = Watch(os.getpid(), Limit(60, 60))
        limits.until(lambda: watch.look() or watch.used_s > 0.3, wait, "some work")
        before = watch.used_s
        watch.restart(Limit(2000, 5))
        assert watch.used_s == 0.0 < before
        assert watch.limit == Limit(2000, 5)
        watch.end()


def test_a_process_that_is_gone_is_idle() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        process.wait()
        watch = Watch(process.pid, Limit(60, 0.2))
        with pytest.raises(LimitPassed, match="practically no processor time"):
            limits.until(lambda: False, watch, "nothing")


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan")])
def test_a_limit_is_a_number_above_0(wrong: float) -> None:
    with pytest.raises(ValueError, match="processor_s must be a number of seconds above 0, not"):
        Limit(wrong)
    with pytest.raises(ValueError, match="idle_s must be a number of seconds above 0, not"):
        Limit(1, wrong)
