"""The colours of code: pygments' kind of each word, but for those that look like any other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pygments import highlight
from pygments.filter import Filter
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import Name, Text, Whitespace


class Plain(Filter):
    """Names and blanks as plain text: they are two thirds of a page's tags, and have no colour."""

    def filter(self, lexer: Any, stream: Iterable[tuple[Any, str]]) -> Iterator[tuple[Any, str]]:
        for kind, text in stream:
            yield Text if kind in (Name, Whitespace) else kind, text


def number_lines(text: str, language: str) -> str:
    """A file's code as HTML, its lines with their numbers, which are anchors `L-1`, `L-2`, …"""
    lexer = get_lexer_by_name(language, stripnl=False, filters=[Plain()])
    lines: Any = HtmlFormatter(
        cssclass="highlight", linenos="inline", linespans="L", anchorlinenos=True
    )
    shown: str = highlight(text.rstrip("\n"), lexer, lines)
    return shown
