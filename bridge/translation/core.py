"""The functions of core Lean, in Python.

`EXPRESSIONS` and `LOOPS`: by Lean name, how the writer puts a constant with its arguments. Python
has most of them; `bridge/spec/core.py` has the others, each with a description of Lean's function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bridge.translation import build, core_lists
from bridge.translation.core_lists import LOOPS, Expression, helper, is_loop, same
from bridge.translation.errors import NeedsStatements, NotAProgramError, UntranslatableError
from bridge.translation.library import DUAL, UNFOLDED
from bridge.translation.terms import Bound, Constant, Function, Made, Number, Term

if TYPE_CHECKING:
    from bridge.translation.writer import Before, Writer


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
    def write(writer: Writer, t: Constant, before: Before) -> ast.expr:
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
        if _is(type_, "Int") and sign is ast.Div:
            return build.call("int_div", left, right)
        raise UntranslatableError(f"{t.name} of the type {type_}")

    return write


def _power(writer: Writer, t: Constant, before: Before) -> ast.expr:
    if not _is(_type(t), "Nat", "Int") and not _is_generic(_type(t)):
        raise UntranslatableError(f"{t.name} of the type {_type(t)}")
    base, exponent = (writer.expression(v, before) for v in t.values())
    return build.operation(base, ast.Pow(), exponent)


def _of_bits(sign: type[ast.operator], *types: str) -> Expression:
    """An operation on bits, of whose left argument these are the types."""

    def write(writer: Writer, t: Constant, before: Before) -> ast.expr:
        if not _is(_type(t), *types):
            raise UntranslatableError(f"{t.name} of the type {_type(t)}")
        left, right = (writer.expression(v, before) for v in t.values())
        return build.operation(left, sign(), right)

    return write


def _comparison(sign: type[ast.cmpop]) -> Expression:
    def write(writer: Writer, t: Constant, before: Before) -> ast.expr:
        left, right = t.values()
        if _is(right, "Bool.true"):
            return writer.expression(left, before)
        same = ast.Is if sign is ast.Eq and _is(right, "Option.none") else sign
        return build.comparison(
            writer.expression(left, before), same(), writer.expression(right, before)
        )

    return write


def _junction(sign: type[ast.boolop]) -> Expression:
    def write(writer: Writer, t: Constant, _: Before) -> ast.expr:
        given = [a.term for a in t.arguments if a.kind in ("term", "proposition")]
        # The second part is looked at only where the first does not decide.
        pieces = [writer.expression(part, None) for part in given if part is not None]
        if sign is ast.And:
            return build.both(pieces)
        return ast.BoolOp(sign(), pieces)

    return write


def _not(writer: Writer, t: Constant, before: Before) -> ast.expr:
    given = t.arguments[0].term
    assert given is not None
    return build.negation(writer.expression(given, before))


def _exists(writer: Writer, t: Constant, before: Before) -> ast.expr:
    raise NotAProgramError("it says that there is something of a kind")


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


def _negate(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return ast.UnaryOp(ast.USub(), writer.expression(t.values()[-1], before))


def _to_nat(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.call("max", writer.expression(t.values()[0], before), build.number(0))


def _successor(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.operation(writer.expression(t.values()[-1], before), ast.Add(), build.number(1))


# Conditions and options


def _if(writer: Writer, t: Constant, before: Before) -> ast.expr:
    condition, yes, no = writer.branches(t, before)
    pieces = (writer.expression(branch, None) for branch in (yes, no))
    return build.conditional(condition, *pieces)


def _none(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.NONE


def _over_option(place: int, otherwise: Callable[[ast.expr, ast.expr], ast.expr]) -> Expression:
    """A function of the value in an option, which is the argument at this place."""

    def write(writer: Writer, t: Constant, before: Before) -> ast.expr:
        option, function = t.values()[place], t.values()[1 - place]
        subject = writer.expression(option, before)
        if not build.is_simple(subject):
            if before is None:
                # An assignment inside the condition: the option is computed once.
                raise NeedsStatements
            wanted = writer.erase(function)
            title = "found"
            if isinstance(wanted, Function) and wanted.variable.named:
                title = wanted.variable.name
            subject = writer.assign(title, subject, before)
        value = writer.apply(function, [Made(subject)], None)
        return otherwise(build.comparison(subject, ast.Is(), build.NONE), value)

    return write


def _none_or(missing: ast.expr, value: ast.expr) -> ast.expr:
    return ast.IfExp(missing, build.NONE, value)


def _is_some(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return build.comparison(writer.expression(t.values()[0], before), ast.IsNot(), build.NONE)


def _true_or(missing: ast.expr, value: ast.expr) -> ast.expr:
    return ast.BoolOp(ast.Or(), [missing, value])


def _pair(writer: Writer, t: Constant, before: Before) -> ast.expr:
    return ast.Tuple([writer.expression(v, before) for v in t.values()])


EXPRESSIONS: Mapping[str, Expression] = {
    **core_lists.EXPRESSIONS,
    "HAdd.hAdd": _arithmetic(ast.Add),
    "HSub.hSub": _arithmetic(ast.Sub),
    "HMul.hMul": _arithmetic(ast.Mult),
    "HDiv.hDiv": _arithmetic(ast.Div),
    "HMod.hMod": _arithmetic(ast.Mod),
    "HPow.hPow": _power,
    "HXor.hXor": _of_bits(ast.BitXor, "Nat"),
    # Of a negative integer, too, both round down.
    "HShiftRight.hShiftRight": _of_bits(ast.RShift, "Int", "Nat"),
    "Neg.neg": _negate,
    "Max.max": helper("max"),
    "Min.min": helper("min"),
    "Nat.succ": _successor,
    "Fin.succ": _successor,
    "Nat.cast": _cast,
    "Int.cast": _cast,
    "Int.natAbs": helper("abs"),
    "Int.toNat": _to_nat,
    "Nat.log2": helper("log2"),
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
    "Exists": _exists,
    "True": _truth(True),
    "False": _truth(False),
    "Bool.true": _truth(True),
    "Bool.false": _truth(False),
    "Decidable.decide": _decide,
    "ite": _if,
    "dite": _if,
    "Option.none": _none,
    "Option.some": same,
    "Option.map": _over_option(1, _none_or),
    "Option.bind": _over_option(0, _none_or),
    "Option.isSome": _is_some,
    "Option.all": _over_option(1, _true_or),
    "Fin.mk": same,
    "Prod.mk": _pair,
}

assert set(LOOPS) <= set(EXPRESSIONS)
assert not set(UNFOLDED) & set(EXPRESSIONS)

__all__ = ["EXPRESSIONS", "LOOPS", "is_dual", "is_loop"]
