"""The conditions that the operations of a kernel's text in Lean must meet, listed beside the text.

Three predicates, each with one conjunct for every operation that it is about, in their order:

    K.Accesses a pid P      each load and store by each lane: P has a condition for each pointer
    K.Exponents a pid P     P of each argument of exp2
    K.NoOverflow a pid      the value of each integer operation fits its type; no division by 0

A loop has its own, of one iteration and the state before it; the kernel's ask for them in every
iteration that is run. An operation after an early return counts only where the program did not
return.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bridge.ttir.lean_text import DEF
from bridge.ttir.syntax import Operation, Pointer, Scalar, TtirError, element_of

# Their value is one of their operands, or a value from memory.
_CHOSEN = frozenset({"arith.minsi", "arith.maxsi", "arith.select", "tt.load"})
_DIVISIONS = frozenset({"arith.divsi", "arith.remsi"})
_FITS = {"i32": "FitsI32", "i64": "FitsI64"}


@dataclass
class Obligations:
    """The conjuncts of the kernel's body or of a loop."""

    accesses: list[str] = field(default_factory=list)
    exponents: list[str] = field(default_factory=list)
    integers: list[str] = field(default_factory=list)

    def definitions(self, kernel: str, prefix: str, binders: str) -> list[str]:
        """The predicates, `prefix` before their names. kernel: with which the kernel's names begin;
        binders: their parameters."""
        every = "" if prefix == f"{kernel}." else " of an iteration"
        return [
            f"/-- {what} -/\n{DEF} {prefix}{name} {binders}\n    {asked}: Prop :=\n"
            + (" ∧\n".join(f"  ({one})" for one in conjuncts) or "  True")
            for what, name, asked, conjuncts in (
                (
                    f"What `P` asks of each access{every}.",
                    "Accesses",
                    f"(P : {kernel}.Pointers (Access → Prop)) ",
                    self.accesses,
                ),
                (
                    f"`P` of each argument of exp2{every}.",
                    "Exponents",
                    "(P : Flt R → Prop) ",
                    self.exponents,
                ),
                (f"No integer operation{every} overflows.", "NoOverflow", "", self.integers),
            )
        ]

    def of_loop(
        self, inner: Obligations, prefix: str, arguments: str
    ) -> Iterator[tuple[list[str], str]]:
        """For each predicate of which the loop has conjuncts: the list here, and the conjuncts for
        every iteration that is run."""
        for name, own, its in (
            ("Accesses", self.accesses, inner.accesses),
            ("Exponents", self.exponents, inner.exponents),
            ("NoOverflow", self.integers, inner.integers),
        ):
            first, stop = (f"{prefix}{end} {arguments}" for end in ("firstTile", "stopTile"))
            state = f"({prefix}before {arguments} t)"
            of = "" if name == "NoOverflow" else " P"
            if its:
                one = f"{prefix}{name} {arguments} t {state}{of}"
                yield own, f"∀ t, {first} ≤ t → t < {stop} → {one}"


def integer_conditions(operation: Operation, operands: Sequence[str], value: str) -> list[str]:
    """The conditions under which an element of the operation's value overflows no integer; none if
    the operation computes no integer. operands: their elements.

    An address is an offset of 64 bits from its pointer, in elements.
    """
    kind = element_of(operation.result.type)
    if operation.name in _CHOSEN or kind == Scalar("i1"):
        return []
    if isinstance(kind, Scalar) and kind.is_float:
        return []
    fits = _fits("i64" if isinstance(kind, Pointer) else str(kind))
    conditions = [f"{fits} {value}"]
    if operation.name in _DIVISIONS:
        conditions.append(f"{operands[1]} ≠ 0")
    if operation.name == "arith.remsi":
        # A remainder is undefined where the quotient overflows.
        conditions.append(f"{fits} (Int.tdiv {operands[0]} {operands[1]})")
    return conditions


def _fits(width: str) -> str:
    if width not in _FITS:
        raise TtirError(f"integers of type {width} have no translation")
    return _FITS[width]


def lanes(at: Sequence[str], sizes: Sequence[str]) -> str:
    """The quantifiers over the indices of a tensor of these sizes."""
    return "".join(f"∀ {index} < {size}, " for index, size in zip(at, sizes, strict=True))
