"""`docs/faults.md`: current, and each edit is one of the sources."""

from __future__ import annotations

from pathlib import Path

from bridge.conformance.faults.attention import FAULTS, TWINS
from bridge.conformance.faults.modules import MODULE_FAULTS
from bridge.pages import faults_page

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / faults_page.PAGE).read_text("utf-8")


def test_the_page_is_current() -> None:
    assert faults_page.page() == TEXT, "run .venv/bin/python -m bridge pages"


def test_every_fault_is_there_with_lines_of_its_file() -> None:
    blocks = TEXT.split("```diff\n")[1:]
    assert len(blocks) == len(FAULTS) + len(MODULE_FAULTS) + len(TWINS)
    planted = FAULTS + MODULE_FAULTS
    edits = [one for some in faults_page.by_file(planted).values() for one in some]
    assert {one.fault.name for one in edits} == {fault.name for fault in planted}
    for one in edits:
        assert f"**{one.fault.name}**: {one.fault.description}." in TEXT
        source = (ROOT / "pyimpl" / one.fault.file).read_text("utf-8")
        gone = [line[2:] for line in one.diff.splitlines() if line.startswith("- ")]
        assert "\n".join(gone) in source
