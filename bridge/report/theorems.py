"""Lines of the sources that pages show: excerpts, statements without their proofs, Python."""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyimpl._implements import Implementation


class SourceError(ValueError):
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


_OPENING, _CLOSING = "([{⟨", ")]}⟩"
# A `let` or `have` whose own `:=` is still to come.
_LOCAL = re.compile(r"\b(?:let|have)\b(?:(?!:=).)*\Z", re.DOTALL)


def statement_only(whole: Excerpt) -> Excerpt:
    """A theorem without its docstring and its proof: up to the `:=`, outside of all brackets and of
    every `let`, that ends the statement. Raises SourceError where there is none."""
    lines = whole.text.split("\n")
    first = next(n for n, line in enumerate(lines) if re.match(r"(private )?theorem\b", line))
    text = "\n".join(lines[first:])
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if depth == 0 and text.startswith(":=", at) and not _LOCAL.search(text[:at]):
            break
    else:
        raise SourceError(
            f"{whole.file}:{whole.first_line}: the statement of {whole.name} has no end"
        )
    kept = text[:at].rstrip()
    start = whole.first_line + first
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


def listed_theorems(path: Path) -> list[dict[str, str]]:
    """The entries of docs/theorems.toml. Raises SourceError for what is no list of theorems."""
    try:
        entries = tomllib.loads(path.read_text("utf-8"))["theorem"]
        for entry in entries:
            if set(entry) != {"id", "lean", "sentence"}:
                raise SourceError(
                    f"{path.name}: a theorem has id, lean and sentence, not {', '.join(entry)}"
                )
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise SourceError(f"{path.name}: is no list of theorems: {error}") from error
    return list(entries)
