"""Lines of the sources that pages show: excerpts, statements without their proofs, Python."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.errors import MendableError
from bridge.source.lean import declarations
from pyimpl.internal.implements import Implementation


class SourceError(MendableError, ValueError):
    """A file of the project that cannot be used as it is. The message is one sentence."""


@dataclass(frozen=True)
class Excerpt:
    """Lines of a source file: `file` relative to the root, 1-based lines, both included."""

    name: str
    file: str
    first_line: int
    last_line: int
    text: str

    @property
    def link(self) -> str:
        """A relative link from `docs/`, with the lines as GitHub understands them."""
        return f"../{self.file}#L{self.first_line}-L{self.last_line}"


def excerpt(root: Path, name: str, file: str, first: int, last: int) -> Excerpt:
    """These lines of a file, without common indentation."""
    lines = (root / file).read_text("utf-8").splitlines()[first - 1 : last]
    return Excerpt(name, file, first, last, textwrap.dedent("\n".join(lines)).rstrip())


def statement_only(whole: Excerpt) -> Excerpt:
    """A theorem without its docstring and its proof: up to the `:=` that ends the
    statement. Raises SourceError where there is none."""
    (found,) = declarations(whole.text)
    assert found.keyword_at is not None
    assert found.value_at is not None
    lines = whole.text.split("\n")
    if found.value_at == found.last:
        raise SourceError(
            f"{whole.file}:{whole.first_line}: the statement of {whole.name} has no end"
        )
    (first, _), (last, column) = found.keyword_at, found.value_at
    kept = "\n".join([*lines[first - 1 : last - 1], lines[last - 1][:column]]).rstrip()
    start = whole.first_line + first - 1
    return Excerpt(whole.name, whole.file, start, start + kept.count("\n"), kept)


def python_excerpts(
    root: Path, implementations: Sequence[Implementation]
) -> dict[str, list[Excerpt]]:
    """By Lean name, the Python that implements it."""
    found: dict[str, list[Excerpt]] = {}
    for one in implementations:
        file = Path(one.file).resolve().relative_to(root.resolve()).as_posix()
        name = f"{one.module}.{one.qualname}"
        found.setdefault(one.lean, []).append(
            excerpt(root, name, file, one.first_line, one.last_line)
        )
    return found
