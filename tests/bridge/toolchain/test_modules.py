"""Headers, the import graph and the hashes that decide which modules are built again."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.source.lean import blank_comments
from bridge.toolchain import modules
from bridge.toolchain.errors import ToolchainError


def put(root: Path, **sources: str) -> None:
    for name, text in sources.items():
        (root / f"{name}.lean").write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        ("module\n\npublic import A.B\nimport C\n", ["A.B", "C"]),
        ("prelude\nimport all A\npublic meta import B\nmeta import C\n", ["A", "B", "C"]),
        ("import A import B\n\ndef import_me := 1\n", ["A", "B"]),
        ("/- import No /- import Nor -/ import Neither -/ -- import Not\nimport A", ["A"]),
        ("import «odd name».B\ndef x := 1\nimport Late\n", ["odd name.B"]),
        ("", []),
    ],
)
def test_header(text: str, imports: list[str]) -> None:
    assert modules.header_imports(text) == imports


def test_comments_keep_lines() -> None:
    text = "a -- b\n/- c\n/- d -/\n-/ e\n"
    assert [line.strip() for line in blank_comments(text).splitlines()] == [
        "a",
        "",
        "",
        "e",
    ]


def test_imports_come_first_and_lean_s_own_are_left_out(tmp_path: Path) -> None:
    put(
        tmp_path,
        A="import B\nimport C\nimport Init.Data",
        B="import C\nimport Std",
        C="import Lean",
    )
    assert [m.name for m in modules.closure(tmp_path, ["A"])] == ["C", "B", "A"]
    assert [m.name for m in modules.closure(tmp_path, ["B"])] == ["C", "B"]


def test_cycle(tmp_path: Path) -> None:
    put(tmp_path, A="import B", B="import C", C="import B")
    with pytest.raises(ToolchainError, match="import cycle: B → C → B"):
        modules.closure(tmp_path, ["A"])


def test_missing_import(tmp_path: Path) -> None:
    put(tmp_path, A="import Gone.Away")
    with pytest.raises(ToolchainError, match=r"A imports Gone\.Away, but Gone/Away\.lean cannot"):
        modules.closure(tmp_path, ["A"])


def test_a_build_depends_on_the_text_the_imports_and_the_toolchain(tmp_path: Path) -> None:
    put(tmp_path, A="import B", B="")
    b, a = modules.closure(tmp_path, ["A"])
    keys = {
        modules.build_key(a, "lean", {"B": "1"}),
        modules.build_key(a, "lean", {"B": "2"}),
        modules.build_key(a, "another", {"B": "1"}),
        modules.build_key(b, "lean", {}),
    }
    assert len(keys) == 4
    assert modules.build_key(a, "lean", {"B": "1", "C": "3"}) in keys


def test_what_a_module_shows_is_its_own_and_that_of_its_imports(tmp_path: Path) -> None:
    put(tmp_path, A="import B", B="")
    b, a = modules.closure(tmp_path, ["A"])
    shown = {
        modules.interface(a, "7", {"B": "1"}),
        modules.interface(a, "8", {"B": "1"}),
        modules.interface(a, "7", {"B": "2"}),
        modules.interface(b, "7", {}),
    }
    assert len(shown) == 4
    put(tmp_path, A="import B -- with a remark")
    (_, remarked) = modules.closure(tmp_path, ["A"])
    assert modules.interface(remarked, "7", {"B": "1"}) in shown


def test_what_is_no_text(tmp_path: Path) -> None:
    put(tmp_path, A="import B")
    (tmp_path / "B.lean").write_bytes(b"module\n-- \xff")
    with pytest.raises(ToolchainError, match=r"A imports B, but B\.lean is not UTF-8 \(byte 10\)"):
        modules.closure(tmp_path, ["A"])
    (tmp_path / "B.lean").unlink()
    (tmp_path / "B.lean").mkdir()
    with pytest.raises(ToolchainError, match=r"B\.lean cannot be read: Is a directory"):
        modules.closure(tmp_path, ["A"])


def test_line_ends_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "A.lean").write_bytes(b"import B\r\nimport C\r\n")
    put(tmp_path, B="", C="")
    windows = modules.closure(tmp_path, ["A"])
    put(tmp_path, A="import B\nimport C\n")
    assert modules.closure(tmp_path, ["A"]) == windows
