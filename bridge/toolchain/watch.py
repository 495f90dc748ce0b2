"""Recheck Lean files as they are saved."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import watchfiles

from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.find import find
from bridge.toolchain.lake import describe

# The embedded Lean has 2 GiB at most; a driver near that is replaced.
_MEMORY_LIMIT = 1_700_000_000


def watch(root: Path, say: Callable[[str], None] = print) -> None:
    """Build once, then again whenever a Lean file changes, until interrupted.

    With the embedded Lean one process stays resident, so a recheck takes as long as the changed
    module and those that depend on it.
    """
    lean = find(root, announce=say)

    def build() -> None:
        start = time.monotonic()
        try:
            result = lean.build()
        except ToolchainError as error:
            say(f"error: {error}")
            return
        for module in result.modules:
            if not module.reused and not module.skipped:
                for line in describe(module):
                    say(line)
        skipped = sum(module.skipped for module in result.modules)
        waiting = f", {skipped} modules wait for them" if skipped else ""
        verdict = "ok" if result.ok else f"errors{waiting}"
        say(f"{verdict}: {len(result.built)} rechecked, {time.monotonic() - start:.1f} s")

    def is_source(change: watchfiles.Change, path: str) -> bool:
        return path.endswith(".lean") and not path.startswith(str(root / "build"))

    def loop() -> None:
        build()
        say("watching; Ctrl-C ends")
        changes = watchfiles.watch(
            root, watch_filter=is_source, debounce=100, step=20, raise_interrupt=False
        )
        for _ in changes:
            build()
            if isinstance(lean, EmbeddedLean) and lean.memory() > _MEMORY_LIMIT:
                lean.stop()

    # Ctrl-C may come in the middle of a build as well as between two.
    with contextlib.suppress(KeyboardInterrupt):
        if isinstance(lean, EmbeddedLean):
            with lean.resident():
                loop()
        else:
            loop()
