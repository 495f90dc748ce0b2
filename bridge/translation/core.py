"""What the functions of core Lean become.

`EXPRESSIONS` and `LOOPS`: by Lean name, how the writer puts a constant with its arguments. Python
has most of them; those that it lacks stand in `bridge/spec/core.py`, where each says what Lean's
does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bridge.translation import build, patterns
from bridge.translation.errors import UntranslatableError
from bridge.translation.library import DUAL, UNFOLDED
from bridge.translation.terms import Bound, Constant, Function, Number, Term

if TYPE_CHECKING:
    from bridge.translation.writer import Before, Target, Writer

Expression = Callable[["Writer", Constant, "Before"], ast.expr]
Loop = Callable[["Writer", Constant, "Target"], list[ast.stmt]]


def _type(t: Constant, place: int = 0) -> Term:
    given = t.arguments[place].term
    assert given is not None
    return given


def _is(type_: Term, *names: str) -> bool:
    return isinstance(type_, Constant) and type_.name in names


def _is_generic(type_: Term) -> bool:
    """Whether a type is a variable: its operations are whatever its numbers bring. Dual numbers
    bring theirs in `bridge/spec/core.py`."""
    return isinstance(type_, Bound) or _is(type_, DUAL)


def is_dual(instance: Term | None) -> bool:
    """Whether an instance is one of dual numbers."""
    return isinstance(instance, Constant) and instance.name.startswith(f"{DUAL}.")


# Numbers


def _arithmetic(sign: type[ast.operator]) -> Expression:
    def written(writer: Writer, t: Constant, before: Before) -> ast.expr:
        type_ = _type(t)
        left, right = (writer.expression(v, before) for v in t.values())
        plain = build.operation(left, sign(), right)
        if _is_generic(type_) or (_is(type_, "Int") and sign in (ast.Add, ast.Sub, ast.Mult)):
            return plain
        if _is(type_, "Nat"):
            if sign in (ast.Add, ast.Mult):
                return plain
            if sign is ast.Sub:
                return build.call("max", plain, build.number(0))
            if isinstance(right, ast.Constant) and right.value:
                floor = ast.FloorDiv() if sign is ast.Div else ast.Mod()
                return build.operation(left, floor, right)
            return build.call("div" if sign is ast.Div else "mod", left, right)
        raise UntranslatableError(f"{t.name} of the type {type_}")

    return written


def _comparison(sign: type[ast.cmpop]) -> Expression:
    def written(writer: Writer, t: Constant, before: Before) -> ast.expr:
        left, right = t.values()
        if _is(right, "Bool.true"):
            return writer.expression(left, before)
        return build.comparison(
            writer.expression(left, before), sign(), writer.expression(right, before)
        )

    return written


def _junction(sign: type[ast.boolop]) -> Expression:
    def written(writer: Writer, t: Constant, _: Before) -> ast.expr:
        given = [a.term for a in t.arguments if a.kind in ("term", "proposition")]
        # The second part is looked at only where the first does not decide.
        pieces = [writer.expression(part, None) for part in given if part is not None]
        if sign is ast.And:
            return build.both(pieces)
        return ast.BoolOp(sign(), pieces)

    return written


def _not(writer: Writer, t: Constant, before: Before) -> ast.expr:
    given = t.arguments[0].term
    assert given is not None
    return ast.UnaryOp(ast.Not(), writer.expression(given, before))


def _truth(value: bool) -> Expression:
    return lambda writer, t, before: ast.Constant(value)


def _decide(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return writer.expression(_type(t), before)


def _literal(writer: Writer, t: Constant, before: Before) -> ast.expr:
    type_, value = _type(t), _type(t, 1)
    if not isinstance(value, Number):
        raise UntranslatableError(f"a literal that is no number: {value}")
    if _is_generic(type_):
        return writer.number_of(type_, value.value, t.arguments[2].term)
    return build.number(value.value)


def _cast(writer: Writer, t: Constant, before: Before) -> ast.expr:
    type_ = _type(t)
    piece = writer.expression(t.values()[-1], before)
    if _is_generic(type_):
        return build.call(build.attribute(build.name("num"), writer.role(type_)), piece)
    if _is(type_, "Int", "Nat"):
        return piece
    raise UntranslatableError(f"{t.name} into the type {type_}")


def _exp(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.call(
        build.attribute(build.name("num"), "exp"), writer.expression(t.values()[-1], before)
    )


def _negated(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return ast.UnaryOp(ast.USub(), writer.expression(t.values()[-1], before))


def _smallest(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.call("min", *(writer.expression(v, before) for v in t.values()))


def _to_nat(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.call("max", writer.expression(t.values()[0], before), build.number(0))


def _successor(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.operation(writer.expression(t.values()[0], before), ast.Add(), build.number(1))


# Conditions and options


def _if(writer: Writer, t: Constant, before: Before) -> ast.expr:
    condition, yes, no = writer.branches(t, before)
    pieces = (writer.expression(branch, None) for branch in (yes, no))
    return build.conditional(condition, *pieces)


def _none(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.NONE


def _same(writer: Writer, t: Constant, before: Before) -> ast.expr:
    """What Python does not tell from its argument, which is the last."""
    return writer.expression(t.values()[-1], before)


def _over_option(place: int, otherwise: Callable[[ast.expr, ast.expr], ast.expr]) -> Expression:
    """A function of what is in an option, which is the argument at this place."""

    def written(writer: Writer, t: Constant, before: Before) -> ast.expr:
        from bridge.translation.writer import Made, NeedsStatements, is_simple

        option, function = t.values()[place], t.values()[1 - place]
        subject = writer.expression(option, before)
        if not is_simple(subject):
            if before is None:
                # An assignment inside the condition: the option is computed once.
                raise NeedsStatements
            wanted = writer.erased(function)
            title = "found"
            if isinstance(wanted, Function) and wanted.variable.named:
                title = wanted.variable.name
            subject = writer.assigned(title, subject, before)
        value = writer.applied(function, [Made(subject)], None)  # type: ignore[list-item]
        return otherwise(build.comparison(subject, ast.Is(), build.NONE), value)

    return written


def _none_or(missing: ast.expr, value: ast.expr) -> ast.expr:
    return ast.IfExp(missing, build.NONE, value)


def _true_or(missing: ast.expr, value: ast.expr) -> ast.expr:
    return ast.BoolOp(ast.Or(), [missing, value])


# Lists


def over(writer: Writer, t: Term, before: Before) -> ast.expr:
    """A list that is only gone through: a range instead of a list of it, for instance."""
    t = writer.resolved(t)
    match t:
        case Constant("List.finRange" | "List.range"):
            return build.call("range", writer.expression(t.values()[0], before))
        case Constant("List.range'"):
            return _range_from(writer, t, before)
        case Constant("List.zip"):
            return _zipped(writer, t.values(), before)
        case Constant("Vector.toList" | "List.toArray" | "Vector.mk"):
            return over(writer, t.values()[-1], before)
    return writer.expression(t, before)


def _range_from(writer: Writer, t: Constant, before: Before) -> ast.expr:
    first, count, *step = (writer.expression(v, before) for v in t.values())
    if step and build.text(step[0]) != "1":
        raise UntranslatableError("List.range' with a step")
    return build.call("range", first, build.operation(first, ast.Add(), count))


def _zipped(writer: Writer, given: list[Term], before: Before) -> ast.expr:
    lists = [over(writer, v, before) for v in given]
    return build.call("zip", *lists, keywords={"strict": ast.Constant(False)})


def _listed(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.call("list", over(writer, t, before))


def _gone_through(
    writer: Writer, t: Constant, before: Before
) -> tuple[Callable[[], tuple[ast.expr, Term]], ast.expr]:
    """What a list function goes through, and then what it binds and computes for each element."""
    t = _seen_through(writer, t)
    iterable: ast.expr
    match t:
        case Constant("List.ofFn"):
            count, function = t.values()
            iterable = build.call("range", writer.expression(count, before))
            lists = 1
        case Constant("List.zipWith"):
            function, *among_all = t.values()
            iterable, lists = _zipped(writer, among_all, before), 2
        case _:
            function, among = t.values()
            among = writer.resolved(among)
            if isinstance(among, Constant) and among.name == "List.zipIdx":
                function = writer.erased(function)
                if isinstance(function, Function) and patterns.pair_at_once(function):
                    return _numbered(writer, among, function, before)
            iterable, lists = over(writer, among, before), 1

    def element() -> tuple[ast.expr, Term]:
        targets, body = writer.element(function, lists)
        return targets[0] if lists == 1 else ast.Tuple(targets), body

    return element, iterable


def _numbered(
    writer: Writer, t: Constant, function: Term, before: Before
) -> tuple[Callable[[], tuple[ast.expr, Term]], ast.expr]:
    xs, *start = t.values()
    given = [over(writer, xs, before)]
    if start and build.text(first := writer.expression(start[0], before)) != "0":
        given.append(first)

    def element() -> tuple[ast.expr, Term]:
        (pair,), body = writer.element(function, 1)
        assert isinstance(pair, ast.Tuple)
        return ast.Tuple(pair.elts[::-1]), body

    return element, build.call("enumerate", *given)


def _with_numbers(writer: Writer, t: Constant, before: Before) -> ast.expr:
    with writer.scope():
        x, i = writer.new_name("x"), writer.new_name("i")
        xs, *start = (writer.expression(v, before) for v in t.values())
        numbered = build.call("enumerate", xs, *start)
        return build.comprehension(ast.Tuple([x, i]), (ast.Tuple([i, x]), numbered))


def _seen_through(writer: Writer, t: Constant) -> Constant:
    """The list that a vector is made of."""
    while t.name in ("Vector.mk", "List.toArray", "Vector.toList"):
        inner = writer.resolved(t.values()[-1])
        if not isinstance(inner, Constant):
            break
        t = inner
    return t


def _each(writer: Writer, t: Constant, before: Before) -> ast.expr:
    """map, zipWith and ofFn as a comprehension."""
    element, iterable = _gone_through(writer, t, before)
    with writer.scope():
        target, body = element()
        return build.comprehension(writer.expression(body, None), (target, iterable))


def _flat_map(writer: Writer, t: Constant, before: Before) -> ast.expr:
    element, iterable = _gone_through(writer, t, before)
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
    element, iterable = _gone_through(writer, t, before)
    with writer.scope():
        target, condition = element()
        return build.filtered(target, iterable, writer.expression(condition, None))


def _filter_map(writer: Writer, t: Constant, before: Before) -> ast.expr:
    element, iterable = _gone_through(writer, t, before)
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
    def written(writer: Writer, t: Constant, before: Before) -> ast.expr:
        count, xs = (writer.expression(v, before) for v in t.values())
        return build.sliced(xs, count, None) if first else build.sliced(xs, None, count)

    return written


def _tail(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.sliced(writer.expression(t.values()[0], before), build.number(1), None)


def _length(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.call("len", writer.expression(t.values()[0], before))


def _repeated(writer: Writer, t: Constant, before: Before) -> ast.expr:
    count, x = (writer.expression(v, before) for v in t.values())
    return build.operation(build.lists(x), ast.Mult(), count)


def _elements(piece: ast.expr) -> list[ast.expr]:
    return list(piece.elts) if isinstance(piece, ast.List) else [ast.Starred(piece)]


def _cons(writer: Writer, t: Constant, before: Before) -> ast.expr:
    first, others = (writer.expression(v, before) for v in t.values())
    return build.lists(first, *_elements(others))


def _joined(writer: Writer, t: Constant, before: Before) -> ast.expr:
    if not _is(_type(t), "List"):
        raise UntranslatableError(f"HAppend.hAppend of the type {_type(t)}")
    pieces = [writer.expression(v, before) for v in t.values()]
    if any(isinstance(piece, ast.List) for piece in pieces):
        return build.lists(*(e for piece in pieces for e in _elements(piece)))
    return build.operation(pieces[0], ast.Add(), pieces[1])


def _empty(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.lists()


def _item(writer: Writer, t: Constant, before: Before) -> ast.expr:
    xs, index = (writer.expression(v, before) for v in t.values())
    return build.item(xs, index)


def _helper(name: str) -> Expression:
    """A function of `bridge/spec/core.py`, with the arguments in Lean's order."""
    return lambda writer, t, before: build.call(
        name, *(writer.expression(v, before) for v in t.values())
    )


def _pair(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return ast.Tuple([writer.expression(v, before) for v in t.values()])


EXPRESSIONS: Mapping[str, Expression] = {
    "HAdd.hAdd": _arithmetic(ast.Add),
    "HSub.hSub": _arithmetic(ast.Sub),
    "HMul.hMul": _arithmetic(ast.Mult),
    "HDiv.hDiv": _arithmetic(ast.Div),
    "HMod.hMod": _arithmetic(ast.Mod),
    "Neg.neg": _negated,
    "Min.min": _smallest,
    "Nat.succ": _successor,
    "Nat.cast": _cast,
    "Int.cast": _cast,
    "Int.natAbs": _helper("abs"),
    "Int.toNat": _to_nat,
    "OfNat.ofNat": _literal,
    "Attention.Exp.exp": _exp,
    "LE.le": _comparison(ast.LtE),
    "LT.lt": _comparison(ast.Lt),
    "GE.ge": _comparison(ast.GtE),
    "GT.gt": _comparison(ast.Gt),
    "Eq": _comparison(ast.Eq),
    "Ne": _comparison(ast.NotEq),
    "BEq.beq": _comparison(ast.Eq),
    "And": _junction(ast.And),
    "Or": _junction(ast.Or),
    "Bool.and": _junction(ast.And),
    "Bool.or": _junction(ast.Or),
    "Not": _not,
    "Bool.not": _not,
    "True": _truth(True),
    "False": _truth(False),
    "Bool.true": _truth(True),
    "Bool.false": _truth(False),
    "Decidable.decide": _decide,
    "ite": _if,
    "dite": _if,
    "Option.none": _none,
    "Option.some": _same,
    "Option.map": _over_option(1, _none_or),
    "Option.bind": _over_option(0, _none_or),
    "Option.all": _over_option(1, _true_or),
    "Fin.mk": _same,
    "Prod.mk": _pair,
    "List.nil": _empty,
    "List.cons": _cons,
    "HAppend.hAppend": _joined,
    "List.map": _each,
    "List.zipWith": _each,
    "List.ofFn": _each,
    "List.flatMap": _flat_map,
    "List.flatten": _flatten,
    "List.filter": _filter,
    "List.filterMap": _filter_map,
    "List.foldl": _fold,
    "List.finRange": _listed,
    "List.range": _listed,
    "List.range'": _listed,
    "List.zip": _listed,
    "List.zipIdx": _with_numbers,
    "List.drop": _slice(True),
    "List.take": _slice(False),
    "List.tail": _tail,
    "List.length": _length,
    "List.replicate": _repeated,
    "Vector.replicate": _repeated,
    "List.getD": _helper("get_or"),
    "GetElem.getElem": _item,
    "GetElem?.getElem?": _helper("get_or_none"),
    "List.eraseIdx": _helper("erase_index"),
    "List.set": _helper("set_index"),
    "List.toArray": _same,
    "Vector.mk": _same,
    "Vector.toList": _same,
}


# Statements


def is_loop(t: Term) -> bool:
    """Whether a term is better written as a loop than as an expression."""
    return isinstance(t, Constant) and t.name == "List.foldl"


def _folded(writer: Writer, t: Constant, target: Target) -> list[ast.stmt]:
    """A fold from the left as a loop over its accumulator."""
    function, first, among = t.values()
    before: list[ast.stmt] = []
    iterable = over(writer, among, before)
    title = target or writer.new_name("result").id
    out = [*before, *writer.statements(first, title)]
    with writer.scope():
        writer.taken.add(title)
        element, body = writer.accumulated(function, title)
        out.append(build.loop(element, iterable, writer.statements(body, title)))
    if target is None:
        out.append(ast.Return(build.name(title)))
    return out


def _collected(method: str) -> Loop:
    """A list that is put together element by element."""

    def written(writer: Writer, t: Constant, target: Target) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        element, iterable = _gone_through(writer, t, before)
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

    return written


LOOPS: Mapping[str, Loop] = {
    "List.foldl": _folded,
    "List.map": _collected("append"),
    "List.zipWith": _collected("append"),
    "List.ofFn": _collected("append"),
    "List.flatMap": _collected("extend"),
}

assert set(LOOPS) <= set(EXPRESSIONS)
assert not set(UNFOLDED) & set(EXPRESSIONS)
