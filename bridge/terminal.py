"""Lines on the terminal."""

from __future__ import annotations

from rich.console import Console


def tell(console: Console, text: str, style: str = "") -> None:
    """A line as it is: without markup, without colours by its words, and not folded."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def tell_problems(console: Console, problems: list[str]) -> None:
    """A red line for each."""
    for problem in problems:
        tell(console, problem, "red")
