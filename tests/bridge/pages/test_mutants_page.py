"""`docs/mutants.md`: each edit is one of the sources."""

from __future__ import annotations

from pathlib import Path

from bridge.conformance.mutants.attention import EQUIVALENT, MUTANTS
from bridge.conformance.mutants.modules import MODULE_MUTANTS
from bridge.pages import mutants_page

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / mutants_page.PAGE).read_text("utf-8")


def test_every_mutant_is_there_with_lines_of_its_file() -> None:
    blocks = TEXT.split("```diff\n")[1:]
    assert len(blocks) == len(MUTANTS) + len(MODULE_MUTANTS) + len(EQUIVALENT)
    planted = MUTANTS + MODULE_MUTANTS
    edits = [one for some in mutants_page.by_file(planted).values() for one in some]
    assert {one.mutant.name for one in edits} == {mutant.name for mutant in planted}
    for one in edits:
        assert f"**{one.mutant.name}**: {one.mutant.description}." in TEXT
        source = (ROOT / "pyimpl" / one.mutant.file).read_text("utf-8")
        gone = [line[2:] for line in one.diff.splitlines() if line.startswith("- ")]
        assert "\n".join(gone) in source
