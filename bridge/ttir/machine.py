"""Run a kernel's TTIR over a domain of floats, and check its memory accesses and its arithmetic.

Checked of every program:

- an address that is read or written lies within the tensor whose pointer it was computed from;
- no integer that is used as a number has overflowed;
- no two programs store to one address, nor one operation twice;
- no tensor and no address is both read and written;
- every argument of exp2 is ≤ 0, where the domain has an order: then no weight overflows. That a
  kernel is right in exact arithmetic does not say so.

The operations have the meaning that the documentation of MLIR and of Triton gives them
(https://mlir.llvm.org/docs/Dialects, https://triton-lang.org/main/dialects/TritonOps.html), without
rounding: conversions between floats do nothing, and `roundings` says which there were.

A tile is kept with length 1 along the dimensions in which its elements are equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from bridge.ttir import integers
from bridge.ttir.descriptors import Described
from bridge.ttir.domain import Array
from bridge.ttir.faults import (
    CannotTell,
    Kind,
    Overflowed,
    Overflowing,
    Program,
    Undecided,
    Violation,
)
from bridge.ttir.integers import Mark, Marked
from bridge.ttir.memory import Memory, Pointers
from bridge.ttir.operations import COMPUTE
from bridge.ttir.overflowing import follow
from bridge.ttir.syntax import (
    Block,
    Descriptor,
    Function,
    Location,
    Operation,
    Scalar,
    TtirError,
    Type,
    Value,
    shape_of,
)


class Machine:
    """One launch of a kernel.

    arguments: for each argument of `kernel` a tensor of `memory`, an integer, or a float
    (`Domain.scalar`). masked_after: an argument of exp2 may be positive where no value computed
    from its exponential is stored. roundings: the types to which floats were converted, and the
    precisions of products; this machine does not compute the errors that they cause.
    """

    def __init__(
        self,
        kernel: Function,
        memory: Memory,
        arguments: Sequence[Any],
        *,
        masked_after: bool = False,
    ) -> None:
        self.kernel, self.memory, self.domain = kernel, memory, memory.domain
        self.masked_after = masked_after
        self.roundings: set[str] = set()
        self.program: Program = ()
        self.number = -1
        self.grid: Program = ()
        self.values: list[Any] = [None] * kernel.values
        self.marks: dict[int, Mark] = {}
        self.overflowing: dict[int, Overflowing] = {}
        self.used = {v.number for operation in kernel.operations() for v in operation.operands}
        if len(arguments) != len(kernel.arguments):
            raise ValueError(
                f"arguments must be {len(kernel.arguments)}, one for each of the kernel's, "
                f"not {len(arguments)}"
            )
        memory.begin_launch()
        for value, given in zip(kernel.arguments, arguments, strict=True):
            self.values[value.number] = self._argument(value, given)

    def _argument(self, value: Value, given: Any) -> Any:
        if isinstance(value.type, Descriptor) and isinstance(given, Tensor):
            # Tensor descriptors that a launcher makes read 0 beyond the tensor.
            region = self.memory.region(value.name, given)
            return Described(region, region.first, tuple(given.shape), given.stride(), 0.0)
        if isinstance(given, Tensor):
            region = self.memory.region(value.name, given)
            return Pointers(region, np.array(region.first, np.int64))
        if isinstance(value.type, Scalar) and value.type.is_float:
            return self.domain.scalar(float(given))
        if isinstance(value.type, Scalar) and not isinstance(given, float):
            if value.type.name == "i1":
                return np.array(bool(given))
            return np.array(int(given), np.int64)
        raise ValueError(f"argument {value.name} must be a {value.type}, not {given!r}")

    def run(self, grid: Sequence[int]) -> None:
        """Run all programs, the first dimension fastest.

        Raises:
            Violation: a program does something that no program may do.
            CannotTell: an operation has no meaning here, or its result cannot be decided.
        """
        self.grid = (*grid, 1, 1)[:3]
        x, y, z = (range(size) for size in self.grid)
        for self.number, place in enumerate(itertools.product(z, y, x)):
            self.program = place[::-1]
            self.overflowing.clear()
            # ∞ − ∞ is NaN, which a kernel may choose to leave out.
            with np.errstate(invalid="ignore"):
                self._run(self.kernel.blocks)

    # ------------------------------------------------------------------------------ control

    def _run(self, blocks: list[Block]) -> Operation:
        """Run a region up to the operation that ends it, which is returned."""
        block = blocks[0]
        while True:
            last = self._block(block)
            if not last.successors:
                return last
            way = 0
            if last.name == "cf.cond_br":
                way = 0 if bool(self.value_of(last.operands[0])) else 1
            successor = last.successors[way]
            self._assign(successor.block.arguments, successor.operands)
            block = successor.block

    def _block(self, block: Block) -> Operation:
        for operation in block.operations:
            if operation.name in _TERMINATORS:
                return operation
            try:
                self._operation(operation)
            except Undecided as reason:
                raise self._cannot_tell(operation, str(reason)) from reason
        if block is not self.kernel.blocks[0]:
            # The operation that ends a region without results is not printed.
            return _END
        if block.operations:
            raise self._cannot_tell(block.operations[-1], "the block does not end")
        raise TtirError("a block of the kernel is empty")

    def value_of(self, value: Value) -> Any:
        return self.values[value.number]

    def _assign(self, to: Sequence[Value], given: Sequence[Value]) -> None:
        """Assign values to others, all at once."""
        found = [
            (self.value_of(x), self.marks.get(x.number), self.overflowing.get(x.number))
            for x in given
        ]
        for value, (what, mark, overflowing) in zip(to, found, strict=True):
            self._set(value, what, mark, overflowing)

    def _set(
        self,
        value: Value,
        what: Any,
        mark: Mark | None = None,
        overflowing: Overflowing | None = None,
    ) -> None:
        self.values[value.number] = what
        if overflowing is not None:
            self.overflowing[value.number] = overflowing
        elif self.overflowing:
            self.overflowing.pop(value.number, None)
        if mark is not None:
            self.marks[value.number] = mark
        elif self.marks:
            self.marks.pop(value.number, None)

    def _operation(self, operation: Operation) -> None:
        name = operation.name
        handler = _CONTROL.get(name)
        if handler is not None:
            handler(self, operation)
            return
        mark = self._mark(operation) if self.marks else None
        overflowing = follow(self, operation) if self.overflowing else None
        found = self.compute(operation, *[self.values[v.number] for v in operation.operands])
        if isinstance(found, Marked):
            mark = found.mark
            found = found.value
        if isinstance(found, Overflowed):
            overflowing, found = found.overflowing, found.value
        if not operation.results:
            return
        if isinstance(found, np.generic):
            # numpy makes such elements of tiles of shape ().
            found = np.asarray(found)
        if len(operation.results) > 1:
            for value, part in zip(operation.results, found, strict=True):
                self._set(value, part, mark)
        else:
            self._set(operation.results[0], found, mark, overflowing)

    def compute(self, operation: Operation, *operands: Any) -> Any:
        """The result of an operation on these operands."""
        function = COMPUTE.get(operation.name)
        if function is None:
            raise Undecided("the operation has no meaning here")
        return function(self, operation, *operands)

    def _mark(self, operation: Operation) -> Mark | None:
        """The mark of the results of an operation that takes bits; raises Violation for one that
        takes numbers, if an operand is marked."""
        for value in operation.operands:
            mark = self.marks.get(value.number)
            if mark is None:
                continue
            name = operation.name
            if name == "arith.muli" and not mark.overflowed and self._has_zero(operation):
                continue
            if name in integers.BITWISE:
                return mark
            equal = name == "arith.cmpi" and operation.word("predicate")[0] in "uen"
            if not mark.overflowed or (name not in integers.UNSIGNED and not equal):
                raise self._error_of_use(mark, operation)
        return None

    def _has_zero(self, operation: Operation) -> bool:
        """Whether an operand is 0 and known: times it any number is 0."""
        return any(
            value.number not in self.marks and not np.any(self.value_of(value))
            for value in operation.operands
        )

    def _error_of_use(self, mark: Mark, operation: Operation) -> Exception:
        """The error to raise where an operation uses a marked integer as a number."""
        if not mark.overflowed:
            return Undecided(f"a value that a masked load left open, at {mark.operation.location}")
        detail = f"its result is used as a number at {operation.location}"
        return Violation("overflow", detail, mark.operation, mark.program, mark.element)

    def _control_integer(self, value: Value, operation: Operation) -> int:
        """An integer that a loop or branch goes by."""
        mark = self.marks.get(value.number)
        if mark is not None:
            raise self._error_of_use(mark, operation)
        return int(self.value_of(value))

    def _for(self, operation: Operation) -> None:
        first, stop, step = (
            self._control_integer(value, operation) for value in operation.operands[:3]
        )
        if step <= 0:
            raise Undecided(f"the step of a loop is {step}")
        block = operation.regions[0][0]
        given: Sequence[Value] = operation.operands[3:]
        for i in range(first, stop, step):
            self._set(block.arguments[0], np.array(i, np.int64))
            self._assign(block.arguments[1:], given)
            given = self._run(operation.regions[0]).operands
        self._assign(operation.results, given)

    def _while(self, operation: Operation) -> None:
        before, after = operation.regions
        given: Sequence[Value] = operation.operands
        while True:
            self._assign(before[0].arguments, given)
            condition, *given = self._run(before).operands
            if not bool(self.value_of(condition)):
                break
            self._assign(after[0].arguments, given)
            given = self._run(after).operands
        self._assign(operation.results, given)

    def _if(self, operation: Operation) -> None:
        way = 0 if bool(self.value_of(operation.operands[0])) else 1
        if way < len(operation.regions):
            last = self._run(operation.regions[way])
            self._assign(operation.results, last.operands)

    # ------------------------------------------------------------------------------- errors

    def _cannot_tell(self, operation: Operation, reason: str) -> CannotTell:
        return CannotTell(reason, operation, self.program, None)

    def violation(
        self, kind: Kind, detail: str, operation: Operation, where: Array | None
    ) -> Violation:
        """`where`: of the operation's elements those for which it is one; None: not about any."""
        element = None
        if where is not None:
            shape = shape_of(_tile_type(operation))
            full = np.broadcast_to(where, shape) if shape else where
            element = tuple(int(i) for i in np.argwhere(full)[0])
        return Violation(kind, detail, operation, self.program, element)


def _tile_type(operation: Operation) -> Type:
    """The type of the tile whose elements an operation's elements are."""
    place = {"tt.load": 0, "tt.store": 0, "tt.descriptor_store": -1}.get(operation.name)
    of = None if place is None else operation.operands[place]
    return (of or (operation.results or operation.operands)[0]).type


_END = Operation("scf.yield", [], [], {}, [], [], Location(), 0)
_TERMINATORS = frozenset({
    "tt.return", "scf.yield", "scf.condition", "cf.br", "cf.cond_br", "tt.reduce.return",
})  # fmt: skip
_CONTROL: dict[str, Callable[[Machine, Operation], None]] = {
    "scf.for": Machine._for,
    "scf.while": Machine._while,
    "scf.if": Machine._if,
}
