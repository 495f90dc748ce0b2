"""Which pages the site has, in the order of its contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bridge.site.full import Made

FRONT = "README.md"
_PARTS = {
    "Ideas": (
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
        "docs/distributed.md",
        "docs/tolerances.md",
        "docs/rounding.md",
        "docs/kernel.md",
        "docs/paper.md",
        "docs/approximation.md",
    ),
    "Use": (
        "docs/use.md",
        "docs/check-your-kernel.md",
        "docs/add-a-feature.md",
        "docs/your-own-variant.md",
        "docs/running.md",
        "docs/conform.md",
        "docs/cheats.md",
        "docs/prove.md",
        "docs/vectors.md",
        "docs/modules.md",
        "docs/integrations.md",
        "docs/performance.md",
    ),
    "Examples": (
        "docs/examples.md",
        "docs/examples/llama-generate.md",
        "docs/examples/train-copy.md",
        "docs/examples/train-parallel.md",
        "docs/examples/long-context.md",
        "docs/examples/paged-batching.md",
        "docs/examples/packed-documents.md",
        "docs/examples/pictures.md",
        "docs/examples/kernel-in-ci.md",
        "docs/examples/ring-in-shards.md",
        "docs/examples/vectors-cpp.md",
        "docs/examples/vectors-jax.md",
    ),
    "Maps": (
        "docs/maps.md",
        "docs/theorem-map.md",
        "docs/coverage.md",
        "docs/kernel-coverage.md",
        "docs/claims.md",
        "docs/mutants.md",
        "docs/benchmarks.md",
    ),
    "Results": (
        "docs/what-is-proved.md",
        "docs/statements.md",
        "docs/theorems.md",
        "docs/trust.md",
        "docs/findings.md",
    ),
}
# The drawings of this folder stand in the pages themselves, so that their links work and the text
# in them keeps its size; others are images.
DRAWINGS = "docs/maps/"


def parts(root: Path) -> dict[str, tuple[str, ...]]:
    """The parts of the contents in order, each with its pages' files from the root of the checkout:
    every page of `docs` and of the root but the front page. Raises ValueError for a page that is
    named and not there."""
    there = [p.relative_to(root).as_posix() for p in sorted(root.glob("docs/**/*.md"))]
    there += sorted(p.name for p in root.glob("*.md") if p.name != FRONT)
    named = [page for pages in _PARTS.values() for page in pages]
    absent = [page for page in named if page not in there]
    if absent:
        raise ValueError(f"bridge/site/contents.py names {', '.join(absent)}, not in the checkout")
    rest = [page for page in there if page not in named]
    decisions = tuple(page for page in rest if page.startswith("docs/decisions/"))
    about = tuple(page for page in rest if page not in decisions)
    return {**_PARTS, "About": about, "Decisions": decisions}


def tree(page: str) -> str:
    """The file of a page on the site, in Markdown."""
    return "index.md" if page == FRONT else page.removeprefix("docs/")


def navigation(
    parts: Mapping[str, Sequence[str]],
    made: Sequence[Made],
    titles: Mapping[str, str],
    reference: Mapping[str, str],
) -> list[object]:
    """The value of Zensical's `nav`. made: pages of the site alone, each below the page that it
    belongs to; reference: by title, the addresses of the packages' reference."""
    nav: list[object] = [{"Overview": tree(FRONT)}]
    for part, pages in parts.items():
        shown: list[object] = []
        for page in pages:
            below = [tree(one.name) for one in made if one.under == page != one.name]
            shown.append({titles[page]: [tree(page), *below]} if below else tree(page))
        nav.append({part: shown})
    if reference:
        nav.append({"Reference": [{title: at} for title, at in reference.items()]})
    return nav
