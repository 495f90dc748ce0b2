"""docs/check-your-kernel.md, step by step: the function as it stands after each, the command of the
page, and the output that the page shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "check-your-kernel.md").read_text("utf-8")
CODE = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
(COMMAND,) = re.findall(r"^    \.venv/bin/python (-m bridge .*)$", TEXT, re.MULTILINE)
SAID = re.findall(r"```\nfails, the smallest input first:\n  (.*)\n```", TEXT)


def steps() -> list[str]:
    """The file after each step: a step gives lines in place of one line."""
    first, infinite, nothing = CODE
    (large,) = [line for line in first.splitlines(keepends=True) if "-10000.0" in line]
    second = first.replace(large, infinite)
    last = second.splitlines(keepends=True)[-1]
    assert second.count(last) == 1
    return [first, second, second.replace(last, nothing)]


@pytest.mark.parametrize(
    "step", [0, *(pytest.param(later, marks=pytest.mark.thorough) for later in (1, 2))]
)
def test_each_step_does_what_the_page_says(step: int, tmp_path: Path) -> None:
    (tmp_path / "my_kernel.py").write_text(steps()[step], "utf-8")
    done = subprocess.run(
        [sys.executable, *shlex.split(COMMAND)],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == (0 if step == 2 else 1), done.stdout + done.stderr
    said = re.sub(r"\s+", " ", done.stdout)
    if step < 2:
        assert f"fails, the smallest input first: {SAID[step]}" in said
    else:
        assert "the smallest input" not in said
        assert re.search(r"fully-masked │ 18 │ 0 │ 0", said)
