"""`docs/statements.md`: the main results as `Attention/Statements` states them, to be read from the
first to the last."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bridge.audit.restated import SHARED, restatement
from bridge.audit.theorems import listed_theorems
from bridge.pages.render import render
from bridge.source.excerpt import Excerpt, SourceError
from bridge.source.lean import declarations
from bridge.source.sources import Sources

PAGE = "docs/statements.md"
FOLDER = "Attention/Statements"
# The files of the folder in the order in which they are read.
_FILES = (
    "Attention",
    "Scores",
    "Layouts",
    "Backward",
    "Poison",
    "Numbers",
    "Transformer",
    "Memory",
)
_TITLE = re.compile(r"/-! # (.+?)(?: -/)?$", re.MULTILINE)


@dataclass(frozen=True)
class Result:
    """A main result. sentence: the description of its statement, where that is documented in Lean;
    proof: the Lean name of the theorem that it comes from, as docs/theorems.toml has it; statement:
    its text, which is whole: no `variable` adds to it."""

    id: str
    sentence: str
    proof: str
    statement: Excerpt


@dataclass(frozen=True)
class Part:
    """The results of a file, in its order."""

    title: str
    results: tuple[Result, ...]


def parts(root: Path) -> list[Part]:
    """The main results, file by file. Raises SourceError where a file is missing or unknown, adds
    to its statements by `variable`, or has a statement that is no main result or has no sentence,
    and for a main result that is not stated."""
    there = {path.stem for path in (root / FOLDER).glob("*.lean")}
    if there != set(_FILES):
        odd = min(there ^ set(_FILES))
        said = "no part of the page" if odd in there else "a part of the page, and not there"
        raise SourceError(
            f"{FOLDER}/{odd}.lean is {said}; bridge/pages/statements_page.py has them in order"
        )
    main = {
        restatement(one["id"]): one
        for one in listed_theorems(root / "docs" / "theorems.toml")
        if one["kind"] == "main"
    }
    sources = Sources(root, ())
    found, left = [], set(main)
    for stem in _FILES:
        file = f"{FOLDER}/{stem}.lean"
        text = (root / file).read_text("utf-8")
        title = _TITLE.search(text)
        if title is None:
            raise SourceError(f"{file} has no title, /-! # … -/")
        results = []
        for one in declarations(text):
            if one.name not in main:
                raise SourceError(f"{file}: {one.name} is no main result of docs/theorems.toml")
            if one.variables or one.included:
                raise SourceError(f"{file}: a `variable` adds to the statement of {one.name}")
            if not one.doc:
                raise SourceError(f"{file}: no sentence says {one.name}")
            listed = main[one.name]
            said = " ".join(one.doc.split())
            statement = sources.theorem(one.name).statement
            results.append(Result(listed["id"], said, listed["lean"], statement))
            left.discard(one.name)
        found.append(Part(title[1], tuple(results)))
    if left:
        raise SourceError(f"{FOLDER} does not state {min(left)}")
    return found


def page(root: Path) -> str:
    """The text of the page. Raises SourceError as `parts` does."""
    found = parts(root)
    return render(
        "statements.md.jinja",
        parts=found,
        shared=len(SHARED),
        total=sum(len(part.results) for part in found),
        sources=Sources(root, ()),
    )
