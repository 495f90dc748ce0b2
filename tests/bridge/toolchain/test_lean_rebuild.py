"""Which modules are built again after an edit: those that can see it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.toolchain.embedded import EmbeddedLean

Make = Callable[[dict[str, str]], EmbeddedLean]

FIRST = """public section
@[expose] def twice (n : Nat) : Nat := n + n
theorem twice_zero : twice 0 = 0 := rfl
theorem le_twice (n : Nat) : n ≤ twice n := by
  simp only [twice]; omega
private theorem aside : twice 1 = 2 := by decide
"""
SECOND = (
    "public import Small.First\npublic section\ntheorem le (n : Nat) : n ≤ twice n := le_twice n\n"
)
THIRD = "public import Small.Second\npublic section\ntheorem le_one : 1 ≤ twice 1 := le 1\n"

# (a text of FIRST, its replacement, whether importers can see it)
EDITS = {
    "comment": ("public section", "-- a remark\n\npublic section", False),
    "documentation": ("theorem le_t", "/-- At least. -/\ntheorem le_t", False),
    "proof": ("simp only [twice]; omega", "unfold twice\n  exact Nat.le_add_left n n", False),
    "proof that holds by definition no more": (":= rfl", ":= by simp [twice]", True),
    "statement": ("n ≤ twice n", "n < twice n + 1", True),
    "name": ("le_twice", "le_double", True),
    "definition": ("n + n", "2 * n", True),
    "attribute": ("theorem le_t", "@[simp] theorem le_t", True),
    "private theorem": ("aside", "askew", True),
    "brackets": ("≤ twice n", "≤ twice (n)", True),
    "new instance": ("private", "instance : Inhabited (Fin 3) := ⟨1⟩\nprivate", True),
    "new notation": ("private", 'notation "two" => 2\nprivate', True),
}


@pytest.fixture(scope="module")
def built(
    exchange_project: Make, tmp_path_factory: pytest.TempPathFactory
) -> tuple[EmbeddedLean, Path]:
    """Three modules in a row, built, and a copy of the build's outputs; the driver stays."""
    lean = exchange_project({"First": FIRST, "Second": SECOND, "Third": THIRD})
    result = lean.build()
    assert result.ok, [str(m) for m in result.messages]
    copy = tmp_path_factory.mktemp("built") / "lean"
    shutil.copytree(lean.folder, copy)
    return lean, copy


@pytest.fixture
def chain(built: tuple[EmbeddedLean, Path]) -> EmbeddedLean:
    """The project as it was built first, whatever another test has edited."""
    lean, copy = built
    edit(lean, FIRST)
    shutil.copytree(copy, lean.folder, dirs_exist_ok=True)
    # The restored copy is whole: nothing is built again.
    assert lean.build().built == ()
    return lean


def edit(lean: EmbeddedLean, text: str) -> None:
    (lean.root / "Small" / "First.lean").write_text(f"module\n{text}", "utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_reaches_those_that_can_see_it(chain: EmbeddedLean, name: str) -> None:
    old, new, seen = EDITS[name]
    assert old in FIRST
    edit(chain, FIRST.replace(old, new, 1))
    again = {module.name for module in chain.build().modules if not module.reused}
    assert again == {"Small.First", *(["Small.Second", "Small.Third", "Small"] if seen else [])}


@pytest.mark.thorough
def test_what_was_reused_is_what_a_clean_build_yields(chain: EmbeddedLean) -> None:
    old, new, _ = EDITS["proof"]
    edit(chain, FIRST.replace(old, new, 1))
    assert chain.build().built == ("Small.First",)
    audit = chain.audit()
    assert audit.ok, audit.problems
    assert audit.replayed > 0


def test_an_error_reaches_all_that_need_the_module(chain: EmbeddedLean) -> None:
    edit(chain, FIRST.replace("by decide", "by omega"))
    result = chain.build()
    assert {m.name for m in result.modules if m.skipped} == {"Small.Second", "Small.Third", "Small"}
    assert {m.file for m in result.messages if m.severity == "error"} == {"Small/First.lean"}


def test_the_options_of_the_lakefile_hold_and_are_part_of_the_build(chain: EmbeddedLean) -> None:
    """A misspelt `n` in a statement: a variable of its own, unless the lakefile forbids that."""
    lakefile = chain.root / "lakefile.lean"
    before = lakefile.read_text("utf-8")
    edit(chain, FIRST + "theorem misspelt (n : Nat) : m + 0 = m := Nat.add_zero m\n")
    assert chain.build(["Small.First"]).ok
    options = " where\n  leanOptions := #[⟨`autoImplicit, false⟩]\n"
    lakefile.write_text(before.replace("package small\n", f"package small{options}"), "utf-8")
    errors = [m.text for m in chain.build(["Small.First"]).messages if m.severity == "error"]
    lakefile.write_text(before, "utf-8")
    assert errors
    assert all("nknown identifier `m`" in error for error in errors)
