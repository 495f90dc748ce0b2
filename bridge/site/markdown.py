"""Markdown to HTML: tables, formulas in dollars, anchors as GitHub makes them, highlighted code."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

# How fences are named in the pages, by pygments' names.
_LEXERS = {"lean": "lean4", "": "text"}


# A wide table scrolls by itself, by keyboard too.
_TABLE, _TABLE_END = '<div class="table" tabindex="0"><table>', "</table></div>"


@dataclass(frozen=True)
class Heading:
    """A heading of a page: its level from 1, its text and its anchor."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True)
class Converted:
    """A page as HTML, and its headings in order."""

    body: str
    headings: tuple[Heading, ...]

    @property
    def title(self) -> str:
        """The text of the first heading."""
        return self.headings[0].text if self.headings else ""


def slug(text: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def highlighted(text: str, language: str, *, numbered: bool = False) -> str:
    """A block of code as HTML; of a language that pygments does not know, as it is. numbered: with
    the numbers of the lines, which are anchors `L-1`, `L-2`, …"""
    try:
        lexer = get_lexer_by_name(_LEXERS.get(language, language), stripnl=False)
    except ClassNotFound:
        lexer = get_lexer_by_name("text", stripnl=False)
    lines: dict[str, Any] = {"linenos": "inline", "linespans": "L", "anchorlinenos": True}
    shape: Any = HtmlFormatter(cssclass="code", **(lines if numbered else {}))
    shown: str = highlight(text, lexer, shape)
    # Long lines scroll within their block: a reader without a mouse must be able to reach it.
    return shown.replace('<div class="code">', '<div class="code" tabindex="0">', 1)


def convert(
    text: str,
    link: Callable[[str], str],
    drawing: Callable[[str], str | None] = lambda address: None,
) -> Converted:
    """A page of Markdown as HTML. link: what each relative address becomes; drawing: the SVG that
    stands in the page in place of an image, None for one that stays an image."""
    parser = (
        MarkdownIt("commonmark", {"html": True, "typographer": False})
        .enable(["table", "strikethrough"])
        .use(anchors_plugin, max_level=6, slug_func=slug, permalink=False)
        .use(dollarmath_plugin, allow_space=False, allow_digits=False, renderer=_formula)
    )
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("code_block", _fence)
    parser.add_render_rule("table_open", lambda *_: f"{_TABLE}\n")
    parser.add_render_rule("table_close", lambda *_: f"{_TABLE_END}\n")
    tokens = parser.parse(text)
    _pictures(tokens)
    for token in (each for one in tokens for each in (one, *(one.children or ()))):
        if token.type == "image" and (drawn := drawing(str(token.attrGet("src")))) is not None:
            token.type, token.content = "html_inline", _drawing(token.content, drawn)
            continue
        for name in ("href", "src"):
            if token.attrGet(name) is not None:
                token.attrSet(name, link(str(token.attrGet(name))))
        if token.type in ("html_block", "html_inline"):
            token.content = in_html(token.content, link)
    body: str = parser.renderer.render(tokens, parser.options, {})
    return Converted(body, tuple(_headings(tokens)))


def _pictures(tokens: Sequence[Token]) -> None:
    """Mark the paragraphs that are a picture: one that is wider than the screen scrolls."""
    for before, token in pairwise(tokens):
        inside = [child.type for child in token.children or ()]
        if before.type == "paragraph_open" and inside == ["image"]:
            before.attrSet("class", "picture")
            before.attrSet("tabindex", "0")


def _formula(content: str, _options: dict[str, Any]) -> str:
    """For KaTeX in the reader's browser; without it the formula is read as it was written."""
    return html.escape(content)


def _drawing(alt: str, svg: str) -> str:
    """A drawing with links, which an image cannot have; a wide one scrolls by itself."""
    said = html.escape(alt)
    return f'<span class="drawing" tabindex="0" role="group" aria-label="{said}">{svg}</span>'


def _fence(_self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    language = tokens[at].info.split()[0] if tokens[at].info else ""
    return highlighted(tokens[at].content, language)


def in_html(text: str, link: Callable[[str], str]) -> str:
    """HTML or SVG with its relative addresses as `link` has them, and tables that scroll."""

    def linked(found: re.Match[str]) -> str:
        address = html.unescape(found["address"])
        return f'{found["name"]}="{html.escape(link(address))}"'

    text = text.replace("<table>", _TABLE).replace("</table>", _TABLE_END)
    return re.sub(r'(?P<name>\b(?:href|src))="(?P<address>[^"]*)"', linked, text)


def _headings(tokens: Sequence[Token]) -> list[Heading]:
    found = []
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            inline = tokens[at + 1].children or []
            text = "".join(child.content for child in inline)
            found.append(Heading(int(token.tag[1]), text, str(token.attrGet("id"))))
    return found
