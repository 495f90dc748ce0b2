"""The registry of which Lean declaration a function implements."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import triton

import pyimpl.backends.kernels.forward
import pyimpl.state
from pyimpl.internal.implements import forget, implementations, implements


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """The entries of these tests are forgotten after each, or the pages would show them as code."""
    yield
    forget(__name__)


def records_of(lean: str):
    return [record for record in implementations() if record.lean == lean]


def test_a_function_is_returned_unchanged_and_recorded() -> None:
    def plain() -> int:
        return 3

    assert implements("Test.plain")(plain) is plain
    (record,) = records_of("Test.plain")
    assert record.module == __name__
    assert record.qualname.endswith("plain")
    assert Path(record.file) == Path(__file__)
    lines = Path(__file__).read_text().splitlines()[record.first_line - 1 : record.last_line]
    assert [line.strip() for line in lines] == ["def plain() -> int:", "return 3"]


def test_classes_kernels_and_two_names_at_once() -> None:
    @implements("Test.first")
    @implements("Test.second")
    @dataclass
    class Pair:
        x: int

    @implements("Test.kernel")
    @triton.jit
    def kernel(pointer):
        pass

    assert Pair(2).x == 2
    assert [len(records_of(name)) for name in ("Test.first", "Test.second", "Test.kernel")] == [
        1
    ] * 3
    (record,) = records_of("Test.kernel")
    assert record.qualname.endswith("kernel")
    lines = Path(__file__).read_text().splitlines()[record.first_line - 1 : record.last_line]
    assert lines[0].strip() == '@implements("Test.kernel")'
    assert lines[-1].strip() == "pass"


def test_the_same_definition_again_replaces_its_entry() -> None:
    for _ in range(2):

        @implements("Test.again")
        def again() -> None: ...

    assert len(records_of("Test.again")) == 1


def test_what_a_module_or_a_package_recorded_is_forgotten_and_nothing_else() -> None:
    before = implementations()
    for module in ("copy", "copy.part", "copying"):

        def function() -> None: ...

        function.__module__ = module
        implements("Test.copied")(function)
    forget("copy")
    assert [record.module for record in records_of("Test.copied")] == ["copying"]
    forget("copying")
    assert implementations() == before


@pytest.mark.parametrize("name", ["", "Attention.", "a b", "Attention..x", "3.x"])
def test_what_is_no_lean_name(name: str) -> None:
    with pytest.raises(ValueError, match="takes a Lean name"):
        implements(name)


def test_the_lines_recorded_are_those_of_the_definitions() -> None:
    by_name = {(r.lean, r.module): r for r in implementations()}
    merge = by_name["Attention.Spec.Online.merge", "pyimpl.state"]
    source = inspect.getsource(pyimpl.state.merge).splitlines()
    assert merge.last_line - merge.first_line + 1 == len(source)
    assert source[0] == '@implements("Attention.Spec.Online.merge")'
    kernel = by_name["Attention.Spec.flash", "pyimpl.backends.kernels.forward"]
    lines = Path(pyimpl.backends.kernels.forward.__file__).read_text().splitlines()
    assert lines[kernel.first_line - 1] == '@implements("Attention.Spec.flash")'
    assert "tl.store(lse_base" in lines[kernel.last_line - 1]
