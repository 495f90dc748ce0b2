"""Lean's brackets in a text: find a pattern outside of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

OPENING, CLOSING = "([{⟨⦃", ")]}⟩⦄"
_BRACKETS = re.escape(OPENING + CLOSING)


def outside(text: str, pattern: str) -> Iterator[re.Match[str]]:
    """The matches of a pattern where no bracket is open. If it matches brackets too, it finds the
    one that opens there, and the one that closes without having been opened."""
    depth = 0
    for found in re.finditer(rf"(?P<mark>{pattern})|[{_BRACKETS}]", text):
        if depth == 0 and found["mark"]:
            yield found
        depth += (found[0] in OPENING) - (found[0] in CLOSING)


def closing_bracket(text: str) -> int:
    """The place where a text's first bracket is closed; the text's length where it is not."""
    inside = next(outside(text[1:], f"[{re.escape(CLOSING)}]"), None)
    return len(text) if inside is None else 1 + inside.start()
