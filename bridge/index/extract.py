"""The constants that Lean stored: `listing.lean`, run on the library as it is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.reach import reach_all
from bridge.toolchain import Lean, ToolchainError

SCRIPT = Path(__file__).with_name("listing.lean")

Position = tuple[int, int, int, int]


@dataclass(frozen=True)
class Stored:
    """A constant as Lean stored it.

    name: with the module in it if it is private; shown: as one writes it. range: first line and
    column, last line and column (lines 1-based, columns 0-based) of the declaration with its
    documentation; name_range: of its name. Those two, doc and statement are None for a constant
    that stands in no file but comes with one that does. uses_of_type, uses_of_value: the constants
    that occur in its type, and those that occur in its value only.
    """

    name: str
    shown: str
    module: str
    kind: str
    statement: str | None
    doc: str | None
    range: Position | None
    name_range: Position | None
    uses_of_type: tuple[str, ...]
    uses_of_value: tuple[str, ...]

    @property
    def private(self) -> bool:
        return self.name.startswith("_private.")


def listing(lean: Lean) -> list[dict[str, Any]]:
    """The answers of `listing.lean`, one for each constant. The library has to be built.

    Raises ToolchainError if the listing breaks off.
    """
    *answers, last = lean.read_stored(SCRIPT, until="listed")
    if last["listed"] != len(answers):
        raise ToolchainError(f"{len(answers)} of {last['listed']} stored constants were listed")
    return answers


def read_constants(answers: Iterable[dict[str, Any]]) -> dict[str, Stored]:
    """The constants by name."""
    found = {}
    for answer in answers:
        name = answer["name"]
        written = "range" in answer
        found[name] = Stored(
            name,
            answer.get("user_name", name),
            answer["module"],
            answer["kind"],
            # Lean marks private names in print; the mark is not part of the name.
            answer["statement"].replace("✝", "") if written else None,
            answer.get("doc"),
            tuple(answer["range"]) if written else None,
            tuple(answer["name_range"]) if written else None,
            tuple(sorted(answer["uses_of_type"])),
            tuple(sorted(answer["uses_of_value"])),
        )
    return found


def uses(
    constants: Mapping[str, Stored], names: Iterable[str], own_name: str = ""
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The declarations behind these names: those of the library that stand in a file, and constants
    of Lean's own modules. Auxiliary constants (matchers, recursors, the parts of a proof) are
    replaced by the constants that they use."""

    def behind(name: str) -> tuple[str, ...]:
        constant = constants.get(name)
        if constant is None or constant.range is not None:
            return ()
        return (*constant.uses_of_type, *constant.uses_of_value)

    found = sorted(reach_all(names, behind))
    own = (n for n in found if n in constants and constants[n].range is not None and n != own_name)
    return tuple(own), tuple(n for n in found if n not in constants)
