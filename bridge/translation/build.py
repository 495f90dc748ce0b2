"""Pieces of Python syntax, made short."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence


def name(text: str) -> ast.Name:
    return ast.Name(text)


def number(value: int) -> ast.Constant:
    return ast.Constant(value)


NONE = ast.Constant(None)


def call(
    function: str | ast.expr,
    *arguments: ast.expr,
    keywords: Mapping[str, ast.expr] | None = None,
) -> ast.Call:
    head = name(function) if isinstance(function, str) else function
    given = [ast.keyword(key, value) for key, value in (keywords or {}).items()]
    return ast.Call(head, list(arguments), given)


def attribute(of: ast.expr, field: str) -> ast.Attribute:
    return ast.Attribute(of, field)


def item(of: ast.expr, index: ast.expr) -> ast.Subscript:
    return ast.Subscript(of, index)


def slice_of(of: ast.expr, first: ast.expr | None, stop: ast.expr | None) -> ast.Subscript:
    return ast.Subscript(of, ast.Slice(first, stop))


def operation(left: ast.expr, sign: ast.operator, right: ast.expr) -> ast.BinOp:
    return ast.BinOp(left, sign, right)


def comparison(left: ast.expr, sign: ast.cmpop, right: ast.expr) -> ast.Compare:
    return ast.Compare(left, [sign], [right])


def negation(condition: ast.expr) -> ast.expr:
    """The negation of a condition; of `x is None` it is `x is not None`."""
    match condition:
        case ast.Compare(left, [ast.Is()], [right]):
            return comparison(left, ast.IsNot(), right)
    return ast.UnaryOp(ast.Not(), condition)


def both(conditions: Sequence[ast.expr]) -> ast.expr:
    """All of at least one condition."""
    flat: list[ast.expr] = []
    for c in conditions:
        flat += c.values if isinstance(c, ast.BoolOp) and isinstance(c.op, ast.And) else [c]
    return flat[0] if len(flat) == 1 else ast.BoolOp(ast.And(), flat)


def comprehension(element: ast.expr, *loops: tuple[ast.expr, ast.expr]) -> ast.ListComp:
    return ast.ListComp(element, [ast.comprehension(t, over, [], 0) for t, over in loops])


def filter_of(target: ast.expr, over: ast.expr, condition: ast.expr) -> ast.ListComp:
    return ast.ListComp(target, [ast.comprehension(target, over, [condition], 0)])


def function(parameters: Sequence[str], body: ast.expr) -> ast.expr:
    """A lambda; of `lambda x: f(x)` only f is left."""
    match body:
        case ast.Call(func=ast.Name(id=called), args=args, keywords=[]) if called not in parameters:
            if [text(a) for a in args] == list(parameters):
                return body.func
    return ast.Lambda(_parameters(parameters), body)


def conditional(condition: ast.expr, yes: ast.expr, no: ast.expr) -> ast.expr:
    """yes if condition else no; of `True if condition else False` only the condition is left."""
    match yes, no:
        case ast.Constant(value=True), ast.Constant(value=False):
            return condition
    return ast.IfExp(condition, yes, no)


def local_function(
    title: str, parameters: Mapping[str, str], body: list[ast.stmt]
) -> ast.FunctionDef:
    """A function inside a function; parameters: their hints by name."""
    given = _parameters(list(parameters))
    for argument in given.args:
        argument.annotation = ast.parse(parameters[argument.arg], mode="eval").body
    return ast.FunctionDef(title, given, body, [], returns=name("Any"))


def _parameters(titles: Sequence[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(title) for title in titles], None, [], [], None, [])


def assign(target: ast.expr, value: ast.expr) -> ast.Assign:
    return ast.Assign([target], value)


def loop(target: ast.expr, over: ast.expr, body: list[ast.stmt]) -> ast.For:
    return ast.For(target, over, body, [])


def lists(*elements: ast.expr) -> ast.List:
    return ast.List(list(elements))


def text(node: ast.AST) -> str:
    """The source of a piece."""
    return ast.unparse(ast.fix_missing_locations(node))


def is_simple(piece: ast.expr) -> bool:
    """Whether a piece can be repeated: a name, or a field or item of one."""
    match piece:
        case ast.Name() | ast.Constant():
            return True
        case ast.Attribute(value=of):
            return is_simple(of)
        case ast.Subscript(value=of, slice=ast.Name() | ast.Constant()):
            return is_simple(of)
    return False
