"""`make test`: the checks that run, the results that are kept, and how the run ends."""

from __future__ import annotations

import io
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from misuse import misuse
from rich.console import Console

from bridge import check_inputs, checks
from bridge.audit.second_kernel import check as second_kernel
from bridge.checks import Check, Run
from bridge.pages import written
from bridge.report.timings import Times

ROOT = Path(__file__).resolve().parents[2]


class Project:
    """A folder with two files, and checks that write down that they ran."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.patch = root, monkeypatch.setattr
        (root / "a.py").write_text("1")
        (root / "b.md").write_text("1")
        self.checks = [self.check("first", "*.py"), self.check("second", "*")]

    def check(self, name: str, *inputs: str, more: str = "") -> Check:
        # Below build/, which is no input.
        code = f"open('build/ran', 'a').write('{name} '); {more}"
        return Check(name, f"the {name}", ("python", "-c", code), inputs)

    def cores(self, number: int) -> None:
        """Those that the machine seems to have."""
        self.patch(checks.os, "cpu_count", lambda: number)

    def run(self, *, fresh: bool = False) -> tuple[int, str, list[str]]:
        """The exit status, the output, and the checks that ran."""
        record = self.root / "build" / "ran"
        record.parent.mkdir(exist_ok=True)
        record.write_text("")
        said = io.StringIO()
        status = Run(self.root, Console(file=said, width=200), fresh=fresh).all(self.checks)
        return status, said.getvalue(), record.read_text().split()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


def test_what_is_unchanged_since_it_passed_is_kept(project: Project) -> None:
    status, said, ran = project.run()
    assert (status, ran) == (0, ["first", "second"])
    assert "[2/2] second: the second" in said
    assert re.search(r"2 checks pass \(first, second\): 0 unchanged, 2 run in \d+ s, \d+ s", said)
    status, said, ran = project.run()
    assert (status, ran) == (0, [])
    assert "2 unchanged, 0 run" in said


def test_the_times_are_those_of_the_checks_that_ran(project: Project) -> None:
    (project.root / "build").mkdir()

    def times() -> dict[str, Times | None]:
        run = Run(project.root, Console(quiet=True))
        assert run.all(project.checks) == 0
        return run.times

    found = times()
    assert list(found) == ["first", "second"]
    # A tenth of a second is 0 s.
    assert all(one is not None and one["seconds"] >= 0 for one in found.values())
    (project.root / "b.md").write_text("2")
    again = times()
    assert again["first"] is None
    assert again["second"] is not None


@pytest.mark.parametrize("given", [["lint"], ["--all"], ["--quick"]])
def test_only_the_times_of_everything_are_recorded(given: list[str]) -> None:
    said = misuse(checks.test, "--record", *given)
    assert "takes the times of make test, and NAME, --all or --quick is given" in said


@pytest.mark.parametrize("kept", [False, True])
def test_the_times_are_recorded(project: Project, kept: bool) -> None:
    recorded: list[tuple[Path, str, list[str]]] = []
    (project.root / "lakefile.lean").touch()
    (project.root / "build").mkdir()
    project.patch(checks, "checkout", lambda: project.root)
    project.patch(checks, "checks", lambda everything: project.checks)
    project.patch(
        written, "record", lambda root, name, t: recorded.append((root, name, list(t.stages)))
    )
    if kept:
        project.run()
    result = CliRunner().invoke(checks.test, ["--record"])
    if kept:
        assert result.exit_code == 2
        assert "not so here: first, second" in result.stderr
        assert recorded == []
    else:
        assert result.exit_code == 0, result.output
        assert recorded == [(project.root, "test", ["first", "second"])]


def test_a_changed_input_runs_the_checks_that_depend_on_it(project: Project) -> None:
    project.run()
    (project.root / "b.md").write_text("2")
    assert project.run()[2] == ["second"]
    (project.root / "new.py").write_text("")
    assert project.run()[2] == ["first", "second"]
    (project.root / "new.py").unlink()
    assert project.run()[2] == ["first", "second"]


def test_fresh_runs_everything(project: Project) -> None:
    project.run()
    assert project.run(fresh=True)[2] == ["first", "second"]


def test_another_package_runs_everything(project: Project) -> None:
    project.run()
    project.patch(checks, "facts", lambda: ["torch==99"])
    assert project.run()[2] == ["first", "second"]


def test_a_check_without_inputs_is_run_always(project: Project) -> None:
    project.checks[0] = replace(project.checks[0], inputs=())
    project.run()
    assert project.run()[2] == ["first"]


def test_the_first_failure_ends_the_run_and_is_not_kept(project: Project) -> None:
    passing = project.checks[0]
    project.checks[0] = project.check("first", "*.py", more="raise SystemExit(3)")
    for _ in range(2):
        status, said, ran = project.run()
        assert (status, ran) == (1, ["first"])
        assert "✘ first ended with status 3; not run: second" in said
    project.checks[0] = passing
    assert project.run()[2] == ["first", "second"]


def side_by_side(project: Project, *more: str) -> None:
    """Checks of one core each, and a last one that uses all."""
    project.checks = [
        replace(project.check(f"one{n}", "*", more=text), one_core=True)
        for n, text in enumerate(more)
    ]
    project.checks.append(project.check("last", "*"))


# It waits for a file that the other one makes, as long as it likes.
MAKE = "open('build/{0}', 'w'); print('made {0}')"
WAIT = "import os, time; exec('while not os.path.exists(\"build/{0}\"): time.sleep(0.01)')"


def test_those_of_one_core_run_beside_each_other(project: Project) -> None:
    project.cores(2)
    side_by_side(
        project, f"{WAIT.format('b')}; {MAKE.format('a')}",
        f"{MAKE.format('b')}; {WAIT.format('a')}",
    )  # fmt: skip
    status, said, ran = project.run()
    assert status == 0, said
    assert sorted(ran[:2]) == ["one0", "one1"]
    assert ran[2] == "last"
    assert "beside each other: one0, one1" in said
    # Each output stands below its own heading.
    for number, (name, made) in enumerate([("one0", "a"), ("one1", "b")], 1):
        pattern = rf"\[{number}/3\] {name}: the {name}\nmade {made}\n +passed in"
        assert re.search(pattern, said), said
    assert project.run()[2] == []


def test_the_last_begins_beside_one_that_still_runs(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.cores(2)
    side_by_side(project, f"{WAIT.format('c')}; {MAKE.format('a')}", "print('short')")
    project.checks[2] = project.check(
        "last", "*", more=f"{MAKE.format('c')}; {WAIT.format('a')}; import time; time.sleep(0.3)"
    )
    status, said, ran = project.run()
    assert (status, ran[2:]) == (0, ["last"]), said
    # Nothing is put between the lines of the last one, which go to the terminal.
    order = ["one1: the one1\nshort\n", "last: the last\n", "one0: the one0\nmade a\n"]
    places = [said.index(text) for text in order]
    assert places == sorted(places), said
    assert "made c" in capfd.readouterr().out
    assert project.run()[2] == []


def test_one_that_takes_results_of_another_waits_for_it(project: Project) -> None:
    project.cores(3)
    found = "import os; assert os.path.exists('build/results')"
    late = "import time; time.sleep(0.3); open('build/results', 'w')"
    side_by_side(project, late, found, "")
    project.checks[1] = replace(project.checks[1], after="one0")
    status, said, ran = project.run()
    assert status == 0, said
    assert (ran[0], ran[2:]) == ("one0", ["one1", "last"]) or ran[1:] == ["one0", "one1", "last"]
    # Alone, it waits for nothing.
    del project.checks[0]
    assert project.run(fresh=True)[0] == 0


def test_no_more_run_at_once_than_there_are_cores(project: Project) -> None:
    project.cores(1)
    alone = (
        "import os; os.mkdir('build/held'); import time; time.sleep(0.05); os.rmdir('build/held')"
    )
    side_by_side(project, alone, alone, alone)
    status, said, ran = project.run()
    assert (status, ran) == (0, ["one0", "one1", "one2", "last"]), said


def test_a_failure_ends_what_runs_beside_it(project: Project) -> None:
    project.cores(2)
    side_by_side(
        project, f"{MAKE.format('a')}; import time; time.sleep(600)",
        f"{WAIT.format('a')}; print('why'); raise SystemExit(4)",
    )  # fmt: skip
    status, said, ran = project.run()
    assert (status, sorted(ran)) == (1, ["one0", "one1"])
    assert "why\n✘ one1 ended with status 4; not run: one0, last" in said
    assert not list((project.root / "build" / "cache").glob("check-*.json"))


def test_git_says_what_the_files_of_the_project_are(project: Project) -> None:
    root = project.root
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".gitignore").write_text("made/\n")
    (root / "made").mkdir()
    (root / "made" / "x.py").write_text("")
    assert set(check_inputs.digests(root)) == {".gitignore", "a.py", "b.md"}


def test_ctrl_c_ends_the_run_within_seconds(project: Project) -> None:
    """A check that does not listen is killed; checks that passed before are kept."""
    (project.root / "build").mkdir()
    program = f"""
import sys
from pathlib import Path
from rich.console import Console
from bridge.checks import Check, Run
deaf = "import signal, time; signal.signal(2, signal.SIG_IGN); print('deaf', flush=True); "
steps = [
    Check("quick", "quick", ("python", "-c", ""), ("*",)),
    Check("slow", "slow", ("python", "-c", deaf + "time.sleep(600)"), ("*",)),
]
sys.exit(Run(Path({str(project.root)!r}), Console()).all(steps))
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        lines = iter(process.stdout.readline, "")
        before = list(iter(lambda: next(lines), "deaf\n"))
        start = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        after = process.stdout.read()
        assert process.wait() == 130
    # The check itself sleeps for ten minutes.
    assert time.monotonic() - start < 300
    assert "Stopped in slow; the next run goes on from there." in after
    assert "Traceback" not in "".join(before) + after
    assert list((project.root / "build" / "cache").glob("check-quick-*.json"))


def test_the_suite_depends_on_every_file_and_each_input_is_there() -> None:
    named = {check.name: check for check in checks.checks()}
    assert named["tests"].inputs == ("*",)
    there = check_inputs.digests(ROOT)
    for check in named.values():
        for pattern in check.inputs:
            if pattern != "*.pyi":
                assert any(checks.fnmatchcase(name, pattern) for name in there), pattern


def test_what_a_check_waits_for_runs_beside_it() -> None:
    before: list[Check] = []
    for check in checks.checks():
        assert not check.after or check.after in {c.name for c in before if c.one_core}
        before.append(check)


@pytest.mark.parametrize("second", [True, False])
def test_all_is_more_of_the_same(monkeypatch: pytest.MonkeyPatch, second: bool) -> None:
    monkeypatch.setattr(second_kernel, "is_installed", lambda: second)
    some, every = checks.checks(), checks.checks(everything=True)
    # The check `index` has the other kernel: the second one, or where there is none this.
    assert (checks.REPLAY in every) is second
    assert checks.REPLAY not in some
    assert checks.WRONG_VARIANTS in every
    every = tuple(check for check in every if check not in (checks.REPLAY, checks.WRONG_VARIANTS))
    every, parts = every[: len(some)], every[len(some) :]
    assert [check.title for check in some] == [check.title for check in every]
    (kernels,) = (b for a, b in zip(some, every, strict=True) if a != b)
    assert kernels.name == "kernels-all"
    assert "--quick" not in kernels.command
    # What `make test` has passed is not run again, and each part is kept.
    assert every[-1].name == "tests"
    assert all("thorough" in " ".join(check.command) and check.inputs for check in parts)


@pytest.mark.thorough
def test_each_thorough_test_is_in_one_part(tmp_path: Path) -> None:
    """A new test of one kind and of the other, in any folder that a part names and below it."""
    named = list(itertools.chain(*checks.THOROUGH.values()))
    assert all((ROOT / one).is_dir() for one in named)
    for one in (*named, *(f"{one}/new" for one in named)):
        (tmp_path / one).mkdir(parents=True, exist_ok=True)
        (tmp_path / one / f"test_{one.replace('/', '_')}.py").write_text(
            "import pytest\n\n"
            "@pytest.mark.thorough\ndef test_thorough(): pass\n\n"
            "@pytest.mark.thorough\n@pytest.mark.compiled\ndef test_compiled(): pass\n\n"
            "def test_neither(): pass\n"
        )
    found = []
    for check in checks.checks(everything=True):
        if check.name.startswith("thorough"):
            chosen = check.command[check.command.index("-m", 2) :]
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "--collect-only", "-q", "-c", os.devnull,
                 "-W", "ignore", "--rootdir", tmp_path, *chosen],
                cwd=tmp_path, capture_output=True, text=True,
            )  # fmt: skip
            lines = done.stdout.splitlines()
            found += [(*line.split("::"), check.compiled) for line in lines if "::" in line]
    files = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("test_*.py")]
    assert len(files) == 2 * len(named)
    of_kinds = [("test_compiled", True), ("test_thorough", False)]
    assert sorted(found) == sorted((file, *kind) for file in files for kind in of_kinds)


def test_where_a_check_asks_for_it_triton_compiles(project: Project) -> None:
    asked = "import os; assert os.environ.get('TRITON_INTERPRET') == '0'"
    project.patch(checks.os, "environ", {**os.environ, "TRITON_INTERPRET": "1"})
    project.checks = [replace(project.check("asked", "*", more=asked), compiled=True)]
    assert project.run()[0] == 0
    project.checks = [project.check("other", "*", more=asked)]
    assert project.run()[0] == 1


def test_an_unknown_check_is_one_sentence() -> None:
    said = misuse(checks.test, "lints")
    assert "NAME: there is no check 'lints'; there are lint, format, workflows" in said


def test_a_smaller_environment_is_told_the_command_that_completes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checks.importlib.util, "find_spec", lambda _: None)
    said = misuse(checks.test, "lint")
    assert re.search(r"has no package ruff; run make setup first$", said.strip())
