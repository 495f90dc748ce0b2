"""Several texts in Lean with one definition where they agree."""

from __future__ import annotations

from dataclasses import replace

from ttir_cases import kernel

from bridge.ttir.lean import Translation, translate
from bridge.ttir.parse import parse
from bridge.ttir.shared import fields_of, pointers_of, share

# Stores a number that it computes of n, in three values of two names.
_TEXT = """
    %two = arith.constant 2 : i32
    %x = arith.addi %n, %two : i32 loc("x"("k.py":1:0))
    %x1 = arith.muli %x, %two : i32 loc("x"("k.py":2:0))
    %y = arith.addi %x1, %n : i32 loc("y"("k.py":3:0))
    tt.store %p, %y : !tt.ptr<i32>
"""
_ARGUMENTS = "%p: !tt.ptr<i32>, %n: i32"


def _translate(name: str, body: str, arguments: str = _ARGUMENTS) -> Translation:
    """Without the conditions."""
    return replace(translate(parse(kernel(arguments, body)).kernel, name, {}), conditions=[])


def _names(definitions: list[str]) -> list[str]:
    return [text.split("def ")[1].split(" ")[0] for text in definitions]


def test_a_text_has_the_definitions_that_no_earlier_one_has() -> None:
    other = _TEXT.replace("arith.addi %x1, %n", "arith.subi %x1, %n")
    first, second = share([_translate("A", _TEXT), _translate("B", other)])
    assert _names(first.definitions) == ["A.x_1", "A.x", "A.y", "A.store_p"]
    assert first.uses == []
    assert _names(second.definitions) == ["B.y", "B.store_p"]
    assert second.uses == ["A"]
    assert "(A.x a pid) - a.n" in second.definitions[0]
    assert "(B.y a pid)" in second.definitions[1]
    assert all("(a : Forward.Args R)" in x for x in first.definitions + second.definitions)


def test_what_is_stored_is_every_texts_own() -> None:
    _, second = share([_translate("A", _TEXT), _translate("B", _TEXT)])
    assert _names(second.definitions) == ["B.store_p"]
    assert "(A.y a pid)" in second.definitions[0]


def test_an_equal_text_of_other_values_is_not_shared() -> None:
    """B's y reads as A's does, but of another x."""
    other = _TEXT.replace("arith.muli", "arith.subi")
    _, second = share([_translate("A", _TEXT), _translate("B", other)])
    assert _names(second.definitions) == ["B.x", "B.y", "B.store_p"]


def test_other_names_of_the_same_values_are_shared() -> None:
    other = _TEXT.replace('loc("x"', 'loc("z"')
    _, second = share([_translate("A", _TEXT), _translate("B", other)])
    assert _names(second.definitions) == ["B.store_p"]


def test_conditions_are_every_texts_own() -> None:
    found = share([translate(parse(kernel(_ARGUMENTS, _TEXT)).kernel, name, {}) for name in "AB"])
    for name, one in zip("AB", found, strict=True):
        conditions = [f"{name}.Accesses", f"{name}.Exponents", f"{name}.NoOverflow"]
        assert _names(one.definitions)[-3:] == conditions
        assert "(P : Forward.Pointers (Access → Prop))" in one.definitions[-3]


def test_pointers_are_those_of_all_texts_in_the_kernels_order() -> None:
    more = _translate("B", _TEXT, "%p: !tt.ptr<i32>, %m: !tt.ptr<i32>, %n: i32")
    texts = [_translate("A", _TEXT), more]
    assert pointers_of(texts, ["m", "p", "n", "unused"]) == ["m", "p"]


def test_arguments_are_those_of_all_texts_in_the_kernels_order() -> None:
    more = _translate("B", _TEXT, "%p: !tt.ptr<i32>, %m: i32, %n: i32")
    fields = fields_of([_translate("A", _TEXT), more], ["p", "m", "n", "unused"])
    assert list(fields) == ["p", "m", "n", "ln2", "log2e", "ln"]
    assert fields["p"] == "Mem Int"
