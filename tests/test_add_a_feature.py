"""docs/add-a-feature.md, from its first line to its last: each file, patch and command of the page
in a copy of the checkout, with the output that the page shows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from checkout_copy import ROOT, copy_of
from page_steps import follow, run, steps

PAGE = ROOT / "docs" / "add-a-feature.md"


def test_its_files_and_patches_fit(tmp_path: Path) -> None:
    """All edits of the page, without its commands."""
    copy_of(ROOT, tmp_path, built=False)
    assert run("git init -q", tmp_path) == (0, "")
    edits = [one for one in steps(PAGE.read_text("utf-8")) if one.kind not in ("command", "output")]
    assert len(edits) >= 10
    follow(edits, tmp_path)


# It builds Lean three times over: five minutes.
@pytest.mark.thorough
@pytest.mark.long
def test_every_step_does_what_the_page_says(tmp_path: Path) -> None:
    copy_of(ROOT, tmp_path)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    status, said = run("git init -q && git add . && git commit -qm base", tmp_path)
    assert status == 0, said
    page = steps(PAGE.read_text("utf-8"))
    kinds = {step.kind for step in page}
    assert kinds == {"file", "append", "patch", "command", "output"}
    follow(page, tmp_path)
    # It ends with taking everything back.
    assert run("git status --porcelain", tmp_path) == (0, "")


WRONG = {
    "other output": ("    echo one\n\n```\ntwo\n```\n", r"(?s)^two.*is not in.*one"),
    "a command that fails": ("Do this:\n\n    false\n", "false: 1"),
    "a command that does not fail": ("And this fails:\n\n    true\n", "true: 0"),
    "a file that is there": ("Save as `there`:\n\n```python\nx\n```\n", "there is there already"),
    "a patch of other lines": (
        "```diff\n--- a/there\n+++ b/there\n@@ -1 +1 @@\n-other\n+new\n```\n",
        "patch does not apply",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_not_as_the_page_says_is_seen(what: str, tmp_path: Path) -> None:
    page, said = WRONG[what]
    (tmp_path / "there").write_text("these\n", "utf-8")
    with pytest.raises(AssertionError, match=said):
        follow(steps(page), tmp_path)
