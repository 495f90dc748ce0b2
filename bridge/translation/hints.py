"""Lean's types as Python's type hints."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.translation import names
from bridge.translation.errors import UntranslatableError
from bridge.translation.library import DUAL, ROLES, SPEC, Library
from bridge.translation.terms import Bound, Constant, Definition, Product, Term

_PLAIN = {"Nat": "int", "Int": "int", "Fin": "int", "Bool": "bool", "Unit": "None"}
_LISTS = frozenset({"List", "Vector", "Array"})


class Hints:
    """Hints for the terms of one declaration; bound: by id, the names of its type variables, or the
    hints that they stand for."""

    def __init__(self, library: Library, bound: Mapping[str, str | Term]) -> None:
        self.library = library
        self.bound = dict(bound)

    def of(self, t: Term) -> str:
        """The hint for a type. Raises UntranslatableError for one that Python has no name for."""
        match t:
            case Bound(id):
                known = self.bound.get(id)
                if known is None or isinstance(known, str):
                    return ROLES.get(known or "", "any").capitalize()
                return self.of(known)
            case Product():
                return self._callable(t)
            case Constant(name) if name in _PLAIN:
                return _PLAIN[name]
            case Constant(name, given) if name in _LISTS:
                return f"list[{self._argument(given[0].term)}]"
            case Constant("Option", given):
                return f"{self._argument(given[0].term)} | None"
            case Constant("Prod", given):
                return f"tuple[{', '.join(self._argument(a.term) for a in given)}]"
            case Constant(name) if name in self.library.types or name == DUAL:
                return names.class_(name)
            case Constant(name) if name in self.library.definitions:
                definition = self.library.definitions[name]
                if is_alias(definition) and self._as_declared(definition, t):
                    return names.class_(name)
                return self.of(self._unfold(t))
        raise UntranslatableError(f"the type {t}")

    def _argument(self, t: Term | None) -> str:
        assert t is not None
        return self.of(t)

    def _unfold(self, t: Constant) -> Term:
        """An abbreviation's definition, with its parameters bound to the arguments."""
        definition = self.library.definitions[t.name]
        for parameter, argument in zip(definition.parameters, t.arguments, strict=False):
            if parameter.kind == "type" and argument.term is not None:
                self.bound[parameter.id] = self._resolve(argument.term)
        return definition.body

    def _resolve(self, t: Term) -> Term:
        known = self.bound.get(t.id) if isinstance(t, Bound) else None
        return t if known is None or isinstance(known, str) else known

    def _as_declared(self, definition: Definition, t: Constant) -> bool:
        """Whether the type arguments have the names of the parameters: S for S."""
        for parameter, argument in zip(definition.parameters, t.arguments, strict=False):
            if parameter.kind == "type":
                known = (
                    self.bound.get(argument.term.id) if isinstance(argument.term, Bound) else None
                )
                if known != parameter.name:
                    return False
        return True

    def _callable(self, t: Term) -> str:
        taken = []
        while True:
            if isinstance(t, Product):
                if t.variable.kind == "term":
                    taken.append(self.of(t.variable.type))
                t = t.body
            elif (
                isinstance(t, Constant)
                and t.name in self.library.definitions
                and self.library.arity(t)
            ):
                t = self._unfold(t)
            else:
                return f"Callable[[{', '.join(taken)}], {self.of(t)}]"


def is_alias(definition: Definition) -> bool:
    """Whether an abbreviation of a type is kept as one: it stands in the Spec, and speaks of no
    types but scores and values."""
    types = [p.name for p in definition.parameters if p.kind == "type"]
    return (
        definition.result_kind == "type"
        and definition.name.startswith(SPEC)
        and all(name in ROLES for name in types)
    )
