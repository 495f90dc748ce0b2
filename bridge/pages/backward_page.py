"""`docs/backward.md`: the backward pass, each step beside its Lean and its code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bridge.pages.render import render
from bridge.pages.sources import Sources
from bridge.report.theorems import SourceError
from bridge.vectors.model import Family

PAGE = "docs/backward.md"
TEMPLATE = "backward.md.jinja"


def page(root: Path, families: Sequence[Family]) -> str:
    """The text of the page. Raises SourceError where it shows what is not in the sources."""
    try:
        return render(TEMPLATE, sources=Sources(root, families))
    except SourceError as error:
        raise SourceError(f"{PAGE}: {error}; mend bridge/pages/templates/{TEMPLATE}") from error
