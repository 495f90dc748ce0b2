"""The statements of theorems as Lean has stored them: in full, and which of them say nothing.

`statements.lean` is run on the library as it is built.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.cache import Cache, digest
from bridge.source.lean import declarations
from bridge.toolchain import Lean

SCRIPT = Path(__file__).with_name("statements.lean")
# The files below `bridge` that decide, beside the library, the result of `read`.
SOURCES = ("audit/statements.py", "audit/statements.lean", "source/lean.py")

# The sources of a statement, but for the version of Lean.
_LIBRARY = ("Attention", "Attention.lean")
_KEPT = "elaborated"

# Characters of a proposition that a sentence quotes.
_QUOTED = 200
_SAYS = {
    "sides": "{conclusion} has the same term on both sides",
    "unfolded": "{conclusion} has the same on both sides, abbreviations and instances unfolded",
    "true": "{conclusion} holds of anything",
    "exists": "{conclusion} says only that something equals a term",
    "instance": "{conclusion} is an instance of its hypothesis {1}",
    "hypothesis": "{conclusion} is one of its hypotheses",
    "absurd": "its hypothesis {0} cannot hold",
    "contradiction": "its hypotheses {0} and {1} contradict each other",
}


@dataclass(frozen=True)
class Statement:
    """text: the theorem's name and its whole statement as Lean elaborated it, with every variable,
    class and hypothesis, those of `variable` and `include` too, in lines of at most 100 characters
    where words allow it. empty: why it says nothing, a clause; None if it says something. term: a
    digest of the term that is printed in `text`, up to the names of bound variables and how
    arguments are given (as `second_kernel.native` makes it of another kernel's term). supposed: the
    definitions of values and propositions that both its hypotheses and its conclusion speak of, by
    name."""

    text: str
    empty: str | None
    term: str
    supposed: Sequence[str] = ()


def read(lean: Lean, theorems: Mapping[str, str]) -> dict[str, Statement]:
    """The statement of each theorem.

    theorems: full name → file of the project that declares it. Names in a text are as short as they
    can be there. Two terms count as the same up to the names of bound variables, abbreviations and
    the fields of instances. The library has to be built. Raises ToolchainError if Lean has
    no such theorem or the answers break off.
    """
    opened = {
        one.name: one.opened
        for file in dict.fromkeys(theorems.values())
        for one in declarations((lean.root / file).read_text("utf-8"))
    }
    wanted = [" ".join((name, *opened.get(name, ()))) for name in theorems]
    return {
        a["theorem"]: Statement(
            a["statement"],
            a["found"] and _clause(a["found"]),
            hashlib.sha256(a["term"].encode()).hexdigest(),
            tuple(sorted(a["supposed"])),
        )
        for a in lean.read_stored(SCRIPT, "looked_at", wanted)
    }


def keep(root: Path, texts: Mapping[str, str]) -> None:
    """Keep statements, by the theorems' full names, for use with these sources without Lean."""
    Cache(root / "build" / "cache").keep(_KEPT, digest(root, _LIBRARY), dict(texts))


def read_kept(root: Path) -> dict[str, str]:
    """The statements that were kept of the sources as they are now; none if they have changed."""
    found = Cache(root / "build" / "cache").find(_KEPT, digest(root, _LIBRARY))
    return dict(found or {})


def _clause(found: dict[str, Any]) -> str:
    shown = [f"`{textwrap.shorten(text, _QUOTED, placeholder=' …')}`" for text in found["shown"]]
    part = f"the part {shown[0]} of its conclusion"
    conclusion = part if found["part"] else f"its conclusion {shown[0]}"
    return _SAYS[found["what"]].format(*shown, conclusion=conclusion)
