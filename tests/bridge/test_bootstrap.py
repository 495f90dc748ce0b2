"""Setting up the environment, with pip and venv replaced by recordings."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from bridge import bootstrap
from bridge.audit.second_kernel.check import PACKAGE, VERSION

SETTINGS = '[project]\nname = "some"\n[tool.ruff]\nline-length = 100\n'


class Machine:
    """The packages of each Python, and the commands that were run."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], root: Path
    ) -> None:
        self.capture = capsys.readouterr
        self.commands: list[list[str]] = []
        self.outside: dict[str, str] = {}
        self.inside: dict[str, str] = {}
        self.fails: str | None = None
        self.settings = root / "pyproject.toml"
        self.settings.write_text(SETTINGS)
        self.locks = root / "requirements"
        self.locks.mkdir()
        for tier in (*bootstrap.TIERS, "flashinfer-bench", "second-kernel"):
            (self.locks / f"{tier}.lock").write_text(tier)
        venv = root / ".venv"
        monkeypatch.setattr(bootstrap, "ROOT", root)
        monkeypatch.setattr(bootstrap, "VENV", venv)
        monkeypatch.setattr(bootstrap, "PYTHON", venv / "bin" / "python")
        monkeypatch.setattr(bootstrap, "STAMP", venv / "stamp.json")
        monkeypatch.setattr(bootstrap, "REQUIREMENTS", self.locks)
        monkeypatch.setattr(bootstrap, "run", self.run)
        self.of_system(monkeypatch)

    def of_system(
        self,
        monkeypatch: pytest.MonkeyPatch,
        system: str = "linux",
        machine: str = "x86_64",
        libc: tuple[str, str] = ("glibc", "2.35"),
    ) -> None:
        monkeypatch.setattr(sys, "platform", system)
        monkeypatch.setattr(platform, "machine", lambda: machine)
        monkeypatch.setattr(platform, "libc_ver", lambda: libc)

    def run(self, *command: Any, quiet: bool = False) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in command]
        python, *rest = words
        status, output = 0, ""
        if rest[0] == "-c":
            name = rest[2]
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

    def pip_commands(self) -> str:
        return " / ".join(" ".join(c[4:]) for c in self.commands if "pip" in c)

    def tiers(self) -> list[str]:
        """Whose lock files were installed, in order; they are forgotten then."""
        found = [Path(c[-1]).stem for c in self.commands if "--require-hashes" in c]
        self.commands.clear()
        return found


@pytest.fixture
def machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Machine:
    root = tmp_path / "the root's"
    root.mkdir()
    return Machine(monkeypatch, capsys, root)


def test_a_fresh_machine_gets_everything_and_is_told_the_size(machine: Machine) -> None:
    assert bootstrap.main([]) == 0
    for part in ("torch==2.13.0", "triton==3.7.1", "--require-hashes", "--no-deps"):
        assert part in machine.pip_commands()
    said = machine.capture().out
    assert said.index("installing torch==2.13.0 (about") < said.index("setup: done")


def test_the_environment_has_a_lake_of_its_own(machine: Machine) -> None:
    """A shell hands its arguments to the environment's Python, whatever the path of that is."""
    assert bootstrap.main([]) == 0
    lake = bootstrap.PYTHON.with_name("lake")
    bootstrap.PYTHON.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    bootstrap.PYTHON.chmod(0o755)
    done = subprocess.run([lake, "build", "a b"], capture_output=True, text=True, check=True)
    call = "from bridge.toolchain.lake import main; main()"
    assert done.stdout.splitlines() == ["-P", "-c", call, "build", "a b"]


def test_a_second_run_does_nothing(machine: Machine) -> None:
    bootstrap.main([])
    before = list(machine.commands)
    assert bootstrap.main([]) == 0
    assert machine.commands == before


def test_a_changed_lock_file_is_installed(machine: Machine) -> None:
    bootstrap.main([])
    machine.commands.clear()
    (machine.locks / "test.lock").write_text("something else")
    assert bootstrap.main([]) == 0
    assert "--require-hashes" in machine.pip_commands()
    assert "torch==" not in machine.pip_commands()


def test_an_existing_torch_is_used(machine: Machine) -> None:
    machine.outside["torch"] = "2.11.0"
    assert bootstrap.main([]) == 0
    assert "torch==" not in machine.pip_commands()
    assert "triton==3.6.0" in machine.pip_commands()


def test_an_existing_torch_in_a_virtual_environment_is_seen(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.outside["torch"] = "2.11.0"
    monkeypatch.setattr(sys, "prefix", "/home/someone/env")
    assert bootstrap.main([]) == 0
    (pointer,) = bootstrap.VENV.glob("lib/*/site-packages/*.pth")
    assert pointer.read_text().strip() == sysconfig.get_path("purelib")


@pytest.mark.parametrize(
    ("package", "version", "oldest"), [("torch", "2.10.0+cpu", "2.11"), ("triton", "3.2.0", "3.6")]
)
def test_what_is_too_old_in_the_environment_is_refused(
    package: str, version: str, oldest: str, machine: Machine
) -> None:
    machine.inside[package] = version
    assert bootstrap.main([]) == 1
    error = machine.capture().err
    assert f"{package} {version} is too old: {oldest} or newer is needed" in error
    assert error.count("\n") == 1
    assert not bootstrap.STAMP.exists()


@pytest.mark.parametrize("old", [{"torch": "2.6.0", "triton": "3.2.0"}, {"triton": "3.5.1"}])
def test_what_is_too_old_outside_is_named_and_not_used(
    old: dict[str, str], machine: Machine
) -> None:
    machine.outside.update({"torch": "2.11.0", "triton": "3.6.0"} | old)
    assert bootstrap.main([]) == 0
    assert "--system-site-packages" not in machine.commands[0]
    assert "torch==2.13.0" in machine.pip_commands()
    package, version = next(iter(old.items()))
    assert f"not used, since {package} {version} is too old" in machine.capture().out


@pytest.mark.parametrize(("torch", "numpy"), [("2.11.0", "2.3.5"), ("2.13.0", "2.4.6")])
def test_triton_3_6_gets_a_numpy_that_its_interpreter_can_use(
    torch: str, numpy: str, machine: Machine
) -> None:
    machine.outside["torch"] = torch
    assert bootstrap.main([]) == 0
    assert machine.inside["numpy"] == numpy


def test_a_failed_download_leaves_no_stamp_and_is_completed_later(machine: Machine) -> None:
    machine.fails = "--require-hashes"
    assert bootstrap.main([]) == 1
    assert "pip could not install" in machine.capture().err
    assert not bootstrap.STAMP.exists()
    machine.fails = None
    assert bootstrap.main([]) == 0
    assert bootstrap.STAMP.exists()


def test_a_python_that_is_too_old_is_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "hexversion", 0x030A0000)
    assert bootstrap.main([]) == 2
    assert "Python 3.11 or newer is needed" in machine.capture().out
    assert machine.commands == []


def test_a_larger_tier_adds_to_a_smaller_one_and_stands_for_it(machine: Machine) -> None:
    for tier, wanted in [
        ("try", ["try"]),
        ("verify", ["verify", "second-kernel"]),
        ("test", ["test", "second-kernel", "flashinfer-bench"]),
    ]:
        assert bootstrap.main([tier]) == 0
        assert machine.tiers() == wanted
    for tier in bootstrap.TIERS:
        assert bootstrap.main([tier]) == 0
    assert machine.commands == []


@pytest.mark.parametrize(
    "system",
    [
        {"system": "darwin"},
        {"machine": "aarch64"},
        {"libc": ("glibc", "2.34")},
        {"libc": ("", "")},
    ],
)
def test_the_second_kernel_is_left_out_where_it_has_no_wheel(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, system: dict[str, Any]
) -> None:
    """pip would fail there, and leave the whole environment unmade."""
    machine.of_system(monkeypatch, **system)
    machine.fails = "second-kernel"
    for tier, wanted in [("verify", ["verify"]), ("test", ["test", "flashinfer-bench"])]:
        assert bootstrap.main([tier]) == 0
        assert machine.tiers() == wanted
        assert "without the second kernel, which needs" in machine.capture().out
        assert bootstrap.main([tier]) == 0
        assert machine.commands == []
    # A newer system has it.
    machine.fails = None
    machine.of_system(monkeypatch, libc=("glibc", "2.41"))
    assert bootstrap.main(["verify"]) == 0
    assert machine.tiers() == ["verify", "second-kernel"]
    assert "without" not in machine.capture().out


def test_the_first_result_comes_without_the_second_kernel(machine: Machine) -> None:
    assert bootstrap.main(["try"]) == 0
    assert machine.tiers() == ["try"]
    assert "second kernel" not in machine.capture().out


def test_a_smaller_tier_does_not_make_a_larger_one_current(machine: Machine) -> None:
    bootstrap.main(["test"])
    for tier in ("try", "test"):
        (machine.locks / f"{tier}.lock").write_text("something else")
    machine.commands.clear()
    assert bootstrap.main(["try"]) == 0
    assert machine.tiers() == ["try"]
    assert bootstrap.main(["test"]) == 0
    assert machine.tiers() == ["test", "second-kernel", "flashinfer-bench"]


def test_only_what_is_installed_counts_in_pyproject(machine: Machine) -> None:
    bootstrap.main([])
    machine.commands.clear()
    machine.settings.write_text(SETTINGS.replace("100", "120"))
    assert bootstrap.main([]) == 0
    assert machine.commands == []
    machine.settings.write_text(SETTINGS.replace("some", "other"))
    assert bootstrap.main([]) == 0
    assert machine.tiers() == ["test", "second-kernel", "flashinfer-bench"]


def test_an_unknown_tier_is_one_sentence(machine: Machine) -> None:
    assert bootstrap.main(["everything"]) == 2
    said = machine.capture().err
    assert said == "setup: there is no tier 'everything'; there are try, verify, test\n"
    assert machine.commands == []


def test_a_version_is_read_without_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To import torch takes seconds. Packages without metadata of their own name are imported."""
    info = tmp_path / "thing-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1.2\n")
    (tmp_path / "thing.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "renamed.py").write_text("__version__ = '3.4'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert bootstrap.version_of("thing", sys.executable) == "1.2"
    assert bootstrap.version_of("renamed", sys.executable) == "3.4"
    assert bootstrap.version_of("absent", sys.executable) is None


LOCKS = Path(bootstrap.__file__).resolve().parents[1] / "requirements"


def pins(tier: str) -> dict[tuple[str, str], frozenset[str]]:
    """The hashes of each package and version of a lock file; a package may be there in two."""
    text = (LOCKS / f"{tier}.lock").read_text("utf-8").replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, _, rest = line.partition("==")
        found[name, rest.split()[0]] = frozenset(re.findall(r"--hash=(\S+)", rest))
    return found


@pytest.mark.parametrize(("small", "large"), [("try", "verify"), ("verify", "test")])
def test_each_lock_file_holds_the_smaller_one(small: str, large: str) -> None:
    inner, outer = pins(small), pins(large)
    assert len(inner) > 10
    assert all(inner.values())
    assert {pin: outer.get(pin) for pin in inner} == inner
    assert len(outer) > len(inner)


def test_the_heavy_packages_are_in_the_largest_tiers_alone() -> None:
    heavy = {"lean-dojo", "ray", "transformers", "onnx", "selenium", "mypy", "hypothesis", "pytest"}
    named = {tier: {name for name, _ in pins(tier)} for tier in bootstrap.TIERS}
    assert heavy <= named["test"]
    assert not heavy & (named["try"] | named["verify"])
    assert not {"watchfiles", "pdoc"} & named["try"]
    assert not any(PACKAGE in names for names in named.values())
    assert set(pins(bootstrap.SECOND_KERNEL)) == {(PACKAGE, VERSION)}


# Refuses some packages, then imports modules: `-c CODE PACKAGES MODULES`, with commas.
WITHOUT = """
import importlib, pkgutil, sys
refused = set(sys.argv[1].split(","))
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refusing())
for name in sys.argv[2].split(","):
    module = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(module, "__path__", []), name + "."):
        # pytest alone imports its plugin.
        if not found.name.endswith(("__main__", "pytest_plugin")):
            importlib.import_module(found.name)
"""
OF_CHECK = "click,jinja2,msgspec,platformdirs,psutil,rich,watchfiles,pdoc,pygments,zensical"
OF_TEST = "lean_dojo,ray,transformers,onnx,selenium,mypy,hypothesis,pytest,matplotlib,ruff,build"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("refused", "modules"),
    [
        (OF_TEST, "bridge,pyimpl"),
        (
            f"{OF_TEST},watchfiles,pdoc,zensical",
            "bridge.__main__,bridge.conformance,bridge.vectors,bridge.report.page,pyimpl",
        ),
        # `pyimpl` needs no more than `pip install attention-spec` brings without an extra.
        (f"{OF_TEST},{OF_CHECK}", "pyimpl,bridge.scripts"),
    ],
)
def test_no_command_needs_a_package_of_a_larger_tier(refused: str, modules: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, refused, modules],
        cwd=LOCKS.parent, capture_output=True, text=True,
        env={**os.environ, "TRITON_INTERPRET": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
