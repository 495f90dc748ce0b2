"""What the results of the checks depend on: the files of the project, and what is beside them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def digests(root: Path) -> Mapping[str, str]:
    """The hash of each file of the project by its path from the root: those that git tracks or
    would, or where there is no git all but generated ones."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True,
    ) if (root / ".git").exists() else None  # fmt: skip
    if listed is not None and listed.returncode == 0:
        names = {name for name in listed.stdout.split("\0") if name}
    else:
        made = ("build/", "dist/", ".", "__pycache__/")
        every = (path.relative_to(root).as_posix() for path in root.rglob("*"))
        names = {n for n in every if not n.startswith(made) and "__pycache__" not in n}
    paths = {name: root / name for name in sorted(names)}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in paths.items()
        if path.is_file()
    }


def facts() -> list[str]:
    """The inputs of results beside the files: Python, its packages, the programs and devices that
    tests look for, and the project's own variables."""
    packages = sorted(f"{d.name}=={d.version}" for d in importlib.metadata.distributions())
    programs = [f"{p}={shutil.which(p)}" for p in ("lake", "node", "npm", "chromium", "c++")]
    devices = sorted(path.as_posix() for path in Path("/dev").glob("nvidia*"))
    own = sorted(
        f"{k}={v}" for k, v in os.environ.items() if k.startswith(("ATTENTION_", "TRITON"))
    )
    return [sys.version, *packages, *programs, *devices, *own]
