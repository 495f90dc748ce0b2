"""Jobs in other processes: one that crashes, hangs or comes too late costs itself alone."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.hour import lane
from bench.hour.findings import FILE, Record, read
from bench.hour.lane import Child, Done, Job, Lane

# As `bench.hour.worker`, without PyTorch.
WORKER = """
import json, os, signal, sys, time
for line in iter(sys.stdin.readline, ""):
    job = json.loads(line)
    def say(**x): print(json.dumps(x), flush=True)
    say(what="began", pid=os.getpid(), argument=sys.argv[1])
    if job["kind"] == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if job["kind"] == "hang":
        time.sleep(600)
    if job["kind"] == "slow":
        for n in range(100):
            say(what="step", n=n)
            time.sleep(0.05)
    last = job["kind"] == "last"
    say(status="wrong" if job["kind"] == "wrong" else "ok", reason=None, ends=last)
    if last:
        break
"""


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / FILE)


class Made:
    """Makes processes and keeps them."""

    def __init__(self, program: str, folder: Path) -> None:
        self.children: list[Child] = []
        self._program, self._log = program, folder / "log.txt"

    def __call__(self, overlay: str) -> Child:
        command = [sys.executable, "-c", self._program, overlay]
        with self._log.open("ab") as log:
            self.children.append(Child(command, os.environ, log))
        return self.children[-1]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    made = Made(WORKER, tmp_path)
    yield made
    for child in made.children:
        child.end()


def run(
    record: Record, made: Made, jobs: list[Job], seconds: float = 60.0, count: int = 1
) -> dict[str, Done]:
    found: dict[str, Done] = {}
    Lane(record, made, count).run(
        jobs, time.monotonic() + seconds, lambda job, came: found.update({job.name: came})
    )
    return found


def job(kind: str, name: str = "", **fields: object) -> Job:
    return Job(kind, name or kind, {}, **fields)  # type: ignore[arg-type]


def test_one_process_does_job_after_job(record: Record, made: Made) -> None:
    found = run(record, made, [job("say", "a"), job("wrong", "b"), job("say", "c")])
    assert {name: came.status for name, came in found.items()} == {
        "a": "ok",
        "b": "wrong",
        "c": "ok",
    }
    assert len({x["pid"] for x in record.findings if x["what"] == "began"}) == 1
    assert [(x["job"], x.get("status")) for x in record.findings] == [
        ("a", None), ("a", "ok"), ("b", None), ("b", "wrong"), ("c", None), ("c", "ok"),
    ]  # fmt: skip


def test_a_crash_costs_its_own_job(record: Record, made: Made, tmp_path: Path) -> None:
    found = run(record, made, [job("say", "before"), job("crash"), job("say", "after")])
    assert found["before"].status == found["after"].status == "ok"
    assert found["crash"].status == "crashed"
    assert found["crash"].reason == "its process ended with status -11"
    assert len(made.children) == 2
    # Its findings until then are there, and that it is done: it would crash again.
    of_it = [x for x in read(tmp_path / FILE) if x["job"] == "crash"]
    assert [(x["what"], x.get("status")) for x in of_it] == [("began", None), ("job", "crashed")]


def test_a_job_that_hangs_is_ended(record: Record, made: Made) -> None:
    found = run(record, made, [job("hang", seconds=0.5), job("say")])
    assert found["hang"] == Done("late", "it took more than 0.5 s")
    assert found["say"].status == "ok"
    assert not made.children[0].alive


def test_a_job_under_way_as_all_ends_has_not_crashed(record: Record, made: Made) -> None:
    """A run that is interrupted ends its processes; the next run does the job."""
    only = Lane(record, made)

    def end(what: str, _: object) -> None:
        if what == "began":
            threading.Thread(target=made.children[0].end).start()

    only.warm()
    came = made.children[0].do(Job("hang", "j", {}, 60.0), time.monotonic() + 60.0, end)
    assert came == Done("cut")


def test_a_stage_that_is_late_is_cut_and_loses_nothing(
    record: Record, made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "GRACE", 0.2)
    found = run(record, made, [job("say"), job("slow"), job("say", "never")], seconds=1.5)
    assert {name: came.status for name, came in found.items()} == {"say": "ok", "slow": "cut"}
    lines = read(tmp_path / FILE)
    assert [x["n"] for x in lines if x["what"] == "step"][:3] == [0, 1, 2]
    # It is not done: a run that goes on does it again.
    assert [x["job"] for x in lines if x["what"] == "job"] == ["say"]
    assert not made.children[0].alive


def test_what_is_under_way_may_end_a_little_later(
    record: Record, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine may need more than the seconds that a GPU's has.
    monkeypatch.setattr(lane, "GRACE", 600.0)
    start = time.monotonic()
    assert run(record, made, [job("slow"), job("say")], seconds=1.0)["slow"].status == "ok"
    assert time.monotonic() - start > 5.0
    assert made.children[0].alive


def test_a_process_that_ends_after_its_job_is_replaced(record: Record, made: Made) -> None:
    found = run(record, made, [job("last", "a"), job("last", "b")])
    assert [came.status for came in found.values()] == ["ok", "ok"]
    assert len(made.children) == 2


def test_another_overlay_is_another_process(record: Record, made: Made) -> None:
    run(record, made, [job("say", "a"), job("say", "b", overlay="x"), job("say", "c", overlay="x")])
    began = [x for x in record.findings if x["what"] == "began"]
    assert [x["argument"] for x in began] == ["", "x", "x"]
    assert began[0]["pid"] != began[1]["pid"] == began[2]["pid"]


def test_processes_that_never_begin_are_given_up(record: Record, tmp_path: Path) -> None:
    made = Made("raise SystemExit(5)", tmp_path)
    found = run(record, made, [job("say", str(n)) for n in range(20)])
    assert len(found) == len(made.children) == lane.HOPELESS
    assert {came.reason for came in found.values()} == {"its process ended with status 5"}


def test_several_processes_share_the_jobs(record: Record, made: Made) -> None:
    found = run(record, made, [job("say", str(n)) for n in range(10)], count=2)
    assert len(found) == 10
    assert all(came.status == "ok" for came in found.values())
    assert len(made.children) == 2
