"""The console script `lake`: the real one if there is one, otherwise `lake build` with the embedded
Lean."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.find import native_lake
from bridge.toolchain.messages import BuildResult, ModuleResult
from bridge.toolchain.prepare import prepare

USAGE = """lake, with the embedded Lean (no native lake is on PATH)

usage: lake build [MODULE...]   build modules and their imports; default: the default targets
       lake clean               remove all built files
       lake --version           the version of Lean

Other commands need a native lake, which elan installs."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def describe(module: ModuleResult, place: str = "") -> Iterator[str]:
    """The lines that Lake prints of a module that was built, or that has something to say."""
    loud = any(m.severity != "info" for m in module.messages)
    if module.skipped:
        return
    if module.ok:
        what = "Replayed" if module.reused else "Built"
        mark = "⚠" if loud else ("ℹ" if module.messages else "✔")
    else:
        what, mark = "Building", "✖"
    took = "" if module.reused else f" ({module.seconds:.1f}s)"
    yield f"{mark} {place}{what} {module.name}{took}"
    for message in module.messages:
        yield str(message)
    if not module.ok:
        yield "error: Lean exited with code 1"


def build(lean: EmbeddedLean, targets: Sequence[str]) -> BuildResult:
    """Build and print as Lake does: to standard output, a line for each module."""

    def on_module(_: str, result: ModuleResult | None) -> None:
        if result is not None and (not result.reused or result.messages):
            for line in describe(result, f"[{result.number}/{result.total}] "):
                print(line, flush=True)

    result = lean.build(targets, on_module)
    if result.ok:
        print(f"Build completed successfully ({len(result.modules)} jobs).")
    else:
        print("Some required targets logged failures:")
        for module in result.modules:
            if not module.ok and not module.skipped:
                print(f"- {module.name}")
        say("error: build failed")
    return result


def package_root() -> Path:
    """The folder of the nearest lakefile, as Lake looks for it: the current one."""
    here = Path.cwd()
    if not (here / "lakefile.lean").exists():
        raise ToolchainError(f"no lakefile.lean in {here}")
    return here


def main() -> None:
    """Entry point of the console script."""
    arguments = sys.argv[1:]
    # Ended from outside, it takes the Lean that it started with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        real = native_lake()
        if real is not None:
            os.execv(real, ["lake", *arguments])
        sys.exit(run(arguments))
    except ToolchainError as error:
        say(f"error: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        say("error: interrupted")
        sys.exit(130)


def run(arguments: Sequence[str]) -> int:
    """Run one command line. Returns its exit status, 2 if this `lake` does not have it."""
    match list(arguments):
        case [] | ["help" | "--help" | "-h"]:
            print(USAGE)
            return 0
        case ["--version" | "version"]:
            print(f"lake of attention-spec ({prepare(say).version}, embedded)")
            return 0
        case ["clean"]:
            shutil.rmtree(package_root() / "build" / "lean", ignore_errors=True)
            return 0
        case ["build", *targets] if not any(t.startswith("-") for t in targets):
            lean = EmbeddedLean(package_root(), prepare(say), say)
            return 0 if build(lean, targets).ok else 1
        case _:
            say(f"error: {' '.join(arguments)!r} is not a command of the embedded lake\n\n{USAGE}")
            return 2
