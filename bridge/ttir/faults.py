"""Why a run of a kernel's TTIR ends early: it does something that no kernel may, or something that
cannot be decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from bridge.ttir.syntax import Operation

Kind = Literal[
    "outside its tensor",
    "overflow",
    "stored by two programs",
    "stored twice at once",
    "read and written",
    "exp2 of a positive number",
    "division by zero",
    "not a number",
]
Program = tuple[int, ...]
Element = tuple[int, ...]


class Undecided(Exception):
    """Raised by a domain for a question that it cannot answer; the machine adds the operation."""


class _Stopped(Exception):
    """operation: which, with its line; program: its place in the grid; element: its place in the
    operation's tile, () of a single number, None if it is not about one."""

    def __init__(
        self, what: str, operation: Operation, program: Program, element: Element | None
    ) -> None:
        self.what = what
        self.operation, self.program, self.element = operation, program, element
        place = "" if not element else f", element {list(element)}"
        super().__init__(
            f"{what}: {operation.name} at {operation.location}, program {list(program)}{place}"
        )


class Violation(_Stopped):
    """The kernel does something that no kernel may do; `kind` says which fault it is."""

    def __init__(
        self,
        kind: Kind,
        detail: str,
        operation: Operation,
        program: Program,
        element: Element | None,
    ) -> None:
        self.kind = kind
        super().__init__(f"{kind} ({detail})", operation, program, element)


@dataclass(frozen=True, eq=False)
class Overflowing:
    """The elements of a value that may overflow, where `off`; stored, they are this violation."""

    wrong: Violation
    off: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Overflowed:
    """A result some of whose elements may overflow."""

    value: Any
    overflowing: Overflowing


class CannotTell(_Stopped):
    """Whether the kernel is right cannot be decided in this domain."""
