"""`bridge verify` in a process of its own, without Lean and with few vectors."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bridge.vectors.model.attention import Family

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = """
import json, pickle, subprocess, sys
from pathlib import Path
from unittest import mock

from bridge import __main__ as command_line
from bridge.audit import library
from bridge.conformance.judging import parallel
from bridge.conformance.adapters import builtin as adapters
from bridge.conformance.mutants import attention as mutants
from bridge.report import verify
from bridge.toolchain import ToolchainError

given = json.loads(sys.argv[1])
families = pickle.loads(Path(given["families"]).read_bytes())

class Lean:
    kind, version = "none", "0"

class Library(library.Library):
    def find(self):
        self._lean = Lean()
        return {"ok": True}

    def build(self):
        return {"ok": True, "kept": True}

    def audit(self):
        exec(given["audit"])

class Small(verify.Verification):
    def kernels(self):
        return {"ok": True}

    def vectors_made(self):
        return [], False

with (
    mock.patch.object(command_line, "checkout", lambda: Path(given["root"])),
    mock.patch.object(verify, "Library", Library),
    mock.patch.object(verify, "Verification", Small),
    mock.patch.object(verify, "load", lambda: families),
    mock.patch.object(adapters, "BUILTIN", {n: adapters.BUILTIN[n] for n in given["adapters"]}),
    mock.patch.object(
        mutants, "MUTANTS", [m for m in mutants.MUTANTS if m.name in given["mutants"]]
    ),
    mock.patch.object(parallel, "_processors", lambda: given["workers"]),
):
    command_line.main(["verify"])
"""


class SmallVerify:
    """Runs on these families; their kept results are below `folder`."""

    def __init__(self, folder: Path, families: Sequence[Family]) -> None:
        self.root = folder / "checkout"
        self.root.mkdir()
        for part in ("bridge", "pyimpl", "tests"):
            (self.root / part).symlink_to(ROOT / part)
        self._families = folder / "families"
        self._families.write_bytes(pickle.dumps(list(families)))

    def start(self, audit: str, **given: Any) -> subprocess.Popen[str]:
        """audit: a statement for the stage of that name. adapters, mutants: those that run.
        workers: how many. The process leads a group of its own, as that of a terminal does."""
        everything = {"audit": audit, "root": str(self.root), "families": str(self._families)}
        inherited = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, json.dumps(everything | given)],
            cwd=ROOT, env={**inherited, "PYTHONPATH": str(ROOT)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def whole(self, audit: str, **given: Any) -> tuple[int, str]:
        """Exit status and output."""
        process = self.start(audit, **given)
        output, errors = process.communicate()
        return process.returncode, output + errors

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / "build" / "report.json").read_text("utf-8"))
        return found

    def kept_files(self) -> dict[str, int]:
        """The files of results that are kept, with the time of each."""
        folder = self.root / "build" / "cache"
        return {path.name: path.stat().st_mtime_ns for path in folder.glob("*-cpu-*.json")}
