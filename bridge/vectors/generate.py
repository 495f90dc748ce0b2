"""Make the vector files by running the Lean definitions over the exact model."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from bridge.files import write_changed
from bridge.vectors import lean_files
from bridge.vectors.format.fields import VectorError
from bridge.vectors.format.index import INDEX
from bridge.vectors.lean_files import RunMain
from bridge.vectors.load import write_index


def generate(
    run_main: RunMain, folder: Path, on_files: Callable[[int], None] = lambda number: None
) -> list[Path]:
    """Write every family's file and their index into `folder`, an existing one, and check them.

    run_main and on_files are as `lean_files.write` has them. Raises VectorError for a file that
    breaks the format.
    """
    lean_files.write(run_main, folder, on_files)
    write_index(folder)
    return sorted(folder.glob("*.json"))


def index_of(texts: Mapping[str, str]) -> str:
    """The index of the files that Lean wrote, of which each is checked. Raises VectorError for one
    that breaks the format."""
    with tempfile.TemporaryDirectory(prefix="vectors-") as name:
        folder = Path(name)
        for file, text in texts.items():
            (folder / file).write_bytes(text.encode())
        write_index(folder)
        return (folder / INDEX).read_text("utf-8")


def differences(made: Mapping[str, str], committed: Path) -> list[str]:
    """How the committed files differ from the texts that were made, one sentence each."""
    fresh = {name: text.encode() for name, text in made.items()}
    kept = {path.name: path.read_bytes() for path in committed.glob("*.json")}
    found = []
    for file in sorted(fresh.keys() | kept.keys()):
        if file not in kept:
            found.append(f"{file} is made by the Lean definitions and is not committed")
        elif file not in fresh:
            found.append(f"{file} is committed and the Lean definitions do not make it")
        elif fresh[file] != kept[file]:
            pairs = itertools.zip_longest(fresh[file].split(b"\n"), kept[file].split(b"\n"))
            line = next(n for n, (new, old) in enumerate(pairs, 1) if new != old)
            found.append(f"{file} differs from the Lean definitions' output, first in line {line}")
    return found


def replace(run_main: RunMain, committed: Path) -> list[str]:
    """Rewrite the committed files. Returns the names of those that changed."""
    with tempfile.TemporaryDirectory(prefix="vectors-") as name:
        fresh = generate(run_main, Path(name))
        changed = []
        for path in fresh:
            if write_changed(committed / path.name, path.read_bytes()):
                changed.append(path.name)
        for old in committed.glob("*.json"):
            if old.name not in {path.name for path in fresh}:
                old.unlink()
                changed.append(old.name)
    return changed


def replace_family(run_main: RunMain, committed: Path, family: str) -> list[str]:
    """Rewrite the file of this family, those that are not there yet, and the index. Returns the
    names of those that changed.

    Raises VectorError for a family that the definitions do not make.
    """
    with (
        tempfile.TemporaryDirectory(prefix="vectors-") as name,
        tempfile.TemporaryDirectory(prefix="claims-") as claims,
    ):
        folder = Path(name)
        for path in committed.glob("*.json"):
            if path.stem != family:
                shutil.copyfile(path, folder / path.name)
                # Lean makes no family that is claimed already.
                Path(claims, path.stem).mkdir()
        run_main(lean_files.MODULE, [str(folder.resolve()), claims])
        if not (folder / f"{family}.json").exists():
            raise VectorError(f"{family}: the Lean definitions make no family of this name.")
        write_index(folder)
        fresh = sorted(folder.glob("*.json"))
        return [p.name for p in fresh if write_changed(committed / p.name, p.read_bytes())]
