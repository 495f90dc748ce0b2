"""The embedded Lean, building what `lakefile.lean` declares."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import filelock

from bridge.toolchain import lakefile, modules
from bridge.toolchain.audit import Audit, Declaration, findings
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.messages import BuildResult, ModuleResult, message_of
from bridge.toolchain.modules import Module
from bridge.toolchain.prepare import Embedded
from bridge.toolchain.process import LeanProcess

# Called when a module begins (None) and when it is done.
OnModule = Callable[[str, ModuleResult | None], None]

_RUNNER = """module
public import {module}
public section
{safety}def main (args : List String) : IO Unit := do
  {call}
  IO.Process.exit 0
"""
# A thread of its own has the stack that deep recursion in interpreted code needs.
_IN_THREAD = """let task ← IO.asTask (prio := .dedicated) ({module}.main args)
  let problem := match task.get with
    | .ok _ => ""
    | .error e => toString e
  IO.println ("@@ {{\\"problem\\": " ++ String.quote problem ++ "}}")
  (← IO.getStdout).flush"""


class EmbeddedLean:
    """Builds into `build/lean`: `stock/` (what Lean writes), `runnable/` (what is imported and
    run), and `state.json` (hashes, messages and declarations of modules that are up to date)."""

    kind: Literal["embedded"] = "embedded"

    def __init__(self, root: Path, prepared: Embedded) -> None:
        self.root = root
        self.prepared = prepared
        self.version = f"{prepared.version}, embedded"
        self.folder = root / "build" / "lean"
        self._driver: LeanProcess | None = None

    # --- building ---------------------------------------------------------------------------------

    def default_targets(self) -> tuple[str, ...]:
        return lakefile.read(self.root / "lakefile.lean").defaults

    def check_targets(self, targets: Sequence[str]) -> None:
        """Raises ToolchainError for a target that is no module of a library of the lakefile."""
        declared = lakefile.read(self.root / "lakefile.lean").libraries
        for target in targets:
            inside = any(target == lib or target.startswith(f"{lib}.") for lib in declared)
            if not inside or not modules.file_of(self.root, target).exists():
                raise ToolchainError(f"unknown target `{target}`")

    def build(self, targets: Sequence[str] = (), on_module: OnModule | None = None) -> BuildResult:
        """Build modules (default: the lakefile's default targets) and what they need.

        A module is built again if its text, one of its imports or the toolchain has changed. One
        that fails does not stop those that do not need it. Raises ToolchainError for an unknown
        target, a missing import or an import cycle.
        """
        self.check_targets(targets)
        start = time.monotonic()
        graph = modules.closure(self.root, targets or self.default_targets())
        wanted = modules.hashes(graph, self.prepared.home.name)
        with self._alone():
            state = self._state()
            try:
                results = self._build(graph, wanted, state, on_module)
            finally:
                self._save(state)
                if not self._resident:
                    self.stop()
        return BuildResult(tuple(results), time.monotonic() - start)

    def _build(
        self,
        graph: Sequence[Module],
        wanted: dict[str, str],
        state: dict[str, Any],
        on_module: OnModule | None,
    ) -> list[ModuleResult]:
        results: dict[str, ModuleResult] = {}
        for module in graph:
            kept = state.get(module.name)
            if kept is not None and kept["hash"] == wanted[module.name]:
                result = ModuleResult(
                    module.name,
                    True,
                    reused=True,
                    messages=tuple(message_of(m, self._name(module)) for m in kept["messages"]),
                )
            elif not all(results[name].ok for name in module.imports):
                result = ModuleResult(module.name, False, skipped=True)
            else:
                if on_module is not None:
                    on_module(module.name, None)
                state.pop(module.name, None)
                result = self._build_one(module, wanted[module.name], state)
            results[module.name] = result
            if on_module is not None:
                on_module(module.name, result)
        return list(results.values())

    def _build_one(self, module: Module, key: str, state: dict[str, Any]) -> ModuleResult:
        start = time.monotonic()
        stock, runnable = self.stock(module.name), self.runnable(module.name)
        for path in (stock, runnable):
            path.parent.mkdir(parents=True, exist_ok=True)
        driver = self._start()
        driver.send(f"{module.name}\t{module.file}\t{stock}\t{runnable}\n")
        messages, declarations = [], []
        for answer in driver.answers():
            if "message" in answer:
                messages.append(answer["message"])
            elif "declaration" in answer:
                declarations.append(answer)
            elif "done" in answer:
                break
        if answer["problem"]:
            text = {"severity": "error", "pos": {"line": 1, "column": 0}, "data": answer["problem"]}
            messages.append(text)
        if answer["ok"]:
            state[module.name] = {"hash": key, "messages": messages, "declarations": declarations}
        shown = tuple(message_of(m, self._name(module)) for m in messages)
        seconds = time.monotonic() - start
        return ModuleResult(module.name, answer["ok"], seconds=seconds, messages=shown)

    def stock(self, name: str) -> Path:
        return modules.file_of(self.folder / "stock", name).with_suffix(".olean")

    def runnable(self, name: str) -> Path:
        return modules.file_of(self.folder / "runnable", name).with_suffix(".olean")

    def _name(self, module: Module) -> str:
        return module.file.relative_to(self.root).as_posix()

    # --- the driver -------------------------------------------------------------------------------

    _resident = False

    @contextmanager
    def resident(self) -> Iterator[None]:
        """Within the context the driver stays between builds: the next one starts at once."""
        self._resident = True
        try:
            yield
        finally:
            self._resident = False
            self.stop()

    def memory(self) -> int:
        """Resident memory of the driver in bytes, 0 if it does not run."""
        return 0 if self._driver is None else self._driver.memory()

    def stop(self) -> None:
        """End the driver, if it runs."""
        if self._driver is not None:
            self._driver.__exit__(None, None, None)
            self._driver = None

    def _start(self) -> LeanProcess:
        if self._driver is None or self._driver.process.poll() is not None:
            self._driver = self._main_of("Bridge.Build", "Bridge.Build.main args", (), unsafe=True)
        return self._driver

    def _main_of(
        self, module: str, call: str, arguments: Sequence[str], *, unsafe: bool = False
    ) -> LeanProcess:
        """A process that runs the main function of a module."""
        self.folder.mkdir(parents=True, exist_ok=True)
        script = self.folder / f"Run{module.replace('.', '')}.lean"
        text = _RUNNER.format(module=module, safety="unsafe " if unsafe else "", call=call)
        if not script.exists() or script.read_text("utf-8") != text:
            script.write_text(text, "utf-8")
        path = [self.prepared.runnable, self.prepared.drivers, self.folder / "runnable"]
        command = ["--run", str(script), *arguments]
        return LeanProcess(self.prepared.runtime, command, lean_path=path, cwd=self.folder)

    # --- running and auditing ---------------------------------------------------------------------

    def run(self, module: str, arguments: Sequence[str] = ()) -> None:
        """Run `main : List String → IO Unit` of a built module of the library, for what it does.

        Raises ToolchainError with the program's own words if it fails.
        """
        call = _IN_THREAD.format(module=module)
        with self._main_of(module, call, arguments) as process:
            process.close_input()
            for answer in process.answers():
                if "problem" in answer:
                    break
        if answer["problem"]:
            raise ToolchainError(f"{module}: {answer['problem']}")

    def audit(self) -> Audit:
        """Look through the stored proof terms of the default targets, which have to be built, and
        have the kernel check them again."""
        graph = modules.closure(self.root, self.default_targets())
        state = self._state()
        files = {module.name: self._name(module) for module in graph}
        places = {
            (name, d["declaration"]): d
            for name in files
            for d in state.get(name, {}).get("declarations", [])
        }
        declarations, problems, replay = [], [], None
        arguments = [str(self.prepared.shipped)]
        with self._main_of("Bridge.Audit", "Bridge.Audit.main args", arguments) as process:
            process.send("".join(f"{name}\t{self.stock(name)}\n" for name in files))
            process.close_input()
            for answer in process.answers():
                if "replayed" in answer:
                    replay = answer
                    break
                file = files[answer["module"]]
                place = places.get((answer["module"], answer["name"]))
                problems += findings(answer, place, file)
                if place is not None and not answer["internal"]:
                    declarations.append(
                        Declaration(
                            answer["name"],
                            answer["kind"],
                            answer["module"],
                            file,
                            place["first_line"],
                            place["last_line"],
                            tuple(answer["axioms"]),
                            tuple(answer["mentions"]),
                        )
                    )
        if replay is None or replay["problem"]:
            reason = "it ended early" if replay is None else replay["problem"]
            problems.append(f"the kernel does not accept the stored proofs: {reason}")
        count = 0 if replay is None else replay["trusted"]
        trusted = (
            f"{count} theorems of Lean's own modules are taken on trust (the embedded Lean brings "
            "their statements and not their proofs)"
        )
        declarations.sort(key=lambda d: (list(files).index(d.module), d.first_line, d.name))
        replayed = 0 if replay is None else replay["replayed"]
        return Audit(tuple(declarations), tuple(sorted(problems)), replayed, trusted)

    # --- state ------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(self.folder / "lock"):
            yield

    def _state(self) -> dict[str, Any]:
        try:
            state = json.loads((self.folder / "state.json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return {
            name: kept
            for name, kept in state.items()
            if self.stock(name).exists() and self.runnable(name).exists()
        }

    def _save(self, state: dict[str, Any]) -> None:
        temporary = self.folder / "state.tmp"
        temporary.write_text(json.dumps(state), "utf-8")
        temporary.rename(self.folder / "state.json")
        (self.folder / "default.profraw").unlink(missing_ok=True)
