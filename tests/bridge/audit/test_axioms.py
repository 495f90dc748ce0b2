"""`bridge axioms`: its report on declarations, and its exit status, over an audit that is given.

That the audit finds axioms is tested in tests/bridge/toolchain/test_lean_audit.py, the command on a
package that depends on the library in tests/test_your_own_variant.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner

import bridge.toolchain
from bridge.__main__ import main
from bridge.audit.axioms import UnknownDeclarationError, axioms_of
from bridge.toolchain import Lean
from bridge.toolchain.audit import Audit, Declaration
from bridge.toolchain.messages import BuildResult, Message, ModuleResult


def declaration(name: str, module: str, *axioms: str, kind: str = "theorem") -> Declaration:
    return Declaration(name, kind, module, f"{module}.lean", 1, 2, axioms, (), False, None)


DECLARATIONS = (
    declaration("base", "Base", "sorryAx"),
    declaration("own", "Own.Part", "propext", "Classical.choice"),
    declaration("Own.value", "Own", kind="definition"),
    declaration("bare", "Own"),
)


class Played:
    """A Lean that has built and audited a package `own`, which requires another."""

    def __init__(self, root: Path, problems: Sequence[str] = (), error: str = "") -> None:
        (root / "lakefile.lean").write_text("package own\nlean_lib Own\n", "utf-8")
        self.root, self.problems, self.error = root, problems, error

    def build(self) -> BuildResult:
        said = (Message("error", "Own.lean", 3, 0, self.error),) if self.error else ()
        return BuildResult((ModuleResult("Own", not said, messages=said),), 0.0)

    def audit(self, *, replay: bool) -> Audit:
        assert not replay
        return Audit(DECLARATIONS, tuple(self.problems), 0, "7 theorems are taken on trust")


def run(lean: Played, monkeypatch: pytest.MonkeyPatch, *names: str) -> tuple[int, list[str]]:
    monkeypatch.chdir(lean.root)
    monkeypatch.setattr(bridge.toolchain, "find", lambda root, announce: lean)
    done = CliRunner().invoke(main, ["axioms", *names])
    return done.exit_code, done.output.splitlines()


def test_the_theorems_of_the_package_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(Played(tmp_path), monkeypatch) == (
        0,
        [
            "'own' depends on axioms: [Classical.choice, propext]",
            "'bare' does not depend on any axioms",
            "7 theorems are taken on trust",
        ],
    )


def test_declarations_by_name(tmp_path: Path) -> None:
    lean = cast(Lean, Played(tmp_path))
    assert axioms_of(lean, ["base", "Own.value"]).lines == (
        "'base' depends on axioms: [sorryAx]",
        "'Own.value' does not depend on any axioms",
    )
    with pytest.raises(UnknownDeclarationError, match="'other' is no declaration of the package"):
        axioms_of(lean, ["own", "other"])


def test_a_finding_in_whichever_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the theorems that are asked for do not need it."""
    lean = Played(tmp_path, ["../base/Base.lean: base uses sorry"])
    status, said = run(lean, monkeypatch, "bare")
    assert status == 1
    assert said[1].endswith("../base/Base.lean: base uses sorry")


def test_a_package_that_does_not_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, said = run(Played(tmp_path, error="unsolved goals"), monkeypatch)
    assert status == 1
    assert "error: Own.lean:3:0: unsolved goals" in "".join(said)


def test_what_the_user_can_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lean = Played(tmp_path)
    assert run(lean, monkeypatch, "other") == (
        2,
        ["Error: NAME: 'other' is no declaration of the package, nor of its imports"],
    )
    (tmp_path / "lakefile.lean").unlink()
    status, (said,) = run(lean, monkeypatch)
    assert (status, said) == (2, f"Error: no lakefile.lean in {tmp_path}")
