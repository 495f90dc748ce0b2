"""Which Lean to use: a native one if there is one, otherwise the embedded one.

The environment variable ATTENTION_LEAN, `native` or `embedded`, chooses where both are there.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from bridge import limits
from bridge.limits import Limit, LimitPassed
from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.native import NativeLean
from bridge.toolchain.prepare import prepare

Lean = EmbeddedLean | NativeLean

CHOICE = "ATTENTION_LEAN"
# The lake of elan downloads its toolchain first, for which it may wait long.
_VERSION_LIMIT = Limit(600.0, 3600.0)


def native_lake() -> Path | None:
    """A `lake` on PATH that works and is not this project's console script of that name; None if
    there is none or ATTENTION_LEAN chooses the embedded Lean.

    Raises ToolchainError for a value of ATTENTION_LEAN that is neither, for `native` where there is
    none, and for a `lake` that does not answer.
    """
    choice = os.environ.get(CHOICE, "")
    if choice not in ("", "native", "embedded"):
        raise ToolchainError(f"{CHOICE} must be native or embedded, or not set, not {choice!r}")
    found = None if choice == "embedded" else _lake_on_path()
    if choice == "native" and found is None:
        raise ToolchainError(f"{CHOICE} is native, and there is no working lake on PATH")
    return found


def _lake_on_path() -> Path | None:
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("lake", path=folder) if folder else None
        if found is None or _is_ours(Path(found)):
            continue
        try:
            done = limits.run([found, "--version"], _VERSION_LIMIT)
        except OSError:
            continue
        except LimitPassed as passed:
            raise ToolchainError(f"{passed}; with {CHOICE}=embedded it is not asked") from passed
        if done.returncode == 0:
            return Path(found)
    return None


def _is_ours(path: Path) -> bool:
    if path.parent.resolve() == Path(sys.prefix, "bin").resolve():
        return True
    try:
        return b"bridge.toolchain.lake" in path.read_bytes()[:4096]
    except OSError:
        return True


def find(root: Path, announce: Callable[[str], None]) -> Lean:
    """The Lean for the project at `root`; the embedded one is prepared if need be.

    `announce` is called with a sentence about whatever takes long. Raises ToolchainError where
    there is none to be had.
    """
    lake = native_lake()
    if lake is not None:
        return NativeLean(root, lake)
    return EmbeddedLean(root, prepare(announce), announce)
