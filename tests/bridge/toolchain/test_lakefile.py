"""What is read of `lakefile.toml`."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.toolchain import lakefile
from bridge.toolchain.errors import ToolchainError

ROOT = Path(__file__).resolve().parents[3]
ONE = 'name = "p"\n[[lean_lib]]\nname = "A"\n'


def read(folder: Path, text: str) -> lakefile.Lakefile:
    (folder / lakefile.FILE).write_text(text, "utf-8")
    return lakefile.read(folder)


def test_the_one_of_this_project() -> None:
    declared = lakefile.read(ROOT)
    assert declared.defaults == ("Attention",)
    # A misspelt name in a statement is an error, and not a new variable.
    assert declared.options == (("autoImplicit", False),)


def test_defaults_are_those_named_or_all(tmp_path: Path) -> None:
    two = f'{ONE}[[lean_lib]]\nname = "B"\n'
    named = 'defaultTargets = ["B"]\nleanOptions."a.b" = true\n'
    options = (("a.b", True),)
    assert read(tmp_path, named + two) == lakefile.Lakefile("p", ("A", "B"), ("B",), options)
    assert read(tmp_path, two) == lakefile.Lakefile("p", ("A", "B"), ("A", "B"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f'{ONE}srcDir = "src"\n', "unknown field `srcDir` - at `\\$.lean_lib\\[0\\]`"),
        (f'{ONE}[[lean_exe]]\nname = "tool"\n', "unknown field `lean_exe`"),
        (f"leanOptions.a = 3\n{ONE}", "Expected `bool`, got `int`"),
        ('name = "p"\n', "missing required field `lean_lib`"),
        ('name = "p"\nlean_lib = []\n', "length >= 1"),
        ("name = p\n", "Invalid value"),
    ],
)
def test_anything_else_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ToolchainError, match=sentence) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith("lakefile.toml is not understood by the embedded build")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"lakefile\.toml cannot be read"):
        lakefile.read(tmp_path)
