"""`docs/coverage.md`: each operation of the Spec with its theorems, vectors, Python and Triton."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from bridge.pages.map_data import Definition, Maps
from bridge.pages.render import render
from bridge.source.excerpt import Excerpt

PAGE = "docs/coverage.md"
# The kernels stand in this folder, with Triton's functions that they call.
_TRITON = "pyimpl/backends/kernels/"
# Cells of more links than this are folded.
_SHOWN = 6


@dataclass(frozen=True)
class Row:
    """An operation and its own coverage: ids of listed theorems whose statement mentions it,
    families whose vectors name it (with their number), and the Python that says it implements it.
    Where it has none of a kind, `through_…` are the nearest operations that use it and have one."""

    operation: Definition
    theorems: tuple[str, ...]
    vectors: Mapping[str, int]
    python: tuple[Excerpt, ...]
    triton: tuple[Excerpt, ...]
    through_theorems: tuple[str, ...]
    through_vectors: tuple[str, ...]
    through_python: tuple[str, ...]


def page(maps: Maps) -> str:
    """The text of the page."""
    found = rows(maps)
    return render(
        "coverage.md.jinja",
        files={module: list(some) for module, some in groupby(found, lambda r: r.operation.module)},
        rows=found,
        implemented=maps.python.keys(),
        run=sum(not r.vectors and not r.through_vectors and r.operation.run for r in found),
        many=_SHOWN,
        short=short,
    )


def short(one: Excerpt) -> str:
    """The name of a function behind that of its module, without the packages around it."""
    packages = one.file.count("/")
    return one.name.split(".", packages)[-1]


def rows(maps: Maps) -> list[Row]:
    """The operations in the order of the library, and other definitions with vectors or Python."""
    theorems: dict[str, list[str]] = {name: [] for name in maps.definitions}
    for theorem in maps.theorems.values():
        for name in theorem.speaks_of:
            theorems[name].append(theorem.id)
    users: dict[str, list[str]] = {name: [] for name in maps.definitions}
    for one in maps.definitions.values():
        for used in one.uses:
            users[used].append(one.name)
    shown = [one for one in maps.definitions.values() if maps.has_row(one.name)]
    spoken_of = {name for name, some in theorems.items() if some}
    rowed = {one.name for one in shown}

    def theorems_of(name: str) -> tuple[str, ...]:
        """The theorems that speak of it; or, if no row speaks for it, those of the nearest that use
        it, such as a test, which has no row of its own."""
        if name in spoken_of or _nearest(name, users, spoken_of & rowed):
            return tuple(theorems[name])
        near = _nearest(name, users, spoken_of)
        return tuple(dict.fromkeys(id for one in near for id in theorems[one]))

    return [
        Row(
            one,
            theorems_of(one.name),
            maps.vectors.get(one.name, {}),
            tuple(p for p in maps.python.get(one.name, ()) if not p.file.startswith(_TRITON)),
            tuple(p for p in maps.python.get(one.name, ()) if p.file.startswith(_TRITON)),
            *(
                () if one.name in have else _nearest(one.name, users, have & rowed)
                for have in (spoken_of, maps.vectors.keys(), maps.python.keys())
            ),
        )
        for one in shown
    ]


def _nearest(
    name: str, users: Mapping[str, Sequence[str]], have: Collection[str]
) -> tuple[str, ...]:
    """The definitions that use this one, through as few as possible, and are among `have`."""
    seen, near = {name}, [name]
    while near:
        near = list(dict.fromkeys(u for one in near for u in users[one] if u not in seen))
        seen.update(near)
        found = tuple(one for one in near if one in have)
        if found:
            return found
    return ()
