"""Facts about the definitions as a whole: their Python names, and the arguments that a program
needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from bridge.translation import names
from bridge.translation.errors import UntranslatableError
from bridge.translation.terms import (
    Binding,
    Bound,
    Constant,
    Definition,
    Number,
    Product,
    Term,
    Type,
    parts,
)

SPEC = "Attention.Spec."
INTERVAL = "Attention.Model.Interval."
# Definitions that are one comprehension: their uses are replaced by the comprehension.
UNFOLDED = frozenset({"Attention.Vec.ofFn", "Attention.Vec.map"})
# Written by hand in `bridge/spec/core.py`, since its operations are instances.
DUAL = "Attention.Dual"
# The type in Python for a type variable of the Spec, by its name.
ROLES = {"S": "score", "R": "value"}

How = Literal["positional", "keyword", "dropped"]


@dataclass(frozen=True)
class Slot:
    """How a parameter is passed in Python, if it is."""

    how: How
    name: str


def literal(type_: Term) -> int | None:
    """The number that an instance of this type stands for: OfNat R 0 → 0; None for others."""
    if isinstance(type_, Constant) and type_.name == "OfNat":
        number = type_.arguments[1].term
        if isinstance(number, Constant):
            number = number.arguments[1].term
        if isinstance(number, Number):
            return number.value
    return None


class Library:
    """Definitions and types by their Lean names."""

    def __init__(self, declared: Iterable[Definition | Type]) -> None:
        everything = [d for d in declared if d.name != DUAL]
        self.definitions = {d.name: d for d in everything if isinstance(d, Definition)}
        self.types = {t.name: t for t in everything if isinstance(t, Type)}
        self.constructors = {c.name: (t, c) for t in self.types.values() for c in t.constructors}
        self._slots: dict[str, list[Slot]] = {}
        self._numbers: dict[str, bool] = {}

    @cached_property
    def type_names(self) -> frozenset[str]:
        """Types, and definitions that stand for types."""
        abbreviations = {d.name for d in self.definitions.values() if d.result_kind == "type"}
        return frozenset(self.types) | abbreviations

    def function_name(self, definition: str) -> str:
        """The Python function of a definition."""
        return names.function(definition, self.type_names)

    def programs(self) -> list[Definition]:
        """The definitions that become functions."""
        return [
            d
            for d in self.definitions.values()
            if d.result_kind in ("term", "proposition") and d.name not in UNFOLDED
        ]

    def arity(self, type_: Term) -> int:
        """How many arguments a value of this type takes, abbreviations seen through."""
        match type_:
            case Product(variable, body):
                return (variable.kind == "term") + self.arity(body)
            case Constant(name) if name in self.definitions:
                return self.arity(self.definitions[name].body)
        return 0

    def slots(self, name: str) -> list[Slot]:
        """How each parameter is passed in Python: explicit ones by position; those that Lean infers
        as keywords where the program needs them, and not at all where only types do."""
        if name not in self._slots:
            definition = self.definitions[name]
            # A recursive definition needs the parameters of its own calls: begin with the fewest,
            # and repeat until nothing is added.
            self._slots[name], found = [], self._found_slots(definition, set())
            while found != self._slots[name]:
                self._slots[name] = found
                found = self._found_slots(definition, self._needed_variables(definition.body))
        return self._slots[name]

    def _found_slots(self, definition: Definition, needed: set[str]) -> list[Slot]:
        return [self._slot(definition, p, needed) for p in definition.parameters]

    def _slot(self, definition: Definition, parameter: Binding, needed: set[str]) -> Slot:
        if parameter.kind == "term" and parameter.binder == "explicit":
            return Slot("positional", parameter.name)
        if parameter.kind == "term" and parameter.id in needed:
            return Slot("keyword", names.identifier(parameter.name))
        number = literal(parameter.type)
        if number is not None and parameter.id in needed and not definition.name.startswith(SPEC):
            return Slot("keyword", {0: "zero", 1: "one"}[number])
        return Slot("dropped", "")

    def _needed_variables(self, t: Term) -> set[str]:
        """The variables that are computed with, instances of literals included."""
        match t:
            case Bound(id):
                return {id}
            case Constant("OfNat.ofNat", given):
                instance = given[2].term
                return {instance.id} if isinstance(instance, Bound) else set()
            case Constant(name, given) if name in self.definitions:
                found: set[str] = set()
                slots = self.slots(name)
                for n, argument in enumerate(given):
                    if n < len(slots):
                        wanted = slots[n].how != "dropped"
                    else:
                        wanted = argument.kind in ("term", "proposition")
                    if wanted and argument.term is not None:
                        found |= self._needed_variables(argument.term)
                return found
            case Constant(name, given) if name in self.constructors:
                # The parameters of a type are part of it.
                own = given[len(self.constructors[name][1].parameters) :]
                return set().union(
                    *(self._needed_variables(a.term) for a in own if a.term is not None)
                )
        return set().union(*(self._needed_variables(part) for part in parts(t)))

    def uses_numbers(self, name: str) -> bool:
        """Whether the function takes `num`: it makes a number, or calls one that does."""
        if name not in self._numbers:
            self._numbers[name] = False
            self._numbers[name] = self._makes_numbers(
                self.definitions[name].body, name.startswith(SPEC)
            )
        return self._numbers[name]

    def _makes_numbers(self, t: Term, in_spec: bool) -> bool:
        match t:
            case Constant("OfNat.ofNat", given):
                return in_spec and isinstance(given[0].term, Bound)
            case Constant("Attention.Exp.exp"):
                return True
            case Constant("Int.cast" | "Nat.cast", given) if isinstance(given[0].term, Bound):
                return True
            case Constant(name, given) if name in self.definitions:
                parameters = self.definitions[name].parameters
                literals = any(
                    literal(p.type) is not None and a.term is not None
                    for p, a in zip(parameters, given, strict=False)
                )
                if self.uses_numbers(name) or (
                    in_spec
                    and literals
                    and any(
                        s.how == "keyword" and s.name in ("zero", "one") for s in self.slots(name)
                    )
                ):
                    return True
        return any(self._makes_numbers(part, in_spec) for part in parts(t))

    def role(self, variable_name: str) -> str:
        """Whether a number of this type is a score or a value."""
        if variable_name not in ROLES:
            raise UntranslatableError(
                f"a number of the type {variable_name}, which is neither S (scores) nor R (values)"
            )
        return ROLES[variable_name]
