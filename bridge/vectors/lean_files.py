"""The vector files as Lean writes them, by running its definitions over the exact model."""

from __future__ import annotations

import concurrent.futures
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION
from pathlib import Path

MODULE = "Attention.Vectors.Main"

# A process takes up to 0.9 GB, and 8 s of processor time before its first family.
_MOST_PROCESSES = 3

# Runs `main` of a Lean module with arguments; raises the toolchain's errors.
RunMain = Callable[[str, list[str]], None]
# Seconds between two looks at how many files there are.
_PACE = 1.0


def write(
    run_main: RunMain, folder: Path, on_files: Callable[[int], None] = lambda number: None
) -> None:
    """Write every family's file into `folder`, an existing one; none of them is checked.

    run_main is called from several threads at once; the families are shared out between them.
    on_files is called from time to time with the number of families that are written.
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


def texts(
    run_main: RunMain, on_files: Callable[[int], None] = lambda number: None
) -> dict[str, str]:
    """The files, by name; on_files as `write` has it."""
    with tempfile.TemporaryDirectory(prefix="vectors-") as name:
        write(run_main, Path(name), on_files)
        return {path.name: path.read_text("utf-8") for path in Path(name).glob("*.json")}
