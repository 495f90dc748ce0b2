"""PTX as Triton writes it, read: one entry, its parameters and instructions (PTX ISA, "Syntax").

Directives that say nothing of values (`.loc`, `.pragma`, debug sections) are passed over.
"""

from __future__ import annotations

import re

from bridge.ptx.kinds import BITS
from bridge.ptx.syntax import (
    Address,
    Constant,
    Guard,
    Instruction,
    Kernel,
    Negated,
    Operand,
    Pair,
    Parameter,
    Register,
    Special,
    Symbol,
    Vector,
)

_ENTRY = re.compile(r"\.entry\s+(\w+)\s*\((.*?)\)(.*?)\{", re.DOTALL)
_PARAMETER = re.compile(r"\.param\s+\.(\w+)\s[^,]*?(\w+)\s*(?:,|$)", re.DOTALL)
_THREADS = re.compile(r"\.(?:reqntid|maxntid)\s+(\d+)")
_ARRAY = re.compile(r"\.shared\s[^;]*?(\w+)\[\w*\]\s*;")
_LABEL = re.compile(r"\s*([$\w]+):")
_SCOPE = re.compile(r"\s*[{}]")
_STATEMENT = re.compile(r"\s*([^;{}]*(?:\{[^{};]*\}[^;{}]*)*);")
_LOCATION = re.compile(r"\s*\.loc[^\n]*\n")
_DECLARED = re.compile(r"\.reg\s+\.(\w+)\s+(.*)", re.DOTALL)
_GUARD = re.compile(r"@(!?)(%\w+)\s+")
_NAME = re.compile(r"[a-z]\w*(?:[.:]+\w+)*")
_SPECIAL = re.compile(r"%(?:n?tid|n?ctaid|cluster_\w+)\.[xyz]|%(?:laneid|warpid|clusterid\.x)")
_REGISTER = re.compile(r"%\w+|_")
_FLOAT = re.compile(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})")
_INTEGER = re.compile(r"([-+]?(?:0[xX][0-9a-fA-F]+|\d+))U?")
_ADDRESS = re.compile(r"([%\w$.]+)\s*(?:\+\s*(-?\w+))?")
_SYMBOL = re.compile(r"[$\w]+")


def parse(text: str) -> Kernel:
    """The one kernel in the text.

    Raises:
        ValueError: it has none, or a line that is not read; the message has the line.
    """
    # Comments go, lines stay.
    text = re.sub(r"//[^\n]*", "", text)
    entry = _ENTRY.search(text)
    if entry is None:
        raise ValueError("text must have a kernel, `.entry NAME(…)`, and has none")
    threads = _THREADS.search(entry[3])
    if threads is None:
        raise ValueError(f"{entry[1]} must say how many threads it has (`.reqntid`)")
    arrays = _ARRAY.findall(text)
    if len(arrays) > 1:
        raise ValueError(f"{entry[1]} must have one array in shared memory, not {len(arrays)}")
    parameters = tuple(Parameter(name, kind) for kind, name in _PARAMETER.findall(entry[2]))
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    registers: dict[str, int] = {}
    at, depth = entry.end(), 1
    while depth:
        if found := _LOCATION.match(text, at):
            # Its end of line is the next one's beginning.
            at = found.end() - 1
        elif found := _SCOPE.match(text, at):
            depth += 1 if found[0].endswith("{") else -1
            at = found.end()
        elif found := _LABEL.match(text, at):
            labels[found[1]] = len(instructions)
            at = found.end()
        elif found := _STATEMENT.match(text, at):
            at = found.end()
            if declared := _DECLARED.match(found[1]):
                bits = BITS.get(declared[1], 1)
                names = (one.split("<")[0].strip() for one in declared[2].split(","))
                registers |= dict.fromkeys(names, bits)
            elif found[1] and not found[1].startswith("."):
                line = text.count("\n", 0, found.start(1)) + 1
                instructions.append(_instruction(" ".join(found[1].split()), line))
        else:
            line = text.count("\n", 0, at) + 1
            raise ValueError(f"line {line} is no statement: {text[at : at + 60].strip()!r}")
    return Kernel(
        name=entry[1],
        parameters=parameters,
        threads=int(threads[1]),
        registers=registers,
        array=arrays[0] if arrays else None,
        instructions=tuple(instructions),
        labels=labels,
    )


def _instruction(text: str, line: int) -> Instruction:
    guard, rest = None, text
    found = _GUARD.match(text)
    if found is not None:
        guard, rest = Guard(Register(found[2]), bool(found[1])), text[found.end() :]
    name = _NAME.match(rest)
    if name is None:
        raise ValueError(f"line {line} is no instruction: {text!r}")
    operation, *modifiers = re.split(r"[.:]+", name[0])
    try:
        operands = tuple(_operand(one) for one in _split(rest[name.end() :]))
    except ValueError as error:
        raise ValueError(f"line {line}: {error}: {text!r}") from error
    return Instruction(operation, tuple(modifiers), operands, guard, line, text)


def _split(text: str) -> list[str]:
    """Split a text at the commas that are in no braces."""
    parts = re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,{\[])+", text)
    return [part.strip() for part in parts if part.strip()]


def _operand(text: str) -> Operand:
    if text.startswith("{"):
        return Vector(tuple(_operand(one) for one in _split(text[1:-1])))
    if text.startswith("["):
        found = _ADDRESS.fullmatch(text[1:-1].strip())
        base = None if found is None else _operand(found[1])
        if found is None or not isinstance(base, Register | Symbol | Constant):
            raise ValueError(f"{text!r} is no address")
        return Address(base, int(found[2] or "0", 0))
    if text.startswith("!"):
        return Negated(Register(text[1:]))
    if _SPECIAL.fullmatch(text):
        return Special(text)
    if "|" in text:
        first, second = text.split("|")
        return Pair(Register(first.strip()), Register(second.strip()))
    if _REGISTER.fullmatch(text):
        return Register(text)
    if found := _FLOAT.fullmatch(text):
        return Constant(int(found[1] or found[2], 16))
    if found := _INTEGER.fullmatch(text):
        return Constant(int(found[1], 0))
    if _SYMBOL.fullmatch(text):
        return Symbol(text)
    raise ValueError(f"{text!r} is no operand")
