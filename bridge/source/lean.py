"""A second extraction: the declarations of a Lean file, read from its text alone.

It knows nothing of the constants that Lean stored. It reads the layout that this project keeps to:
a command begins in the first column, and its further lines are indented or begin with one of
`_CONTINUES`. A declaration that is written otherwise is missed here and so reported by the
comparison (`compare.py`).
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from bridge.source.brackets import outside

_PART = r"(?:«[^»\n]+»|[^\W\d][\w'!?]*)"
NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_DECLARATION = re.compile(
    r"(?P<attributes>(?:@\[[^\]]*\]\s*)*)"
    r"(?P<modifiers>(?:(?:private|protected|public|noncomputable|partial|unsafe|nonrec|local|scoped)"
    r"\s+)*)"
    r"(?P<keyword>theorem|lemma|def|abbrev|instance|structure|class\s+inductive|class|inductive"
    r"|opaque|axiom)\b\s*(?:\(priority\s*:=[^)]*\)\s*)?"
    rf"(?P<name>{NAME.pattern})?"
)
_CONTINUES = re.compile(r"\s|\||\)|\]|\}|⟩|:=|(?:where|deriving|termination_by|decreasing_by)\b")
# The beginning of a section, with its modifiers; `@[expose] section` is one, too.
_SECTION = re.compile(r"(?:@\[[^\]]*\]\s*|(?:public|meta|noncomputable)\s+)*section\b")
# Commands that are put before another one, which then begins after them.
_PREFIX = re.compile(r"(?:omit|include|open|set_option|variable)\b.*\sin\s*\Z", re.DOTALL)
# A name, or a binder in its brackets.
_LISTED = re.compile(rf"\[[^\]]*\]|{NAME.pattern}")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL)
_CHARACTER = re.compile(r"'(?:\\[^\n']+|[^\\'\n])'")
# The beginnings of comments and literals; a quote behind `_OF_A_NAME` belongs to a name.
_BLANKED = re.compile(r"/-|--|[\"']")
_OF_A_NAME = re.compile(r"[\w'!?]")
_SEEN = re.compile(r"\S")
_FIELD = re.compile(rf"^(\s+)((?:{_PART}[ ]+)+)(?:[\[({{⦃].*|\S*):(?!=)")
_CONSTRUCTOR = re.compile(rf"\|\s*({_PART})[^|]*?(?=\s*(?:\||\bderiving\b|\Z))", re.DOTALL)


@dataclass(frozen=True)
class Written:
    """A declaration as it stands in a file.

    name: with its namespace; None for an instance without one. keyword: the one that declares it,
    or `field`, `constructor`. Lines are 1-based and columns 0-based, as Lean counts them; the first
    position is that of the documentation or the modifiers. statement: the text from the name to the
    value, comments blanked; None for fields and constructors. opened: the namespaces in which its
    names are looked up, inner ones first. variables: the `variable` commands before it. included:
    the variables that `include` adds to it; omitted: the binders that `omit` takes from it, each in
    its brackets, or a name. keyword_at and value_at: where the keyword stands, and where the
    statement ends.
    """

    name: str | None
    keyword: str
    private: bool
    doc: str | None
    first: tuple[int, int]
    last: tuple[int, int]
    named_at: tuple[int, int] | None
    statement: str | None = None
    opened: tuple[str, ...] = ()
    variables: str = ""
    keyword_at: tuple[int, int] | None = None
    value_at: tuple[int, int] | None = None
    included: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()


@dataclass
class _Scope:
    """A scope that `namespace` or `section` opens and `end` closes."""

    namespace: str
    opened: list[str]
    variables: list[str]
    included: list[str]
    omitted: list[str]

    def inner(self, namespace: str) -> _Scope:
        """A scope within it, with the open namespaces and the variables of this one."""
        kept = (self.opened, self.variables, self.included, self.omitted)
        return _Scope(namespace, *(list(one) for one in kept))

    def command(self, text: str) -> None:
        """Take a command into account that declarations after it depend on; others do nothing."""
        word, *words = text.split()
        if word == "open":
            self.opened += [one for one in words if NAME.fullmatch(one)]
        elif word == "variable":
            self.variables.append(text)
        elif word in ("include", "omit"):
            to = self.included if word == "include" else self.omitted
            to += _LISTED.findall(" ".join(words))


class _Text:
    """A text with comments and strings blanked, and its documentation by where that ends."""

    def __init__(self, text: str) -> None:
        self.docs: list[tuple[int, int, str]] = []
        out, kept = [], 0
        while (mark := _BLANKED.search(text, kept)) is not None:
            at = end = mark.start()
            if text.startswith("/-", at):
                end = _end_of_block(text, at)
                if text.startswith("/--", at) and not text.startswith("/--/", at):
                    self.docs.append((at, end, text[at + 3 : end - 2]))
            elif text.startswith("--", at):
                found = text.find("\n", at)
                end = len(text) if found < 0 else found
            elif text[at] == '"' and (string := _STRING.match(text, at)):
                end = string.end()
            elif (
                text[at] == "'"
                and not _OF_A_NAME.match(text[at - 1 : at])
                and (character := _CHARACTER.match(text, at))
            ):
                end = character.end()
            # A literal stays visible, so that it does not look like the end of a command.
            blank = "0" if text[at] in "\"'" else " "
            # A mark that begins nothing stays, and so does the text before it.
            out += [text[kept:at], _SEEN.sub(blank, text[at:end]) or text[at]]
            kept = max(end, at + 1)
        self.blanked = "".join([*out, text[kept:]])
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, at: int) -> tuple[int, int]:
        line = bisect.bisect_right(self._starts, at)
        return line, at - self._starts[line - 1]

    def doc_before(self, at: int) -> tuple[int, str] | None:
        """The documentation that ends before this place with nothing but blanks between."""
        for start, end, doc in self.docs:
            if end <= at and not self.blanked[end:at].strip():
                return start, doc
        return None


def blank_comments(text: str) -> str:
    """The text with comments and literals blanked, lines kept."""
    return _Text(text).blanked


def _end_of_block(text: str, at: int) -> int:
    depth = 0
    for mark in re.finditer(r"/-|-/", text[at:]):
        depth += 1 if mark[0] == "/-" else -1
        if depth == 0:
            return at + mark.end()
    return len(text)


def _commands(blanked: str) -> Iterator[tuple[int, int]]:
    """The beginning and the end of each command; attributes on a line of their own belong to the
    next."""
    start = None
    at = 0
    for line in blanked.splitlines(keepends=True):
        if line.strip() and not _CONTINUES.match(line):
            before = "" if start is None else blanked[start:at]
            if start is None:
                start = at
            elif not re.fullmatch(r"(?:@\[[^\]]*\]\s*)+", before):
                yield start, at
                start = at
        at += len(line)
    if start is not None:
        yield start, at


@lru_cache(maxsize=4096)
def declarations(source: str) -> tuple[Written, ...]:
    """The declarations of a file, in its order. Kept, since every page reads the files."""
    text = _Text(source)
    scopes = [_Scope("", [], [], [], [])]
    found: list[Written] = []
    # The scope of one declaration alone, which `include … in` and `omit … in` make.
    alone: _Scope | None = None
    for start, end in _commands(text.blanked):
        piece = text.blanked[start:end].rstrip()
        if _PREFIX.match(piece):
            alone = alone or scopes[-1].inner(scopes[-1].namespace)
            alone.command(re.sub(r"\s+in\Z", "", piece))
            continue
        words = piece.split()
        scope = scopes[-1]
        if not words:
            continue
        if words[0] == "namespace":
            inner = f"{scope.namespace}.{words[1]}" if scope.namespace else words[1]
            scopes.append(scope.inner(inner))
        elif _SECTION.match(piece):
            # The one at the head of a file is closed by the end of the file.
            scopes.append(scope.inner(scope.namespace))
        elif words[0] == "end":
            if len(scopes) > 1:
                scopes.pop()
        elif (head := _DECLARATION.match(piece)) is not None:
            found += _read_declaration(text, start, piece, head, alone or scope)
            alone = None
        else:
            scope.command(piece)
    return tuple(found)


def _read_declaration(
    text: _Text, start: int, piece: str, head: re.Match[str], scope: _Scope
) -> Iterator[Written]:
    prefix = f"{scope.namespace}." if scope.namespace else ""
    keyword = " ".join(head["keyword"].split())
    own = head["name"]
    name = None
    if own is not None:
        name = own.removeprefix("_root_.") if own.startswith("_root_.") else prefix + own
    doc = text.doc_before(start)
    private = "private" in head["modifiers"].split()
    namespaces = [scope.namespace.rsplit(".", n)[0] for n in range(scope.namespace.count(".") + 1)]
    # Within a declaration its own prefix is open, too.
    inside = [name.rpartition(".")[0]] if name is not None else []
    # `open X` opens every X that the namespaces around it know.
    others = [
        f"{space}.{one}" if space else one for one in scope.opened for space in (*namespaces, "")
    ]
    opened = tuple(dict.fromkeys([*inside, *namespaces, *others]))
    statement = _statement(piece[head.end() :])
    yield Written(
        name,
        keyword,
        private,
        doc[1] if doc else None,
        text.place(doc[0] if doc else start),
        text.place(start + len(piece)),
        text.place(start + head.start("name")) if own else None,
        statement,
        opened,
        " ".join(scope.variables),
        text.place(start + head.start("keyword")),
        text.place(start + head.end() + len(statement)),
        tuple(scope.included),
        tuple(scope.omitted),
    )
    if name is not None and keyword in ("structure", "class"):
        yield from _fields(text, start, piece, name, private)
    if name is not None and keyword.endswith("inductive"):
        for match in _CONSTRUCTOR.finditer(piece):
            doc = text.doc_before(start + match.start())
            yield Written(
                f"{name}.{match[1]}",
                "constructor",
                private,
                doc[1] if doc else None,
                text.place(doc[0] if doc else start + match.start()),
                text.place(start + match.end()),
                text.place(start + match.start(1)),
            )


def _fields(text: _Text, start: int, piece: str, of: str, private: bool) -> Iterator[Written]:
    opening = re.search(r"\bwhere\b[^\S\n]*\n", piece)
    at = len(piece) if opening is None else opening.end()
    indent = None
    for line in piece[at:].splitlines(keepends=True):
        field = _FIELD.match(line)
        if field is not None and (indent is None or len(field[1]) == indent):
            indent = len(field[1])
            for word in re.finditer(_PART, field[2]):
                own = start + at + field.start(2) + word.start()
                place = text.place(own)
                doc = text.doc_before(start + at + len(field[1]))
                yield Written(
                    f"{of}.{word[0]}",
                    "field",
                    private,
                    doc[1] if doc else None,
                    place,
                    text.place(own + len(word[0])),
                    place,
                )
        at += len(line)


_LOCAL = re.compile(r"\b(?:let|have)\b(?:(?!:=).)*\Z", re.DOTALL)
# The texts with which a value may begin.
_VALUE = r":=|\n\s*\|\s|\swhere\b"


def _statement(rest: str) -> str:
    """The text between the name and the value."""
    for turn in outside(rest, _VALUE):
        before = rest[: turn.start()]
        if turn[0] == ":=":
            ends = not _LOCAL.search(before)
        elif turn[0].endswith("where"):
            ends = True
        else:
            # The alternatives of a `match` belong to the statement, those of a definition not.
            ends = not re.search(r"\bmatch\b", before)
        if ends:
            return before
    return rest
