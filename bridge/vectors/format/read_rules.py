"""From the fields of an entry to numbers that are drawn by rule."""

from __future__ import annotations

import math
from typing import Any

from bridge.vectors.format.fields import Field, Size
from bridge.vectors.format.rules import Rule
from bridge.vectors.model.sampled import matrix

# The generator gives 31 bits.
_LARGEST_DRAW = 1 << 31
# The most numbers of all inputs together, and the most pairs of a query and a key of all heads.
MOST_NUMBERS = 1 << 22
# Up to which bfloat16 holds every integer.
_LARGEST_BF16 = 1 << 8


def rule(field: Field) -> Rule:
    """The rule, which has to be one that can be drawn."""
    found = Rule(**field.data)
    if (2 * found.bound + 1) * found.one_in > _LARGEST_DRAW:
        raise field["one_in"].fail("times 2·bound + 1 is above 2^31, which is more than is drawn")
    if found.over & (found.over - 1):
        raise field["over"].fail(f"is {found.over}, no power of 2")
    return found


def is_drawn(field: Field) -> bool:
    """Whether the numbers are drawn by rule, and not written down."""
    return isinstance(field.data, dict)


def numbers(field: Field, *sizes: Size | None, integers: bool = False) -> Any:
    """`Field.numbers`, which are exact in bfloat16, or as many by rule, where every size is known.
    integers: those by rule have to be."""
    if not is_drawn(field):
        return field.numbers(*sizes)
    found = rule(field)
    if found.bound > _LARGEST_BF16:
        raise field["bound"].fail(f"is {found.bound}, but bfloat16 holds integers up to 256")
    if integers and found.over != 1:
        raise field["over"].fail("is not 1, but scores of the exact model are integers")
    *outer, rows, columns = (field.size(size)[0] for size in sizes if size is not None)
    if math.prod((*outer, rows, columns)) > MOST_NUMBERS:
        raise field.fail(f"stands for more than {MOST_NUMBERS} numbers")
    parts = found.numbers(math.prod(outer), rows, columns)
    matrices = tuple(map(matrix, parts))
    return matrices if outer else matrices[0]
