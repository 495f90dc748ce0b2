"""`docs/theorem-map.md` and its drawings: the definitions and theorems behind each listed theorem.

A drawing for each topic, from left to right: the definitions of the Spec that its theorems speak
of, with boxes of other topics, then its theorems, each to the right of those that its proof
uses. An arrow from a definition is left out where the theorem speaks of another one that uses it:
the list below the drawing has them all. One more drawing has the topics alone.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from bridge.index.layers import Space, place
from bridge.pages.map_data import Definition, Maps, Theorem
from bridge.pages.render import render
from bridge.pages.topics import Topic, by_topic, topic_of

PAGE = "docs/theorem-map.md"
FOLDER = "docs/maps"
# Pixels: of a letter, of a line, and the space beside and above the letters of a box.
_LETTER, _LINE, _PADDING = 7.25, 16.0, (20.0, 11.0)
# Letters in a line of a topic's box; other names stand in one line.
_TOPIC_LINE = 15
_SPACE = Space(between=9.0, column=40.0, margin=8.0)

Kind = Literal["definition", "theorem", "elsewhere", "topic"]


@dataclass(frozen=True)
class Node:
    """A box: the lines of its text, its tooltip, and the address that it leads to, from the page's
    folder."""

    lines: tuple[str, ...]
    kind: Kind
    title: str
    href: str

    @property
    def size(self) -> tuple[float, float]:
        beside, above = _PADDING
        return max(map(len, self.lines)) * _LETTER + beside, len(self.lines) * _LINE + above


@dataclass(frozen=True)
class Graph:
    """nodes by their keys, with their columns (None: as the arrows say); arrows from key to key,
    each with its kind."""

    nodes: dict[str, Node]
    columns: dict[str, int] | None
    arrows: dict[tuple[str, str], Literal["speaks", "rests"]]


def texts(maps: Maps) -> dict[str, str]:
    """The page and the drawings, by their paths from the root."""
    topics = by_topic(maps.theorems.values())
    found = {
        f"{FOLDER}/{topic.slug}.svg": draw(of_topic(maps, some), topic.title)
        for topic, some in topics.items()
    }
    found[f"{FOLDER}/topics.svg"] = draw(of_topics(topics), "The topics")
    used_by: dict[str, list[str]] = {id: [] for id in maps.theorems}
    for theorem in maps.theorems.values():
        for id in theorem.rests_on:
            used_by[id].append(theorem.id)
    found[PAGE] = render(
        "theorem-map.md.jinja",
        topics=topics,
        maps=maps,
        used_by=used_by,
        folder=FOLDER.removeprefix("docs/"),
        href=partial(definition_href, maps),
        uses=sum(len(one.rests_on) for one in maps.theorems.values()),
    )
    return found


def definition_href(maps: Maps, one: Definition) -> str:
    """The address of its row in the table of coverage; if it has none, of its lines."""
    return f"coverage.md#op-{one.label}" if maps.has_row(one.name) else one.lean.link


def essential(maps: Maps, theorem: Theorem) -> list[str]:
    """The definitions that a theorem speaks of, without those that another of them uses."""
    return [
        name
        for name in theorem.speaks_of
        if name not in maps.behind([other for other in theorem.speaks_of if other != name])
    ]


def of_topic(maps: Maps, theorems: Sequence[Theorem]) -> Graph:
    """The graph of a topic's theorems."""
    here = {theorem.id: theorem for theorem in theorems}
    nodes: dict[str, Node] = {}
    arrows: dict[tuple[str, str], Literal["speaks", "rests"]] = {}
    for theorem in theorems:
        for name in essential(maps, theorem):
            one = maps.definitions[name]
            said = f"Definition {name}, {one.lean.file}"
            nodes[name] = Node((one.label,), "definition", said, definition_href(maps, one))
            arrows[name, theorem.id] = "speaks"
        for id in theorem.rests_on:
            arrows[id, theorem.id] = "rests"
            if id not in here:
                other = maps.theorems[id]
                said = f"{topic_of(other.module).title}: {other.sentence}"
                nodes[id] = Node((id,), "elsewhere", said, f"theorems.md#{id}")
    columns = dict.fromkeys(nodes, 0)
    for theorem in theorems:
        nodes[theorem.id] = Node(
            (theorem.id,), "theorem", theorem.sentence, f"theorems.md#{theorem.id}"
        )
        columns[theorem.id] = _column(theorem, here)
    return Graph(nodes, columns, arrows)


def _column(theorem: Theorem, here: Mapping[str, Theorem]) -> int:
    """One more than the columns of the theorems that it rests on."""
    return 1 + max((_column(here[id], here) for id in theorem.rests_on if id in here), default=0)


def of_topics(topics: Mapping[Topic, Sequence[Theorem]]) -> Graph:
    """The graph of the topics: an arrow where theorems of one rest on theorems of the other. Those
    of the most uses come first, and one that would lead back to where others come from is left out.
    """
    nodes = {
        topic.slug: Node(
            (*textwrap.wrap(topic.title, _TOPIC_LINE), f"{len(some)} theorems"),
            "topic",
            topic.title,
            f"theorem-map.md#{topic.slug}",
        )
        for topic, some in topics.items()
    }
    home = {theorem.id: topic.slug for topic, some in topics.items() for theorem in some}
    counts = Counter(
        (home[id], home[theorem.id])
        for some in topics.values()
        for theorem in some
        for id in theorem.rests_on
        if home[id] != home[theorem.id]
    )
    kept: list[tuple[str, str]] = []
    for pair, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        if not _leads(pair[1], pair[0], kept):
            kept.append(pair)
    return Graph(nodes, None, dict.fromkeys(sorted(kept), "rests"))


def _leads(start: str, end: str, arrows: Sequence[tuple[str, str]]) -> bool:
    """Whether arrows lead from one to the other; they lead in no circle."""
    return start == end or any(_leads(b, end, arrows) for a, b in arrows if a == start)


def draw(graph: Graph, title: str) -> str:
    """The graph as an SVG."""
    number = {key: n for n, key in enumerate(graph.nodes)}
    sizes = [one.size for one in graph.nodes.values()]
    columns = None if graph.columns is None else [graph.columns[key] for key in graph.nodes]
    pairs = [(number[a], number[b]) for a, b in graph.arrows]
    placed = place(sizes, pairs, _SPACE, columns)
    # In the order in which they are seen, so that the focus goes from column to column.
    boxes = sorted(
        zip(graph.nodes.items(), placed.corners, sizes, strict=True), key=lambda one: one[1]
    )
    lines = zip(graph.arrows.items(), placed.curves, strict=True)
    return render(
        "theorem-map.svg.jinja",
        title=title,
        slug="".join(letter for letter in title.lower() if letter.isalpha()),
        boxes=[(number[key], node, corner, size) for (key, node), corner, size in boxes],
        arrows=[(number[a], number[b], kind, d) for ((a, b), kind), d in lines],
        line=_LINE,
        width=round(placed.width),
        height=round(placed.height),
    )
