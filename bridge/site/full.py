"""Pages of the site alone: the theorems and the claims with their statements in full, and the map
of the theorems topic by topic.

In the checkout `docs/theorems.md` and `docs/claims.md` have a line for each. Here are the pages
that such a line leads to on the site, one for each topic and one for each document. They are made
of the sources as they stand, without Lean; a theorem's statement as Lean has stored it is shown
where it is given.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from bridge.pages import claims_page, map_data, theorem_map, theorems_page
from bridge.pages.claims_page import slug
from bridge.pages.map_data import Definition, Maps, Theorem
from bridge.pages.topics import Topic, by_topic
from bridge.source.sources import Sources
from bridge.templates import template
from bridge.vectors.format.index import entries_of

_Shown = TypeVar("_Shown")
# Letters of a page's Markdown; as HTML it has three times as many, and is to load on a phone.
_MOST = 80_000


@dataclass(frozen=True)
class Made:
    """A page of the site alone, or in place of one of the checkout. name: as if it were a file of
    the checkout; under: the page of the checkout that it belongs to, from where its relative links
    lead; anchors: from anchors of `under` to those of this page that have their place on the site;
    None: the page itself."""

    name: str
    under: str
    text: str
    anchors: Mapping[str, str | None]


def pages(root: Path, stored: Mapping[str, str] | None = None) -> list[Made]:
    """All of them, in the order of the contents. stored: by Lean name, a listed theorem's
    statement as Lean has it. Raises SourceError where a page shows something that the sources lack.
    """
    entries = entries_of(root / "tests" / "vectors")
    return [
        *_of_map((root / theorem_map.PAGE).read_text("utf-8")),
        *_of_theorems(root, map_data.read(root, ()), entries, stored or {}),
        *_of_claims(root, [entry["family"] for entry in entries]),
    ]


def _of_map(text: str) -> Iterable[Made]:
    """A page for each topic's drawing and list; the page itself keeps the text before them."""
    head, *topics = re.split(r"^## (?=.)", text, flags=re.MULTILINE)
    titles = [topic.partition("\n")[0] for topic in topics]
    folder = theorem_map.PAGE.removesuffix(".md")
    shown = [f"- [{title}]({posixpath.basename(folder)}.md#{slug(title)})" for title in titles]
    yield Made(theorem_map.PAGE, theorem_map.PAGE, head + "\n".join(shown), {})
    for title, topic in zip(titles, topics, strict=True):
        name = f"{folder}/{slug(title)}.md"
        yield Made(name, theorem_map.PAGE, f"# {topic}", {slug(title): None})


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

        def render(some: Sequence[Theorem | Definition], part: str, topic: Topic = topic) -> str:
            of_these = [one for one in some if isinstance(one, Theorem)]
            return template("bridge.site", "theorems.md.jinja").render(
                topic=topic,
                part=part,
                theorems=of_these,
                definitions=[one for one in some if isinstance(one, Definition)],
                maps=maps,
                sources=sources,
                statements={one.id: sources.theorem(one.lean) for one in of_these},
                shown_at=_first_needed(of_these),
                families=families,
                stored=stored,
            )

        whole: list[Theorem | Definition] = [*theorems.get(topic, []), *definitions.get(topic, [])]
        yield from _make_pages(theorems_page.PAGE, topic.slug, topic.slug, whole, render, _own)


def _own(one: Theorem | Definition) -> str:
    return one.id if isinstance(one, Theorem) else one.name


def _families(theorem: Theorem, entries: Iterable[dict[str, Any]]) -> list[str]:
    """The families whose vectors name the theorem, or run a definition that it speaks of."""
    return [
        entry["family"]
        for entry in entries
        if theorem.id in entry["theorems"] or set(entry["definitions"]) & set(theorem.speaks_of)
    ]


def _first_needed(theorems: Iterable[Theorem]) -> dict[str, set[str]]:
    """The definitions that each theorem needs and that no theorem before it does."""
    found: dict[str, set[str]] = {}
    seen: set[str] = set()
    for one in theorems:
        found[one.id] = set(one.needs) - seen
        seen |= set(one.needs)
    return found


def _of_claims(root: Path, families: Iterable[str]) -> Iterable[Made]:
    given = claims_page.page_data(root, families)
    manifest = given["manifest"]
    shown = claims_page.first_shown(manifest)
    fenced = claims_page.fence_code
    if manifest.lessons:
        lessons = template("bridge.site", "lessons.md.jinja")
        yield from _make_pages(
            claims_page.PAGE,
            "lessons",
            None,
            manifest.lessons,
            partial(lessons.render, fenced=fenced, **given),
            lambda lesson: slug(lesson.title),
        )
    rows = template("bridge.site", "claims.md.jinja")
    for document in manifest.documents:
        yield from _make_pages(
            claims_page.PAGE,
            document.id,
            claims_page.anchor(document),
            manifest.of(document),
            partial(rows.render, document=document, shown=shown, fenced=fenced, **given),
            claims_page.anchor,
        )


def _make_pages(
    under: str,
    name: str,
    heading: str | None,
    shown: Sequence[_Shown],
    render: Callable[..., str],
    anchor: Callable[[_Shown], str],
) -> Iterable[Made]:
    """The pages of that name, each short enough. heading: the anchor of `under` that the first of
    them stands for; render: the text of a page with some of the items, `part` in its title."""
    parts = _short(shown, render)
    for number, some in enumerate(parts, 1):
        anchors: dict[str, str | None] = {anchor(one): anchor(one) for one in some}
        if number == 1 and heading is not None:
            anchors[heading] = None
        file = f"{name}.md" if number == 1 else f"{name}-{number}.md"
        text = render(some=some, part=f" ({number} of {len(parts)})" if len(parts) > 1 else "")
        yield Made(posixpath.join(under.removesuffix(".md"), file), under, text, anchors)


def _short(some: Sequence[_Shown], render: Callable[..., str]) -> list[Sequence[_Shown]]:
    """The items, halved until a page of them is short enough or shows one item alone."""
    half = len(some) // 2
    if not half or len(render(some=some, part="")) <= _MOST:
        return [some]
    return [*_short(some[:half], render), *_short(some[half:], render)]
