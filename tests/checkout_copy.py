"""A copy of the checkout, for tests that edit it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def copy_of(source: Path, target: Path, *, built: bool = True) -> None:
    """The files of the project and, if `built`, its build outputs, without the environment."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in listed:
        if (source / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name)
    if built and (source / "build").exists():
        shutil.copytree(source / "build", target / "build", copy_function=_copy_if_there)


def _copy_if_there(source: str, target: str) -> None:
    """A file that a build beside the tests has not moved to its place meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)
