"""How TTIR is written in Lean: the forms of operations, names, types and lines."""

from __future__ import annotations

import math
import re
import struct
import textwrap

from bridge.ttir.syntax import Operation, Pointer, Scalar, Tensor, TtirError, Value

# The beginning of a definition. Nothing runs it, and so Lean need not compile it.
DEF = "@[expose] noncomputable def"
# The Lean text of an element, from those of the operands.
ELEMENTWISE = {
    "arith.addi": "{} + {}",
    "arith.subi": "{} - {}",
    "arith.muli": "{} * {}",
    "arith.divsi": "Int.tdiv {} {}",
    "arith.remsi": "Int.tmod {} {}",
    "arith.minsi": "min {} {}",
    "arith.maxsi": "max {} {}",
    "arith.addf": "Flt.add {} {}",
    "arith.subf": "Flt.sub {} {}",
    "arith.mulf": "Flt.mul {} {}",
    "arith.divf": "Flt.div {} {}",
    "arith.maxnumf": "Flt.max {} {}",
    "arith.select": "if {} then {} else {}",
    "math.exp2": "Flt.exp2 {}",
    "math.log": "Flt.log a.ln {}",
    "tt.addptr": "{} + {}",
}
TRUTH = {"arith.andi": "{} && {}", "arith.ori": "{} || {}", "arith.xori": "xor {} {}"}
COMPARED = {
    "slt": "decide ({} < {})",
    "sle": "decide ({} ≤ {})",
    "sgt": "decide ({1} < {0})",
    "sge": "decide ({1} ≤ {0})",
    "eq": "decide ({} = {})",
    "ne": "decide ({} ≠ {})",
}
REDUCED = {"arith.addf": "Flt.sum", "arith.maxnumf": "Flt.maxOver"}
# Names that the text uses, that would hide one of Lean's own from a proof, or that a proof gives.
_TAKEN = re.compile(
    r"Args|Pointers|Accesses|Exponents|NoOverflow|min|max|xor|decide|forRange|none|some"
    r"|State|firstTile|stopTile|body|start|before|result|store_\w+|load_\w+|loop\d+"
    r"|problem|output|output_real|logSumExp|logSumExp_real|accesses|exponents|noOverflow|\w+_eq"
    # One of several values of a variable.
    r"|\w+_\d+"
)


def _as_float32(x: float) -> float:
    value: float = struct.unpack("f", struct.pack("f", x))[0]
    return value


# Literals that stand for a number which no float is, and the field of `Args` that is this number.
LITERALS = {_as_float32(math.log(2.0)): "a.ln2", _as_float32(1.0 / math.log(2.0)): "a.log2e"}
# Conversions, which do nothing without rounding.
CONVERSIONS = frozenset({"arith.extsi", "arith.extf", "arith.truncf"})
# They only say where elements come from.
ARRANGED = frozenset(
    {
        "arith.constant",
        "tt.get_program_id",
        "tt.make_range",
        "tt.splat",
        "tt.expand_dims",
        "tt.broadcast",
        "tt.trans",
    }
)
_NO_VALUE = frozenset({"tt.return", "scf.yield", "scf.for", "tt.store", "cf.cond_br", "cf.br"})


def break_lines(definition: str) -> str:
    """The definition with lines of at most 100 columns: broken before the type, then at spaces."""
    lines = []
    for line in definition.splitlines():
        if len(line) > 100 and line.startswith("@[expose]"):
            at = line.rindex(" : ")
            lines += [*_wrap(line[:at]), f"   {line[at:]}"]
        else:
            lines += _wrap(line)
    return "\n".join(lines)


def _wrap(line: str) -> list[str]:
    return textwrap.wrap(
        line, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def name_of(value: Value, operation: Operation) -> str:
    """The Python variable, or without one the operation's name."""
    name = re.sub(r"\W", "_", value.variable or operation.name.split(".")[1])
    return f"{name}_" if _TAKEN.fullmatch(name) else name


def type_of(type: object) -> str:
    """The Lean type of an element."""
    kind = type.element if isinstance(type, Tensor) else type
    if isinstance(kind, Pointer):
        return "Int"
    if not isinstance(kind, Scalar):
        raise TtirError(f"values of type {kind} have no translation")
    return "Bool" if kind.name == "i1" else "Flt R" if kind.is_float else "Int"


def in_brackets(text: str) -> str:
    """The text as an argument of a function."""
    closed = re.fullmatch(r"[\w.]+", text) or (text[0] == "(" and text[-1] == ")")
    return text if closed else f"({text})"


def is_computed(operation: Operation) -> bool:
    return operation.name not in _NO_VALUE | ARRANGED | CONVERSIONS
