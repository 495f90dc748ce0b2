"""The variables of one definition: their Python names, and the expressions they stand for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bridge.translation import build, names
from bridge.translation.errors import UntranslatableError
from bridge.translation.library import Library
from bridge.translation.terms import (
    Apply,
    Binding,
    Bound,
    Constant,
    Definition,
    Field,
    Function,
    Let,
    Match,
    Term,
    computed_arguments,
)


@dataclass
class Scope:
    """The variables of `definition`. taken: names that are in use there; hint: the type hint for a
    type. pieces, terms: by the variable's id, the Python expression that it stands for, or a term
    that it is bound to."""

    library: Library
    definition: Definition
    taken: set[str]
    hint: Callable[[Term], str]
    pieces: dict[str, ast.expr] = field(default_factory=dict)
    terms: dict[str, Term] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bindings = {p.id: p for p in self.definition.parameters}

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names taken inside are free again afterwards."""
        before = set(self.taken)
        yield
        self.taken = before

    def bind(self, variable: Binding, suggestion: str | None = None) -> str:
        """A Python variable for it."""
        wanted = suggestion or (variable.name if variable.named else "x")
        title = names.fresh(names.identifier(wanted), self.taken)
        self.taken.add(title)
        self.pieces[variable.id] = build.name(title)
        self.bindings[variable.id] = variable
        return title

    def stands_for(self, variable: Binding, piece: ast.expr) -> None:
        """The variable is written as this piece."""
        self.pieces[variable.id] = piece
        self.bindings[variable.id] = variable

    def resolve(self, t: Term) -> Term:
        """The term that a variable was bound to, if it was bound to one."""
        while isinstance(t, Bound) and t.id in self.terms:
            t = self.terms[t.id]
        return t

    def erase(self, t: Term) -> Term:
        """A function without its arguments that are no values."""
        t = self.resolve(t)
        while isinstance(t, Function) and t.variable.kind != "term":
            t = t.body
        return t

    def new_name(self, title: str) -> ast.Name:
        """A variable of the writer's own."""
        chosen = names.fresh(names.identifier(title), self.taken)
        self.taken.add(chosen)
        return build.name(chosen)

    def assign(self, title: str, piece: ast.expr, before: list[ast.stmt]) -> ast.Name:
        """A variable for a piece that is used more than once."""
        variable = self.new_name(title)
        before.append(build.assign(variable, piece))
        return variable

    def arity(self, t: Term) -> int:
        """How many arguments the value of a term takes."""
        t = self.resolve(t)
        match t:
            case Bound(id) if id in self.bindings:
                return self.library.arity(self.bindings[id].type)
            case Apply(head, given):
                return max(self.arity(head) - len(computed_arguments(given)), 0)
            case Field(name, structure):
                type_ = self.library.types.get(structure)
                fields = type_.constructors[0].fields if type_ is not None else ()
                return sum(self.library.arity(f.type) for f in fields if f.name == name)
            case Function(variable, body):
                return (variable.kind == "term") + self.arity(body)
            case Let(_, _, body):
                return self.arity(body)
            case Match(_, alternatives, given):
                return max(self.arity(alternatives[-1].body) - len(computed_arguments(given)), 0)
            case Constant("ite" | "dite"):
                return self.arity(t.values()[-1])
            case Constant(name, given) if name in self.library.definitions:
                definition = self.library.definitions[name]
                missing = sum(p.kind == "term" for p in definition.parameters[len(given) :])
                beyond = len(computed_arguments(given[len(definition.parameters) :]))
                return max(missing + self.library.arity(definition.result) - beyond, 0)
        return 0

    def role(self, type_: Term) -> str:
        """score or value, for a type variable of the Spec."""
        if isinstance(type_, Bound) and type_.id in self.bindings:
            return self.library.role(self.bindings[type_.id].name)
        raise UntranslatableError(f"a number of the type {type_}")
