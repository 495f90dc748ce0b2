"""A native Lean, by its own `lake`.

Written to the documentation of Lake and Lean 4.28; no native Lean was at hand to try it with, and
docs/embedded-lean.md says so. A GitHub workflow runs it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from bridge.files import write_changed
from bridge.toolchain import modules, packages
from bridge.toolchain.audit import PLACED, STANDARD_AXIOMS, Audit, OnChecked, look_at
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.messages import (
    BuildResult,
    Message,
    ModuleResult,
    Severity,
    whole_listing,
)

OnModule = Callable[[str, ModuleResult | None], None]

_MESSAGE = re.compile(r"(error|warning|info): ([^:\n]+\.lean):(\d+):(\d+): (.*)")
# `✔ [3/8] Built Attention.Spec.Online (1.2s)`
_MODULE = re.compile(r"[✔✖⚠ℹ] \[(\d+)/(\d+)\] (Built|Building|Replayed) ([^\s:]+)(?: \((.*)s\))?$")
# Beginnings of Lake's own lines, which end a message.
_OTHER = re.compile(
    r"[✔✖⚠ℹ] |(error|warning|info|trace): |Some required targets|Build completed|- [A-Z]"
)
_RUNNER = """import {module}
def main (args : List String) : IO Unit := {module}.main args
"""
_SEVERITY: dict[str, Severity] = {"error": "error", "warning": "warning", "info": "info"}
_LISTING = Path(__file__).with_name("native_audit.lean")


def module_results(output: str) -> Iterator[ModuleResult]:
    """The modules that the output of `lake build` speaks of: those that were built or failed, and
    those that have something to say."""
    found: dict[str, ModuleResult] = {}
    name, message = "", None
    for line in [*output.splitlines(), "trace: "]:
        if message is not None and _OTHER.match(line):
            shown = replace(message, text=message.text.rstrip())
            module = found.get(name) or ModuleResult(_module_of(shown.file), True)
            found[module.name] = replace(
                module,
                ok=module.ok and shown.severity != "error",
                messages=(*module.messages, shown),
            )
            message = None
        if head := _MODULE.match(line):
            number, total, what, name, seconds = head.groups()
            found[name] = ModuleResult(
                name,
                not line.startswith("✖"),
                reused=what == "Replayed",
                seconds=float(seconds or 0) if re.fullmatch(r"[\d.]*", seconds or "") else 0.0,
                number=int(number),
                total=int(total),
            )
        elif start := _MESSAGE.match(line):
            kind, file, row, column, text = start.groups()
            message = Message(_SEVERITY[kind], file, int(row), int(column), text)
        elif message is not None:
            message = replace(message, text=f"{message.text}\n{line}")
    yield from found.values()


def _lake_file(root: Path, module: str) -> Path:
    """The file in which Lake keeps a built module of the package in a folder."""
    return modules.file_of(root / ".lake" / "build" / "lib" / "lean", module).with_suffix(".olean")


def _module_of(file: str) -> str:
    return ".".join(Path(file).with_suffix("").parts)


class NativeLean:
    """Lean as elan installs it: everything is left to `lake`."""

    kind: Literal["native"] = "native"

    def __init__(self, root: Path, lake: Path) -> None:
        self.root = root
        self.lake = lake
        self.version = self._lake("--version").stdout.strip()

    def _lake(self, *arguments: str, request: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(self.lake), *arguments]
        try:
            return subprocess.run(
                command, cwd=self.root, capture_output=True, text=True, input=request
            )
        except OSError as error:
            raise ToolchainError(f"{self.lake} does not start: {error.strerror}") from error

    def build(self, targets: Sequence[str] = (), on_module: OnModule | None = None) -> BuildResult:
        """`lake build`. Raises ToolchainError for errors outside of modules: an unknown target, an
        import cycle, a lakefile that Lake does not take."""
        start = time.monotonic()
        done = self._lake("build", *targets)
        output = done.stdout + done.stderr
        results = tuple(module_results(output))
        if done.returncode != 0 and all(result.ok for result in results):
            said = [line for line in output.splitlines() if line.startswith("error: ")]
            reason = (said or output.strip().splitlines() or ["it gave no reason"])[0]
            raise ToolchainError(f"lake build failed: {reason.removeprefix('error: ')}")
        if on_module is not None:
            for result in results:
                on_module(result.name, result)
        return BuildResult(results, time.monotonic() - start, output, done.returncode)

    def read_stored(
        self, script: Path, until: str, wanted: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """The answers of a Lean file whose `main` is given, on its input, each module of the
        default targets and its output, and then the `wanted` names, a line each, but for the last,
        which has the key `until`. Raises ToolchainError if the script ends early."""
        found = packages.read(self.root)
        request = "".join(
            f"{m.name}\t{_lake_file(found.of(m.name).root, m.name)}\n"
            for m in found.closure(found.own.lakefile.defaults)
        )
        request += "".join(f"{line}\n" for line in wanted)
        done = self._lake("env", "lean", "--run", str(script), request=request)
        lines = [line for line in done.stdout.splitlines() if line.startswith("@@ {")]
        answers: list[dict[str, Any]] = [json.loads(line[3:]) for line in lines]
        if not answers or until not in answers[-1]:
            said = (done.stderr or done.stdout).strip()
            raise ToolchainError(f"{script.name}: {said[-1000:] or 'Lean gave no reason'}")
        return whole_listing(answers, script.name, until)

    def _run_file(self, name: str, text: str, arguments: Sequence[str]) -> str:
        """Run a Lean file that is no module, so that it sees all parts of its imports."""
        folder = self.root / "build" / "lean"
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / f"{name}.lean"
        # Another thread or process may be about to start it.
        write_changed(script, text)
        done = self._lake("env", "lean", "--run", str(script), *arguments)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip()
            raise ToolchainError(f"{name}: {said[-1000:] or 'Lean gave no reason'}")
        return done.stdout

    def run(self, module: str, arguments: Sequence[str] = ()) -> None:
        """Run `main : List String → IO Unit` of a built module of the library."""
        self._run_file(f"Run{module.replace('.', '')}", _RUNNER.format(module=module), arguments)

    def audit(
        self,
        targets: Sequence[str] = (),
        *,
        replay: bool = True,
        on_checked: OnChecked | None = None,
    ) -> Audit:
        """List every declaration of modules (default: the lakefile's default targets) and of the
        modules that they need, with its axioms, and `#print axioms` for each theorem. It takes
        little time, and so the kernel checks all of them again, whatever `replay` says, and
        `on_checked` is called once."""
        found = packages.read(self.root)
        targets = targets or found.own.lakefile.defaults
        graph = found.closure(targets)
        files = {m.name: Path(os.path.relpath(m.file, self.root)).as_posix() for m in graph}
        imports = "".join(f"import {name}\n" for name in targets)
        text = imports + _LISTING.read_text("utf-8")
        answers: list[dict[str, Any]] = [
            json.loads(line[3:])
            for line in self._run_file("Audit", text, list(files)).splitlines()
            if line.startswith("@@ {")
        ]
        if not answers or "replayed" not in answers[-1]:
            raise ToolchainError("the audit ended before the stored proofs had been checked again")
        *answers, again = answers
        if on_checked is not None:
            on_checked(again["replayed"], again["replayed"])
        for answer in answers:
            if not answer["first_line"]:
                for key in PLACED:
                    del answer[key]
        declarations, problems = look_at(answers, files)
        if again["problem"]:
            problems.append(f"the kernel does not accept the stored proofs: {again['problem']}")
        # A private theorem has no name that another file could write.
        theorems = [
            d.name
            for d in declarations
            if d.kind == "theorem" and not d.name.startswith("_private.")
        ]
        problems += self._print_axioms(imports, theorems)
        trusted = "the axioms are those of `#print axioms`, Lean's own modules included"
        return Audit(declarations, tuple(sorted(problems)), again["replayed"], trusted)

    def _print_axioms(self, imports: str, theorems: Sequence[str]) -> list[str]:
        """A second look at the theorems, by Lean's own command."""
        text = imports + "".join(f"#print axioms {name}\n" for name in theorems)
        script = self.root / "build" / "lean" / "PrintAxioms.lean"
        script.write_text(text, "utf-8")
        done = self._lake("env", "lean", str(script))
        output = " ".join(done.stdout.split())
        said = re.findall(
            r"'(\S+)' (?:does not depend on any axioms|depends on axioms: \[([^\]]*)\])", output
        )
        found = []
        if done.returncode != 0 or len(said) != len(theorems):
            found.append(
                f"#print axioms answered for {len(said)} of {len(theorems)} theorems: "
                f"{(done.stderr or done.stdout).strip()[:500]}"
            )
        for name, axioms in said:
            strange = {a.strip() for a in axioms.split(",") if a.strip()} - STANDARD_AXIOMS
            if strange:
                found.append(f"{name} rests on {', '.join(sorted(strange))}")
        return found
