"""Elements that may overflow, followed until they are stored or left out.

A weight whose argument of exp2 is positive may be ∞ in floats, and values computed of it ∞ or NaN.
A kernel may compute it all the same where it leaves it out afterwards: by `arith.select`, or since
the row that has it is not stored.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from bridge.ttir.domain import Array
from bridge.ttir.faults import Overflowing
from bridge.ttir.syntax import Operation, shape_of

if TYPE_CHECKING:
    from bridge.ttir.machine import Machine


# The operations whose result at a place is computed of the operands there; of others but those of
# `follow` no element may be used.
_ELEMENTWISE = frozenset({
    "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf", "math.absf", "math.fma",
    "arith.extf", "arith.truncf", "tt.fp_to_fp",
})  # fmt: skip
_MOVES = frozenset({"tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape"})


def follow(machine: Machine, operation: Operation) -> Overflowing | None:
    """Which elements of the result may overflow, before the operation is done; None: none.

    Raises the violation of an operand's elements that are used as they may not be.
    """
    found = [machine.overflowing.get(value.number) for value in operation.operands]
    first = next((x for x in found if x is not None), None)
    if first is None:
        return None
    shapes = [shape_of(value.type) for value in operation.operands]
    offs: list[Array] = [np.zeros((), bool) if x is None else x.off for x in found]
    name = operation.name
    if name in ("tt.store", "tt.atomic_rmw"):
        _, stored, *_ = offs
        for mask in operation.operands[2:]:
            stored = stored & machine.value_of(mask)
        if stored.any():
            raise first.wrong
        return None
    off: Array
    if name == "arith.select" and found[0] is None:
        condition = machine.value_of(operation.operands[0])
        off = np.where(condition, *offs[1:])
    elif name in _ELEMENTWISE:
        off = np.asarray(functools.reduce(np.logical_or, offs))
    elif name in _MOVES:
        off = machine.compute(operation, offs[0])
    elif name == "tt.reduce" and len(found) == 1 and operation.combination == "arith.addf":
        off = np.asarray(np.broadcast_to(offs[0], shapes[0]).any(operation.integer("axis")))
    elif name == "tt.dot" and all(len(shape) == 2 for shape in shapes):
        a, b, c = (np.broadcast_to(x, shape) for x, shape in zip(offs, shapes, strict=True))
        off = a.any(1, keepdims=True) | b.any(0, keepdims=True) | c
    else:
        raise first.wrong
    return Overflowing(first.wrong, off) if off.any() else None
