"""The embedded Lean, which builds the targets that `lakefile.lean` declares."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from bridge.files import write_changed
from bridge.interrupt import unseen_by_children
from bridge.limits import Limit
from bridge.toolchain import modules, packages
from bridge.toolchain.audit import Audit, OnChecked, look_at, on_trust
from bridge.toolchain.drivers import Drivers
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.messages import BuildResult, ModuleResult, message_of, whole_listing
from bridge.toolchain.modules import Module
from bridge.toolchain.packages import Packages
from bridge.toolchain.prepare import Embedded, alone
from bridge.toolchain.process import LeanProcess
from bridge.toolchain.store import Store, Stores

# Called when a module begins (None) and when it is done.
OnModule = Callable[[str, ModuleResult | None], None]

# Modules to build from which on several drivers share them: each is slow for its first 10 seconds,
# until Node has compiled Lean's code.
_SHARED_FROM = 20
_MOST_DRIVERS = 4

# An audit takes about 35 s of processor time for a thousand declarations.
AUDIT_LIMIT = Limit(2400.0)

# The main thread has 64 KiB of stack. Nothing tells when they are used up: the memory below, the
# C++ library's own variables, is overwritten, and Node ends at some later call. A thread that Lean
# starts has the stack that it is told to have, and Lean tells when that is used up.
_RUNNER = """module
public import {module}
public section
{safety}def main (args : List String) : IO Unit := do
  let task ← IO.asTask (prio := .dedicated) ({module}.main args)
  {then_}
  IO.Process.exit 0
"""
_RAISE = "IO.ofExcept task.get"
_TELL = """let problem := match task.get with
    | .ok _ => ""
    | .error e => toString e
  IO.println ("@@ {\\"problem\\": " ++ String.quote problem ++ "}")
  (← IO.getStdout).flush"""


class EmbeddedLean:
    """Builds into `build/lean` of each package; `store` is that of the package itself. `announce`
    is called with a sentence when it has to wait."""

    kind: Literal["embedded"] = "embedded"

    def __init__(
        self, root: Path, prepared: Embedded, announce: Callable[[str], None] = print
    ) -> None:
        # Lean works in a folder below it, from where a relative path leads elsewhere.
        self.root = root = root.absolute()
        self.prepared = prepared
        self.version = f"{prepared.version}, embedded"
        self.folder = root / "build" / "lean"
        self.store = Store(self.folder)
        self.announce = announce
        self._drivers = Drivers(lambda: self._main_of("Bridge.Build", (), unsafe=True))
        self._stores: Stores | None = None

    # --- building ---------------------------------------------------------------------------------

    @property
    def stores(self) -> Stores:
        """The stores of the package and of those it requires, as the lakefiles were read last."""
        return self._stores or self._read_lakefiles()

    @property
    def packages(self) -> Packages:
        return self.stores.packages

    def _read_lakefiles(self) -> Stores:
        before, self._stores = self._stores, Stores(packages.read(self.root))
        if before is not None and before.folders() != self._stores.folders():
            # The drivers find modules in the folders that there were.
            self.stop()
        return self._stores

    def _options(self, module: str) -> str:
        """The options of the lakefile of a module, as the driver takes them."""
        options = self.packages.of(module).lakefile.options
        return ",".join(f"{name}={str(value).lower()}" for name, value in options)

    def check_targets(self, targets: Sequence[str]) -> None:
        """Raises ToolchainError for a target that is no module of a library of the lakefiles."""
        for target in targets:
            inside = self.packages.of(target).has(target)
            if not inside or not self.packages.file_of(target).exists():
                raise ToolchainError(f"unknown target `{target}`")

    def build(self, targets: Sequence[str] = (), on_module: OnModule | None = None) -> BuildResult:
        """Build modules (default: the lakefile's default targets) and the modules that they need.

        A module is built again if its text, the interface of one of its imports (which has no
        proofs of theorems) or the toolchain has changed. One that fails does not stop those that do
        not need it. Raises ToolchainError for an unknown target, a missing import, an import cycle,
        a folder that cannot be written, and a Lean that breaks down; modules that were built before
        stay built.
        """
        defaults = self._read_lakefiles().packages.own.lakefile.defaults
        self.check_targets(targets)
        start = time.monotonic()
        graph = self.packages.closure(targets or defaults)
        try:
            # The record is whole at any time: where nothing is to be done, another build that runs
            # is of other modules.
            state = self.stores.load()
            stale = self._stale(graph, state)
            if not stale:
                results = self._reuse(graph, state, on_module)
            else:
                with self._alone(stale):
                    results = self._build(graph, on_module)
        except OSError as error:
            raise ToolchainError(
                f"{error.filename or self.folder} cannot be written: {error.strerror or error}"
            ) from error
        finally:
            if not self._resident:
                self.stop()
        return BuildResult(tuple(results), time.monotonic() - start)

    def _stale(self, graph: Sequence[Module], state: dict[str, Any]) -> list[Module]:
        """The modules that are not built as they stand now, and those that need them."""
        interfaces: dict[str, str] = {}
        stale = []
        for module in graph:
            known = all(name in interfaces for name in module.imports)
            if known and self._is_current(module, state, interfaces):
                interfaces[module.name] = state[module.name]["interface"]
            else:
                stale.append(module)
        return stale

    def _reuse(
        self, graph: Sequence[Module], state: dict[str, Any], on_module: OnModule | None
    ) -> list[ModuleResult]:
        """The results where every module is built as it stands now."""
        results = []
        for number, module in enumerate(graph, 1):
            results.append(
                replace(self._kept_result(module, state), number=number, total=len(graph))
            )
            if on_module is not None:
                on_module(module.name, results[-1])
        return results

    def _kept_result(self, module: Module, state: dict[str, Any]) -> ModuleResult:
        """The result of a module that is built as it stands now."""
        shown = tuple(message_of(m, self._name(module)) for m in state[module.name]["messages"])
        return ModuleResult(module.name, True, reused=True, messages=shown)

    def _build(self, graph: Sequence[Module], on_module: OnModule | None) -> list[ModuleResult]:
        """The results, in the order of the graph. Threads wait for the drivers; this one decides,
        and alone changes the record."""
        state = self.stores.load()
        results: dict[str, ModuleResult] = {}
        interfaces: dict[str, str] = {}
        numbers = {module.name: number for number, module in enumerate(graph, 1)}
        waiting = list(graph)
        building: dict[Future[tuple[list[dict[str, Any]], float]], Module] = {}

        def finish(module: Module, result: ModuleResult) -> None:
            result = replace(result, number=numbers[module.name], total=len(graph))
            results[module.name] = result
            if on_module is not None:
                on_module(module.name, result)

        at_once = self._at_once(graph, state)
        stops = self._drivers.stops
        with ThreadPoolExecutor(at_once) as threads:
            try:
                while waiting or building:
                    # Imports come first: a module that ends here may let a later one begin.
                    for module in list(waiting):
                        if not all(name in results for name in module.imports):
                            continue
                        if not all(name in interfaces for name in module.imports):
                            finish(module, ModuleResult(module.name, False, skipped=True))
                        elif self._is_current(module, state, interfaces):
                            interfaces[module.name] = state[module.name]["interface"]
                            finish(module, self._kept_result(module, state))
                        elif len(building) < at_once:
                            if on_module is not None:
                                on_module(module.name, None)
                            self.stores.forget(module.name, state)
                            building[threads.submit(self._elaborate, module, stops)] = module
                        else:
                            continue
                        waiting.remove(module)
                    for done in wait(building, return_when=FIRST_COMPLETED).done:
                        module = building.pop(done)
                        finish(module, self._keep(module, *done.result(), state, interfaces))
            except BaseException:
                self._drivers.stop()
                raise
        return [results[module.name] for module in graph]

    def _at_once(self, graph: Sequence[Module], state: dict[str, Any]) -> int:
        """How many modules are built at the same time."""
        known = {name: kept["interface"] for name, kept in state.items()}
        stale = sum(
            not all(name in known for name in module.imports)
            or not self._is_current(module, state, known)
            for module in graph
        )
        if self._resident or stale < _SHARED_FROM:
            return 1
        return min(_MOST_DRIVERS, os.cpu_count() or 1)

    def _is_current(
        self, module: Module, state: dict[str, Any], interfaces: dict[str, str]
    ) -> bool:
        key = self._key(module, interfaces)
        return bool(module.name in state and state[module.name]["key"] == key)

    def _key(self, module: Module, interfaces: dict[str, str]) -> str:
        toolchain = f"{self.prepared.builder} {self._options(module.name)}"
        return modules.build_key(module, toolchain, interfaces)

    def _elaborate(self, module: Module, stops: int) -> tuple[list[dict[str, Any]], float]:
        """A driver's answers, and the seconds that it took; `stops` is that of the drivers when the
        build began."""
        start = time.monotonic()
        stock, runnable = self.stock(module.name), self.runnable(module.name)
        answers = self._drivers.ask(
            f"{module.name}\t{module.file}\t{stock}\t{runnable}\t{self._options(module.name)}\n",
            stops,
        )
        return answers, time.monotonic() - start

    def _keep(
        self,
        module: Module,
        answers: list[dict[str, Any]],
        seconds: float,
        state: dict[str, Any],
        interfaces: dict[str, str],
    ) -> ModuleResult:
        """The result that the answers give; if all went well, the module is added to both."""
        messages = [answer["message"] for answer in answers if "message" in answer]
        last = answers[-1]
        if last["problem"]:
            text = {"severity": "error", "pos": {"line": 1, "column": 0}, "data": last["problem"]}
            messages.append(text)
        if last["ok"]:
            shown = "".join(answer["shown"] for answer in answers if "shown" in answer)
            interfaces[module.name] = modules.interface(module, shown, interfaces)
        # If the file was saved meanwhile, the key is not that of its text.
        if last["ok"] and modules.read_source(self.root, module.file) == module.text:
            state[module.name] = {
                "key": self._key(module, interfaces),
                "interface": interfaces[module.name],
                "messages": messages,
                "declarations": [answer for answer in answers if "declaration" in answer],
            }
            self.stores.save(module.name, state)
        said = tuple(message_of(m, self._name(module)) for m in messages)
        return ModuleResult(module.name, last["ok"], seconds=seconds, messages=said)

    def stock(self, name: str) -> Path:
        return self.stores.of(name).stock(name)

    def runnable(self, name: str) -> Path:
        return self.stores.of(name).runnable(name)

    def stored_parts(self) -> dict[str, list[Path]]:
        """The parts that Lean has stored of each module of the default targets, by the module's
        name; the last of a module's parts is the one that holds all of it. Raises ToolchainError if
        one is not built as it stands."""
        graph, _ = self._up_to_date()
        return {module.name: self.stores.of(module.name).parts(module.name) for module in graph}

    def _name(self, module: Module) -> str:
        return Path(os.path.relpath(module.file, self.root)).as_posix()

    def _up_to_date(self, targets: Sequence[str] = ()) -> tuple[list[Module], dict[str, Any]]:
        """The modules that the targets need (default: the lakefile's default targets) and their
        record. Raises ToolchainError if one of them is not built as it stands."""
        defaults = self._read_lakefiles().packages.own.lakefile.defaults
        graph = self.packages.closure(targets or defaults)
        state = self.stores.load()
        for stale in self._stale(graph, state):
            raise ToolchainError(f"{stale.name} is not built as it stands now: build it first")
        return graph, state

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
        """Resident memory of the drivers in bytes, 0 if none runs."""
        return self._drivers.memory()

    def stop(self) -> None:
        """End the drivers, if any run."""
        self._drivers.stop()

    def warm(self) -> None:
        """Start a driver ahead of the next build."""
        self._drivers.warm()

    def _main_of(
        self, module: str, arguments: Sequence[str], *, then: str = _RAISE, unsafe: bool = False
    ) -> LeanProcess:
        """A process that runs the main function of a module in a thread. then: how the process
        handles the thread's result."""
        self.folder.mkdir(parents=True, exist_ok=True)
        script = self.folder / f"Run{module.replace('.', '')}.lean"
        text = _RUNNER.format(module=module, safety="unsafe " if unsafe else "", then_=then)
        # Another thread or process may be about to start it.
        write_changed(script, text)
        command = ["--run", str(script), *arguments]
        with unseen_by_children():
            return LeanProcess(
                self.prepared.runtime, command, lean_path=self._lean_path(), cwd=self.folder
            )

    def _lean_path(self) -> list[Path]:
        """The folders in which a Lean that builds and runs finds modules."""
        built = [folder / "runnable" for folder in self.stores.folders()]
        return [self.prepared.runnable, self.prepared.drivers, *built]

    # --- running and auditing ---------------------------------------------------------------------

    def run(self, module: str, arguments: Sequence[str] = ()) -> None:
        """Run `main : List String → IO Unit` of a built module of the library, for its effects.

        Raises ToolchainError with the program's own words if it fails.
        """
        self._up_to_date([module])
        with self._main_of(module, arguments, then=_TELL) as process:
            process.close_input()
            answer = process.answers_until("problem")[-1]
        if answer["problem"]:
            raise ToolchainError(f"{module}: {answer['problem']}")

    def audit(
        self,
        targets: Sequence[str] = (),
        *,
        replay: bool = True,
        on_checked: OnChecked | None = None,
    ) -> Audit:
        """Look through the stored proof terms of modules (default: the lakefile's default targets)
        and of the modules that they need, which have to be built; with `replay` the kernel checks
        them again, and `on_checked` is called after each module.
        """
        graph, state = self._up_to_date(targets)
        files = {module.name: self._name(module) for module in graph}
        places = {
            (name, d["declaration"]): d for name in files for d in state[name]["declarations"]
        }
        answers: list[dict[str, Any]] = []
        arguments = [str(self.prepared.shipped), *(() if replay else ("--no-replay",))]

        checked = ""

        def describe_wait() -> str:
            if checked:
                return f"the kernel, which has checked {checked} constants"
            last = answers[-1]["name"] if answers else None
            return f"the answer after that on {last}" if last else "its first answer"

        with (
            self._main_of("Bridge.Audit", arguments) as process,
            process.within(AUDIT_LIMIT, "the audit", describe_wait),
        ):
            process.send("".join(f"{name}\t{self.stock(name)}\n" for name in files))
            process.close_input()
            for answer in process.answers():
                if "replayed" in answer:
                    break
                if "checked" in answer:
                    checked = f"{answer['checked']} of {answer['of']}"
                    if on_checked is not None:
                        on_checked(answer["checked"], answer["of"])
                    continue
                place = places.get((answer["module"], answer["name"]), {})
                answers.append({**answer, **place})
        declarations, problems = look_at(answers, files)
        if answer["problem"]:
            problems.append(f"the kernel does not accept the stored proofs: {answer['problem']}")
        trusted = {kind: sorted(names) for kind, names in answer["trusted"].items()}
        return Audit(
            declarations, tuple(sorted(problems)), answer["replayed"], on_trust(trusted), trusted
        )

    def read_stored(
        self, script: Path, until: str, wanted: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """The answers of a Lean file whose `main` is given, on its input, each module of the
        default targets and its stock output, and then the `wanted` names, a line each, but for
        the last, which has the key `until`.

        Raises ToolchainError if a module is not built as it stands, or if the script ends early.
        """
        graph, _ = self._up_to_date()
        command = ["--run", str(script)]
        with LeanProcess(
            self.prepared.runtime, command, lean_path=self._lean_path(), cwd=self.folder
        ) as process:
            process.send("".join(f"{m.name}\t{self.stock(m.name)}\n" for m in graph))
            process.send("".join(f"{line}\n" for line in wanted))
            process.close_input()
            answers = process.answers_until(until)
        (self.folder / "default.profraw").unlink(missing_ok=True)
        return whole_listing(answers, script.name, until)

    @contextmanager
    def _alone(self, stale: Sequence[Module]) -> Iterator[None]:
        """Allow one build at a time of each package that one of these modules belongs to."""
        self.folder.mkdir(parents=True, exist_ok=True)
        folders = {self.folder, *(self.stores.of(module.name).folder for module in stale)}
        with ExitStack() as locks:
            # In one order, lest two builds wait for each other.
            for folder in sorted(folders):
                folder.mkdir(parents=True, exist_ok=True)
                whose = "this project" if folder == self.folder else str(folder.parent.parent)
                others = f"another build of {whose} is running"
                locks.enter_context(alone(folder / "lock", self.announce, others))
            try:
                yield
            finally:
                (self.folder / "default.profraw").unlink(missing_ok=True)
