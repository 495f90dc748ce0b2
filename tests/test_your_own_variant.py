"""docs/your-own-variant.md, from its first line to its last, in a package beside this checkout: its
files, its commands and the output that it shows."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from checkout_copy import ROOT
from click.testing import CliRunner
from page_steps import follow, run, steps

from bridge.__main__ import main
from bridge.toolchain import find, lake
from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.find import native_lake

PAGE = steps((ROOT / "docs" / "your-own-variant.md").read_text("utf-8"))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """An empty folder beside one that is this checkout."""
    (tmp_path / "attention").symlink_to(ROOT)
    (tmp_path / "variant").mkdir()
    return tmp_path / "variant"


def test_the_page_has_all_kinds_of_steps() -> None:
    assert {step.kind for step in PAGE} == {"file", "append", "patch", "command", "output"}
    files = {step.name for step in PAGE if step.kind == "file"}
    assert files == {"lakefile.lean", "Variant.lean", "Axioms.lean"}
    assert [step.text.split("/")[-1] for step in PAGE if step.fails] == ["lake build"]


@pytest.mark.lean
@pytest.mark.thorough
def test_every_step_does_what_the_page_says(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the Lean that there is. An embedded one stays from build to build: a start is most of
    the time of a build here."""
    monkeypatch.chdir(package)
    (package / "lakefile.lean").write_text(PAGE[0].text, "utf-8")
    lean = find(package, announce=print)
    (package / "lakefile.lean").unlink()

    def run_here(command: str, folder: Path) -> tuple[int, str]:
        words = shlex.split(command)
        program = Path(words[0]).name
        if program == "lake" and isinstance(lean, EmbeddedLean):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                result = lake.build(lean, words[2:])
            return 0 if result.ok else 1, said.getvalue()
        if program == "bridge":
            done = CliRunner().invoke(main, words[1:])
            return done.exit_code, done.output
        # The environment of these tests may be another than that of the checkout.
        return run(command.replace("../attention/.venv", sys.prefix), folder)

    with lean.resident() if isinstance(lean, EmbeddedLean) else contextlib.nullcontext():
        follow(PAGE, package, run_here)
    if isinstance(lean, EmbeddedLean):
        # Nothing of the library is built into the reader's package.
        stock = package / "build" / "lean" / "stock"
        assert [path.name for path in stock.iterdir() if path.suffix == ".olean"] in (
            [], ["Variant.olean"],
        )  # fmt: skip
        assert not (stock / "Attention").exists()


@pytest.mark.lean
@pytest.mark.thorough
def test_lean_itself_says_the_axioms(package: Path) -> None:
    """`#print axioms`, from outside, in a file that is no module."""
    if (native := native_lake()) is None:
        pytest.skip("needs a native lake on PATH")
    edits = [step for step in PAGE if step.kind in ("file", "append")]
    follow(edits, package)
    shutil.copy(ROOT / "lean-toolchain", package)
    status, said = run(f"{shlex.quote(str(native))} build", package)
    assert status == 0, said
    status, said = run(f"{shlex.quote(str(native))} env lean Axioms.lean", package)
    assert status == 0, said
    found = re.findall(r"'(\S+)' depends on axioms: \[([^\]]*)\]", " ".join(said.split()))
    assert [name for name, _ in found] == [
        "Variant.lazy_attention",
        "Attention.Proof.flash_eq_attention",
    ]
    for _, axioms in found:
        assert set(axioms.split(", ")) <= {"propext", "Classical.choice", "Quot.sound"}
