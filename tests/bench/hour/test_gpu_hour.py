"""The command: its plan, its stages with workers whose answers are given, its messages about
misuse, and that it needs nothing that a GPU machine may lack."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import pytest
from hour_fakes import write_kernel
from test_gpu_tests import WITHOUT

from bench import gpu_hour
from bench.hour.findings import FILE, Finding, read
from bench.hour.lane import Child, Job
from bench.hour.what_if import WHAT_IFS, WhatIf

ROOT = Path(__file__).parents[3]

# The device's answers for each job; `wrong`: this kernel is, `crash`: this one ends its process.
WORKER = """
import json, os, sys, time
wrong, crash, seconds = sys.argv[1:]
def say(**x): print(json.dumps(x), flush=True)
for line in iter(sys.stdin.readline, ""):
    job = json.loads(line)
    kind, given = job["kind"], job["given"]
    kernel = given.get("candidate", {}).get("kernel")
    status = "ok"
    if kind == "machine":
        machine = {"device": "GPU", "processor": "", "cpu_threads": 1, "load_average": 0.0,
                   "python": "3", "versions": {}, "commit": None}
        say(what="start", identity=["GPU"], capability=90, machine=machine, date="today")
    elif kind == "compile":
        say(what="compiled", candidate=given["candidate"], seconds=0.1, kernels={})
    elif kind == "candidate":
        if kernel == crash:
            os._exit(7)
        time.sleep(float(seconds))
        bad = "an error of 1" if kernel == wrong else None
        if not given["candidate"]["variant"]:
            say(what="checked", candidate=given["candidate"], on="it", wrong=bad)
        if bad:
            status = "wrong"
        elif given["timed"]:
            ms = 1.0 + sum(map(ord, str(given["candidate"]))) / 1e6
            say(what="timed", candidate=given["candidate"], ms=ms, spread=0.0, issue_ms=0.1,
                tflops=1.0, gbps=1.0, not_captured=None if given["capture"] else "no")
    say(status=status, reason=None, ends=False)
"""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A device whose answers are given."""

    def settle(wrong: str = "", crash: str = "", seconds: float = 0.0) -> None:
        def worker(log: IO[bytes], environment: Mapping[str, str]) -> Callable[[str], Child]:
            command = [sys.executable, "-c", WORKER, wrong, crash, str(seconds)]
            return lambda overlay: Child(command, environment, log)

        monkeypatch.setattr(gpu_hour, "worker", worker)

    return settle


def run(out: Path, *more: str, seconds: int = 40) -> list[Finding]:
    arguments = ["--out", str(out), "--seconds", str(seconds), "--cores", "2", "--stand-in"]
    more = (*more, "--cache", str(out / "kept"))
    assert gpu_hour.main([*arguments, *more]) == 0
    return read(out / FILE)


def jobs(findings: list[Finding], run: int, begins: str) -> dict[str, str]:
    return {
        x["job"]: x["status"]
        for x in findings
        if x["what"] == "job" and x["run"] == run and x["job"].startswith(begins)
    }


def test_all_stages(device, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device()
    found = run(tmp_path / "out", "--kernels", "forward", "decode")
    stages = {x["stage"]: x for x in found if x["what"] == "stage"}
    assert all(set(x["statuses"]) == {"ok"} and x["left"] == 0 for x in stages.values())
    assert list(stages) == [stage.name for stage in gpu_hour.STAGES]
    assert found[-1]["what"] == "end"
    said = capsys.readouterr().out
    assert "candidates to compile" in said
    assert "Proposed for launch_options" in said


def test_a_wrong_kernel_is_said_first_and_not_tuned(
    device, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    device(wrong="forward")
    found = run(tmp_path, "--kernels", "forward", "decode", "--stages", "correct", "tune", "races")
    assert set(jobs(found, 1, "correct forward").values()) == {"wrong"}
    assert jobs(found, 1, "tune forward") == jobs(found, 1, "race forward") == {}
    assert set(jobs(found, 1, "tune decode").values()) == {"ok"}
    said = capsys.readouterr().out
    assert "  wrong: correct forward: " in said
    assert said.index("WRONG") < said.index("Proposed")


def test_a_crash_leaves_the_others(device, tmp_path: Path) -> None:
    device(crash="decode")
    found = run(tmp_path, "--kernels", "forward", "decode", "--stages", "correct")
    assert set(jobs(found, 1, "correct decode").values()) == {"crashed"}
    assert set(jobs(found, 1, "correct forward").values()) == {"ok"}


def test_a_resumed_run_does_what_is_left(device, tmp_path: Path) -> None:
    device(seconds=2.0)
    few = ("--kernels", "forward", "--stages", "correct", "tune")
    first = run(tmp_path / "a", *few, seconds=6)
    done = jobs(first, 1, "")
    left = [x for x in first if x["what"] == "stage" and x["left"]]
    assert left
    with (tmp_path / "a" / FILE).open("ab") as file:
        file.write(b'{"run": 1, "what": "job", "job": "tune forw')
    device()
    both = run(tmp_path / "b", *few, "--resume", str(tmp_path / "a" / FILE))
    assert both[: len(first)] == first
    again = jobs(both, 2, "")
    assert {x for x in again if x in done and not x.startswith("compile ")} == {"machine"}
    assert all(x["left"] == 0 for x in both if x["what"] == "stage" and x["run"] == 2)
    third = run(tmp_path / "b", *few, "--resume", str(tmp_path / "b" / FILE))
    # The best candidate is the centre of the next ones: some of its neighbours are new.
    assert not set(jobs(third, 3, "tune")) & set(jobs(third, 1, "tune") | jobs(third, 2, "tune"))
    assert jobs(third, 3, "correct") == {}


def test_a_new_machine_has_the_compiled_kernels_of_the_one_before(
    device, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the files of the findings' folder are brought along."""
    device()
    few = ("--kernels", "decode", "--stages", "ceilings")
    write_kernel(tmp_path / "a" / "kept" / "triton", "AAAA", 1000)
    assert run(tmp_path / "a", *few)[-1]["packed"] == ["cache-0.zip"]
    brought = tmp_path / "brought"
    brought.mkdir()
    for name in (FILE, "cache-0.zip"):
        (tmp_path / "a" / name).rename(brought / name)
    both = run(tmp_path / "b", *few, "--resume", str(brought / FILE))
    assert "GPU, 1 compiled kernels brought along" in capsys.readouterr().out
    assert (tmp_path / "b" / "kept" / "triton" / "AAAA" / "k.cubin").stat().st_size == 1000
    # They are packed again, for the next.
    assert both[-1]["packed"] == ["cache-0.zip"]


def test_what_goes_wrong_in_one_stage_leaves_the_others(
    device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device()
    jobs_of = gpu_hour.Plan.jobs

    def refuse(plan: gpu_hour.Plan, stage: str, rates: dict[str, dict[str, object]]) -> list[Job]:
        if stage == "tune":
            raise ValueError("no plan")
        return jobs_of(plan, stage, rates)

    monkeypatch.setattr(gpu_hour.Plan, "jobs", refuse)
    monkeypatch.setattr(gpu_hour, "table", lambda plan, seconds: [])
    monkeypatch.setitem(WHAT_IFS, "no maximum", WhatIf("parts/loop.py", "not there", ""))
    found = run(tmp_path, "--kernels", "forward")
    errors = {x["of"]: x["reason"] for x in found if x["what"] == "error"}
    assert set(errors) == {"no maximum", "tune"}
    assert errors["tune"] == "ValueError: no plan"
    assert {x["stage"] for x in found if x["what"] == "stage"} == {
        stage.name for stage in gpu_hour.STAGES if stage.name != "tune"
    }
    whys = jobs(found, 1, "why ")
    assert whys
    assert not any("no maximum" in name for name in whys)


def test_no_device_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refusing = """
import sys
for line in sys.stdin:
    print('{"status": "failed", "reason": "no CUDA here", "ends": false}', flush=True)
"""

    def worker(log: IO[bytes], environment: Mapping[str, str]) -> Callable[[str], Child]:
        return lambda overlay: Child([sys.executable, "-c", refusing], environment, log)

    monkeypatch.setattr(gpu_hour, "worker", worker)
    assert gpu_hour.main(["--out", str(tmp_path), "--cores", "1"]) == 1
    said = capsys.readouterr().out
    assert said == "python -m bench.gpu_hour: there is no device to measure: no CUDA here\n"


def test_the_plan_needs_no_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_hour.main(["--plan", "--seconds", "560", "--cores", "14"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "in 14 processes" in lines[0]
    assert [line.split()[0] for line in lines[2:]] == [stage.name for stage in gpu_hour.STAGES]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "argument --out: a folder is needed, unless --plan is given"),
        (["--out", "here", "--seconds", "0"], "argument --seconds: '0' is not a whole number"),
        (["--out", "here", "--resume", "none.jsonl"], "none.jsonl cannot be read: No such file"),
        (["--out", "file"], "argument --out: file cannot be made: File exists"),
        (["--out", "old", "--resume", "file"], f"old/{FILE} exists already, and is another file"),
        (["--plan", "--stages", "none"], "argument --stages: invalid choice: 'none'"),
    ],
)
def test_misuse_is_one_sentence(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / FILE).touch()
    with pytest.raises(SystemExit) as end:
        gpu_hour.main(arguments)
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_nothing_is_imported_that_a_gpu_machine_may_lack() -> None:
    program = f"""
import sys

class Missing:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {(*WITHOUT, "jinja2", "matplotlib", "psutil")}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing)
import bench.gpu_hour, bench.gpu_report, bench.hour.jobs, bench.hour.worker, bench.hour.kernels
import bridge.conformance.adapters.builtin, bridge.conformance.judging.run, bridge.vectors.load
bridge.vectors.load.read_trusted(bench.hour.jobs.VECTORS / "softcap.json")
sys.exit(bench.gpu_hour.main(["--plan"]))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.thorough
def test_without_a_gpu_all_of_it_runs_and_survives_being_killed(tmp_path: Path) -> None:
    """Real processes, real compilation, the kernels in the interpreter."""
    out = tmp_path / "out"
    command = [
        sys.executable, "-m", "bench.gpu_hour", "--stand-in", "--cores", "2", "--seconds", "900",
        "--kernels", "forward", "--cache", str(tmp_path / "cache"),
    ]  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    with subprocess.Popen([*command, "--out", str(out)], cwd=ROOT, env=environment) as first:
        while not any(x["what"] == "timed" for x in _read(out / FILE)):
            assert first.poll() is None
            time.sleep(0.2)
        first.send_signal(signal.SIGKILL)
    before = _read(out / FILE)
    subprocess.run(
        [*command, "--out", str(tmp_path / "again"), "--resume", str(out / FILE)],
        cwd=ROOT, env=environment, check=True,
    )  # fmt: skip
    found = read(tmp_path / "again" / FILE)
    assert found[: len(before)] == before
    # By stage, of both runs: the first may have done all of one.
    stages: dict[str, set[str]] = {stage.name: set() for stage in gpu_hour.STAGES}
    for one in found:
        if one["what"] == "stage":
            stages[one["stage"]] |= set(one["statuses"])
    # FlexAttention is compiled for the CPU, which may take too long.
    stages.pop("flex")
    # Of a stage whose last job was done when the first run was killed neither says anything.
    assert all(statuses <= {"ok"} for statuses in stages.values()), stages
    assert stages["why"] == stages["races"] == stages["vectors"] == {"ok"}
    timed = [x["job"] for x in found if x["what"] == "timed"]
    assert len(timed) == len(set(timed)) > 6
    assert any(name.startswith("why ") for name in timed)
    assert (tmp_path / "again" / "cache-0.zip").exists()


def _read(path: Path) -> list[Finding]:
    return read(path) if path.exists() else []
