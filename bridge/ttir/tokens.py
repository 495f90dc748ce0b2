"""The words of TTIR's text, each with its line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bridge.ttir.syntax import TtirError

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r]+|//[^\n]*)
  | (?P<newline>\n)
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<value>%[\w.$-]+(?:\#\d+)?)
  | (?P<label>\^\w+)
  | (?P<symbol>@(?:[\w.$]+|"[^"]*"))
  | (?P<alias>[\#!][A-Za-z_][\w.]*)
  | (?P<number>-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?))
  | (?P<word>[A-Za-z_][\w.$]*)
  | (?P<mark>->|::|[-<>(){}\[\],:=*+?|])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """kind: "string", "value", "label", "symbol", "alias", "number", "word", "mark" or "end".
    first: whether it is the first on its line; start: where it begins in the text."""

    kind: str
    text: str
    line: int
    first: bool
    start: int


def tokens(text: str) -> list[Token]:
    """All of them, and one of kind "end" after them. Raises TtirError at a letter that begins
    none."""
    found = []
    at, line, first = 0, 1, True
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise TtirError(f"line {line}: {text[at : at + 20]!r} is no part of TTIR")
        kind = match.lastgroup or ""
        if kind == "newline":
            line, first = line + 1, True
        elif kind != "space":
            found.append(Token(kind, match[0], line, first, at))
            first = False
        at = match.end()
    found.append(Token("end", "", line, True, at))
    return found
