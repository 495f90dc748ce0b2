"""Whether the kernels' committed Lean texts are what Triton compiles."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bridge import limits

TRANSLATE = ("-m", "bridge", "translate", "--kernels", "--check")
# What the answer depends on, beside Triton's version.
SOURCES = (
    *("pyimpl", "Attention/Kernel/Generated", "bridge/ttir"),
    *("bridge/templates.py", "bridge/interpreting.py"),
)
# It takes 25 s of processor time.
_LIMIT = limits.Limit(300.0)


def compare(root: Path) -> dict[str, Any]:
    """A section of the report. said: in words; compared: False with a Triton that the texts are not
    known of.

    In a process of its own: in one where Triton interprets its kernels it compiles none.
    """
    try:
        done = limits.run([sys.executable, *TRANSLATE], _LIMIT, cwd=root)
    except limits.LimitPassed as error:
        return {"ok": False, "compared": False, "said": "", "problems": [str(error)]}
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    if done.returncode:
        return {"ok": False, "compared": True, "said": "", "problems": lines}
    said = "\n".join(lines)
    return {"ok": True, "compared": not said.startswith("not compared"), "said": said}
