"""Packages that require others: the package of a module, the modules that are built again, and
where they are kept.

A stand-in plays the driver: it "builds" a module by writing down the request.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import filelock
import pytest
from edits import edit

from bridge.toolchain import packages
from bridge.toolchain.embedded import EmbeddedLean
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.node import Node
from bridge.toolchain.prepare import Embedded
from bridge.toolchain.process import Runtime


def put(root: Path, name: str, *requires: str, **sources: str) -> Path:
    """A package with a library of these modules; those that it requires lie beside it."""
    folder = root / name
    folder.mkdir(exist_ok=True)
    lines = [f"package {name} where", f"  leanOptions := #[⟨`{name}, true⟩]"]
    lines += [f'require {other} from "../{other}"' for other in requires]
    lines += [f"lean_lib {library}" for library in sources]
    (folder / "lakefile.lean").write_text("\n".join(lines), "utf-8")
    for library, text in sources.items():
        (folder / f"{library}.lean").write_text(text, "utf-8")
    return folder


def test_whose_a_module_is(tmp_path: Path) -> None:
    put(tmp_path, "base", B="")
    put(tmp_path, "middle", "base", M="import B\n")
    outer = put(tmp_path, "outer", "middle", "base", A="import M\nimport B\n")
    found = packages.read(outer)
    assert [one.lakefile.package for one in found.all] == ["outer", "middle", "base"]
    whose = {name: found.of(name).lakefile.package for name in ("A", "M.X", "B", "MM")}
    assert whose == {"A": "outer", "M.X": "middle", "B": "base", "MM": "outer"}
    assert [m.name for m in found.closure(["A"])] == ["B", "M", "A"]


@pytest.mark.parametrize(
    ("name", "requires", "library", "sentence"),
    [
        ("outer", "nowhere", "A", r'requires nowhere from "\.\./nowhere", and .*has no lakefile'),
        ("outer", "other", "A", r"requires other from .*, and the package in .* is another"),
        ("outer", "base", "B", "the packages outer and base both have modules of B"),
        ("base", "base", "A", "are both the package base"),
    ],
)
def test_packages_that_do_not_fit(
    name: str, requires: str, library: str, sentence: str, tmp_path: Path
) -> None:
    put(tmp_path, "base", B="")
    put(tmp_path, "another", C="").rename(tmp_path / "other")
    outer = put(tmp_path, "folder", requires, **{library: ""})
    edit(outer / "lakefile.lean", "package folder", f"package {name}")
    with pytest.raises(ToolchainError, match=sentence):
        packages.read(outer)


class Played(EmbeddedLean):
    """Builds a module by leaving its outputs, and fails where the source says so."""

    def __init__(self, root: Path) -> None:
        runtime = Runtime(Node(Path(), (), "20"), Path())
        super().__init__(root, Embedded(runtime, Path(), "played", "b"))
        self.asked: list[str] = []

    def _elaborate(self, module: Any, stops: int) -> tuple[list[dict[str, Any]], float]:
        self.asked.append(module.name)
        for path in self.stores.of(module.name).outputs(module.name):
            path.write_text("")
        shown = {"shown": module.text.partition("--")[0]}
        return [shown, {"done": module.name, "ok": "sorry" not in module.text, "problem": ""}], 0.0

    def requests(self) -> list[str]:
        """The requests of a build."""
        self.asked.clear()
        self.build()
        return list(self.asked)


@pytest.fixture
def outer(tmp_path: Path) -> Played:
    put(tmp_path, "base", B="def b\n")
    return Played(put(tmp_path, "outer", "base", A="import B\n", C="import A\n"))


def test_each_package_keeps_its_own_modules(outer: Played) -> None:
    assert outer.requests() == ["B", "A", "C"]
    base = Played(outer.root.parent / "base")
    assert outer.stock("B") == base.stock("B")
    assert outer.stock("A") == outer.store.stock("A")
    assert set(base.store.load()) == {"B"}
    assert set(outer.store.load()) == {"A", "C"}
    # So neither builds again a module that the other has built.
    assert outer.requests() == base.requests() == []
    assert outer._lean_path()[2:] == [
        lean.folder / "runnable" for lean in (outer, base)
    ]  # fmt: skip


def test_an_edit_of_what_is_required_reaches_those_that_can_see_it(outer: Played) -> None:
    outer.build()
    source = outer.root.parent / "base" / "B.lean"
    source.write_text("def b\n-- a remark", "utf-8")
    assert outer.requests() == ["B"]
    source.write_text("def c\n", "utf-8")
    assert outer.requests() == ["B", "A", "C"]
    # Built in its own folder meanwhile.
    source.write_text("def d\n", "utf-8")
    assert Played(source.parent).requests() == ["B"]
    assert outer.requests() == ["A", "C"]


def test_an_error_in_what_is_required(outer: Played) -> None:
    (outer.root.parent / "base" / "B.lean").write_text("sorry", "utf-8")
    result = outer.build()
    assert [(m.name, m.ok, m.skipped) for m in result.modules] == [
        ("B", False, False), ("A", False, True), ("C", False, True),
    ]  # fmt: skip
    with pytest.raises(ToolchainError, match="B is not built as it stands now"):
        outer.stored_parts()


def test_options_are_those_of_the_module_s_package(outer: Played) -> None:
    assert (outer._options("A"), outer._options("B")) == ("outer=true", "base=true")
    outer.build()
    edit(outer.root / "lakefile.lean", "`outer", "`other")
    assert outer.requests() == ["A", "C"]


def test_a_module_of_what_is_required_can_be_asked_for(outer: Played) -> None:
    assert [m.name for m in outer.build(["B"]).modules] == ["B"]
    with pytest.raises(ToolchainError, match=r"unknown target `B\.X`"):
        outer.build(["B.X"])


def test_builds_of_two_packages_wait_for_each_other_where_both_write(outer: Played) -> None:
    """The lock of a package is taken if and only if one of its modules is to be built."""
    outer.build()
    held = filelock.FileLock(outer.root.parent / "base" / "build" / "lean" / "lock")
    (outer.root / "A.lean").write_text("import B\ndef a\n", "utf-8")
    with held:
        assert outer.requests() == ["A", "C"]
    (outer.root.parent / "base" / "B.lean").write_text("def c\n", "utf-8")
    announced: list[str] = []

    def release(sentence: str) -> None:
        announced.append(sentence)
        held.release()

    outer.announce = release
    held.acquire()
    assert outer.requests() == ["B", "A", "C"]
    (said,) = announced
    assert said.startswith(f"another build of {outer.root.parent / 'base'} is running")


def test_names_of_files_lead_from_the_package(outer: Played) -> None:
    b, a, _ = outer.packages.closure(["C"])
    assert (outer._name(b), outer._name(a)) == ("../base/B.lean", "A.lean")
