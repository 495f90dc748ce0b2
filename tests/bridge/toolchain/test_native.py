"""A native Lean, played by a script: its arguments, and how its answers are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.native import NativeLean, module_results

OUTPUT = """\
⚠ [2/5] Replayed Small.A
warning: Small/A.lean:3:12: unused variable `n`

Note: This linter can be disabled with `set_option linter.unusedVariables false`
✔ [3/5] Built Small.B (1.2s)
ℹ [3/5] Built Small.I (245ms)
info: Small/I.lean:1:0: 3
✖ [4/5] Building Small.C (890ms)
trace: .> LEAN_PATH=/project/.lake/build/lib/lean lean Small/C.lean -o C.olean
error: Small/C.lean:4:2: unsolved goals
n : Nat
h : n = 1
⊢ False
error: Small/C.lean:9:0: unexpected end of input
error: Lean exited with code 1
Some required targets logged failures:
- Small.C
error: build failed
"""


def test_output_of_a_build() -> None:
    found = {result.name: result for result in module_results(OUTPUT)}
    assert list(found) == ["Small.A", "Small.B", "Small.I", "Small.C"]
    a, b, c = found["Small.A"], found["Small.B"], found["Small.C"]
    assert (a.ok, a.reused, b.ok, b.reused, c.ok) == (True, True, True, False, False)
    assert (b.seconds, b.number, b.total) == (1.2, 3, 5)
    (warning,) = a.messages
    assert warning.text.startswith("unused variable `n`\n\nNote: ")
    first, second = c.messages
    assert (first.severity, first.file, first.line, first.column) == ("error", "Small/C.lean", 4, 2)
    assert first.text == "unsolved goals\nn : Nat\nh : n = 1\n⊢ False"
    assert second.text == "unexpected end of input"
    assert found["Small.I"].messages[0].severity == "info"


class FakeLake:
    """A project, and a `lake` that writes down its arguments and prints a given text."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lake = root / "bin" / "lake"
        self.lake.parent.mkdir()
        (root / "lakefile.lean").write_text("package p\nlean_lib Small\n")
        (root / "Small.lean").write_text("module\n")
        self.says = {"--version": "Lake version 5.0.0-src (Lean version 4.28.0)\n"}
        self.status: dict[str, int] = {}

    def lean(self) -> NativeLean:
        cases = ""
        for number, (words, text) in enumerate(self.says.items()):
            answer = self.root / f"answer{number}"
            answer.write_text(text, "utf-8")
            status = self.status.get(words, 0)
            cases += f"*'{words}'*) cat '{answer}'; exit {status};;\n"
        log = self.root / "log"
        self.lake.write_text(f'#!/bin/sh\necho "$*" >> \'{log}\'\ncase "$*" in\n{cases}esac\n')
        self.lake.chmod(0o755)
        return NativeLean(self.root, self.lake)

    def requests(self) -> list[str]:
        return (self.root / "log").read_text("utf-8").splitlines()


@pytest.fixture
def fake(tmp_path: Path) -> FakeLake:
    return FakeLake(tmp_path)


def test_build(fake: FakeLake) -> None:
    fake.says["build Small.C"] = OUTPUT
    fake.status["build Small.C"] = 1
    seen: list[str] = []
    lean = fake.lean()
    result = lean.build(["Small.C"], lambda name, done: seen.append(name))
    assert lean.version == "Lake version 5.0.0-src (Lean version 4.28.0)"
    assert not result.ok
    assert result.reused == ("Small.A",)
    assert seen == [m.name for m in result.modules]
    assert fake.requests() == ["--version", "build Small.C"]


def test_build_that_fails_for_another_reason(fake: FakeLake) -> None:
    fake.says["build"] = "error: unknown target `Nowhere`\n"
    fake.status["build"] = 1
    with pytest.raises(ToolchainError, match="lake build failed: unknown target `Nowhere`"):
        fake.lean().build(["Nowhere"])


def test_a_program_that_fails_says_why(fake: FakeLake) -> None:
    fake.says["env lean --run"] = "uncaught exception: no such file\n"
    fake.status["env lean --run"] = 1
    with pytest.raises(ToolchainError, match="uncaught exception: no such file"):
        fake.lean().run("Small.Program", ["a"])
    assert fake.requests()[-1].endswith("RunSmallProgram.lean a")
    script = fake.root / "build" / "lean" / "RunSmallProgram.lean"
    # No module: such a file sees all that it imports, private parts too.
    assert script.read_text("utf-8").startswith("import Small.Program\ndef main")


def constant(name: str, **other: Any) -> str:
    base = {
        "name": name,
        "private": False,
        "internal": False,
        "module": "Small",
        "kind": "theorem",
        "unsafe": False,
        "axioms": [],
        "mentions": [],
        "first_line": 3,
        "last_line": 4,
        "class": False,
        "instance_of": None,
        "implemented_by": False,
        "extern": False,
    }
    return "@@ " + json.dumps({**base, **other}) + "\n"


def run_audit(fake: FakeLake, listing: str, printed: str, replay: dict[str, Any]) -> NativeLean:
    fake.says["env lean --run"] = f"some noise\n{listing}@@ {json.dumps(replay)}\n"
    fake.says["env lean"] = printed
    return fake.lean()


SOUND = constant("f'", axioms=["propext"]) + constant("hidden", private=True)
AXIOMS = "'f'' depends on axioms: [propext,\n Quot.sound]\n"


def test_audit(fake: FakeLake) -> None:
    listing = SOUND + constant("f.eq_1", first_line=0, last_line=0)
    lean, reached = run_audit(fake, listing, AXIOMS, {"replayed": 3, "problem": None}), []
    audit = lean.audit(on_checked=lambda checked, of: reached.append((checked, of)))
    assert audit.ok, audit.problems
    assert [d.name for d in audit.declarations] == ["_private.Small.0.hidden", "f'"]
    assert audit.replayed == 3
    assert reached == [(3, 3)]
    script = fake.root / "build" / "lean" / "PrintAxioms.lean"
    assert script.read_text("utf-8") == "import Small\n#print axioms f'\n"


@pytest.mark.parametrize(
    ("listing", "printed", "problem", "finding"),
    [
        (SOUND, "'f'' depends on axioms: [sorryAx]", None, "f' rests on sorryAx"),
        (SOUND, "", None, "#print axioms answered for 0 of 1 theorems"),
        (SOUND, AXIOMS, "declaration type mismatch", "does not accept the stored proofs: decl"),
        (SOUND + constant("g", axioms=["sorryAx"], private=True), AXIOMS, None, "g uses sorry"),
        (SOUND + constant("u", kind="definition", unsafe=True), AXIOMS, None, "u is unsafe"),
    ],
)
def test_findings(
    fake: FakeLake, listing: str, printed: str, problem: str | None, finding: str
) -> None:
    replay = {"replayed": 2, "problem": problem}
    (found,) = run_audit(fake, listing, printed, replay).audit().problems
    assert finding in found


def test_an_audit_that_ends_early(fake: FakeLake) -> None:
    fake.says["env lean --run"] = SOUND
    with pytest.raises(ToolchainError, match="ended before the stored proofs"):
        fake.lean().audit()


def test_a_lake_that_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="does not start: No such file"):
        NativeLean(tmp_path, tmp_path / "lake")
