"""Make the vector files by running the Lean definitions over the exact model."""

from __future__ import annotations

import concurrent.futures
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION
from pathlib import Path

from bridge.files import write_changed
from bridge.vectors.fields import VectorError
from bridge.vectors.load import write_index

MODULE = "Attention.Vectors.Main"

# A process takes up to 0.9 GB, and 8 s of processor time before its first family.
_MOST_PROCESSES = 3

# Runs `main` of a Lean module with arguments; raises what the toolchain raises.
RunMain = Callable[[str, list[str]], None]
# Seconds between two looks at how many files there are.
_PACE = 1.0


def generate(
    run_main: RunMain, folder: Path, on_files: Callable[[int], None] = lambda number: None
) -> list[Path]:
    """Write every family's file and their index into `folder`, an existing one, and check them.

    run_main is called from several threads at once; the families are shared out between them.
    on_files is called from time to time with the number of families that are written.
    Raises VectorError for a file that is not what it should be.
    """
    processes = min(_MOST_PROCESSES, os.cpu_count() or 1)
    with (
        tempfile.TemporaryDirectory(prefix="claims-") as claims,
        concurrent.futures.ThreadPoolExecutor(processes) as pool,
    ):
        arguments = [str(folder.resolve()), claims]
        running = {pool.submit(run_main, MODULE, arguments) for _ in range(processes)}
        while running:
            done, running = concurrent.futures.wait(running, _PACE, FIRST_EXCEPTION)
            for one in done:
                one.result()
            on_files(len(list(folder.glob("*.json"))))
    write_index(folder)
    return sorted(folder.glob("*.json"))


def texts(
    run_main: RunMain, on_files: Callable[[int], None] = lambda number: None
) -> dict[str, str]:
    """The files that the definitions yield now, by name; on_files and errors as `generate` has."""
    with tempfile.TemporaryDirectory(prefix="vectors-") as name:
        paths = generate(run_main, Path(name), on_files)
        return {path.name: path.read_text("utf-8") for path in paths}


def differences(made: Mapping[str, str], committed: Path) -> list[str]:
    """How the committed files differ from the `texts` that were made, one sentence each."""
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
            found.append(
                f"{file} differs from what the Lean definitions yield, first in line {line}"
            )
    return found


def replace(run_main: RunMain, committed: Path) -> list[str]:
    """Write the committed files anew; the names of those that changed."""
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
    """Write the file of this family anew, those that are not there yet, and the index; the names of
    those that changed.

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
                # What is claimed is not made.
                Path(claims, path.stem).mkdir()
        run_main(MODULE, [str(folder.resolve()), claims])
        if not (folder / f"{family}.json").exists():
            raise VectorError(f"{family}: the Lean definitions make no family of this name.")
        write_index(folder)
        fresh = sorted(folder.glob("*.json"))
        return [p.name for p in fresh if write_changed(committed / p.name, p.read_bytes())]
