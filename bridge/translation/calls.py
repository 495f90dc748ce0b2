"""Uses of the library's own declarations: constructors and functions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from bridge.translation import build, core, names
from bridge.translation.errors import UntranslatableError
from bridge.translation.library import literal
from bridge.translation.terms import Binding, Bound, Constant, Term, computed_arguments

if TYPE_CHECKING:
    from bridge.translation.writer import Before, Writer


def construction(writer: Writer, t: Constant, before: Before) -> ast.expr:
    type_, constructor = writer.library.constructors[t.name]
    if type_.enumeration:
        owner = build.name(names.class_(type_.name))
        return build.attribute(owner, names.member(t.name))
    values = computed_arguments(t.arguments[len(constructor.parameters) :])
    fields = [names.identifier(f.name) for f in constructor.fields]
    given = [
        writer.expression(value, None) if before is None else writer.place(value, before, field)
        for value, field in zip(values, fields, strict=False)
    ]
    if len(given) != len(fields):
        raise UntranslatableError(f"{t.name} with {len(given)} of {len(fields)} arguments")
    if type_.structure:
        keywords = dict(zip(fields, given, strict=True))
        return build.call(names.class_(type_.name), keywords=keywords)
    return build.call(names.constructor(t.name), *given)


def own(writer: Writer, t: Constant, before: Before) -> ast.expr:
    if writer.result is not None and t.name == writer.definition.name:
        return build.name(writer.result)
    parameters = writer.library.definitions[t.name].parameters
    slots = writer.library.slots(t.name)
    positional: list[ast.expr] = []
    keywords: dict[str, ast.expr] = {}
    for parameter, slot, argument in zip(parameters, slots, t.arguments, strict=False):
        if slot.how == "dropped":
            continue
        assert argument.term is not None
        if slot.how == "positional":
            positional.append(writer.expression(argument.term, before))
        elif literal(parameter.type) is not None:
            keywords[slot.name] = _literal(writer, argument.term, parameter)
        else:
            keywords[slot.name] = writer.expression(argument.term, before)
    if writer.library.uses_numbers(t.name):
        num = build.name("num")
        dual = any(core.is_dual(a.term) for a in t.arguments if a.kind == "instance")
        keywords["num"] = build.call(build.attribute(num, "dual")) if dual else num
    function = writer.library.function_name(t.name)
    missing = [s for s in slots[len(t.arguments) :] if s.how == "positional"]
    if missing:
        with writer.scope():
            others = [writer.new_name(slot.name) for slot in missing]
            made = build.call(function, *positional, *others, keywords=keywords)
            return build.function([name.id for name in others], made)
    made = build.call(function, *positional, keywords=keywords)
    beyond = computed_arguments(t.arguments[len(parameters) :])
    if beyond:
        return build.call(made, *(writer.expression(value, before) for value in beyond))
    return made


def _literal(writer: Writer, instance: Term, parameter: Binding) -> ast.expr:
    """The number that an instance of OfNat is."""
    value = literal(parameter.type)
    assert value is not None
    if isinstance(instance, Bound) and instance.id in writer.bindings:
        return writer.number_of(writer.bindings[instance.id].type, value, instance)
    return build.number(value)
