"""From terms to Python: the translation of constructs, and terms that have none."""

from __future__ import annotations

import textwrap
from typing import Any

import msgspec
import pytest

from bridge.translation import names, package
from bridge.translation.errors import NotAProgramError, UntranslatableError
from bridge.translation.library import Library
from bridge.translation.terms import (
    Alternative,
    Apply,
    Argument,
    Binding,
    Bound,
    Constant,
    Definition,
    Field,
    Function,
    Let,
    Match,
    Number,
    Other,
    Product,
    Term,
    Type,
    read,
)

NAT = Constant("Nat")
SORT = Other("sort")


def term(constant: str, *given: Any) -> Constant:
    """A constant; arguments are terms, or pairs of a kind and a term."""
    pairs = [g if isinstance(g, tuple) else ("term", g) for g in given]
    return Constant(constant, tuple(Argument(*pair) for pair in pairs))


def type_(t: Any) -> tuple[str, Any]:
    return ("type", t)


def variable(
    id: str,
    type: Term = NAT,
    *,
    name: str = "",
    named: bool = True,
    binder: str = "explicit",
    kind: str = "term",
) -> Binding:
    return Binding(id, name or id, named, binder, kind, type)


def list_of(t: Term) -> Constant:
    return term("List", type_(t))


def option_of(t: Term) -> Constant:
    return term("Option", type_(t))


def arithmetic(sign: str, a: Term, b: Term, over: Term = NAT) -> Constant:
    return term(sign, *[type_(over)] * 3, ("instance", None), a, b)


def number(n: int) -> Constant:
    return term("OfNat.ofNat", type_(NAT), Number(n), ("instance", None))


def definition(
    body: Term, *parameters: Binding, name: str = "Attention.Spec.f", result: Term = NAT
) -> Definition:
    return Definition(name, parameters, result, "term", body)


def translate(*answers: Definition | Type) -> str:
    """The function that the last definition becomes, without its docstring."""
    library = Library(read(msgspec.to_builtins(one)) for one in answers)
    name = answers[-1].name
    text = package.function(library, library.definitions[name], "About.")
    head, _, rest = text.partition("\n")
    return f"{head}\n{rest.split(chr(34) * 3)[2].lstrip(chr(10))}"


def lines(text: str) -> str:
    return textwrap.dedent(text).strip()


def test_natural_numbers_have_no_negatives() -> None:
    """Nor an error for a division by 0."""
    half = arithmetic("HDiv.hDiv", Bound("b"), number(2))
    body = arithmetic("HSub.hSub", arithmetic("HMod.hMod", Bound("a"), Bound("b")), half)
    assert translate(definition(body, variable("a"), variable("b"))) == lines("""
        def f(a: int, b: int) -> int:
            return max(mod(a, b) - b // 2, 0)
    """)


def test_the_larger_of_two_numbers() -> None:
    """By whatever order they bring."""
    generic = variable("R", SORT, binder="implicit", kind="type")
    larger = term("Max.max", type_(Bound("R")), ("instance", None), Bound("x"), Bound("y"))
    x, y = variable("x", Bound("R")), variable("y", Bound("R"))
    assert translate(definition(larger, generic, x, y, result=Bound("R"))) == lines("""
        def f(x: Value, y: Value) -> Value:
            return max(x, y)
    """)


WHOLE = Constant("Int")


def test_an_element_of_a_vector_is_set_as_one_of_a_list() -> None:
    xs, i, x = (
        variable(name, type) for name, type in (("xs", list_of(NAT)), ("i", NAT), ("x", NAT))
    )
    given = Bound("xs"), Bound("i"), Bound("x")
    body = term("Vector.set", type_(NAT), number(3), *given, ("proof", None))
    of_list = term("List.set", type_(NAT), *given)
    text = translate(definition(body, xs, i, x, result=list_of(NAT)))
    assert text == translate(definition(of_list, xs, i, x, result=list_of(NAT)))
    assert "return set_index(xs, i, x)" in text


def test_quotients_of_integers_are_those_of_lean() -> None:
    """Not Python's, which differ where the divisor is negative, and raise for 0."""
    body = arithmetic("HDiv.hDiv", Bound("a"), Bound("a"), WHOLE)
    assert translate(definition(body, variable("a", WHOLE), result=WHOLE)) == lines("""
        def f(a: int) -> int:
            return int_div(a, a)
    """)


def test_integers_have_no_remainder() -> None:
    body = arithmetic("HMod.hMod", Bound("a"), Bound("a"), WHOLE)
    with pytest.raises(UntranslatableError, match=r"HMod\.hMod of the type .*Int"):
        translate(definition(body, variable("a", WHOLE)))


def test_a_shift_of_an_integer_is_python_s() -> None:
    """Both round down."""
    body = arithmetic("HShiftRight.hShiftRight", Bound("a"), Bound("n"), WHOLE)
    assert translate(definition(body, variable("a", WHOLE), variable("n"))) == lines("""
        def f(a: int, n: int) -> int:
            return a >> n
    """)


def test_integers_have_no_exclusive_or() -> None:
    body = arithmetic("HXor.hXor", Bound("a"), Bound("a"), WHOLE)
    with pytest.raises(UntranslatableError, match=r"HXor\.hXor of the type .*Int"):
        translate(definition(body, variable("a", WHOLE)))


def test_powers_of_numbers() -> None:
    """With an integer for exponent, which may be negative."""
    generic = variable("R", SORT, binder="implicit", kind="type")
    power = arithmetic("HPow.hPow", Bound("x"), Bound("e"), Bound("R"))
    x, e = variable("x", Bound("R")), variable("e", WHOLE)
    assert translate(definition(power, generic, x, e, result=Bound("R"))) == lines("""
        def f(x: Value, e: int) -> Value:
            return x ** e
    """)


def test_that_there_is_something_is_no_program() -> None:
    with pytest.raises(NotAProgramError, match="there is something of a kind"):
        translate(definition(term("Exists", type_(NAT), Bound("a")), variable("a")))


def alternative(patterns: list[Term], body: Term, *variables: Binding) -> Alternative:
    return Alternative(variables, tuple(patterns), body)


def match(subjects: list[Term], *alternatives: Alternative) -> Match:
    return Match(tuple(subjects), alternatives)


NONE = term("Option.none", type_(NAT))


def some(t: Term) -> Constant:
    return term("Option.some", type_(NAT), t)


def test_the_first_alternative_that_fits() -> None:
    """Patterns that overlap are tried in order, and the last needs no condition."""
    body = match(
        [Bound("x"), Bound("y")],
        alternative([NONE, Bound("b")], Bound("b"), variable("b", option_of(NAT))),
        alternative([Bound("a"), NONE], Bound("a"), variable("a", option_of(NAT))),
        alternative(
            [some(Bound("c")), some(Bound("d"))],
            some(arithmetic("HAdd.hAdd", Bound("c"), Bound("d"))),
            variable("c"),
            variable("d"),
        ),
    )
    unnamed = [variable(v, option_of(NAT), named=False) for v in "xy"]
    assert translate(definition(body, *unnamed, result=option_of(NAT))) == lines("""
        def f(a: int | None, b: int | None) -> int | None:
            if a is None:
                return b
            if b is None:
                return a
            return a + b
    """)


def recursion(tail: Term) -> Definition:
    body = match(
        [Bound("xs")],
        alternative([term("List.nil", type_(NAT))], number(0)),
        alternative(
            [term("List.cons", type_(NAT), Bound("x"), Bound("rest"))],
            arithmetic("HAdd.hAdd", Bound("x"), tail),
            variable("x"),
            variable("rest", list_of(NAT)),
        ),
    )
    return definition(body, variable("xs", list_of(NAT)))


def test_a_fold_from_the_right_is_a_loop() -> None:
    """Python's recursion ends at a thousand."""
    assert translate(recursion(term("Attention.Spec.f", Bound("rest")))) == lines("""
        def f(xs: list[int]) -> int:
            result = 0
            for x in reversed(xs):
                result = x + result
            return result
    """)


def test_another_recursion_stays_one() -> None:
    shorter = term("List.drop", type_(NAT), number(1), Bound("rest"))
    assert translate(recursion(term("Attention.Spec.f", shorter))) == lines("""
        def f(xs: list[int]) -> int:
            return 0 if not xs else xs[0] + f(xs[1:][1:])
    """)


def test_a_name_inside_does_not_hide_one_outside() -> None:
    inner = arithmetic("HAdd.hAdd", Bound("x"), Bound("inner"))
    mapped = term(
        "List.map",
        type_(NAT),
        type_(NAT),
        Function(variable("inner", name="x"), inner),
        Bound("xs"),
    )
    parameters = (variable("x"), variable("xs", list_of(NAT)))
    assert translate(definition(mapped, *parameters, result=list_of(NAT))) == lines("""
        def f(x: int, xs: list[int]) -> list[int]:
            return [x + x_1 for x_1 in xs]
    """)


def test_a_fold_from_the_left_is_a_loop_over_its_accumulator() -> None:
    step = Function(
        variable("sum"), Function(variable("x"), arithmetic("HMul.hMul", Bound("sum"), Bound("x")))
    )
    folded = term("List.foldl", type_(NAT), type_(NAT), step, number(1), Bound("xs"))
    twice = arithmetic("HAdd.hAdd", Bound("product"), Bound("product"))
    body = Let(variable("product"), folded, twice)
    assert translate(definition(body, variable("xs", list_of(NAT)))) == lines("""
        def f(xs: list[int]) -> int:
            product = 1
            for x in xs:
                product = product * x
            return product + product
    """)


@pytest.mark.parametrize("quantifier", ["any", "all"])
def test_whether_a_list_has_such_elements(quantifier: str) -> None:
    """The list comes before the condition, unlike in map and filter."""
    less = term("LT.lt", type_(NAT), ("instance", None), Bound("n"), number(3))
    small = Function(variable("n"), less)
    body = term(f"List.{quantifier}", type_(NAT), Bound("xs"), small)
    parameter = variable("xs", list_of(NAT))
    assert translate(definition(body, parameter, result=term("Bool"))) == lines(f"""
        def f(xs: list[int]) -> bool:
            return {quantifier}((n < 3 for n in xs))
    """)


def test_a_function_that_is_given_a_name() -> None:
    """Not a lambda that is assigned."""
    of_nat = Product(variable("_", NAT, named=False), NAT)
    more = Function(variable("n"), arithmetic("HAdd.hAdd", Bound("n"), Bound("a")))

    def once_more(t: Term) -> Apply:
        return Apply(Bound("more"), (Argument("term", t),))

    body = Let(variable("more", of_nat), more, once_more(once_more(Bound("a"))))
    assert translate(definition(body, variable("a"))) == lines("""
        def f(a: int) -> int:
            def more(n: int) -> Any:
                return n + a
            return more(more(a))
    """)


def test_a_variable_may_have_the_name_of_a_function_elsewhere() -> None:
    """That is not imported then."""
    item = "def f(xs: list[int]) -> int:\n    total = sum_over(xs)\n    return total + len(xs)"
    homes = {"total": "totals", "sum_over": "sum"}
    assert package._imports([item], "here", homes) == "from bridge.spec.sum import sum_over"


def test_a_function_with_too_few_arguments() -> None:
    """Functions of several arguments are called with all of them at once."""
    binary = Product(variable("p"), Product(variable("q"), NAT))
    body = Function(variable("i"), Apply(Bound("g"), (Argument("term", Bound("i")),)))
    assert translate(definition(body, variable("g", binary), result=binary)) == lines("""
        def f(g: Callable[[int, int], int]) -> Callable[[int, int], int]:
            return g
    """)
    shifted = arithmetic("HAdd.hAdd", Bound("i"), number(1))
    body = Function(variable("i"), Apply(Bound("g"), (Argument("term", shifted),)))
    assert translate(definition(body, variable("g", binary), result=binary)) == lines("""
        def f(g: Callable[[int, int], int]) -> Callable[[int, int], int]:
            return lambda i, i_1: g(i + 1, i_1)
    """)


def test_lengths_that_are_computed_with_are_keywords() -> None:
    """Lean infers them; those that only types need are dropped."""
    implicit = [variable(v, binder="implicit") for v in ("n", "unused")]
    inner = definition(Bound("n"), *implicit, name="Attention.Spec.inner")
    call = term("Attention.Spec.inner", Bound("m"), number(3))
    outer = definition(call, variable("m", binder="implicit"))
    assert translate(inner, outer) == lines("""
        def f(*, m: int) -> int:
            return inner(n=m)
    """)


def test_literals_of_the_spec_come_from_num() -> None:
    of = variable("R", SORT, binder="implicit", kind="type")
    zero = term("OfNat.ofNat", type_(Bound("R")), Number(0), ("instance", Bound("z")))
    assert translate(definition(zero, of, result=Bound("R"))) == lines("""
        def f(*, num: Arithmetic) -> Value:
            return num.value(0)
    """)
    other = msgspec.structs.replace(of, name="T")
    with pytest.raises(UntranslatableError, match="the type T, which is neither S"):
        translate(definition(zero, other, result=Bound("R")))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (term("Nat.gcd", Bound("a"), Bound("a")), "the constant Nat.gcd"),
        (term("List.map", type_(NAT), type_(NAT), term("Nat.lcm"), term("List.nil")), "Nat.lcm"),
        (Field("re", "Complex", Bound("a")), "the field re of Complex"),
        (Bound("b"), "the variable b is no value"),
    ],
)
def test_what_has_no_translation_is_named(body: Any, said: str) -> None:
    with pytest.raises(UntranslatableError, match=said):
        translate(definition(body, variable("a")))


def test_the_definition_is_named_too(tmp_path: Any) -> None:
    library = Library([definition(term("Nat.gcd"))])
    source = package.Source("Attention/Spec/F.lean", 1, "About.")
    with pytest.raises(
        UntranslatableError, match=r"Attention\.Spec\.f cannot be translated: .*gcd"
    ):
        package.texts(library, {"Attention.Spec.f": source}, tmp_path)


def test_terms_of_an_unknown_shape() -> None:
    answer = {**msgspec.to_builtins(definition(NAT)), "body": ["metavariable", "?m"]}
    with pytest.raises(ValueError, match=r"no term is written like this: .*'metavariable'"):
        read(answer)


@pytest.mark.parametrize(
    ("lean", "python"),
    [("α", "alpha"), ("Δ", "delta"), ("pⱼ", "p_j"), ("s'", "s_"), ("colTiles", "col_tiles"),
     ("len", "len_"), ("K", "K"), ("dQ", "dQ"), ("lambda", "lambda_")],
)  # fmt: skip
def test_names(lean: str, python: str) -> None:
    assert names.identifier(lean) == python


def test_a_name_that_python_cannot_write() -> None:
    with pytest.raises(UntranslatableError, match="the variable ℵ has no name in Python"):
        names.identifier("ℵ")


def test_namespaces_of_types_are_kept() -> None:
    types = {"Attention.Spec.Mask"}
    assert names.function("Attention.Spec.Mask.keyPadding", types) == "mask_key_padding"
    assert names.function("Attention.Spec.Online.step", types) == "step"
