"""Triton's cache packed into few files, and unpacked on another machine: of each kernel the binary
and Triton's notes on it.

A group file of Triton's cache names the files of a kernel by their paths, so it is rewritten.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from bridge.files import write_whole

# Bytes of a file, and how many there may be.
LARGEST, MOST = 15 << 20, 3
_MEMBER = re.compile(r"(?P<folder>[A-Z0-9]+)/(?P<file>\w[\w.-]*\.(?:json|cubin))")
_GROUP = "__grp__"


def pack(cache: Path, target: Path, *, largest: int = LARGEST, most: int = MOST) -> list[Path]:
    """Write `cache-0.zip`, … into `target`, the newest kernels first, until `most` are full."""
    written: list[Path] = []
    content, archive = _new()
    for folder in _kernels(cache):
        files = {
            path.name: path.read_bytes() for path in sorted(folder.iterdir()) if _is_wanted(path)
        }
        # Compressed they are smaller; then there is room in any case.
        size = sum(map(len, files.values()))
        if content.tell() and content.tell() + size > largest:
            written.append(_close(content, archive, target / f"cache-{len(written)}.zip"))
            if len(written) == most:
                return written
            content, archive = _new()
        for name, data in files.items():
            archive.writestr(f"{folder.name}/{name}", data)
    if content.tell():
        written.append(_close(content, archive, target / f"cache-{len(written)}.zip"))
    return written


def unpack(folder: Path, cache: Path) -> int:
    """Put the kernels of `cache-*.zip` in `folder` into Triton's cache. Returns their number. A
    file that is damaged is left out, and so are members that belong to no kernel."""
    count = 0
    for path in sorted(folder.glob("cache-*.zip")):
        try:
            with zipfile.ZipFile(path) as archive:
                count += _unpack(archive, cache)
        except (OSError, zipfile.BadZipFile):
            continue
    return count


def _unpack(archive: zipfile.ZipFile, cache: Path) -> int:
    kernels: dict[str, list[str]] = {}
    for member in archive.namelist():
        if found := _MEMBER.fullmatch(member):
            kernels.setdefault(found["folder"], []).append(found["file"])
    for name, files in kernels.items():
        target = cache / name
        target.mkdir(parents=True, exist_ok=True)
        for file in files:
            write_whole(target / file, archive.read(f"{name}/{file}"))
        for metadata in (file for file in files if file.endswith(".json")):
            paths = {file: str((target / file).resolve()) for file in files}
            write_whole(target / f"{_GROUP}{metadata}", json.dumps({"child_paths": paths}))
    return len(kernels)


def _kernels(cache: Path) -> Iterator[Path]:
    """The folders of finished kernels, the newest first."""
    found = [path.parent for path in cache.glob(f"*/{_GROUP}*.json")]
    yield from sorted(set(found), key=lambda path: path.stat().st_mtime, reverse=True)


def _is_wanted(path: Path) -> bool:
    return _MEMBER.fullmatch(f"{path.parent.name}/{path.name}") is not None and not (
        path.name.startswith(_GROUP)
    )


def _new() -> tuple[io.BytesIO, zipfile.ZipFile]:
    content = io.BytesIO()
    return content, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED)


def _close(content: io.BytesIO, archive: zipfile.ZipFile, path: Path) -> Path:
    archive.close()
    write_whole(path, content.getvalue())
    return path
