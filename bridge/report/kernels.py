"""Whether the kernels' committed Lean texts are those that Triton compiles.

python -m bridge.report.kernels    # takes the results of `make verify`, and keeps its own
"""

from __future__ import annotations

import importlib.util
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bridge import limits
from bridge.cache import Cache, digest
from bridge.command import checkout
from bridge.interrupt import STATUS, end_children

TRANSLATE = ("-m", "bridge", "translate", "--kernels", "--check")
# The sources of the answer, beside Triton's version.
SOURCES = (
    *("pyimpl", "Attention/Kernel/Generated", "bridge/ttir"),
    *("bridge/templates.py", "bridge/interpreting.py"),
)
# It takes 25 s of processor time.
_LIMIT = limits.Limit(300.0)


def find(root: Path, cache: Cache) -> tuple[dict[str, Any], bool]:
    """The kept section, or that of a comparison, which is kept if all is well; and whether it was
    kept."""
    triton = version("triton") if importlib.util.find_spec("triton") is not None else "none"
    return cache.get(
        "kernels",
        digest(root, SOURCES, triton, platform.machine(), sys.version),
        lambda: compare(root),
        lambda found: bool(found["ok"]),
    )


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


def main() -> int:
    """The command line described at the top of this module; the exit status."""
    root = checkout()
    try:
        found, kept = find(root, Cache(root / "build" / "cache"))
    except KeyboardInterrupt:
        end_children()
        return STATUS
    lines = found.get("problems") or [found["said"] + ("; kept" if kept else "")]
    print(*lines, sep="\n", file=sys.stdout if found["ok"] else sys.stderr)
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
