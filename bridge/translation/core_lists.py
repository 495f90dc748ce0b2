"""The functions of lists and vectors of core Lean, as Python expressions and as loops."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bridge.translation import build, elements, patterns
from bridge.translation.errors import UntranslatableError
from bridge.translation.terms import Constant, Function, Term

if TYPE_CHECKING:
    from bridge.translation.writer import Before, Target, Writer

Expression = Callable[["Writer", Constant, "Before"], ast.expr]
Loop = Callable[["Writer", Constant, "Target"], list[ast.stmt]]


def helper(name: str) -> Expression:
    """A function of `bridge/spec/core.py` or a builtin, with the arguments in Lean's order."""
    return lambda writer, t, before: build.call(
        name, *(writer.expression(v, before) for v in t.values())
    )


def same(writer: Writer, t: Constant, before: Before) -> ast.expr:
    """A function whose result Python does not distinguish from its last argument."""
    return writer.expression(t.values()[-1], before)


def over(writer: Writer, t: Term, before: Before) -> ast.expr:
    """A list that is only gone through: a range instead of a list of it, for instance."""
    t = writer.resolve(t)
    match t:
        case Constant("List.finRange" | "List.range"):
            return build.call("range", writer.expression(t.values()[0], before))
        case Constant("List.range'"):
            return _range_from(writer, t, before)
        case Constant("List.zip"):
            return _zip(writer, t.values(), before)
        case Constant("Vector.toList" | "List.toArray" | "Vector.mk"):
            return over(writer, t.values()[-1], before)
    return writer.expression(t, before)


def _range_from(writer: Writer, t: Constant, before: Before) -> ast.expr:
    first, count, *step = (writer.expression(v, before) for v in t.values())
    if step and build.text(step[0]) != "1":
        raise UntranslatableError("List.range' with a step")
    return build.call("range", first, build.operation(first, ast.Add(), count))


def _zip(writer: Writer, given: list[Term], before: Before) -> ast.expr:
    lists = [over(writer, v, before) for v in given]
    return build.call("zip", *lists, keywords={"strict": ast.Constant(False)})


def _make_list(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.call("list", over(writer, t, before))


def _loop_parts(
    writer: Writer, t: Constant, before: Before
) -> tuple[Callable[[], tuple[ast.expr, Term]], ast.expr]:
    """The items of a list function's loop, then the names and the value for each element."""
    t = _list_of_vector(writer, t)
    iterable: ast.expr
    match t:
        case Constant("List.ofFn"):
            count, function = t.values()
            iterable = build.call("range", writer.expression(count, before))
            lists = 1
        case Constant("List.zipWith"):
            function, *among_all = t.values()
            iterable, lists = _zip(writer, among_all, before), 2
        case _:
            function, among = t.values()
            if t.name in ("List.any", "List.all"):
                function, among = among, function
            among = writer.resolve(among)
            if isinstance(among, Constant) and among.name == "List.zipIdx":
                function = writer.erase(function)
                if isinstance(function, Function) and patterns.pair_at_once(function):
                    return _number(writer, among, function, before)
            iterable, lists = over(writer, among, before), 1

    def element() -> tuple[ast.expr, Term]:
        targets, body = elements.element(writer, function, lists)
        return targets[0] if lists == 1 else ast.Tuple(targets), body

    return element, iterable


def _number(
    writer: Writer, t: Constant, function: Term, before: Before
) -> tuple[Callable[[], tuple[ast.expr, Term]], ast.expr]:
    xs, *start = t.values()
    given = [over(writer, xs, before)]
    if start and build.text(first := writer.expression(start[0], before)) != "0":
        given.append(first)

    def element() -> tuple[ast.expr, Term]:
        (pair,), body = elements.element(writer, function, 1)
        assert isinstance(pair, ast.Tuple)
        return ast.Tuple(pair.elts[::-1]), body

    return element, build.call("enumerate", *given)


def _with_numbers(writer: Writer, t: Constant, before: Before) -> ast.expr:
    with writer.scope():
        x, i = writer.new_name("x"), writer.new_name("i")
        xs, *start = (writer.expression(v, before) for v in t.values())
        numbered = build.call("enumerate", xs, *start)
        return build.comprehension(ast.Tuple([x, i]), (ast.Tuple([i, x]), numbered))


def _list_of_vector(writer: Writer, t: Constant) -> Constant:
    """The list that a vector is made of."""
    while t.name in ("Vector.mk", "List.toArray", "Vector.toList"):
        inner = writer.resolve(t.values()[-1])
        if not isinstance(inner, Constant):
            break
        t = inner
    return t


def _each(writer: Writer, t: Constant, before: Before) -> ast.expr:
    """map, zipWith and ofFn as a comprehension."""
    element, iterable = _loop_parts(writer, t, before)
    with writer.scope():
        target, body = element()
        return build.comprehension(writer.expression(body, None), (target, iterable))


def _flat_map(writer: Writer, t: Constant, before: Before) -> ast.expr:
    element, iterable = _loop_parts(writer, t, before)
    with writer.scope():
        target, body = element()
        inner = over(writer, body, None)
        x = writer.new_name("x")
        return build.comprehension(x, (target, iterable), (x, inner))


def _flatten(writer: Writer, t: Constant, before: Before) -> ast.expr:
    lists = over(writer, t.values()[0], before)
    with writer.scope():
        xs, x = writer.new_name("xs"), writer.new_name("x")
        return build.comprehension(x, (xs, lists), (x, xs))


def _filter(writer: Writer, t: Constant, before: Before) -> ast.expr:
    element, iterable = _loop_parts(writer, t, before)
    with writer.scope():
        target, condition = element()
        return build.filter_of(target, iterable, writer.expression(condition, None))


def _of_some_or_each(name: str) -> Expression:
    def translate(writer: Writer, t: Constant, before: Before) -> ast.expr:
        element, iterable = _loop_parts(writer, t, before)
        with writer.scope():
            target, condition = element()
            each = build.comprehension(writer.expression(condition, None), (target, iterable))
            return build.call(name, ast.GeneratorExp(each.elt, each.generators))

    return translate


def _filter_map(writer: Writer, t: Constant, before: Before) -> ast.expr:
    element, iterable = _loop_parts(writer, t, before)
    with writer.scope():
        target, body = element()
        piece = writer.expression(body, None)
        x = writer.new_name("found")
        condition = build.comparison(ast.NamedExpr(x, piece), ast.IsNot(), build.NONE)
        made = build.comprehension(x, (target, iterable))
        made.generators[0].ifs.append(condition)
        return made


def _fold(writer: Writer, t: Constant, before: Before) -> ast.expr:
    function, first, among = t.values()
    iterable = over(writer, among, before)
    start = writer.expression(first, before)
    return build.call("reduce", writer.expression(function, before), iterable, start)


def _slice(first: bool) -> Expression:
    def write(writer: Writer, t: Constant, before: Before) -> ast.expr:
        count, xs = (writer.expression(v, before) for v in t.values())
        return build.slice_of(xs, count, None) if first else build.slice_of(xs, None, count)

    return write


def _tail(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.slice_of(writer.expression(t.values()[0], before), build.number(1), None)


def _length(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.call("len", writer.expression(t.values()[0], before))


def _repeat(writer: Writer, t: Constant, before: Before) -> ast.expr:
    count, x = (writer.expression(v, before) for v in t.values())
    return build.operation(build.lists(x), ast.Mult(), count)


def _elements(piece: ast.expr) -> list[ast.expr]:
    return list(piece.elts) if isinstance(piece, ast.List) else [ast.Starred(piece)]


def _cons(writer: Writer, t: Constant, before: Before) -> ast.expr:
    first, others = (writer.expression(v, before) for v in t.values())
    return build.lists(first, *_elements(others))


def _join(writer: Writer, t: Constant, before: Before) -> ast.expr:
    type_ = t.arguments[0].term
    while isinstance(type_, Constant) and type_.name in writer.library.definitions:
        # An abbreviation.
        type_ = writer.library.definitions[type_.name].body
    if not (isinstance(type_, Constant) and type_.name == "List"):
        raise UntranslatableError(f"HAppend.hAppend of the type {type_}")
    pieces = [writer.expression(v, before) for v in t.values()]
    if any(isinstance(piece, ast.List) for piece in pieces):
        return build.lists(*(e for piece in pieces for e in _elements(piece)))
    return build.operation(pieces[0], ast.Add(), pieces[1])


def _empty(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.lists()


def _set_entry(writer: Writer, t: Constant, before: Before) -> ast.expr:
    """The vector with one entry set. Lean's first argument may be its length, which is left out."""
    return build.call("set_index", *(writer.expression(v, before) for v in t.values()[-3:]))


def _item(writer: Writer, t: Constant, before: Before) -> ast.expr:
    xs, index = (writer.expression(v, before) for v in t.values())
    return build.item(xs, index)


EXPRESSIONS: Mapping[str, Expression] = {
    "List.nil": _empty,
    "List.cons": _cons,
    "HAppend.hAppend": _join,
    "List.map": _each,
    "List.zipWith": _each,
    "List.ofFn": _each,
    "List.flatMap": _flat_map,
    "List.flatten": _flatten,
    "List.filter": _filter,
    "List.any": _of_some_or_each("any"),
    "List.all": _of_some_or_each("all"),
    "List.filterMap": _filter_map,
    "List.foldl": _fold,
    "List.finRange": _make_list,
    "List.range": _make_list,
    "List.range'": _make_list,
    "List.zip": _make_list,
    "List.zipIdx": _with_numbers,
    "List.drop": _slice(True),
    "List.take": _slice(False),
    "List.tail": _tail,
    "List.length": _length,
    "List.replicate": _repeat,
    "Vector.replicate": _repeat,
    "List.getD": helper("get_or"),
    "GetElem.getElem": _item,
    "GetElem?.getElem?": helper("get_or_none"),
    "List.eraseIdx": helper("erase_index"),
    "List.set": helper("set_index"),
    "Vector.set": _set_entry,
    "List.toArray": same,
    "Vector.mk": same,
    "Vector.toList": same,
}


def is_loop(t: Term) -> bool:
    """Whether a term is better written as a loop than as an expression."""
    return isinstance(t, Constant) and t.name == "List.foldl"


def _fold_loop(writer: Writer, t: Constant, target: Target) -> list[ast.stmt]:
    """A fold from the left as a loop over its accumulator."""
    function, first, among = t.values()
    before: list[ast.stmt] = []
    iterable = over(writer, among, before)
    title = target or writer.new_name("result").id
    out = [*before, *writer.statements(first, title)]
    with writer.scope():
        writer.taken.add(title)
        element, body = elements.accumulate(writer, function, title)
        out.append(build.loop(element, iterable, writer.statements(body, title)))
    if target is None:
        out.append(ast.Return(build.name(title)))
    return out


def _collect(method: str) -> Loop:
    """A list that is put together element by element."""

    def write(writer: Writer, t: Constant, target: Target) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        element, iterable = _loop_parts(writer, t, before)
        title = target or writer.new_name("result").id
        out: list[ast.stmt] = [*before, build.assign(build.name(title), build.lists())]
        with writer.scope():
            writer.taken.add(title)
            bound, body = element()
            inner: list[ast.stmt] = []
            piece = writer.value(body, inner)
            method_of = build.attribute(build.name(title), method)
            inner.append(ast.Expr(build.call(method_of, piece)))
            out.append(build.loop(bound, iterable, inner))
        if target is None:
            out.append(ast.Return(build.name(title)))
        return out

    return write


LOOPS: Mapping[str, Loop] = {
    "List.foldl": _fold_loop,
    "List.map": _collect("append"),
    "List.zipWith": _collect("append"),
    "List.ofFn": _collect("append"),
    "List.flatMap": _collect("extend"),
}
