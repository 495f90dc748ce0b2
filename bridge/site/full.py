"""Pages of the site alone: the theorems and the claims with their statements in full.

In the checkout `docs/theorems.md` and `docs/claims.md` have a line for each. Here are the pages
that such a line leads to on the site, one for each topic and one for each document. They are made
of the sources as they stand, without Lean; what Lean has stored of a theorem is shown where it is
given.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.pages import claims_page, map_data, theorems_page
from bridge.pages.claims_page import slug
from bridge.pages.map_data import Definition, Maps, Theorem
from bridge.pages.topics import Topic, by_topic
from bridge.source.sources import Sources
from bridge.templates import template
from bridge.vectors.format.index import entries_of


@dataclass(frozen=True)
class Made:
    """A page of the site alone. name: as if it were a file of the checkout; under: the page of the
    checkout that it belongs to, from where its relative links lead; anchors: those of `under` which
    on the site are anchors of this page, by what they are called there; None: the page itself."""

    name: str
    under: str
    text: str
    anchors: Mapping[str, str | None]


def pages(root: Path, stored: Mapping[str, str] | None = None) -> list[Made]:
    """All of them, in the order of the contents. stored: by Lean name, a main theorem's
    statement as Lean has it. Raises SourceError where a page shows what is not in the sources."""
    entries = entries_of(root / "tests" / "vectors")
    return [
        *_of_theorems(root, map_data.read(root, ()), entries, stored or {}),
        *_of_claims(root, [entry["family"] for entry in entries]),
    ]


def _of_theorems(
    root: Path, maps: Maps, entries: list[dict[str, Any]], stored: Mapping[str, str]
) -> Iterable[Made]:
    sources = Sources(root, ())
    theorems = theorems_page.in_topics(root, maps)
    spoken_of = {name for one in maps.theorems.values() for name in one.speaks_of}
    definitions = by_topic(
        one for name, one in maps.definitions.items() if name in spoken_of or name in maps.python
    )
    families = {id: _families(one, entries) for id, one in maps.theorems.items()}
    for topic in (*theorems, *(topic for topic in definitions if topic not in theorems)):
        some, used = theorems.get(topic, []), definitions.get(topic, [])
        text = template("bridge.site", "theorems.md.jinja").render(
            topic=topic,
            theorems=some,
            definitions=used,
            maps=maps,
            sources=sources,
            statements={one.id: sources.theorem(one.lean) for one in some},
            shown_at=_first_needed(some),
            families=families,
            stored=stored,
        )
        yield _made(theorems_page.PAGE, topic.slug, text, _anchors(topic, some, used))


def _anchors(
    topic: Topic, theorems: Iterable[Theorem], definitions: Iterable[Definition]
) -> dict[str, str | None]:
    own = [*(one.id for one in theorems), *(one.name for one in definitions)]
    return {topic.slug: None, **{anchor: anchor for anchor in own}}


def _families(theorem: Theorem, entries: Iterable[dict[str, Any]]) -> list[str]:
    """Those whose vectors name the theorem, or run a definition that it speaks of."""
    return [
        entry["family"]
        for entry in entries
        if theorem.id in entry["theorems"] or set(entry["definitions"]) & set(theorem.speaks_of)
    ]


def _first_needed(theorems: Iterable[Theorem]) -> dict[str, set[str]]:
    """By theorem, which of the definitions that it needs no theorem before it does."""
    found: dict[str, set[str]] = {}
    seen: set[str] = set()
    for one in theorems:
        found[one.id] = set(one.needs) - seen
        seen |= set(one.needs)
    return found


def _of_claims(root: Path, families: Iterable[str]) -> Iterable[Made]:
    given = claims_page.given(root, families)
    manifest = given["manifest"]
    shown = claims_page.first_shown(manifest)
    fenced = claims_page.fenced
    if manifest.lessons:
        text = template("bridge.site", "lessons.md.jinja").render(fenced=fenced, **given)
        anchors = {slug(lesson.title): slug(lesson.title) for lesson in manifest.lessons}
        yield _made(claims_page.PAGE, "lessons", text, anchors)
    for document in manifest.documents:
        text = template("bridge.site", "claims.md.jinja").render(
            document=document, shown=shown, fenced=fenced, **given
        )
        rows = [claims_page.anchor(claim) for claim in manifest.of(document)]
        whole: dict[str, str | None] = {claims_page.anchor(document): None}
        yield _made(claims_page.PAGE, document.id, text, {**whole, **{row: row for row in rows}})


def _made(under: str, name: str, text: str, anchors: Mapping[str, str | None]) -> Made:
    return Made(posixpath.join(under.removesuffix(".md"), f"{name}.md"), under, text, anchors)
