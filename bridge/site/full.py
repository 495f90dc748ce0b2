"""Pages of the site alone: the theorems and the claims with their statements in full, and the front
of the reference.

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
from typing import Any, TypeVar

from bridge.audit.claims import Claim
from bridge.pages import claims_page, map_data, theorems_page
from bridge.pages.claims_page import slug
from bridge.pages.map_data import Definition, Maps, Theorem
from bridge.pages.topics import by_topic
from bridge.site import reference
from bridge.source.sources import Sources
from bridge.templates import template
from bridge.vectors.index import entries_of

Item = TypeVar("Item")
# Characters of code and quotes on a page: what comes of them is under 300 KB of HTML.
_MOST = 40_000


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
    """All of them, in the order of the contents. stored: by Lean name, a headline theorem's
    statement as Lean has it. Raises SourceError where a page shows what is not in the sources."""
    entries = entries_of(root / "tests" / "vectors")
    return [
        *_of_theorems(root, map_data.read(root, ()), entries, stored or {}),
        *_of_claims(root, [entry["family"] for entry in entries]),
        Made("docs/reference.md", "docs/use.md", reference.front(), {}),
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
    for topic, theirs in theorems.items():
        statements = {one.id: sources.theorem(one.lean) for one in theirs}
        code = {
            one.id: [statements[one.id].whole, *(sources.lean(name).text for name in one.needs)]
            for one in theirs
        }
        for name, part, some in _parts(topic.slug, [(one, code[one.id]) for one in theirs]):
            text = template("bridge.site", "theorems.md.jinja").render(
                topic=topic,
                part=part,
                theorems=some,
                maps=maps,
                sources=sources,
                statements=statements,
                shown_at=_first_needed(some),
                families=families,
                stored=stored,
            )
            whole = topic.slug if name == topic.slug else None
            yield _made(theorems_page.PAGE, name, text, whole, (one.id for one in some))
    for topic, used in definitions.items():
        named = f"{topic.slug}-definitions"
        for name, part, few in _parts(named, [(one, _code(one, maps)) for one in used]):
            text = template("bridge.site", "definitions.md.jinja").render(
                topic=topic, part=part, definitions=few, maps=maps
            )
            whole = topic.slug if name == named and topic not in theorems else None
            yield _made(theorems_page.PAGE, name, text, whole, (one.name for one in few))


def _code(definition: Definition, maps: Maps) -> list[str]:
    return [definition.lean.text, *(one.text for one in maps.python.get(definition.name, ()))]


def _parts(
    name: str, items: Iterable[tuple[Item, list[str]]]
) -> Iterable[tuple[str, str, list[Item]]]:
    """Items, each with the texts that are shown of it, on as few pages as they need: each page's
    name, what its title says of the part, and the items. A text is shown once on a page."""
    pages: list[list[Item]] = [[]]
    seen: set[str] = set()
    for item, texts in items:
        if pages[-1] and sum(map(len, seen.union(texts))) > _MOST:
            pages.append([])
            seen.clear()
        pages[-1].append(item)
        seen.update(texts)
    for number, some in enumerate(pages, 1):
        part = f", part {number} of {len(pages)}" if len(pages) > 1 else ""
        yield (name if number == 1 else f"{name}-{number}"), part, some


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
    manifest, lean = given["manifest"], given["lean"]
    shown = claims_page.first_shown(manifest)
    fenced = claims_page.fenced
    if manifest.lessons:
        text = template("bridge.site", "lessons.md.jinja").render(fenced=fenced, **given)
        titles = (slug(lesson.title) for lesson in manifest.lessons)
        yield _made(claims_page.PAGE, "lessons", text, None, titles)
    for document in manifest.documents:
        rows = [(row, _quoted(row, lean, shown)) for row in manifest.of(document)]
        for name, part, some in _parts(document.id, rows):
            text = template("bridge.site", "claims.md.jinja").render(
                document=document, part=part, claims=some, shown=shown, fenced=fenced, **given
            )
            whole = claims_page.anchor(document) if name == document.id else None
            yield _made(claims_page.PAGE, name, text, whole, map(claims_page.anchor, some))


def _quoted(claim: Claim, lean: Mapping[str, Any], shown: Mapping[str, Claim]) -> list[str]:
    return [claim.quote, *(lean[name].shown for name in claim.lean if shown[name] == claim)]


def _made(under: str, name: str, text: str, whole: str | None, own: Iterable[str]) -> Made:
    """whole: the anchor of `under` that the page itself stands for."""
    anchors: dict[str, str | None] = {whole: None} if whole else {}
    file = posixpath.join(under.removesuffix(".md"), f"{name}.md")
    return Made(file, under, text, {**anchors, **{anchor: anchor for anchor in own}})
