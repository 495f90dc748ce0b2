"""Which pages the site has, in the order of its contents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Part:
    """A part of the contents: its name, and the pages' files from the root of the checkout."""

    name: str
    pages: tuple[str, ...]


FRONT = "README.md"
_PARTS = (
    (
        "Ideas",
        (
            "docs/softmax.md",
            "docs/online.md",
            "docs/stepper.md",
            "docs/merge.md",
            "docs/tiles.md",
            "docs/masks.md",
            "docs/log-sum-exp.md",
            "docs/heads.md",
            "docs/transformer.md",
            "docs/backward.md",
            "docs/tolerances.md",
            "docs/kernel.md",
            "docs/paper.md",
            "docs/approximation.md",
        ),
    ),
    (
        "Use",
        (
            "docs/use.md",
            "docs/check-your-kernel.md",
            "docs/add-a-feature.md",
            "docs/running.md",
            "docs/conform.md",
            "docs/cheats.md",
            "docs/prove.md",
            "docs/vectors.md",
            "docs/modules.md",
            "docs/performance.md",
        ),
    ),
    (
        "Maps",
        (
            "docs/maps.md",
            "docs/theorem-map.md",
            "docs/coverage.md",
            "docs/claims.md",
            "docs/mutants.md",
            "docs/benchmarks.md",
        ),
    ),
    (
        "Results",
        (
            "docs/what-is-proved.md",
            "docs/theorems.md",
            "docs/trust.md",
            "docs/findings.md",
        ),
    ),
)
# What a page runs beside what every page does, of the folder `assets`, in order.
SCRIPTS = {
    "docs/stepper.md": ("online.js", "stepper.js"),
    "docs/maps.md": ("map.js",),
    "docs/theorem-map.md": ("map.js",),
}
# The drawings of this folder stand in the pages themselves, so that their links work and the text
# in them keeps its size; others are images.
DRAWINGS = "docs/maps/"

# What no part names is here, so that no page is without a way to it.
_REST, _DECISIONS = "About", "Decisions"


def parts(root: Path) -> list[Part]:
    """The parts of the contents, with every page of `docs` and of the root but the front page.
    Raises ValueError for a page that is named and not there."""
    there = [p.relative_to(root).as_posix() for p in sorted(root.glob("docs/**/*.md"))]
    there += sorted(p.name for p in root.glob("*.md") if p.name != FRONT)
    named = [page for _, pages in _PARTS for page in pages]
    absent = [page for page in named if page not in there]
    if absent:
        raise ValueError(f"bridge/site/contents.py names {', '.join(absent)}, not in the checkout")
    rest = [page for page in there if page not in named]
    decisions = [page for page in rest if page.startswith("docs/decisions/")]
    about = [page for page in rest if page not in decisions]
    return [Part(*one) for one in (*_PARTS, (_REST, tuple(about)), (_DECISIONS, tuple(decisions)))]


def address(page: str) -> str:
    """Where a page of the checkout stands on the site."""
    if page == FRONT:
        return "index.html"
    return page.removeprefix("docs/").removesuffix(".md") + ".html"
