"""`docs/theorems.md`: each headline theorem beside the code that implements what it speaks of."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.templates import template
from bridge.vectors.model import Family
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


@dataclass(frozen=True)
class Headline:
    """A headline theorem: id and sentence of docs/theorems.toml, its statement, the Spec
    definitions that it mentions, and the other definitions that one needs to read it."""

    id: str
    sentence: str
    statement: Excerpt
    mentions: tuple[str, ...]
    needed: tuple[Excerpt, ...] = ()


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


def anchor(heading: str) -> str:
    """What GitHub calls a heading of one word in a link: letters, digits, - and _ are kept."""
    return re.sub(r"[^\w-]", "", heading.lower())


def render(
    headlines: Sequence[Headline],
    definitions: dict[str, Excerpt],
    python: dict[str, list[Excerpt]],
    families: Sequence[Family],
) -> str:
    """The page. definitions: the Lean source of each Spec definition, by name."""
    used = [name for name in definitions if any(name in h.mentions for h in headlines)]
    shown = [name for name in definitions if name in used or name in python]
    vectors = {
        h.id: [
            (f.name, n)
            for f in families
            if (n := sum(v.theorem == h.id or v.lean in h.mentions for v in f.vectors))
        ]
        for h in headlines
    }
    return template("bridge.report", "theorems.md.jinja").render(
        headlines=headlines,
        definitions={name: definitions[name] for name in shown},
        python=python,
        vectors=vectors,
        anchor=anchor,
    )
