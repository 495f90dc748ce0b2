"""Find lines of the sources by a part of their text, for pages that show them.

A page names a Lean declaration, a listed theorem, a family of vectors, or some words of a line. If
the source has none of these, or has it twice, an error says so, and the page is not written.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bridge.source import binders
from bridge.source.excerpt import Excerpt, SourceError, excerpt, statement_only
from bridge.source.lean import Written, declarations
from bridge.vectors.model.attention import Family


@dataclass(frozen=True)
class Theorem:
    """A theorem that a page shows. id, sentence: of docs/theorems.toml; None for one that is no
    listed theorem. statement: as it stands in its file, without its proof; whole: with all the
    binders that it has from commands before it; assumed: those of them that `include` adds."""

    id: str | None
    sentence: str | None
    statement: Excerpt
    whole: str
    assumed: tuple[str, ...]


class Sources:
    """The sources below `root`, with the vectors made of them."""

    def __init__(self, root: Path, families: Sequence[Family]) -> None:
        self._root, self._families = root, families

    def lean(self, name: str) -> Excerpt:
        """A Lean declaration without its documentation. Raises SourceError if there is none."""
        file, found = self._declaration(name)
        first = found.keyword_at or found.first
        return excerpt(self._root, name, file, first[0], found.last[0])

    def theorem(self, name: str) -> Theorem:
        """A theorem, by its Lean name or by its id among the listed theorems. Raises SourceError if
        there is none."""
        known = {one["lean"]: one for one in self._main_theorems}
        by_id = {one["id"]: lean for lean, one in known.items()}
        lean = by_id.get(name, name)
        file, found = self._declaration(lean)
        if found.keyword != "theorem":
            raise SourceError(f"{lean} is no theorem but {found.keyword}, {file}:{found.first[0]}")
        whole = excerpt(self._root, lean, file, found.first[0], found.last[0])
        main_theorem = known.get(lean, {})
        statement = statement_only(whole)
        return Theorem(
            main_theorem.get("id"),
            main_theorem.get("sentence"),
            statement,
            binders.whole(found, statement.text),
            tuple(
                one.text
                for one in binders.of_variables(found)
                if set(one.names) & set(found.included)
            ),
        )

    def code(self, file: str, first: str, last: str | None = None, *, of: str = "") -> Excerpt:
        """The line of a file that holds `first`, to the next that holds `last`; `of` a function,
        method (`Class.method`) or class, if it is given. Raises SourceError unless it is one."""
        path = self._root / file
        if not path.is_file():
            raise SourceError(f"there is no file {file}")
        text = path.read_text("utf-8")
        start, stop = (1, len(text.splitlines())) if not of else _lines_of(file, text, of)
        lines = text.splitlines()
        place = f"{file}{', ' + of if of else ''}"
        found = [n for n in range(start, stop + 1) if first in lines[n - 1]]
        if len(found) != 1:
            said = f"{len(found)} lines with {first!r}" if found else f"no line with {first!r}"
            raise SourceError(f"{place}: {said}, where the page shows one")
        end = found[0]
        if last is not None:
            after = (n for n in range(end, stop + 1) if last in lines[n - 1])
            end = next(after, 0)
            if not end:
                raise SourceError(f"{place}: no line with {last!r} after that with {first!r}")
        return excerpt(self._root, of or first, file, found[0], end)

    def function(self, file: str, name: str) -> Excerpt:
        """A function, method or class whole, without its decorators. Raises SourceError unless
        there is one."""
        path = self._root / file
        if not path.is_file():
            raise SourceError(f"there is no file {file}")
        start, stop = _lines_of(file, path.read_text("utf-8"), name)
        return excerpt(self._root, name, file, start, stop)

    def family(self, name: str) -> Family:
        """A family of vectors. Raises SourceError if there is none."""
        return family_of(self._families, name)

    def vectors(self, families: Sequence[str]) -> int:
        """How many vectors these families have together."""
        return sum(len(self.family(name).vectors) for name in families)

    def _declaration(self, name: str) -> tuple[str, Written]:
        found = self._declared.get(name, [])
        if len(found) != 1:
            said = "is not declared" if not found else f"is declared {len(found)} times"
            raise SourceError(f"{name} {said} below Attention/")
        return found[0]

    @cached_property
    def _declared(self) -> dict[str, list[tuple[str, Written]]]:
        found: dict[str, list[tuple[str, Written]]] = {}
        for path in sorted((self._root / "Attention").glob("**/*.lean")):
            file = path.relative_to(self._root).as_posix()
            for one in declarations(path.read_text("utf-8")):
                if one.name is not None and not one.private:
                    found.setdefault(one.name, []).append((file, one))
        return found

    @cached_property
    def _main_theorems(self) -> list[dict[str, str]]:
        text = (self._root / "docs" / "theorems.toml").read_text("utf-8")
        main_theorems: list[dict[str, str]] = tomllib.loads(text)["theorem"]
        return main_theorems


def family_of(families: Sequence[Family], name: str) -> Family:
    """A family by its name. Raises SourceError if there is none."""
    for family in families:
        if family.name == name:
            return family
    raise SourceError(f"there is no family {name!r} of vectors")


def _lines_of(file: str, text: str, name: str) -> tuple[int, int]:
    """First and last line of a function or class, without its decorators."""
    found = [node for path, node in _definitions(ast.parse(text)) if path == name]
    if len(found) != 1:
        raise SourceError(f"{file}: {len(found) or 'no'} definition of {name}, where one is shown")
    return found[0].lineno, found[0].end_lineno or found[0].lineno


_Definition = ast.FunctionDef | ast.ClassDef


def _definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, _Definition]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Definition):
            yield prefix + node.name, node
            yield from _definitions(node, f"{prefix}{node.name}.")
