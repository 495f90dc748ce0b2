"""A kernel in PTX as Python values.

PTX is the last text that Triton writes; NVIDIA's assembler, ptxas, makes machine code of it. The
sections named in this package are those of NVIDIA's "PTX ISA".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Register:
    """`%r1`: each thread has its own; `_`, the sink, takes results that nobody reads."""

    name: str


@dataclass(frozen=True)
class Special:
    """A register that the machine has, such as `%tid.x` (section "Special Registers")."""

    name: str


@dataclass(frozen=True)
class Constant:
    """An integer, or the bits of a floating number that was written as `0f…` or `0d…`."""

    bits: int


@dataclass(frozen=True)
class Symbol:
    """A name of the text: a label, a parameter, or an array in shared memory."""

    name: str


@dataclass(frozen=True)
class Negated:
    """`!%p1`."""

    register: Register


@dataclass(frozen=True)
class Address:
    """`[base + offset]`, in bytes."""

    base: Register | Symbol | Constant
    offset: int


@dataclass(frozen=True)
class Vector:
    """`{a, b, …}`: as many operands as the instruction moves at once."""

    parts: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """`a|b`: two results."""

    first: Register
    second: Register


Operand: TypeAlias = Register | Special | Constant | Symbol | Negated | Address | Vector | Pair


@dataclass(frozen=True)
class Guard:
    """`@%p1` or `@!%p1`: which threads execute the instruction."""

    register: Register
    negated: bool


@dataclass(frozen=True, eq=False)
class Instruction:
    """operation: "ld"; modifiers: ("shared", "v4", "b32"), the words behind its dots; line: its
    line number in the text; text: the instruction itself."""

    operation: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int
    text: str

    @property
    def kind(self) -> str:
        """The last type that is named, which is that of its operands where there is one."""
        return self.modifiers[-1]

    def __str__(self) -> str:
        return f"line {self.line}, `{self.text}`"


@dataclass(frozen=True)
class Parameter:
    """kind: its type, "u64" of a pointer."""

    name: str
    kind: str


@dataclass(frozen=True, eq=False)
class Kernel:
    """threads: of a program (a CTA in PTX), from `.reqntid`; registers: bits of those that are
    declared, by name, or by the part of the name before the number; a predicate has 1; array: the
    name of the array in shared memory, which begins at 0 there; labels: the number of the
    instruction behind each label."""

    name: str
    parameters: tuple[Parameter, ...]
    threads: int
    registers: Mapping[str, int]
    array: str | None
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]

    def width(self, register: str) -> int:
        """The bits of a register. Raises KeyError for one that is not declared."""
        if register in self.registers:
            return self.registers[register]
        return self.registers[register.rstrip("0123456789")]
