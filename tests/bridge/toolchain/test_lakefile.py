"""The declarative subset of `lakefile.lean`."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.toolchain import lakefile
from bridge.toolchain.errors import ToolchainError

ROOT = Path(__file__).resolve().parents[3]


def read(folder: Path, text: str) -> lakefile.Lakefile:
    path = folder / "lakefile.lean"
    path.write_text(text, "utf-8")
    return lakefile.read(path)


def test_the_one_of_this_project() -> None:
    declared = lakefile.read(ROOT / "lakefile.lean")
    assert declared.defaults == ("Attention",)
    # A misspelt name in a statement is an error, and not a new variable.
    assert declared.options == (("autoImplicit", False),)


def test_options_of_the_package(tmp_path: Path) -> None:
    text = "package p where\n  leanOptions := #[⟨`a.b, true⟩, ⟨`c, false⟩]\nlean_lib A\n"
    assert read(tmp_path, text).options == (("a.b", True), ("c", False))
    assert read(tmp_path, "package p\nlean_lib A\n").options == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("package p where\nlean_lib A\n", r"lakefile\.lean:2: 'lean_lib A' is not understood"),
        ("package p where\n  leanOptions := #[⟨`a, 3⟩]\n", r"lakefile\.lean:2: 'leanOptions"),
        ("package p\n  leanOptions := #[⟨`a, true⟩]\n", r"lakefile\.lean:2: 'leanOptions"),
        ("lean_lib A\npackage p where\n", "no leanOptions follow `package p where`"),
        ('package p where\nrequire a from "a"\n', r"lakefile\.lean:2: 'require a from \"a\"' is"),
        ('package p\n@[default_target]\nrequire a from "a"\n', r"lakefile\.lean:3: 'require a"),
    ],
)
def test_options_in_another_place_or_form(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ToolchainError, match=sentence):
        read(tmp_path, text)


def test_defaults_are_the_marked_libraries(tmp_path: Path) -> None:
    text = "package p -- a\nlean_lib A\n/- lean_lib X -/\n@[default_target]\nlean_lib B\n"
    assert read(tmp_path, text) == lakefile.Lakefile("p", ("A", "B"), ("B",))
    assert read(tmp_path, "package p\nlean_lib A\nlean_lib «B»\n").defaults == ("A", "B")


def test_packages_that_it_requires(tmp_path: Path) -> None:
    text = 'package p\nrequire a from "../a b" -- beside\n  require «c-d» from "/c"\nlean_lib A\n'
    assert read(tmp_path, text).requires == (("a", "../a b"), ("c-d", "/c"))
    assert read(tmp_path, "package p\nlean_lib A\n").requires == ()
    # An escape in a literal is not read as one.
    with pytest.raises(ToolchainError, match="is not understood"):
        read(tmp_path, 'package p\nrequire a from "..\\x2fa"\nlean_lib A\n')


@pytest.mark.parametrize(
    "line",
    [
        "lean_exe tool",
        'require "mathlib"',
        'require a from git "https://example.org/a" @ "main"',
        'require a from ".." / "a"',
        'require a from "../a" with NameMap.empty',
        'require a @ "1" from "../a"',
        "lean_lib A where",
        "package q",
        "  srcDir := 1",
        "@[default_target] package q",
    ],
)
def test_anything_else_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        read(tmp_path, f"package p\nlean_lib A\n{line}\n")
    assert "lakefile.lean:3:" in str(caught.value)
    assert line.strip() in str(caught.value)


def test_no_library(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="at least one lean_lib"):
        read(tmp_path, "package p\n")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="cannot be read"):
        lakefile.read(tmp_path / "lakefile.lean")


def test_a_mark_without_a_library(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"no lean_lib follows the last"):
        read(tmp_path, "package p\nlean_lib A\n@[default_target]\n")
