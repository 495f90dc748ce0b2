"""Setting up the environment, with pip and venv replaced by recordings."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from bridge import bootstrap


class Machine:
    """What is installed in which Python, and which commands were run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.commands: list[list[str]] = []
        self.outside: dict[str, str] = {}
        self.inside: dict[str, str] = {}
        self.fails: str | None = None
        for name in ("pyproject.toml", "requirements.lock"):
            (root / name).write_text(name)
        venv = root / ".venv"
        monkeypatch.setattr(bootstrap, "ROOT", root)
        monkeypatch.setattr(bootstrap, "VENV", venv)
        monkeypatch.setattr(bootstrap, "PYTHON", venv / "bin" / "python")
        monkeypatch.setattr(bootstrap, "STAMP", venv / "stamp.json")
        monkeypatch.setattr(bootstrap, "LOCK_FILE", root / "requirements.lock")
        monkeypatch.setattr(bootstrap, "run", self.run)

    def run(self, *command: Any, quiet: bool = False) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in command]
        python, *rest = words
        status, output = 0, ""
        if rest[0] == "-c":
            name = rest[1].split()[1].rstrip(";")
            known = self.inside if python == str(bootstrap.PYTHON) else self.outside
            status, output = (0, known[name]) if name in known else (1, "")
        elif rest[:2] == ["-m", "venv"]:
            bootstrap.PYTHON.parent.mkdir(parents=True)
            bootstrap.PYTHON.write_text("")
            self.commands.append(words)
            if "--system-site-packages" in words:
                self.inside.update(self.outside)
        elif rest[:3] == ["-m", "pip", "install"] and "--dry-run" in words:
            output = json.dumps({"install": [{"metadata": {"name": "torch"}}]})
        elif rest[:3] == ["-m", "pip", "install"]:
            self.commands.append(words)
            status = 1 if self.fails and self.fails in " ".join(words) else 0
            if "--require-hashes" in words and status == 0:
                self.inside["numpy"] = "2.4.6"
            for word in words:
                if "==" in word and status == 0:
                    self.inside[word.split("==")[0]] = word.split("==")[1]
        return subprocess.CompletedProcess(words, status, output, "")

    def installed(self) -> str:
        return " / ".join(" ".join(c[4:]) for c in self.commands if "pip" in c)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    return Machine(monkeypatch, tmp_path)


def test_a_fresh_machine_gets_everything_and_is_told_the_size(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bootstrap.main() == 0
    for part in ("torch==2.13.0", "triton==3.7.1", "--require-hashes", "--no-deps"):
        assert part in machine.installed()
    said = capsys.readouterr().out
    assert said.index("installing torch==2.13.0 (about") < said.index("setup: done")


def test_a_second_run_does_nothing(machine: Machine) -> None:
    bootstrap.main()
    before = list(machine.commands)
    assert bootstrap.main() == 0
    assert machine.commands == before


def test_a_changed_lock_file_is_installed(machine: Machine) -> None:
    bootstrap.main()
    machine.commands.clear()
    bootstrap.LOCK_FILE.write_text("something else")
    assert bootstrap.main() == 0
    assert "--require-hashes" in machine.installed()
    assert "torch==" not in machine.installed()


def test_an_existing_torch_is_used(machine: Machine) -> None:
    machine.outside["torch"] = "2.11.0"
    assert bootstrap.main() == 0
    assert "torch==" not in machine.installed()
    assert "triton==3.6.0" in machine.installed()


def test_an_existing_torch_in_a_virtual_environment_is_seen(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.outside["torch"] = "2.11.0"
    monkeypatch.setattr(sys, "prefix", "/home/someone/env")
    assert bootstrap.main() == 0
    (pointer,) = bootstrap.VENV.glob("lib/*/site-packages/*.pth")
    assert pointer.read_text().strip() == sysconfig.get_path("purelib")


@pytest.mark.parametrize(
    ("package", "version", "oldest"), [("torch", "2.10.0+cpu", "2.11"), ("triton", "3.2.0", "3.6")]
)
def test_what_is_too_old_in_the_environment_is_refused(
    package: str, version: str, oldest: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.inside[package] = version
    assert bootstrap.main() == 1
    error = capsys.readouterr().err
    assert f"{package} {version} is too old: {oldest} or newer is needed" in error
    assert error.count("\n") == 1
    assert not bootstrap.STAMP.exists()


@pytest.mark.parametrize("old", [{"torch": "2.6.0", "triton": "3.2.0"}, {"triton": "3.5.1"}])
def test_what_is_too_old_outside_is_named_and_not_used(
    old: dict[str, str], machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.outside.update({"torch": "2.11.0", "triton": "3.6.0"} | old)
    assert bootstrap.main() == 0
    assert "--system-site-packages" not in machine.commands[0]
    assert "torch==2.13.0" in machine.installed()
    package, version = next(iter(old.items()))
    assert f"not used, since {package} {version} is too old" in capsys.readouterr().out


@pytest.mark.parametrize(("torch", "numpy"), [("2.11.0", "2.3.5"), ("2.13.0", "2.4.6")])
def test_triton_3_6_gets_a_numpy_that_its_interpreter_can_use(
    torch: str, numpy: str, machine: Machine
) -> None:
    machine.outside["torch"] = torch
    assert bootstrap.main() == 0
    assert machine.inside["numpy"] == numpy


def test_a_failed_download_leaves_no_stamp_and_is_completed_later(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.fails = "--require-hashes"
    assert bootstrap.main() == 1
    assert "pip could not install" in capsys.readouterr().err
    assert not bootstrap.STAMP.exists()
    machine.fails = None
    assert bootstrap.main() == 0
    assert bootstrap.STAMP.exists()


def test_a_python_that_is_too_old_is_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "hexversion", 0x030A0000)
    assert bootstrap.main() == 2
    assert "Python 3.11 or newer is needed" in capsys.readouterr().out
    assert machine.commands == []
