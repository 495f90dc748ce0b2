"""Small Lean projects, and the prepared embedded Lean that the tests here share."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.prepare import Embedded, prepare

LAKEFILE = "import Lake\nopen Lake DSL\n\npackage small\n\n@[default_target]\nlean_lib Small\n"


@pytest.fixture(scope="session")
def prepared() -> Embedded:
    """The embedded Lean of the user's cache, prepared now if it is not there."""
    return prepare(print)


def write_project(root: Path, sources: dict[str, str]) -> None:
    """A project with a library `Small` of the given modules, all imported by its root."""
    (root / "lakefile.lean").write_text(LAKEFILE, "utf-8")
    imports = "".join(f"public import Small.{name}\n" for name in sources)
    (root / "Small.lean").write_text(f"module\n{imports}", "utf-8")
    (root / "Small").mkdir()
    for name, text in sources.items():
        (root / "Small" / f"{name}.lean").write_text(f"module\n{text}", "utf-8")


@pytest.fixture(scope="session")
def make_project(
    prepared: Embedded, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[dict[str, str]], EmbeddedLean]:
    """Makes a project of the given modules in a folder of its own, whose Lean starts with it."""

    def make(sources: dict[str, str]) -> EmbeddedLean:
        root = tmp_path_factory.mktemp("project")
        write_project(root, sources)
        return EmbeddedLean(root, prepared)

    return make


@pytest.fixture(scope="session")
def exchange_project(
    prepared: Embedded, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[dict[str, str]], EmbeddedLean]]:
    """Makes a project of the given modules in the place of the one that it made before, built by
    one driver that stays: for tests of builds and findings, where it does not matter when Lean
    starts. A driver uses 7 s of processor time for its first modules, and 1 s for as many more.
    """
    root = tmp_path_factory.mktemp("exchanged")
    lean = EmbeddedLean(root, prepared)

    def make(sources: dict[str, str]) -> EmbeddedLean:
        shutil.rmtree(root / "Small", ignore_errors=True)
        # The folder itself is where the driver works.
        for part in ("stock", "runnable"):
            shutil.rmtree(lean.folder / part, ignore_errors=True)
        lean.store.record.unlink(missing_ok=True)
        write_project(root, sources)
        return lean

    with lean.resident():
        yield make
