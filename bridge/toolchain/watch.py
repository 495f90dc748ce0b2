"""Recheck Lean files as they are saved."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import watchfiles

from bridge.source import lean_imports
from bridge.toolchain import packages
from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.find import find
from bridge.toolchain.lake import describe
from bridge.toolchain.messages import ModuleResult


def not_imported(root: Path, saved: Iterable[Path]) -> list[str]:
    """A sentence for each saved file that is no part of the default targets, and so is not built.

    None where the targets themselves cannot be read: the build says that.
    """
    try:
        there = packages.read(root)
        targets = there.own.lakefile.defaults
        built = {module.file for module in there.closure(targets)}
    except ToolchainError:
        return []
    roots = " or ".join(f"{target.replace('.', '/')}.lean" for target in targets)
    found = []
    for file in sorted(set(saved) - built - {root / "lakefile.lean"}):
        name = file.relative_to(root)
        if file.exists() and not any(part.startswith(".") for part in name.parts):
            found.append(f"{name.as_posix()} is not imported by {roots}: not checked")
    return found


def watch(root: Path, say: Callable[[str], None] = print) -> None:
    """Build once, then again whenever a Lean file changes, until interrupted.

    With the embedded Lean one process stays resident, so a recheck takes as long as the changed
    module and those that depend on it.
    """
    lean = find(root, announce=say)

    def show(_: str, module: ModuleResult | None) -> None:
        """Print a module's messages, as soon as they are known."""
        if module is not None and not module.reused:
            for line in describe(module):
                say(line)

    def build() -> None:
        start = time.monotonic()
        try:
            result = lean.build(on_module=show)
        except ToolchainError as error:
            say(f"error: {error}")
            return
        skipped = sum(module.skipped for module in result.modules)
        waiting = f", {skipped} modules wait for them" if skipped else ""
        verdict = "ok" if result.ok else f"errors{waiting}"
        say(f"{verdict}: {len(result.built)} rechecked, {time.monotonic() - start:.1f} s")

    def is_source(change: watchfiles.Change, path: str) -> bool:
        return path.endswith(".lean") and not Path(path).is_relative_to(root / "build")

    def loop() -> None:
        # Files are watched from before the first build on, so that no change is missed; without
        # changes there is an empty set ten times a second.
        changes = watchfiles.watch(
            root,
            watch_filter=is_source,
            debounce=100,
            step=20,
            rust_timeout=100,
            yield_on_timeout=True,
            raise_interrupt=True,  # otherwise it logs a line of its own
        )
        for number, changed in enumerate(changes):
            if changed or number == 0:
                for name in lean_imports.write(root):
                    say(f"wrote {name}")
                build()
                for sentence in not_imported(root, (Path(path) for _, path in changed)):
                    say(sentence)
            if number == 0:
                if isinstance(lean, EmbeddedLean):
                    lean.warm()
                say("watching; Ctrl-C ends")

    # Ctrl-C may come in the middle of a build as well as between two.
    with contextlib.suppress(KeyboardInterrupt):
        try:
            with lean.resident() if isinstance(lean, EmbeddedLean) else contextlib.nullcontext():
                loop()
        except OSError as error:
            raise ToolchainError(f"{root} cannot be watched: {error}") from error
