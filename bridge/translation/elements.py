"""The variables that a loop over lists binds for each element, and the value it computes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bridge.translation import build, names, patterns
from bridge.translation.terms import (
    Apply,
    Argument,
    Binding,
    Constant,
    Function,
    Made,
    Term,
    occurrences,
)

if TYPE_CHECKING:
    from bridge.translation.writer import Writer


def element(
    writer: Writer, function: Term, count: int, suggestions: Sequence[str] = ()
) -> tuple[list[ast.expr], Term]:
    """The variables that a loop over lists binds for a function of `count` arguments, and the term
    that it then computes. Pairs are taken apart where the function does that at once."""
    targets: list[ast.expr] = []
    function = writer.erase(function)
    for n in range(count):
        if not isinstance(function, Function):
            titles = _new_names(writer, function, count - n, suggestions[n:])
            targets += map(build.name, titles)
            given = tuple(_as_argument(build.name(title)) for title in titles)
            return targets, _extend(writer, function, given)
        variable, body = function.variable, function.body
        pair = patterns.pair_at_once(function)
        if pair is not None:
            body = pair.body
            titles = [_name(writer, v, body) for v in pair.variables]
            targets.append(ast.Tuple(list(map(build.name, titles))))
        else:
            wanted = None if variable.named else patterns.variable_name(function)
            if not occurrences(body, variable.id):
                targets.append(build.name("_"))
            else:
                targets.append(build.name(writer.bind(variable, wanted)))
        function = writer.erase(body)
    return targets, function


def _name(writer: Writer, variable: Binding, body: Term) -> str:
    return writer.bind(variable) if occurrences(body, variable.id) else "_"


def _extend(writer: Writer, function: Term, given: tuple[Argument, ...]) -> Term:
    match function:
        case Constant(name, already):
            return Constant(name, already + given)
        case Apply(head, already):
            return Apply(head, already + given)
    return Apply(function, given)


def accumulate(writer: Writer, function: Term, title: str) -> tuple[ast.expr, Term]:
    """The variables that a fold binds for each element, and its next value, where the variable
    holds the value so far."""
    function = writer.erase(function)
    if isinstance(function, Function):
        writer.stands_for(function.variable, build.name(title))
        (target, *_), body = element(writer, function.body, 1)
        return target, body
    variable = writer.new_name(_remaining_names(writer, function, 2)[1])
    given = (_as_argument(build.name(title)), _as_argument(variable))
    return variable, _extend(writer, function, given)


def _new_names(writer: Writer, function: Term, count: int, suggestions: Sequence[str]) -> list[str]:
    """New names for the arguments that a function still lacks."""
    wanted = _remaining_names(writer, function, count)
    titles = []
    for n, title in enumerate(wanted):
        chosen = suggestions[n] if n < len(suggestions) else names.identifier(title)
        titles.append(names.fresh(chosen, writer.taken))
        writer.taken.add(titles[-1])
    return titles


def _remaining_names(writer: Writer, function: Term, count: int) -> list[str]:
    wanted = ["x", "y", "z"][:count]
    if isinstance(function, Constant) and function.name in writer.library.definitions:
        slots = writer.library.slots(function.name)[len(function.arguments) :]
        own = [s.name for s in slots if s.how == "positional"][:count]
        wanted = own + wanted[len(own) :]
    return wanted


def _as_argument(piece: ast.expr) -> Argument:
    return Argument("term", Made(piece))
