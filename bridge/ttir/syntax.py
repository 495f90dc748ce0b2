"""TTIR as a tree: modules, functions, blocks, operations, values, their types and locations.

The terms are MLIR's (https://mlir.llvm.org/docs/LangRef): an operation has operands, results,
attributes, regions and successors; a region is a list of blocks; every value has one definition,
and an operand *is* the value it refers to, so following an operand needs no table of names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


class TtirError(ValueError):
    """A text that is no TTIR, or a part of it that has no meaning here; the message says where."""


@dataclass(frozen=True)
class Scalar:
    """A number or truth value: `i1`, `i32`, `f32`, `bf16`, `index` …"""

    name: str

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer of a width, `i1` among them."""
        return self.name[0] == "i" and self.name[1:].isdigit()

    @property
    def bits(self) -> int:
        """The type's width in bits."""
        return 64 if self.name == "index" else int("".join(_digits(self.name)))

    @property
    def is_float(self) -> bool:
        return not self.is_integer and self.name != "index"

    def __str__(self) -> str:
        return self.name


def _digits(name: str) -> Iterator[str]:
    """The first run of digits in a name."""
    started = False
    for letter in name:
        if letter.isdigit():
            started = True
            yield letter
        elif started:
            return


@dataclass(frozen=True)
class Pointer:
    """`!tt.ptr<to>`: to an element, or to a block of them, a tensor."""

    to: Scalar | Pointer | Tensor

    def __str__(self) -> str:
        return f"!tt.ptr<{self.to}>"


@dataclass(frozen=True)
class Tensor:
    """`tensor<16x64xf32>`: a tile."""

    shape: tuple[int, ...]
    element: Scalar | Pointer

    def __str__(self) -> str:
        return f"tensor<{'x'.join(map(str, (*self.shape, self.element)))}>"


@dataclass(frozen=True)
class Descriptor:
    """`!tt.tensordesc<tensor<…>>`: a tensor in memory, read and written in tiles of this type."""

    block: Tensor

    def __str__(self) -> str:
        return f"!tt.tensordesc<{self.block}>"


Type = Scalar | Pointer | Tensor | Descriptor


def shape_of(type: Type) -> tuple[int, ...]:
    """The shape of a tile; () for any other type."""
    return type.shape if isinstance(type, Tensor) else ()


def element_of(type: Type) -> Type:
    """The type of a tile's elements; any other type as it is."""
    return type.element if isinstance(type, Tensor) else type


def with_element(type: Type, element: Scalar | Pointer) -> Type:
    """The type of the same shape with these elements."""
    return Tensor(type.shape, element) if isinstance(type, Tensor) else element


@dataclass(frozen=True)
class Frame:
    """A place in a Python source. name: the variable that was assigned there, None if none was."""

    file: str
    line: int
    column: int
    name: str | None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Location:
    """The origin of a value: its place, then that of the call around it, and so on outwards."""

    frames: tuple[Frame, ...] = ()

    @property
    def name(self) -> str | None:
        """The Python variable: the innermost that was assigned."""
        return next((frame.name for frame in self.frames if frame.name is not None), None)

    @property
    def place(self) -> Frame | None:
        """The innermost place outside of Triton's own library."""
        outside = (frame for frame in self.frames if "triton/language/" not in frame.file)
        return next(outside, self.frames[0] if self.frames else None)

    @property
    def file(self) -> str | None:
        return None if self.place is None else self.place.file

    @property
    def line(self) -> int | None:
        return None if self.place is None else self.place.line

    def __str__(self) -> str:
        return "no known line" if self.place is None else str(self.place)


@dataclass(eq=False)
class Value:
    """A value: the result of an operation or the argument of a block or function.

    name: as printed, without %, such as `m_new_12` or `o#1`; values of two regions can share one.
    number: 0, 1, 2, … in the order of the text, no two values of a function share one.
    variable: the Python variable that it is assigned to or carried in, None if there is none.
    """

    name: str
    number: int
    type: Type
    location: Location
    variable: str | None

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


# Numbers (integers of any width; floats exactly as the type holds them), truth values, words,
# lists, and for `dense<[…]>` the list of its elements.
Attribute = int | float | bool | str | list["Attribute"]


@dataclass(eq=False)
class Operation:
    """One operation.

    attributes: those in braces under their names, and those that some operations are printed with:
    `predicate` (`arith.cmpi`, `arith.cmpf`), `axis` ("x", "y" or "z" of `tt.get_program_id`),
    `value` (`arith.constant`: of a tile with one value everywhere that value, else a list),
    `callee` (`tt.call`), `inputPrecision` (`tt.dot`), `words` (others, in order).
    groups: how many operands are in each pair of brackets, if there are any (`tt.advance`).
    """

    name: str
    results: list[Value]
    operands: list[Value]
    attributes: dict[str, Attribute]
    regions: list[list[Block]]
    successors: list[Successor]
    location: Location
    text_line: int
    groups: list[int] = field(default_factory=list)

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def _attribute(self, name: str, kind: type[T], what: str) -> T:
        """An attribute of a type; raises TtirError if it is missing or is of another."""
        found = self.attributes.get(name)
        if not isinstance(found, kind):
            raise TtirError(f"{self} has {name} = {found!r}, which must be {what}")
        return found

    def integer(self, attribute: str) -> int:
        return self._attribute(attribute, int, "an integer")

    def word(self, attribute: str) -> str:
        return self._attribute(attribute, str, "a word")

    def integers(self, attribute: str) -> list[int]:
        found = self._attribute(attribute, list, "a list of integers")
        return [n for n in found if isinstance(n, int)]

    @property
    def combination(self) -> str | None:
        """The operation by which a reduction combines two elements, if it is one operation that
        takes each of them once; else None."""
        (block,) = self.regions[0]
        if len(block.operations) != 2:
            return None
        inner, returned = block.operations
        each_once = len(inner.operands) == 2 and {*inner.operands} == {*block.arguments}
        return inner.name if each_once and returned.operands == inner.results else None

    def __str__(self) -> str:
        named = f"%{self.results[0].name} = " if self.results else ""
        return f"{named}{self.name} (line {self.text_line} of the TTIR, {self.location})"


@dataclass(eq=False)
class Block:
    """Operations that run one after the other. label: "" of a block that has none."""

    label: str
    arguments: list[Value]
    operations: list[Operation]


@dataclass(eq=False)
class Successor:
    """The block to which a branch goes, and the values of that block's arguments."""

    block: Block
    operands: list[Value]


@dataclass(eq=False)
class Function:
    """A function. visibility: "public" of a kernel, "private" of a function that it calls.

    attributes: of each argument, such as `{"tt.divisibility": 16}`; values: how many there are in
    all, the numbers of `Value`.
    """

    name: str
    visibility: str
    arguments: list[Value]
    attributes: list[dict[str, Attribute]]
    results: list[Type]
    blocks: list[Block]
    values: int

    def operations(self) -> Iterator[Operation]:
        """All operations, those of regions after the one that has them, in the text's order."""
        return _operations(self.blocks)


def _operations(blocks: list[Block]) -> Iterator[Operation]:
    for block in blocks:
        for operation in block.operations:
            yield operation
            for region in operation.regions:
                yield from _operations(region)


@dataclass(eq=False)
class Module:
    functions: dict[str, Function]

    @property
    def kernel(self) -> Function:
        """The one public function. Raises TtirError if there is none or are several."""
        public = [f for f in self.functions.values() if f.visibility == "public"]
        if len(public) != 1:
            raise TtirError(f"a module must have one public function, not {len(public)}")
        return public[0]
