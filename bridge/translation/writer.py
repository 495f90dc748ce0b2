"""The body of one definition in Python.

A term is written as an expression where Python has one for it, and otherwise as statements: a `let`
is an assignment, a fold a loop, a `match` a chain of conditions. The translations of core-Lean
functions stand in `core.py`, those of patterns in `patterns.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from bridge.translation import build, calls, core, names, patterns
from bridge.translation.errors import NeedsStatements, NotAProgramError, UntranslatableError
from bridge.translation.library import DUAL, SPEC, UNFOLDED
from bridge.translation.scope import Scope
from bridge.translation.terms import (
    Alternative,
    Apply,
    Argument,
    Binding,
    Bound,
    Constant,
    Field,
    Function,
    Let,
    Made,
    Match,
    Number,
    Product,
    Term,
    computed_arguments,
    occurrences,
)

# An expression of several parts is put on one line up to this length.
_SHORT = 76


# The place of a value: a variable, or, for None, the function's result.
Target = str | None
# Statements that run before an expression; None where there can be none.
Before = list[ast.stmt] | None


class Writer(Scope):
    """Writes one definition."""

    # While a recursion over a list is written as a loop: the variable that holds its result.
    result: str | None = None

    # Statements

    def statements(self, t: Term, target: Target) -> list[ast.stmt]:
        """Statements that bring the value of the term to its target."""
        t = self.resolve(t)
        if not isinstance(t, Let) and not core.is_loop(t):
            short = self._short(t)
            # A function that is given a name is written as one that has it.
            if short is not None and not (target and isinstance(short, ast.Lambda)):
                return [self._to(target, short)]
        match t:
            case Let(variable, value, body):
                if variable.kind != "term":
                    return self.statements(body, target)
                title = names.fresh(names.identifier(variable.name), self.taken)
                out = self.statements(value, title)
                self.taken.add(title)
                self.stands_for(variable, build.name(title))
                return out + self.statements(body, target)
            case Match(_, _, ()):
                return self._match(t, target)
            case Constant("ite" | "dite"):
                before: list[ast.stmt] = []
                condition, yes, no = self.branches(t, before)
                return before + self.choice(condition, yes, no, target)
            case Constant(name) if name in core.LOOPS:
                return core.LOOPS[name](self, t, target)
            case Constant(name) if name in UNFOLDED:
                return self.statements(self.unfold(t), target)
            case Function() if isinstance(self.erase(t), Function):
                title = names.fresh(target or "function", self.taken)
                out = [self.named_function(t, title)]
                return out if target == title else [*out, self._to(target, build.name(title))]
        before = []
        piece = self.expression(t, before)
        return [*before, self._to(target, piece)]

    def _to(self, target: Target, piece: ast.expr) -> ast.stmt:
        return ast.Return(piece) if target is None else build.assign(build.name(target), piece)

    def _short(self, t: Term) -> ast.expr | None:
        """The term as one expression, if there is one that fits on a line, or one that is not
        shorter as statements."""
        with self.scope():
            try:
                piece = self.expression(t, None)
            except NeedsStatements:
                return None
        if isinstance(piece, ast.IfExp) and (
            isinstance(piece.orelse, ast.IfExp) or len(build.text(piece)) > _SHORT
        ):
            return None
        return piece

    def choice(self, condition: ast.expr, yes: Term, no: Term, target: Target) -> list[ast.stmt]:
        """if condition: yes; else: no."""
        with self.scope():
            first = self.statements(yes, target)
        with self.scope():
            second = self.statements(no, target)
        return self._either(condition, first, second, target)

    def _match(self, t: Match, target: Target) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        subjects = []
        for n, discriminant in enumerate(t.discriminants):
            piece = self.expression(discriminant, out)
            if not build.is_simple(piece):
                wanted = patterns.suggestion([a.patterns[n] for a in t.alternatives], t)
                title = names.fresh(names.identifier(wanted or "found"), self.taken)
                self.taken.add(title)
                out.append(build.assign(build.name(title), piece))
                piece = build.name(title)
            subjects.append(piece)
        return out + self._chain(t.alternatives, subjects, target)

    def _chain(
        self, alternatives: Sequence[Alternative], subjects: list[ast.expr], target: Target
    ) -> list[ast.stmt]:
        """The first alternative that fits; the last one fits if no other does."""
        alternative, rest = alternatives[0], alternatives[1:]
        with self.scope():
            fits = patterns.fits(self.library, alternative, subjects)
            body: list[ast.stmt] = []
            for variable, piece in fits.bound:
                if build.is_simple(piece) or occurrences(alternative.body, variable.id) < 2:
                    self.stands_for(variable, piece)
                else:
                    title = self.bind(variable)
                    body.append(build.assign(build.name(title), piece))
            body += self.statements(alternative.body, target)
        if not rest:
            return body
        others = self._chain(rest, subjects, target)
        return self._either(build.both(fits.conditions), body, others, target)

    def _either(
        self, condition: ast.expr, yes: list[ast.stmt], no: list[ast.stmt], target: Target
    ) -> list[ast.stmt]:
        """if condition: yes; else: no."""
        if target is not None:
            return [ast.If(condition, yes, no)]
        match yes, no:
            case [ast.Return(ast.Constant(True))], [ast.Return(ast.Constant(False))]:
                return [ast.Return(condition)]
        return [ast.If(condition, yes, []), *no]

    # Expressions

    def expression(self, t: Term, before: Before) -> ast.expr:
        """The value of the term. Raises NeedsStatements where there is no expression for it and no
        place for statements."""
        if isinstance(t, Made):
            return t.piece
        if before is not None and self._may_be_long(t):
            return self.place(t, before, "found")
        match t:
            case Bound(id):
                return self._variable(id, before)
            case Number(value):
                return build.number(value)
            case Field("val", "Fin", of) | Field("toArray", "Vector", of):
                return self.expression(of, before)
            case Field("fst" | "snd" as side, "Prod", of):
                index = build.number(0 if side == "fst" else 1)
                return build.item(self.expression(of, before), index)
            case Field(name, structure, of):
                if structure not in self.library.types and structure != DUAL:
                    raise UntranslatableError(f"the field {name} of {structure}")
                return build.attribute(self.expression(of, before), names.identifier(name))
            case Function(variable, body):
                return self._function(t, before)
            case Let():
                return self._let(t, before)
            case Match():
                return self._conditional(t, before)
            case Product(variable, body):
                if variable.kind != "proof":
                    raise NotAProgramError("it says something of everything of a kind")
                left = build.negation(self.expression(variable.type, None))
                return ast.BoolOp(ast.Or(), [left, self.expression(body, None)])
            case Apply(function, given):
                return self.apply(function, computed_arguments(given), before)
            case Constant():
                return self._constant(t, before)
        raise UntranslatableError(f"the term {t}")

    def _may_be_long(self, t: Term) -> bool:
        """Whether there is a form of statements for the term itself."""
        if isinstance(t, Constant):
            return t.name in core.LOOPS or t.name in UNFOLDED or t.name in ("ite", "dite")
        return isinstance(t, Match)

    def place(self, t: Term, before: list[ast.stmt], title: str) -> ast.expr:
        """The value of the term, in a variable of this name if there is no expression for it."""
        with self.scope():
            try:
                return self.expression(t, None)
            except NeedsStatements:
                pass
        if not self._may_be_long(t):
            return self.expression(t, before)
        variable = self.new_name(title)
        before += self.statements(t, variable.id)
        return variable

    def _variable(self, id: str, before: Before) -> ast.expr:
        if id in self.terms:
            return self.expression(self.terms[id], before)
        if id not in self.pieces:
            binding = self.bindings.get(id)
            raise UntranslatableError(f"the variable {binding.name if binding else id} is no value")
        return self.pieces[id]

    def _let(self, t: Let, before: Before) -> ast.expr:
        if t.variable.kind != "term":
            return self.expression(t.body, before)
        if before is None:
            raise NeedsStatements
        title = names.fresh(names.identifier(t.variable.name), self.taken)
        before += self.statements(t.value, title)
        self.taken.add(title)
        self.stands_for(t.variable, build.name(title))
        return self.expression(t.body, before)

    def _conditional(self, t: Match, before: Before) -> ast.expr:
        if t.arguments:
            raise UntranslatableError("a match that is applied to something")
        subjects = [self.expression(d, before) for d in t.discriminants]
        if not all(map(build.is_simple, subjects)) and len(t.alternatives) > 1:
            raise NeedsStatements
        chosen: list[tuple[ast.expr | None, ast.expr]] = []
        for n, alternative in enumerate(t.alternatives):
            fits = patterns.fits(self.library, alternative, subjects)
            for variable, piece in fits.bound:
                used = occurrences(alternative.body, variable.id)
                if not build.is_simple(piece) and used > 1:
                    raise NeedsStatements
                self.stands_for(variable, piece)
            last = n == len(t.alternatives) - 1
            condition = None if last else build.both(fits.conditions)
            single = before if len(t.alternatives) == 1 else None
            chosen.append((condition, self.expression(alternative.body, single)))
        _, piece = chosen.pop()
        for condition, value in reversed(chosen):
            assert condition is not None
            piece = build.conditional(condition, value, piece)
        return piece

    def branches(self, t: Constant, before: Before) -> tuple[ast.expr, Term, Term]:
        """The condition and the branches of an `if`; proofs of the condition are dropped."""
        condition = next(a.term for a in t.arguments if a.kind == "proposition")
        assert condition is not None
        yes, no = t.values()
        return self.expression(condition, before), self.erase(yes), self.erase(no)

    # Functions

    def _function(self, t: Function, before: Before) -> ast.expr:
        inner = self.erase(t)
        if not isinstance(inner, Function):
            return self.expression(inner, before)
        try:
            with self.scope():
                titles, body = self._open(inner)
                return self._flat(titles, body, self.expression(body, None))
        except NeedsStatements:
            if before is None:
                raise
        title = names.fresh("function", self.taken)
        self.taken.add(title)
        before.append(self.named_function(inner, title))
        return build.name(title)

    def _flat(self, titles: list[str], body: Term, piece: ast.expr) -> ast.expr:
        """A function of all arguments at once, where its result is again a function."""
        if isinstance(piece, ast.Lambda):
            return build.function([*titles, *(a.arg for a in piece.args.args)], piece.body)
        others = [self.new_name("ijxyz"[n]) for n in range(self.arity(body))]
        if others:
            piece = build.call(piece, *others)
        return build.function([*titles, *(name.id for name in others)], piece)

    def named_function(self, t: Term, title: str) -> ast.FunctionDef:
        """A local function."""
        with self.scope():
            self.taken.add(title)
            inner = self.erase(t)
            assert isinstance(inner, Function)
            titles, body = self._open(inner)
            types = [self.hint(v.type) for v in self._variables(inner)]
            if self.arity(body):
                raise UntranslatableError("statements in a function that gives a function")
            hinted = dict(zip(titles, types, strict=True))
            return build.local_function(title, hinted, self.statements(body, None))

    def _open(self, t: Term) -> tuple[list[str], Term]:
        """The names of all arguments of a function, and its body."""
        titles = []
        while isinstance(t := self.erase(t), Function):
            unused = not occurrences(t.body, t.variable.id)
            wanted = patterns.variable_name(t) if not t.variable.named else None
            wanted = f"_{wanted or t.variable.name}" if unused else wanted
            titles.append(self.bind(t.variable, wanted))
            t = t.body
        return titles, t

    def _variables(self, t: Term) -> Iterator[Binding]:
        while isinstance(t := self.erase(t), Function):
            yield t.variable
            t = t.body

    def apply(self, function: Term, given: Sequence[Term], before: Before) -> ast.expr:
        """A function applied to arguments; with too few of them it is a function of the others."""
        function = self.erase(function)
        if not given:
            return self.expression(function, before)
        match function:
            case Function(variable, body):
                self.substitute(variable, given[0], body, before)
                return self.apply(body, given[1:], before)
            case Constant(name, already):
                more = tuple(Argument("term", t) for t in given)
                return self.expression(Constant(name, already + more), before)
            case Apply(head, already):
                more = tuple(Argument("term", t) for t in given)
                return self.expression(Apply(head, already + more), before)
        piece = self.expression(function, before)
        arguments = [self.expression(t, before) for t in given]
        with self.scope():
            lacking = range(max(self.arity(function) - len(arguments), 0))
            others = [self.new_name("ijxyz"[n]) for n in lacking]
            made = build.call(piece, *arguments, *others)
            return build.function([name.id for name in others], made) if others else made

    def substitute(self, variable: Binding, given: Term, body: Term, before: Before) -> None:
        """The variable stands for the argument, which is computed once."""
        given = self.resolve(given)
        if isinstance(given, Function):
            self.terms[variable.id] = given
            return
        piece = self.expression(given, before)
        if not build.is_simple(piece) and occurrences(body, variable.id) > 1:
            if before is None:
                raise NeedsStatements
            title = self.bind(variable)
            before.append(build.assign(build.name(title), piece))
        else:
            self.stands_for(variable, piece)

    def unfold(self, t: Constant) -> Term:
        """The body of a definition, with its parameters bound to the arguments."""
        definition = self.library.definitions[t.name]
        for parameter, argument in zip(definition.parameters, t.arguments, strict=True):
            if argument.kind == "term" and argument.term is not None:
                self.terms[parameter.id] = argument.term
        # Its variables are bound again at each use.
        return definition.body

    # Constants

    def _constant(self, t: Constant, before: Before) -> ast.expr:
        if t.name in UNFOLDED:
            return self.expression(self.unfold(t), before)
        if t.name in core.EXPRESSIONS:
            return core.EXPRESSIONS[t.name](self, t, before)
        if t.name == f"{DUAL}.mk":
            return build.call("Dual", *(self.expression(v, before) for v in t.values()))
        if t.name in self.library.constructors:
            return calls.construction(self, t, before)
        if t.name in self.library.definitions:
            return calls.own(self, t, before)
        raise UntranslatableError(f"the constant {t.name}")

    def number_of(self, type_: Term, value: int, instance: Term | None) -> ast.expr:
        """A literal: of the Spec's numbers by `num`, elsewhere the keyword that stands for it."""
        if not self.definition.name.startswith(SPEC):
            return build.name({0: "zero", 1: "one"}[value])
        number = type_
        if isinstance(number, Constant) and number.name == "OfNat":
            assert number.arguments[0].term is not None
            number = number.arguments[0].term
        return build.call(
            build.attribute(build.name("num"), self.role(number)), build.number(value)
        )

    def value(self, t: Term, before: list[ast.stmt]) -> ast.expr:
        """The value of a term as an expression after statements: a `match`, an `if` or a fold
        become statements first where they would be long."""
        out = self.statements(t, None)
        *inner, last = out
        assert isinstance(last, ast.Return)
        assert last.value is not None
        if any(isinstance(node, ast.Return) for s in inner for node in ast.walk(s)):
            variable = self.new_name("element")
            before += self.statements(t, variable.id)
            return variable
        before += inner
        return last.value
