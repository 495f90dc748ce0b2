"""Theorems whose statement says nothing: `statements.lean`, run on the library as it is built."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bridge.toolchain import Lean, ToolchainError

SCRIPT = Path(__file__).with_name("statements.lean")

# Characters of a proposition that a sentence quotes.
_QUOTED = 200
_SAYS = {
    "sides": "{conclusion} has the same term on both sides",
    "unfolded": "{conclusion} has the same on both sides, abbreviations and instances unfolded",
    "true": "{conclusion} holds of anything",
    "exists": "{conclusion} says only that something equals a term",
    "hypothesis": "{conclusion} is one of its hypotheses",
    "absurd": "its hypothesis {0} cannot hold",
    "contradiction": "its hypotheses {0} and {1} contradict each other",
}


def findings(lean: Lean, theorems: Sequence[str]) -> dict[str, str]:
    """Those of the theorems (full names) whose statement says nothing, each with why: a clause.

    Two terms count as the same up to the names of bound variables, abbreviations and what the
    fields of instances are. The library has to be built. Raises ToolchainError if Lean has no such
    theorem or the answers break off.
    """
    *answers, last = lean.read_stored(SCRIPT, "looked_at", [*theorems])
    if last["looked_at"] != len(answers):
        raise ToolchainError(f"{len(answers)} of {last['looked_at']} statements were looked at")
    return {a["theorem"]: _clause(a["found"]) for a in answers if a["found"] is not None}


def _clause(found: dict[str, Any]) -> str:
    shown = [f"`{textwrap.shorten(text, _QUOTED, placeholder=' …')}`" for text in found["shown"]]
    part = f"the part {shown[0]} of its conclusion"
    conclusion = part if found["part"] else f"its conclusion {shown[0]}"
    return _SAYS[found["what"]].format(*shown, conclusion=conclusion)
