"""Small Lean projects, and the prepared embedded Lean that the tests here share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.prepare import Embedded, prepare

LAKEFILE = "import Lake\nopen Lake DSL\n\npackage small\n\n@[default_target]\nlean_lib Small\n"


@pytest.fixture(scope="session")
def prepared() -> Embedded:
    """The embedded Lean of the user's cache, prepared now if it is not there."""
    return prepare(print)


@pytest.fixture(scope="session")
def make_project(
    prepared: Embedded, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[dict[str, str]], EmbeddedLean]:
    """Makes a project with a library `Small` of the given modules, all imported by its root."""

    def make(sources: dict[str, str]) -> EmbeddedLean:
        root = tmp_path_factory.mktemp("project")
        (root / "lakefile.lean").write_text(LAKEFILE, "utf-8")
        imports = "".join(f"public import Small.{name}\n" for name in sources)
        (root / "Small.lean").write_text(f"module\n{imports}", "utf-8")
        (root / "Small").mkdir()
        for name, text in sources.items():
            (root / "Small" / f"{name}.lean").write_text(f"module\n{text}", "utf-8")
        return EmbeddedLean(root, prepared)

    return make
