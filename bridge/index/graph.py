"""The dependency graph of the Spec and the listed theorems, as an SVG.

A card for each file of the Spec: its definitions, and the listed theorems that speak of them. A
theorem stands where the last of the definitions that its statement mentions stands. An arrow leads
from a card to those whose definitions or theorems use something of it, unless that follows from two
other arrows. The tooltip of each line lists the names that it uses and those that use it; the
tooltip of an arrow lists its uses. 200 lines with an arrow for each use could not be read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.index.entries import Entry, Index
from bridge.index.gaps import SPEC
from bridge.index.layers import Space, place
from bridge.reach import reach_all
from bridge.templates import template

SHOWN = ("definition", "type", "structure", "inductive", "proposition", "class")
# Pixels: of a letter, of a line, of a card's title.
_LETTER, _LINE, _TITLE = 6.65, 15.0, 22.0
_SPACE = Space(between=22.0, column=80.0, margin=24.0)


@dataclass(frozen=True)
class Line:
    """One declaration on a card."""

    name: str
    label: str
    kind: str
    title: str


@dataclass
class Card:
    """A file of the Spec. x, y: its upper left corner."""

    module: str
    lines: list[Line] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0

    @property
    def label(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def width(self) -> float:
        return max(len(one.label) for one in self.lines) * _LETTER + 18

    @property
    def height(self) -> float:
        return _TITLE + _LINE * len(self.lines) + 6


def arrows(index: Index) -> dict[str, set[str]]:
    """The Spec definitions that each Spec definition and listed theorem uses: for a theorem those
    that its statement mentions."""
    nodes = {
        e.name: e
        for e in index.entries.values()
        if e.main_theorem or (e.name.startswith(SPEC) and e.kind in SHOWN and not e.private)
    }
    found = {}
    for name, entry in nodes.items():
        uses = entry.uses_in_statement if entry.main_theorem else entry.uses
        mentioned = {behind(used, index) for used in uses}
        found[name] = {n for n in mentioned if n in nodes and not nodes[n].main_theorem} - {name}
    return found


def behind(name: str, index: Index) -> str:
    """The declaration itself; of a field or a constructor the type that it belongs to."""
    entry = index.entries.get(name)
    part = entry is not None and entry.kind in ("field", "constructor")
    return name.rpartition(".")[0] if part else name


def reduce(above: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The arrows without those that follow from others."""
    below = {name: {*reach_all(direct, above.__getitem__)} for name, direct in above.items()}
    return {
        name: {one for one in direct if not any(one in below[o] for o in direct if o != one)}
        for name, direct in above.items()
    }


def cards(index: Index) -> tuple[dict[str, Card], dict[str, dict[str, list[str]]]]:
    """The cards by module, and their uses: module → used module → a sentence for each use."""
    above = arrows(index)
    order = {name: n for n, name in enumerate(index.entries)}
    home: dict[str, str] = {}
    for name in above:
        entry = index.entries[name]
        mentioned = sorted(above[name], key=order.__getitem__)
        # Entries are in the order of the library, imports first.
        last = index.entries[mentioned[-1]] if entry.main_theorem and mentioned else entry
        home[name] = last.module
    below: dict[str, list[str]] = defaultdict(list)
    for name, direct in above.items():
        for used in direct:
            below[used].append(name)
    found: dict[str, Card] = {}
    for name in sorted(above, key=lambda n: (index.entries[n].main_theorem is not None, order[n])):
        card = found.setdefault(home[name], Card(home[name]))
        card.lines.append(_line(index, index.entries[name], above[name], below[name]))
    uses: dict[str, dict[str, list[str]]] = {module: {} for module in found}
    for name, direct in above.items():
        for used in sorted(direct):
            if home[used] != home[name]:
                said = f"{_label(index.entries[name])} uses {_label(index.entries[used])}"
                uses[home[name]].setdefault(home[used], []).append(said)
    return found, uses


def _label(entry: Entry) -> str:
    return entry.main_theorem or entry.shown.removeprefix(SPEC)


def _line(index: Index, entry: Entry, above: set[str], below: list[str]) -> Line:
    kind = (
        "theorem" if entry.main_theorem else "definition" if entry.kind == "definition" else "type"
    )
    title = [entry.shown, entry.doc] if entry.doc else [entry.shown]
    for what, names in (("uses", sorted(above)), ("used by", sorted(below))):
        if names:
            title.append(f"{what}: " + ", ".join(_label(index.entries[n]) for n in names))
    return Line(entry.name, _label(entry), kind, "\n".join(title))


def draw(index: Index) -> str:
    """The SVG."""
    found, uses = cards(index)
    kept = reduce({module: set(used) for module, used in uses.items()})
    pairs = sorted((used, module) for module, direct in kept.items() for used in direct)
    number = {module: n for n, module in enumerate(found)}
    placed = place(
        [(card.width, card.height) for card in found.values()],
        [(number[used], number[module]) for used, module in pairs],
        _SPACE,
    )
    for card, (x, y) in zip(found.values(), placed.corners, strict=True):
        card.x, card.y = x, y
    curves = [
        {"d": d, "title": "\n".join(uses[module][used])}
        for (used, module), d in zip(pairs, placed.curves, strict=True)
    ]
    return template("bridge.index", "graph.svg.jinja").render(
        cards=list(found.values()),
        curves=curves,
        width=round(placed.width),
        height=round(placed.height),
        line=_LINE,
        title=_TITLE,
        theorems=sum(one.kind == "theorem" for c in found.values() for one in c.lines),
    )
