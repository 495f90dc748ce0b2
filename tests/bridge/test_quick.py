"""`make quick`: which tests belong to a change, and that these alone are run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from misuse import misuse

from bridge import check_inputs, checks, quick
from bridge.cache import Cache
from bridge.command import Problem
from bridge.quick import Base, Readers, Selection, select

ROOT = Path(__file__).resolve().parents[2]
MARKERS = ("lean", "long", "thorough")
# A chain of imports of three modules, a namesake of none, and a test by a module that tests share.
FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = [".", "tests"]\n',
    "made/__init__.py": "",
    "made/low.py": "def low() -> int:\n    return 1\n",
    "made/middle.py": "from made.low import low\n\n\ndef middle() -> int:\n    return low()\n",
    "made/high.py": 'from made import middle\n\nPAGE = open("page.md.jinja").read()\n',
    "made/alone.py": "",
    "page.md.jinja": "",
    "data/numbers.json": "",
    "notes.md": "",
    "tests/conftest.py": "",
    "tests/shared.py": "from made import low\n",
    "tests/test_aside.py": "from shared import low\n",
    "tests/test_high.py": "import made.high\n",
    "tests/test_low.py": "from made import low\n\ndef test_low(): assert low.low() == 1\n",
    "tests/test_before_low.py": "from made.low import low\n",
    "tests/test_numbers.py": 'NUMBERS = "data/" + "x"\n',
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        # The namesake first, then those as near, then by one module and by two.
        ("made/low.py", ["test_low", "test_before_low", "test_aside", "test_high"]),
        ("made/middle.py", ["test_high"]),
        ("made/alone.py", []),
        # Named by a module.
        ("page.md.jinja", ["test_high"]),
        # Its folder is named by a test.
        ("data/numbers.json", ["test_numbers"]),
        ("notes.md", []),
        ("tests/test_low.py", ["test_low"]),
        ("tests/shared.py", ["test_aside"]),
        ("made/__init__.py", ["test_before_low", "test_high", "test_low", "test_aside"]),
        ("tests/conftest.py", [*(f"test_{n}" for n in ("aside", "before_low", "high", "low"))]),
    ],
)
def test_a_change_selects_its_tests(root: Path, changed: str, expected: list[str]) -> None:
    found = [Path(name).stem for name in Readers.of(root).tests([changed])]
    if changed == "tests/conftest.py":
        expected = [*expected, "test_numbers"]
    assert found == expected


def test_here_a_module_selects_its_own_test_first() -> None:
    readers = Readers.of(ROOT)
    for name in ("bridge/quick.py", "bridge/cache.py", "pyimpl/backends/tiled.py"):
        assert Path(readers.tests([name])[0]).stem == f"test_{Path(name).stem}"
    # By a module that tests share, and a name that no import has.
    assert "tests/bridge/index/test_maps.py" in readers.tests(
        ["tests/bridge/index/index_sample.py"]
    )
    assert readers.tests(["docs/timings.json"])


def test_since_the_tests_passed(root: Path) -> None:
    before = check_inputs.digests(root)
    assert select(root, before, Base(before)) == Selection()
    (root / "made/middle.py").write_text("")
    (root / "notes.md").unlink()
    found = select(root, check_inputs.digests(root), Base(before, ("tests/test_low.py",)))
    assert found == Selection(
        changed=("made/middle.py", "notes.md"), chosen=("tests/test_high.py",),
        left=("tests/test_low.py",), unread=("notes.md",),
    )  # fmt: skip
    assert found.sentences() == [
        "Changed, 2 files: made/middle.py, notes.md",
        "Tests, 1 file, the nearest first: tests/test_high.py",
        "No test reads notes.md.",
        "Left to make test: 1 file of tests.",
    ]


def test_since_the_branch_left_main(root: Path) -> None:
    def git(*words: str) -> None:
        user = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *user, *words], cwd=root, check=True, capture_output=True)

    with pytest.raises(Problem, match="neither a run of the tests that passed nor git"):
        select(root, {}, None)
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "all")
    git("switch", "-qc", "branch")
    assert select(root, {}, None) == Selection()
    (root / "made/middle.py").write_text("")
    git("commit", "-qam", "committed")
    (root / "made/alone.py").write_text("1")
    (root / "new.py").write_text("")
    found = select(root, {}, None)
    assert found.changed == ("made/alone.py", "made/middle.py", "new.py")
    assert found.chosen == ("tests/test_high.py",)


def test_what_is_too_much_is_counted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "MOST_FILES", 1)
    found = select(root, {"made/low.py": "2"}, Base({"made/low.py": "1"}))
    assert found.chosen == ("tests/test_low.py",)
    assert [Path(name).stem for name in found.left] == [
        "test_aside",
        "test_before_low",
        "test_high",
    ]
    assert found.sentences()[-1] == "Left to make test: 3 files of tests."


@pytest.fixture
def project(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its only check are its tests; it has the plugin of this project, and has passed."""
    (root / "pyproject.toml").write_text(
        FILES["pyproject.toml"] + 'markers = ["thorough", "lean", "long"]\n'
    )
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(checks, "checkout", lambda: root)
    monkeypatch.setattr(checks, "LINT", ())
    monkeypatch.setattr(checks, "TYPES", checks.Check("no types", "", ("python", "-c", ""), ()))
    monkeypatch.setattr(checks, "QUICK", ("python", "-m", "pytest", "-q", "-rs"))
    run = checks.Run(root, checks.Console(quiet=True))
    quick.keep(run.cache, run.facts, Base(run.digests))
    return root


def run_quick(capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status of `test --quick`, and all that it and its tests print."""
    capfd.readouterr()
    result = CliRunner().invoke(checks.test, ["--quick"])
    return result.exit_code, result.output + capfd.readouterr().out


def tests_left(project: Path) -> tuple[str, ...]:
    base = quick.last(Cache(project / "build" / "cache"), check_inputs.facts())
    return base.left


def test_nothing_changed_runs_none(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, said = run_quick(capfd)
    assert status == 0
    assert "Nothing has changed since the tests passed: none are run." in said
    assert "1 checks pass (no types)" in said


@pytest.mark.thorough
def test_a_failing_test_fails_until_it_passes(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "made" / "low.py").write_text("def low() -> int:\n    return 2\n")
    for _ in range(2):
        status, said = run_quick(capfd)
        assert status == 1
        assert (
            "Tests, 4 files, the nearest first: tests/test_low.py, tests/test_before_low.py" in said
        )
        assert "1 failed" in said
    (project / "made" / "low.py").write_text("def low() -> int:\n    return 1  # again\n")
    status, said = run_quick(capfd)
    assert status == 0, said
    assert "1 passed" in said
    assert run_quick(capfd)[1].startswith("Nothing has changed")


def test_none_that_starts_lean_or_takes_long_is_run(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    marks = [f"@pytest.mark.{name}\ndef test_{name}(): assert False\n" for name in MARKERS]
    test = project / "tests" / "test_marked.py"
    test.write_text("import pytest\n" + "".join(marks))
    status, said = run_quick(capfd)
    assert (status, "3 deselected" in said) == (0, True), said
    # The marker is missing: it is seen where Lean would start.
    test.write_text(
        "from bridge.toolchain.process import LeanProcess\n\n"
        "def test_it():\n    LeanProcess(None, [], lean_path=[], cwd=None)\n"
    )
    status, said = run_quick(capfd)
    assert status == 1
    assert "it starts Lean and has no marker `lean`" in said


def test_what_has_no_time_is_counted_and_kept(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "SECONDS", 0)
    test = project / "tests" / "test_low.py"
    test.write_text("import time\n\ndef test_one(): pass\ndef test_two(): assert False\n")
    status, said = run_quick(capfd)
    assert status == 0, said
    assert "No time for 2 tests, of these files: tests/test_low.py; left to make test" in said
    assert tests_left(project) == ("tests/test_low.py",)
    assert "Left to make test: 1 file of tests." in run_quick(capfd)[1]


def test_what_is_known_to_start_lean_or_take_long_is_marked() -> None:
    """The chain and tests whose fixtures prepare Lean: none of them is selected here either."""
    files = [
        *("tests/test_chain.py", "tests/test_wheel.py"),
        *("tests/test_tutorial.py", "tests/bridge/site/test_browser.py"),
        *("tests/bridge/toolchain/test_lean_output.py", "tests/bridge/index/test_lean_index.py"),
        *("tests/bridge/toolchain/test_lean_build.py", "tests/bridge/toolchain/test_wasm.py"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q",
         *quick.command(Selection(chosen=tuple(files)), Path(os.devnull))],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line.split("::")[0] for line in done.stdout.splitlines() if "::" in line} == {files[-1]}


@pytest.mark.parametrize("more", [["lint"], ["--all"]])
def test_quick_has_checks_of_its_own(more: list[str]) -> None:
    said = misuse(checks.test, "--quick", *more)
    assert "--quick: has checks of its own, and NAME or --all is given" in said


def test_no_quick_check_starts_lean() -> None:
    record = Path("left")
    some = checks.quick_checks(Selection(chosen=("tests/test_low.py",)), record)
    assert [check.name for check in some][-2:] == ["types", "changed-tests"]
    *_, workers = some[-1].command[: some[-1].command.index("--dist")]
    assert int(workers) <= (os.cpu_count() or 1)
    assert "tests/test_low.py" in some[-1].command
    without = checks.quick_checks(Selection(), record)
    assert without == some[:-1]
    every = {check.name for check in checks.checks()}
    assert {check.name for check in without} == every - {
        "library", "index", "translation", "kernel texts", "kernels", "tests"
    }  # fmt: skip
