"""Lean's proofs about kernels, with other texts of the kernels than the committed ones.

    .venv/bin/python tests/bridge/ttir/lean_copies.py

tells their cost: the processor time of one embedded Lean that builds all of `Attention/Kernel`,
in a copy where the modules behind them are built.
"""

from __future__ import annotations

import resource
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bridge.toolchain import modules
from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.find import Lean, find
from bridge.toolchain.messages import BuildResult
from bridge.toolchain.store import Store
from bridge.ttir.texts import FOLDER

ROOT = Path(__file__).resolve().parents[3]


def dependents(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The modules of `Attention/Kernel` that need one of these, in no order, each with those that
    it imports of them directly."""
    found = {_module(path): path for path in (ROOT / "Attention" / "Kernel").rglob("*.lean")}
    imports = {
        name: set(modules.header_imports(path.read_text("utf-8"))) for name, path in found.items()
    }
    changed = set(names)
    need = set(changed)
    while more := {name for name, some in imports.items() if some & need} - need:
        need |= more
    return {name: tuple(imports[name] & changed) for name in need - changed}


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@dataclass
class Copy:
    """A copy of the library's sources, in which texts are exchanged."""

    root: Path
    lean: Lean

    def build(self, texts: Mapping[str, str], *, all_of_them: bool) -> BuildResult:
        """Build with these modules, by path, the modules that prove something of them: those that
        import them, or all_of_them that need them. Afterwards the committed texts are there again.
        """
        changed = {_module(ROOT / path) for path in texts}
        wanted = [name for name, direct in dependents(changed).items() if all_of_them or direct]
        for path, text in texts.items():
            (self.root / path).write_text(text, "utf-8")
        try:
            return self.lean.build(wanted)
        finally:
            for path in texts:
                shutil.copy2(ROOT / path, self.root / path)


@contextmanager
def copy(folder: Path) -> Iterator[Copy]:
    """A copy in this folder, with the build outputs of the modules about kernels."""
    for name in ("lakefile.lean", "lean-toolchain"):
        shutil.copy2(ROOT / name, folder / name)
    generated = {_module(path) for path in (ROOT / FOLDER).glob("*.lean")}
    needed = [m.name for m in modules.closure(ROOT, [*generated, *dependents(generated)])]
    for name in needed:
        target = modules.file_of(folder, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(modules.file_of(ROOT, name), target)
    built, store = Store(ROOT / "build" / "lean"), Store(folder / "build" / "lean")
    state = {name: kept for name, kept in built.load().items() if name in needed}
    for name in state:
        for source, output in zip(built.outputs(name), store.outputs(name), strict=True):
            output.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, output)
    if state:
        store.save(state)
    lean = find(folder, lambda sentence: None)
    with ExitStack() as stack:
        if isinstance(lean, EmbeddedLean):
            stack.enter_context(lean.resident())
        yield Copy(folder, lean)


def _seconds(lean: EmbeddedLean, wanted: list[str]) -> float:
    """The processor time of a Lean that builds these modules."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with lean.resident():
        assert lean.build(wanted).ok
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _tell_cost() -> None:
    with tempfile.TemporaryDirectory() as folder, copy(Path(folder)) as made:
        assert isinstance(made.lean, EmbeddedLean), "a native Lean costs something else"
        made.lean.stop()
        state = made.lean.store.load()
        family = [name for name in state if name.startswith("Attention.Kernel.")]
        made.lean.store.save({name: state[name] for name in state.keys() - set(family)})
        first = _seconds(made.lean, ["Attention.Kernel.Ops"])
        made.lean.store.save({name: state[name] for name in state.keys() - set(family)})
        total = _seconds(made.lean, family)
        print(f"{len(family)} modules: {total:.1f} s of processor time")
        print(f"Lean's start and the first module alone: {first:.1f} s")


if __name__ == "__main__":
    _tell_cost()
