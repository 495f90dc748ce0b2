"""The patterns of a match in Python: conditions, and the pieces that variables stand for."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.translation import build, names
from bridge.translation.errors import UntranslatableError
from bridge.translation.library import Library
from bridge.translation.terms import (
    Alternative,
    Binding,
    Bound,
    Constant,
    Function,
    Match,
    Number,
    Term,
    occurrences,
    parts,
)


@dataclass(frozen=True)
class Fit:
    """The condition under which an alternative fits, and the values of its variables then."""

    conditions: list[ast.expr]
    bound: list[tuple[Binding, ast.expr]]


def fits(library: Library, alternative: Alternative, subjects: Sequence[ast.expr]) -> Fit:
    """The alternative against these subjects."""
    variables = {v.id: v for v in alternative.variables}
    conditions: list[ast.expr] = []
    bound: list[tuple[Binding, ast.expr]] = []

    def look(pattern: Term, subject: ast.expr) -> None:
        match pattern:
            case Bound(id):
                bound.append((variables[id], subject))
            case Constant("Option.none"):
                conditions.append(build.comparison(subject, ast.Is(), build.NONE))
            case Constant("Option.some"):
                conditions.append(build.comparison(subject, ast.IsNot(), build.NONE))
                look(pattern.values()[0], subject)
            case Constant("List.nil"):
                conditions.append(ast.UnaryOp(ast.Not(), subject))
            case Constant("List.cons"):
                conditions.append(subject)
                first, others = pattern.values()
                look(first, build.item(subject, build.number(0)))
                look(others, build.slice_of(subject, build.number(1), None))
            case Constant("Prod.mk"):
                for n, part in enumerate(pattern.values()):
                    look(part, build.item(subject, build.number(n)))
            case Constant("Bool.true"):
                conditions.append(subject)
            case Constant("Bool.false"):
                conditions.append(ast.UnaryOp(ast.Not(), subject))
            case Number(value) | Constant("OfNat.ofNat", (_, Number(value), *_)):
                conditions.append(build.comparison(subject, ast.Eq(), build.number(value)))
            case Constant("OfNat.ofNat", given):
                look(_require(given[1].term), subject)
            case Constant("Nat.zero"):
                conditions.append(build.comparison(subject, ast.Eq(), build.number(0)))
            case Constant("Nat.succ", given):
                conditions.append(build.comparison(subject, ast.Gt(), build.number(0)))
                less = build.operation(subject, ast.Sub(), build.number(1))
                look(_require(given[0].term), less)
            case Constant(name) if name in library.constructors:
                type_, constructor = library.constructors[name]
                if type_.enumeration:
                    member = build.attribute(
                        build.name(names.class_(type_.name)), names.member(name)
                    )
                    conditions.append(build.comparison(subject, ast.Is(), member))
                    return
                if not type_.structure:
                    class_ = build.name(names.constructor(name))
                    conditions.append(build.call("isinstance", subject, class_))
                own = pattern.arguments[len(constructor.parameters) :]
                for field, argument in zip(constructor.fields, own, strict=True):
                    look(
                        _require(argument.term),
                        build.attribute(subject, names.identifier(field.name)),
                    )
            case _:
                raise UntranslatableError(f"the pattern {pattern}")

    for pattern, subject in zip(alternative.patterns, subjects, strict=True):
        look(pattern, subject)
    return Fit(conditions, bound)


def _require(t: Term | None) -> Term:
    assert t is not None
    return t


def suggestion(patterns: Sequence[Term], within: Match) -> str | None:
    """A name for the term matched against these patterns: that of a variable which stands for all
    of it, for the value in `some`, or for the rest of a list."""
    written = {v.id: v.name for a in within.alternatives for v in a.variables if v.named}

    def name_of(t: Term) -> str | None:
        return written.get(t.id) if isinstance(t, Bound) else None

    inner = {"Option.some": 0, "List.cons": 1, "Nat.succ": 0}
    whole = [name_of(p) for p in patterns]
    part = [
        name_of(p.values()[inner[p.name]])
        for p in patterns
        if isinstance(p, Constant) and p.name in inner
    ]
    usable = [name for name in [*whole, *part] if name is not None and name != "_"]
    return usable[0] if usable else None


def variable_name(function: Function) -> str | None:
    """A name for the variable of `fun | pattern => …`."""
    return name_from(function.body, function.variable)


def name_from(body: Term, variable: Binding) -> str | None:
    """The name that a match on the variable suggests for it; otherwise that of its type."""
    if isinstance(body, Match) and Bound(variable.id) in body.discriminants:
        column = body.discriminants.index(Bound(variable.id))
        found = suggestion([a.patterns[column] for a in body.alternatives], body)
        if found is not None:
            return found
        if isinstance(variable.type, Constant) and variable.type.name.startswith("Attention."):
            return names.snake(names.class_(variable.type.name))
    return None


def pair_at_once(function: Function) -> Alternative | None:
    """The alternative of `fun (a, b) => …`, where a and b are variables."""
    body = function.body
    if not (isinstance(body, Match) and body.discriminants == (Bound(function.variable.id),)):
        return None
    (alternative, *more) = body.alternatives
    if more or body.arguments or occurrences(alternative.body, function.variable.id):
        return None
    pattern = alternative.patterns[0]
    if not (isinstance(pattern, Constant) and pattern.name == "Prod.mk"):
        return None
    order = [t.id for t in pattern.values() if isinstance(t, Bound)]
    if order != [v.id for v in alternative.variables]:
        return None
    return alternative


def calls(t: Term, name: str) -> list[Constant]:
    """The uses of a constant in a term."""
    found = [t] if isinstance(t, Constant) and t.name == name else []
    return found + [call for part in parts(t) for call in calls(part, name)]
