"""Lean's terms as `terms.lean` prints them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Binding:
    """A variable where it is bound.

    named: its name was written in the source. binder: explicit, implicit or instance. kind: of the
    thing that it stands for: term, type, proof, proposition, predicate or instance.
    """

    id: str
    name: str
    named: bool
    binder: str
    kind: str
    type: Term


@dataclass(frozen=True)
class Argument:
    """An argument and its kind; no term is kept of a proof."""

    kind: str
    term: Term | None


@dataclass(frozen=True)
class Bound:
    """A variable where it is used."""

    id: str


@dataclass(frozen=True)
class Constant:
    """A declared name with its arguments."""

    name: str
    arguments: tuple[Argument, ...] = ()

    def values(self) -> list[Term]:
        """The arguments that a program sees."""
        return [a.term for a in self.arguments if a.kind == "term" and a.term is not None]


@dataclass(frozen=True)
class Apply:
    """A function that is no constant, with its arguments."""

    function: Term
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Function:
    """fun variable => body."""

    variable: Binding
    body: Term


@dataclass(frozen=True)
class Product:
    """The type (variable : …) → body."""

    variable: Binding
    body: Term


@dataclass(frozen=True)
class Let:
    """let variable := value; body."""

    variable: Binding
    value: Term
    body: Term


@dataclass(frozen=True)
class Field:
    """A field of a structure."""

    name: str
    structure: str
    of: Term


@dataclass(frozen=True)
class Alternative:
    """One alternative of a match: the first whose patterns fit is taken."""

    variables: tuple[Binding, ...]
    patterns: tuple[Term, ...]
    body: Term


@dataclass(frozen=True)
class Match:
    """match … with …; arguments: those that the result is applied to."""

    discriminants: tuple[Term, ...]
    alternatives: tuple[Alternative, ...]
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True)
class Number:
    """A natural number, as it is written."""

    value: int


@dataclass(frozen=True)
class Other:
    """A sort or a string: nothing that a program computes with."""

    what: str


@dataclass(frozen=True)
class Made:
    """A piece of Python where a term is expected."""

    piece: ast.expr


Term = Bound | Constant | Apply | Function | Product | Let | Field | Match | Number | Other | Made


@dataclass(frozen=True)
class Definition:
    """A definition: its parameters, the type and the kind of its result, and its body."""

    name: str
    parameters: tuple[Binding, ...]
    result: Term
    result_kind: str
    body: Term


@dataclass(frozen=True)
class Constructor:
    """A constructor of a type: the parameters of the type, and its fields."""

    name: str
    parameters: tuple[Binding, ...]
    fields: tuple[Binding, ...]


@dataclass(frozen=True)
class Type:
    """An inductive type; structure: it has one constructor, and its fields have projections."""

    name: str
    constructors: tuple[Constructor, ...]
    structure: bool

    @property
    def enumeration(self) -> bool:
        """No constructor has fields."""
        return not self.structure and not any(c.fields for c in self.constructors)


def read(answer: Mapping[str, Any]) -> Definition | Type:
    """The definition or type in Lean's answer about a name."""
    name = answer["name"]
    if answer["kind"] == "type":
        constructors = tuple(
            Constructor(
                c["name"], tuple(map(binding, c["parameters"])), tuple(map(binding, c["fields"]))
            )
            for c in answer["constructors"]
        )
        return Type(name, constructors, answer["structure"])
    return Definition(
        name,
        tuple(map(binding, answer["parameters"])),
        term(answer["result"]),
        answer["result_kind"],
        term(answer["body"]),
    )


# Constants of which an argument is the length of a vector, or the bound of an index: a number to
# Lean, and to a program part of a type.
_LENGTHS = {"Vector.mk": 1, "Vector.toList": 1, "Vector.toArray": 1, "Fin.mk": 0}


def _without_lengths(name: str, given: tuple[Argument, ...]) -> tuple[Argument, ...]:
    place = _LENGTHS.get(name)
    return tuple(Argument("type", a.term) if n == place else a for n, a in enumerate(given))


def binding(data: Mapping[str, Any]) -> Binding:
    return Binding(
        data["id"], data["name"], data["named"], data["binder"], data["kind"], term(data["type"])
    )


def arguments(data: list[Mapping[str, Any]]) -> tuple[Argument, ...]:
    return tuple(Argument(a["kind"], a["term"] and term(a["term"])) for a in data)


def term(data: Mapping[str, Any]) -> Term:
    match data:
        case {"variable": id}:
            return Bound(id)
        case {"constant": name, "arguments": given}:
            return Constant(name, _without_lengths(name, arguments(given)))
        case {"apply": function, "arguments": given}:
            return Apply(term(function), arguments(given))
        case {"function": variable, "body": body}:
            return Function(binding(variable), term(body))
        case {"product": variable, "body": body}:
            return Product(binding(variable), term(body))
        case {"let": variable, "value": value, "body": body}:
            return Let(binding(variable), term(value), term(body))
        case {"field": name, "structure": structure, "of": of}:
            return Field(name, structure, term(of))
        case {"match": discriminants, "alternatives": alternatives, "arguments": given}:
            return Match(
                tuple(map(term, discriminants)),
                tuple(
                    Alternative(
                        tuple(map(binding, a["variables"])),
                        tuple(map(term, a["patterns"])),
                        term(a["body"]),
                    )
                    for a in alternatives
                ),
                arguments(given),
            )
        case {"number": value}:
            return Number(value)
        case {"sort": _}:
            return Other("sort")
        case {"string": text}:
            return Other(text)
    raise ValueError(f"no term is written like this: {sorted(data)}")


def parts(t: Term) -> Iterator[Term]:
    """The terms directly below this one that a program computes: no types, proofs or instances."""
    match t:
        case Constant(_, given):
            yield from computed_arguments(given)
        case Apply(function, given):
            yield function
            yield from computed_arguments(given)
        case Function(_, body):
            yield body
        case Product(variable, body):
            # As a proposition: an implication.
            yield variable.type
            yield body
        case Let(variable, value, body):
            if variable.kind == "term":
                yield value
            yield body
        case Field(_, _, of):
            yield of
        case Match(discriminants, alternatives, given):
            yield from discriminants
            for alternative in alternatives:
                yield alternative.body
            yield from computed_arguments(given)


def computed_arguments(given: Sequence[Argument]) -> list[Term]:
    """The arguments that a program computes."""
    return [a.term for a in given if a.kind in ("term", "proposition") and a.term is not None]


def occurrences(t: Term, id: str) -> int:
    """How often the variable is computed with in the term."""
    if isinstance(t, Bound):
        return int(t.id == id)
    return sum(occurrences(part, id) for part in parts(t))
