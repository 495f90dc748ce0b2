"""The chapters: an idea each, its Lean, its proof and its code side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bridge.pages.render import render
from bridge.pages.sources import Sources
from bridge.pages.worked import Worked, visible_pairs
from bridge.report.theorems import SourceError
from bridge.vectors.model import Family

# In the order in which they are read.
CHAPTERS = (
    "softmax",
    "online",
    "merge",
    "tiles",
    "masks",
    "log-sum-exp",
    "heads",
    "transformer",
    "backward",
    "paper",
)


def address(chapter: str) -> str:
    """The file of a chapter, from the root."""
    return f"docs/{chapter}.md"


def page(root: Path, families: Sequence[Family], chapter: str) -> str:
    """The text of a chapter. Raises SourceError where it shows what is not in the sources."""
    template = f"{chapter}.md.jinja"
    sources = Sources(root, families)

    def worked(family: str, vector: str, query: int) -> Worked:
        return Worked(sources.family(family), vector, query)

    def pairs(family: str, vector: str) -> list[str]:
        return visible_pairs(sources.family(family), vector)

    given = {"sources": sources, "written_from": template, "worked": worked, "pairs": pairs}
    try:
        return render(template, **given)
    except SourceError as error:
        raise SourceError(
            f"{address(chapter)}: {error}; mend bridge/pages/templates/{template}"
        ) from error


def pages(root: Path, families: Sequence[Family]) -> dict[str, str]:
    """The text of every chapter by its file. Raises SourceError as `page` does."""
    return {address(chapter): page(root, families, chapter) for chapter in CHAPTERS}
