"""The audit of a library: its declarations, their axioms, and whether the kernel accepts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

# Called with how many constants the kernel has checked again so far, and with how many there are.
OnChecked = Callable[[int, int], None]

# The axioms of Lean's own logic. Any other axiom is a finding.
STANDARD_AXIOMS = frozenset({"propext", "Classical.choice", "Quot.sound"})
COMPILER_TRUST = frozenset({"Lean.ofReduceBool", "Lean.ofReduceNat", "Lean.trustCompiler"})
# The facts that are known of a constant if and only if it stands in a file.
PLACED = ("first_line", "last_line", "class", "instance_of", "implemented_by", "extern")


@dataclass(frozen=True)
class Declaration:
    """One declaration that stands in a file.

    axioms: those that its own terms reach, through the library and through Lean's modules as far as
    their terms are there; mentions: the constants of the library in its type; is_class: whether it
    is a type class; instance_of: the class that it is an instance of. Lines are 1-based, both
    included.
    """

    name: str
    kind: str
    module: str
    file: str
    first_line: int
    last_line: int
    axioms: tuple[str, ...]
    mentions: tuple[str, ...]
    is_class: bool
    instance_of: str | None


@dataclass(frozen=True)
class Audit:
    """declarations: those that stand in a file; problems: one sentence each; replayed: how many
    constants the kernel has checked again; trusted: a sentence on the constants that are trusted;
    trusted_names: the constants of Lean's own modules that the library reaches and that have no
    body there, by kind (theorem, definition, opaque constant)."""

    declarations: tuple[Declaration, ...]
    problems: tuple[str, ...]
    replayed: int
    trusted: str
    trusted_names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.problems and bool(self.declarations)

    def classes(self) -> dict[str, list[str]]:
        """The classes of the library, each with its instances."""
        found: dict[str, list[str]] = {d.name: [] for d in self.declarations if d.is_class}
        for d in self.declarations:
            if d.instance_of in found:
                found[d.instance_of].append(d.name)
        return found

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "classes": self.classes(), "ok": self.ok}


def on_trust(names: Mapping[str, Sequence[str]]) -> str:
    """The sentence on the constants of Lean's own modules that have no body, by kind."""
    counts = [
        f"{len(names[kind])} {kind}{'' if len(names[kind]) == 1 else 's'}"
        for kind in ("theorem", "definition", "opaque constant")
        if names.get(kind)
    ]
    if not counts:
        return "nothing that is reached of Lean's own modules lacks its proof"
    *first, last = counts
    shown = f"{', '.join(first)} and {last}" if first else last
    return (
        f"{shown} of Lean's own modules are taken on trust (the embedded Lean brings their types "
        "and not their proofs and bodies)"
    )


def look_at(
    answers: Iterable[dict[str, Any]], files: dict[str, str]
) -> tuple[tuple[Declaration, ...], list[str]]:
    """Declarations in the order of the files, and findings, from one answer for each constant.

    An answer has the keys PLACED if the constant stands in a file, and not if it comes with one
    that does. `files`: module → file, in order.
    """
    declarations, problems = [], []
    for answer in answers:
        file = files[answer["module"]]
        problems += findings(answer, file)
        if "first_line" in answer and not answer["internal"]:
            named = {"name": full_name(answer), "file": file, "is_class": answer["class"]}
            declarations.append(msgspec.convert({**answer, **named}, Declaration))
    order = list(files)
    declarations.sort(key=lambda d: (order.index(d.module), d.first_line, d.name))
    return tuple(declarations), problems


def full_name(answer: dict[str, Any]) -> str:
    """The name as Lean keeps it: that of a private declaration has its module in it, so that two
    modules can have private declarations of the same name."""
    name: str = answer["name"]
    return f"_private.{answer['module']}.0.{name}" if answer["private"] else name


def findings(answer: dict[str, Any], file: str) -> list[str]:
    """The faults of one constant, a sentence each."""
    label = f"{file}: {answer['name']}"
    found = []
    if answer["kind"] == "axiom":
        found.append(f"{label} is an axiom")
    # The kernel sees a `partial def` as an opaque constant: nothing can be proved of its code.
    if answer["kind"] == "opaque":
        found.append(f"{label} is opaque or partial: no proof is about the code that runs")
    # The code of a recursive definition as it was written; nothing safe can mention it.
    recursion = "first_line" not in answer and answer["name"].endswith("._unsafe_rec")
    if answer["unsafe"] and not recursion:
        found.append(f"{label} is unsafe")
    for axiom in answer["axioms"]:
        if axiom == "sorryAx":
            found.append(f"{label} uses sorry")
        elif axiom in COMPILER_TRUST:
            found.append(f"{label} trusts the compiler ({axiom})")
        elif axiom not in STANDARD_AXIOMS and axiom != full_name(answer):
            found.append(f"{label} rests on {axiom}")
    if answer.get("implemented_by"):
        found.append(f"{label} is implemented_by something else")
    if answer.get("extern"):
        found.append(f"{label} is extern")
    return found
