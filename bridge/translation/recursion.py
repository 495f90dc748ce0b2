"""Recursion over a list as a loop: Python's own would not reach far enough."""

from __future__ import annotations

import ast

from bridge.translation import build, patterns
from bridge.translation.terms import Bound, Constant, Definition, Match, occurrences
from bridge.translation.writer import Writer


def body(writer: Writer) -> list[ast.stmt]:
    """The statements of the writer's definition."""
    fold = without_recursion(writer.definition)
    if fold is None:
        return writer.statements(writer.definition.body, None)
    match, place = fold
    return _as_loop(writer, match, place)


def without_recursion(definition: Definition) -> tuple[Match, int] | None:
    """The match of a definition that is a fold from the right over one of its lists, and the place
    of that list among its parameters: f [] = a, f (x :: xs) = b, where b uses xs in f xs alone."""
    body = definition.body
    if not (isinstance(body, Match) and len(body.discriminants) == len(body.alternatives) - 1 == 1):
        return None
    subject = body.discriminants[0]
    place = next((n for n, p in enumerate(definition.parameters) if Bound(p.id) == subject), None)
    empty, cons = body.alternatives
    if place is None or not (
        isinstance(empty.patterns[0], Constant)
        and empty.patterns[0].name == "List.nil"
        and isinstance(cons.patterns[0], Constant)
        and cons.patterns[0].name == "List.cons"
    ):
        return None
    tail = cons.patterns[0].values()[1]
    if not isinstance(tail, Bound):
        return None
    same = [Bound(p.id) for p in definition.parameters]
    same[place] = tail
    calls = patterns.calls(cons.body, definition.name)
    alike = all([a.term for a in call.arguments] == same for call in calls)
    if not calls or not alike or occurrences(cons.body, tail.id) != len(calls):
        return None
    return body, place


def _as_loop(writer: Writer, match: Match, place: int) -> list[ast.stmt]:
    """A fold from the right over the list at this place."""
    rows = writer.pieces[writer.definition.parameters[place].id]
    empty, cons = match.alternatives
    result = writer.new_name("result")
    out = writer.statements(empty.body, result.id)
    first = cons.patterns[0]
    assert isinstance(first, Constant)
    head = next(v for v in cons.variables if v.id == getattr(first.values()[0], "id", None))
    with writer.scope():
        element = build.name(writer.bind(head))
        writer.result = result.id
        body = writer.statements(cons.body, result.id)
    return [*out, build.loop(element, build.call("reversed", rows), body), ast.Return(result)]
