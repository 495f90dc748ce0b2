"""Lean's terms as `terms.lean` prints them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct


class Node(Struct, frozen=True, array_like=True, tag=str.lower):
    """A term: as JSON a list of its kind and its parts."""


class Binding(Struct, frozen=True):
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


class Argument(Struct, frozen=True):
    """An argument and its kind; no term is kept of a proof."""

    kind: str
    term: Term | None


class Bound(Node, frozen=True):
    """A variable where it is used."""

    id: str


# Constants of which an argument is the length of a vector, or the bound of an index: a number to
# Lean, and to a program part of a type.
_LENGTHS = {"Vector.mk": 1, "Vector.toList": 1, "Vector.toArray": 1, "Fin.mk": 0}


class Constant(Node, frozen=True):
    """A declared name with its arguments."""

    name: str
    arguments: tuple[Argument, ...] = ()

    def __post_init__(self) -> None:
        place = _LENGTHS.get(self.name)
        if place is not None:
            given = [
                Argument("type", a.term) if n == place else a for n, a in enumerate(self.arguments)
            ]
            msgspec.structs.force_setattr(self, "arguments", tuple(given))

    def values(self) -> list[Term]:
        """The arguments that a program sees."""
        return [a.term for a in self.arguments if a.kind == "term" and a.term is not None]


class Apply(Node, frozen=True):
    """A function that is no constant, with its arguments."""

    function: Term
    arguments: tuple[Argument, ...]


class Function(Node, frozen=True):
    """fun variable => body."""

    variable: Binding
    body: Term


class Product(Node, frozen=True):
    """The type (variable : …) → body."""

    variable: Binding
    body: Term


class Let(Node, frozen=True):
    """let variable := value; body."""

    variable: Binding
    value: Term
    body: Term


class Field(Node, frozen=True):
    """A field of a structure."""

    name: str
    structure: str
    of: Term


class Alternative(Struct, frozen=True):
    """One alternative of a match: the first whose patterns fit is taken."""

    variables: tuple[Binding, ...]
    patterns: tuple[Term, ...]
    body: Term


class Match(Node, frozen=True):
    """match … with …; arguments: those that the result is applied to."""

    discriminants: tuple[Term, ...]
    alternatives: tuple[Alternative, ...]
    arguments: tuple[Argument, ...] = ()


class Number(Node, frozen=True):
    """A natural number, as it is written."""

    value: int


class Other(Node, frozen=True):
    """A sort or a string: nothing that a program computes with."""

    what: str


class Made(Node, frozen=True):
    """A piece of Python where a term is expected."""

    piece: ast.expr


Term = Bound | Constant | Apply | Function | Product | Let | Field | Match | Number | Other | Made


class Definition(Struct, frozen=True, tag_field="kind", tag=str.lower):
    """A definition: its parameters, the type and the kind of its result, and its body."""

    name: str
    parameters: tuple[Binding, ...]
    result: Term
    result_kind: str
    body: Term


class Constructor(Struct, frozen=True):
    """A constructor of a type: the parameters of the type, and its fields."""

    name: str
    parameters: tuple[Binding, ...]
    fields: tuple[Binding, ...]


class Type(Struct, frozen=True, tag_field="kind", tag=str.lower):
    """An inductive type; structure: it has one constructor, and its fields have projections."""

    name: str
    constructors: tuple[Constructor, ...]
    structure: bool

    @property
    def enumeration(self) -> bool:
        """No constructor has fields."""
        return not self.structure and not any(c.fields for c in self.constructors)


def read(answer: Mapping[str, Any]) -> Definition | Type:
    """The definition or type in Lean's answer about a name. Raises ValueError for terms that are
    written otherwise."""
    try:
        return msgspec.convert(answer, Definition | Type)
    except msgspec.ValidationError as error:
        raise ValueError(f"no term is written like this: {error}") from error


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
