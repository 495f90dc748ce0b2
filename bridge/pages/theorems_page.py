"""`docs/theorems.md`: the listed theorems by topic, a line each. The site (`bridge.site.full`) has
the Lean statement of each, with the definitions and the Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bridge.audit.theorems import KINDS, count_kinds, listed_theorems
from bridge.pages.map_data import Maps, Theorem
from bridge.pages.render import render
from bridge.pages.topics import Topic, by_topic
from bridge.source.sources import Sources

PAGE = "docs/theorems.md"


def in_topics(root: Path, maps: Maps) -> Mapping[Topic, list[Theorem]]:
    """The theorems by topic, within each in the order of docs/theorems.toml."""
    listed = listed_theorems(root / "docs" / "theorems.toml")
    return by_topic(maps.theorems[one["id"]] for one in listed)


def page(root: Path, maps: Maps) -> str:
    """The text of the page. Raises SourceError for a theorem that is not in the sources."""
    sources = Sources(root, ())
    listed = listed_theorems(root / "docs" / "theorems.toml")
    return render(
        "theorems.md.jinja",
        kind={one["id"]: one["kind"] for one in listed},
        counted=count_kinds(listed),
        kinds=KINDS,
        topics=in_topics(root, maps),
        total=len(maps.theorems),
        link=lambda one: sources.theorem(one.lean).statement.link,
    )
