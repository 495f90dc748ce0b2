"""The axioms that theorems of a package rest on, as `#print axioms` says them.

Lean refuses that command in a module, and the embedded Lean takes modules only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bridge.errors import MendableError
from bridge.toolchain import Lean, packages


class UnknownDeclarationError(MendableError):
    """A name that neither the package nor one of its imports declares."""


@dataclass(frozen=True)
class Rested:
    """lines: one for each theorem, as `#print axioms` has it; problems: a sentence on each thing
    that the package's modules, and those that they need, may not rest on; trusted: a sentence on
    each thing taken on trust."""

    lines: tuple[str, ...]
    problems: tuple[str, ...]
    trusted: str


def axioms_of(lean: Lean, names: Sequence[str] = ()) -> Rested:
    """The axioms of declarations of a built package, or of its dependencies. names: none for
    all theorems of the package's own. Raises UnknownDeclarationError."""
    audit = lean.audit(replay=False)
    of = {d.name: d.axioms for d in audit.declarations}
    unknown = [name for name in names if name not in of]
    if unknown:
        raise UnknownDeclarationError(
            f"NAME: {unknown[0]!r} is no declaration of the package, nor of its imports"
        )
    own = packages.read(lean.root).own
    wanted = names or [
        d.name for d in audit.declarations if d.kind == "theorem" and own.has(d.module)
    ]
    return Rested(tuple(line(name, of[name]) for name in wanted), audit.problems, audit.trusted)


def line(name: str, axioms: Sequence[str]) -> str:
    """As Lean prints it."""
    if not axioms:
        return f"'{name}' does not depend on any axioms"
    return f"'{name}' depends on axioms: [{', '.join(sorted(axioms))}]"
