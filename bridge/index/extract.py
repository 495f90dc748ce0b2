"""The constants that Lean stored: `listing.lean`, run on the library as it is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from bridge.reach import reach_all

SCRIPT = Path(__file__).with_name("listing.lean")

Position = tuple[int, int, int, int]


class Stored(Struct, frozen=True):
    """A constant as Lean stored it.

    name: with the module in it if it is private; user_name: as one writes it, where that is other.
    range: first line and column, last line and column (lines 1-based, columns 0-based) of the
    declaration with its documentation; name_range: of its name. Those two, doc and statement are
    None for a constant that stands in no file but comes with one that does. uses_of_type,
    uses_of_value: the constants that occur in its type, and those that occur in its value only.
    """

    name: str
    module: str
    kind: str
    uses_of_type: tuple[str, ...]
    uses_of_value: tuple[str, ...]
    user_name: str | None = None
    statement: str | None = None
    doc: str | None = None
    range: Position | None = None
    name_range: Position | None = None

    def __post_init__(self) -> None:
        if self.statement is not None:
            # Lean marks private names in print; the mark is not part of the name.
            force_setattr(self, "statement", self.statement.replace("✝", ""))
        for name in ("uses_of_type", "uses_of_value"):
            force_setattr(self, name, tuple(sorted(getattr(self, name))))

    @property
    def shown(self) -> str:
        """As one writes it."""
        return self.user_name or self.name

    @property
    def private(self) -> bool:
        return self.name.startswith("_private.")


def read_constants(answers: Iterable[dict[str, Any]]) -> dict[str, Stored]:
    """The constants by name."""
    return {one.name: one for one in msgspec.convert(answers, list[Stored])}


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
