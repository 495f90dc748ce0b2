"""The chapters: an idea each, its Lean, its proof and its code side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bridge.pages.render import render
from bridge.pages.worked import gradients, heads, layer, masks, row, tiles, tolerance
from bridge.source.excerpt import SourceError
from bridge.source.sources import Sources
from bridge.vectors.model.attention import Family

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
    "distributed",
    "tolerances",
    "rounding",
    "kernel",
    "paper",
)
# Functions that work an example of a vector, by the name that templates know them by; each takes a
# family, a vector of it, and which part.
WORKED: dict[str, Callable[..., Any]] = {
    "worked": row.Worked,
    "worked_tiles": tiles.worked_tiles,
    "tile_bounds": tiles.bounds,
    "masked_rows": masks.masked_rows,
    "flooded": masks.flood,
    "worked_heads": heads.worked_heads,
    "worked_gradients": gradients.worked_gradients,
    "worked_tolerance": tolerance.worked_tolerance,
}


def address(chapter: str) -> str:
    """The file of a chapter, from the root."""
    return f"docs/{chapter}.md"


def page(root: Path, families: Sequence[Family], chapter: str) -> str:
    """The text of a chapter. Raises SourceError where it shows something that the sources lack."""
    template = f"{chapter}.md.jinja"
    sources = Sources(root, families)

    def of(work: Callable[..., Any]) -> Callable[..., Any]:
        return lambda family, *part: work(sources.family(family), *part)

    given = {name: of(work) for name, work in WORKED.items()}
    try:
        return render(
            template, sources=sources, written_from=template, layer_steps=layer.steps, **given
        )
    except SourceError as error:
        raise SourceError(
            f"{address(chapter)}: {error}; mend bridge/pages/templates/{template}"
        ) from error


def pages(root: Path, families: Sequence[Family]) -> dict[str, str]:
    """The text of every chapter by its file. Raises SourceError as `page` does."""
    return {address(chapter): page(root, families, chapter) for chapter in CHAPTERS}
