"""Exact numbers as the pages show them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

# The rows of a table.
Cells = list[list[str]]
Number = Fraction | int


def show(number: Number | None) -> str:
    """A number with a true minus sign; None, a masked score or no maximum, as −∞."""
    return "−∞" if number is None else str(number).replace("-", "−")


def show_all(numbers: Sequence[Number | None]) -> str:
    """Numbers in parentheses."""
    return f"({', '.join(map(show, numbers))})"
