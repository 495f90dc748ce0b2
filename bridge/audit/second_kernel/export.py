"""The proofs of the library in lean4export's format (3.1.0), and the constants of Lean's own
modules on which they rest and which have no body there.

A constant that a module of Lean holds without its body stands in the export as an axiom, as in the
module. https://github.com/leanprover/lean4export
"""

from __future__ import annotations

import functools
import json
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.audit.second_kernel.olean import OleanError
from bridge.audit.second_kernel.stored import Constant, Kind, Stored
from bridge.errors import MendableError

FORMAT = "3.1.0"
_QUOTIENT = (("type", "Quot"), ("ctor", "Quot.mk"), ("lift", "Quot.lift"), ("ind", "Quot.ind"))
_WORDS = {Kind.AXIOM: "axiom", Kind.DEFINITION: "def", Kind.THEOREM: "thm", Kind.OPAQUE: "opaque"}


class NameUnknownError(MendableError):
    """The library has no constant of a NAME. The message is one sentence."""


@dataclass(frozen=True)
class Exported:
    """declarations: how many of each kind, types that are declared together as one; bodiless: the
    names of constants without a body, by their original kinds; rests_on: how many of them, by their
    original kinds, each constant rests on that was asked for (constructors and recursors are left
    out); left_out: the constants of the library that are unsafe or partial, which no safe one can
    name."""

    declarations: Mapping[str, int]
    bodiless: Mapping[str, Sequence[str]]
    rests_on: Mapping[str, Mapping[str, int]]
    left_out: Sequence[str]


def bodiless_beside(path: Path) -> Path:
    """The list that belongs to an export."""
    return path.with_name(f"{path.name}.bodiless.json")


def export(
    own: Mapping[str, Sequence[Path]],
    shipped: Path,
    write: Callable[[Iterable[str]], None],
    names: Sequence[str] = (),
    on_written: Callable[[int, int], None] = lambda done, of: None,
) -> Exported:
    """Write all that constants of the library need, themselves included, each after its parts.

    own: the modules of the library, with the parts that Lean has stored; shipped: the folder of
    Lean's own. write: takes the next lines. names: as Lean keeps them; none: every constant of the
    library. on_written: called with how many of them are written, and how many there are. Raises
    NameUnknownError, and OleanError for modules that are not stored as they are read here.
    """
    lines: list[str] = []
    stored = Stored(own, shipped, lines.append)
    meta = {
        "exporter": {"name": "bridge export-proofs", "version": "1"},
        "format": {"version": FORMAT},
        "lean": {"githash": stored.commit},
    }
    write([json.dumps({"meta": meta}, separators=(",", ":")) + "\n"])
    for name in names:
        if name not in stored.numbers:
            said = f"NAME: {name!r} is no constant of the library, nor of its imports"
            raise NameUnknownError(said)
    wanted = [stored.numbers[one] for one in names] or stored.own
    left_out = {one: None for one in wanted if stored.constant(one).unsafe}
    if names and left_out:
        raise NameUnknownError(
            f"NAME: {names[wanted.index(min(left_out))]} is unsafe: no kernel checks it"
        )
    counts: Counter[str] = Counter()
    bodiless: dict[str, list[str]] = {}
    # Of each declaration, and of each kind: a bit for each constant without a body.
    reached: dict[int, int] = {}
    of_kind: Counter[str] = Counter()
    writer = _Writer(stored)

    def tell_each() -> Iterator[int]:
        for done, one in enumerate(wanted, 1):
            if one not in left_out:
                yield one
            # Asked for the next one: this is written, with all that it needs.
            on_written(done, len(wanted))

    order = writer.in_order(tell_each())
    for kind, number, declared, needed in order:
        lines += declared
        write(f"{line}\n" for line in lines)
        lines.clear()
        reached[number] = functools.reduce(operator.or_, map(reached.__getitem__, needed), 0)
        if kind == "axiom":
            bit = 1 << counts[kind]
            what = stored.originals.get(number, "axiom")
            of_kind[what] |= bit
            reached[number] |= bit
            bodiless.setdefault(what, []).append(stored.terms.shown[number])
        counts[kind] += 1
    shown = stored.terms.shown
    rests_on = {
        shown[one]: {
            what: number
            for what, of in sorted(of_kind.items())
            if (number := (reached[one] & of).bit_count())
        }
        for one in wanted
        if one in reached
    }
    return Exported(
        dict(sorted(counts.items())),
        {what: sorted(found) for what, found in sorted(bodiless.items())},
        dict(sorted(rests_on.items())),
        sorted(shown[one] for one in left_out),
    )


# The name, the kind and the lines of a declaration, its needs, and those still to be done.
_Begun = tuple[int, str, list[str], Sequence[int], Iterator[int]]


class _Writer:
    """Declarations as lines; those that belong together (inductive types, their constructors and
    recursors; the quotient) by the name of one of them."""

    def __init__(self, stored: Stored) -> None:
        self.stored, self.terms = stored, stored.terms
        self._first_of: dict[int, int] = {}

    def in_order(self, names: Iterable[int]) -> Iterator[tuple[str, int, list[str], Sequence[int]]]:
        """The kind, the name and the lines of each declaration that these need, and the names of
        those that it needs itself."""
        state: dict[int, bool] = {}
        for wanted in names:
            stack: list[_Begun] = []
            if (first := self.first(wanted)) not in state:
                stack.append(self._begin(first, state))
            while stack:
                name, kind, lines, needed, waiting = stack[-1]
                for other in waiting:
                    if other not in state:
                        stack.append(self._begin(other, state))
                        break
                    if not state[other]:
                        shown = self.terms.shown
                        raise OleanError(f"{shown[name]} and {shown[other]} need each other")
                else:
                    state[name] = True
                    yield kind, name, lines, needed
                    stack.pop()

    def _begin(self, name: int, state: dict[int, bool]) -> _Begun:
        state[name] = False
        kind, lines, constants, literals = self._declaration(name)
        needed = {self.first(one) for one in constants}
        needed |= {self.first(self.stored.numbers[one]) for one in literals}
        others = sorted(needed - {name})
        return name, kind, lines, others, iter(others)

    def first(self, name: int) -> int:
        """The constant by which all that are declared with this one are known."""
        if (known := self._first_of.get(name)) is not None:
            return known
        one = self.stored.constant(name)
        found = name
        match one.kind:
            case Kind.CONSTRUCTOR:
                found = self.first(self.terms.name(one.module, one.fields[1]))
            case Kind.RECURSOR:
                found = self.first(self.terms.name(one.module, one.module.list(one.fields[1])[0]))
            case Kind.INDUCTIVE:
                found = self.terms.name(one.module, one.module.list(one.fields[3])[0])
            case Kind.QUOTIENT:
                found = self.stored.numbers["Quot"]
        self._first_of[name] = found
        return found

    def _head(self, one: Constant) -> dict[str, Any]:
        for parameter in one.parameters:
            self.terms.parameter(parameter)
        type_ = self.terms.term(one.module, one.type)
        return {"name": one.name, "levelParams": list(one.parameters), "type": type_}

    def _declaration(self, name: int) -> tuple[str, list[str], set[int], set[str]]:
        """The kind of a declaration, its lines, and the constants that it names, of its own terms
        and of its literals."""
        one = self.stored.constant(name)
        if one.kind == Kind.QUOTIENT:
            return self._quotient()
        if one.kind == Kind.INDUCTIVE:
            return self._inductive(one)
        if one.unsafe:
            raise OleanError(f"{self.terms.shown[name]} is unsafe, and a safe constant names it")
        said = self._head(one)
        used = [said["type"]]
        if one.kind != Kind.AXIOM:
            said |= {"value": self.terms.term(one.module, one.fields[1]), "all": [name]}
            used.append(said["value"])
        match one.kind:
            case Kind.DEFINITION:
                said |= {"hints": self._hints(one), "safety": "safe"}
            case Kind.AXIOM | Kind.OPAQUE:
                said |= {"isUnsafe": False}
        kind = _WORDS[one.kind]
        return kind, [_line({kind: said})], *self.terms.constants(used)

    def _hints(self, one: Constant) -> str | dict[str, int]:
        """When the kernel unfolds a definition before another one."""
        hints = one.fields[2]
        if hints & 1:
            return ("opaque", "abbrev")[hints >> 1]
        _, _, height = one.module.constructor(hints)
        return {"regular": int.from_bytes(height[:4], "little")}

    def _quotient(self) -> tuple[str, list[str], set[int], set[str]]:
        lines = []
        for kind, name in _QUOTIENT:
            said = self._head(self.stored.constant(self.stored.numbers[name]))
            lines.append(_line({"quot": {"kind": kind, **said}}))
        return "quot", lines, {self.stored.numbers["Eq"]}, set()

    def _inductive(self, one: Constant) -> tuple[str, list[str], set[int], set[str]]:
        stored, terms = self.stored, self.terms
        together = [terms.name(one.module, name) for name in one.module.list(one.fields[3])]
        types, constructors, recursors, used = [], [], [], []
        for name in together:
            of = stored.constant(name)
            number = of.module.number
            inside = [terms.name(of.module, each) for each in of.module.list(of.fields[4])]
            types.append(
                self._head(of)
                | {"all": together, "ctors": inside, "isRec": bool(of.scalars[0])}
                | {"isUnsafe": bool(of.scalars[1]), "isReflexive": bool(of.scalars[2])}
                | {"numParams": number(of.fields[1]), "numIndices": number(of.fields[2])}
                | {"numNested": number(of.fields[5])}
            )
            for each in inside:
                made = stored.constant(each)
                number = made.module.number
                constructors.append(
                    self._head(made)
                    | {"induct": name, "isUnsafe": bool(made.scalars[0])}
                    | {"cidx": number(made.fields[2]), "numParams": number(made.fields[3])}
                    | {"numFields": number(made.fields[4])}
                )
        for name in stored.recursors(one.module, together[0]):
            of = stored.constant(name)
            number = of.module.number
            rules = []
            for rule in of.module.list(of.fields[6]):
                _, (constructor, fields, value), _ = of.module.constructor(rule)
                term = terms.term(of.module, value)
                used.append(term)
                named = terms.name(of.module, constructor)
                rules.append({"ctor": named, "nfields": number(fields), "rhs": term})
            recursors.append(
                self._head(of)
                | {"all": [terms.name(of.module, each) for each in of.module.list(of.fields[1])]}
                | {"k": bool(of.scalars[0]), "isUnsafe": bool(of.scalars[1]), "rules": rules}
                | {"numParams": number(of.fields[2]), "numIndices": number(of.fields[3])}
                | {"numMotives": number(of.fields[4]), "numMinors": number(of.fields[5])}
            )
        every = [*types, *constructors, *recursors]
        constants, literals = terms.constants([*used, *(said["type"] for said in every)])
        said = {"types": types, "ctors": constructors, "recs": recursors}
        return (
            "inductive",
            [_line({"inductive": said})],
            constants - {said["name"] for said in every},
            literals,
        )


def _line(said: dict[str, Any]) -> str:
    return json.dumps(said, separators=(",", ":"), sort_keys=True)
