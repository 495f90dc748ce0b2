"""The index on the terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from bridge.index.collect import Collected
from bridge.index.entries import Entry, Index
from bridge.index.gaps import SPEC
from bridge.terminal import tell

_WIDTH = 100


def summary(console: Console, found: Collected) -> None:
    """The declarations by kind and folder, the operations of the Spec with their vectors, Python
    and theorems, and the gaps."""
    entries = found.index.entries.values()
    parts = list(dict.fromkeys(_part(e) for e in entries))
    counts = Counter((e.kind, _part(e)) for e in entries)
    totals = Counter(e.kind for e in entries)
    table = Table(title="Declarations")
    table.add_column("kind")
    for part in (*parts, "all"):
        table.add_column(part, justify="right")
    for kind, total in totals.most_common():
        table.add_row(kind, *(str(counts[kind, part] or "") for part in parts), str(total))
    console.print(table)
    operations = Table(title="Operations of the Spec")
    for column in ("operation", "vectors", "Python", "theorems", "lacks"):
        operations.add_column(column, no_wrap=True, overflow="fold")
    lacks = {gap.name: gap.lacks for gap in found.gaps}
    for name in found.operations:
        entry = found.index.entries[name]
        theorems = sum(
            found.index.entries[n].main_theorem is not None
            and name in found.index.entries[n].uses_in_statement
            for n in entry.used_by
        )
        operations.add_row(
            name.removeprefix(SPEC),
            str(sum(entry.vectors.values()) or ""),
            str(len(entry.python) or ""),
            str(theorems or ""),
            ", ".join(lacks.get(name, ())),
        )
    console.print(operations)
    tell(
        console,
        "Numbers: vectors that name it, functions that implement it, listed theorems whose\n"
        "statement mentions it. It lacks a number that no definition that uses it has either.",
    )
    for gap in found.gaps:
        tell(console, f"{gap.name} lacks {' and '.join(gap.lacks)}", "red")


def listing(console: Console, entries: Iterable[Entry]) -> None:
    """A line for each declaration."""
    rows = [
        (e.kind, str(len(e.uses)), str(len(e.used_by)), f"{e.file}:{e.range[0]}", e.shown)
        for e in entries
    ]
    rows.insert(0, ("kind", "uses", "used by", "position", "name"))
    widths = [max(len(row[n]) for row in rows) for n in range(4)]
    for row in rows:
        # No frame and no folding: these lines are for searching, too.
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        tell(console, "  ".join((*cells, row[4])))


def one(console: Console, entry: Entry, index: Index, written: str | None) -> None:
    """All that is known of a declaration. written: its text, where there is a trace of it."""

    def name_with_theorem(name: str) -> str:
        other = index.entries[name]
        return f"{other.shown} ({other.main_theorem})" if other.main_theorem else other.shown

    def names(of: Iterable[str]) -> str:
        return ", ".join(map(name_with_theorem, of))

    first, column, last, _ = entry.range
    rows: list[tuple[str, Any]] = [
        ("name", entry.shown + (" (private)" if entry.private else "")),
        (
            "kind",
            entry.kind + (f", listed theorem {entry.main_theorem}" if entry.main_theorem else ""),
        ),
        ("position", f"{entry.file}:{first}:{column} to line {last}"),
        ("documentation", entry.doc),
        ("uses in its statement", names(entry.uses_in_statement)),
        ("uses elsewhere", names(n for n in entry.uses if n not in entry.uses_in_statement)),
        ("uses of Lean's modules", f"{len(entry.core)} constants"),
        ("used by", names(entry.used_by)),
        ("axioms", ", ".join(entry.axioms) or "none"),
        ("vectors", ", ".join(f"{name} ({n})" for name, n in sorted(entry.vectors.items()))),
        ("Python", ", ".join(entry.python)),
    ]
    for label, value in rows:
        text = textwrap.fill(f"{label}: {value or '–'}", _WIDTH, subsequent_indent="    ")
        tell(console, text)
    tell(console, f"\n{entry.statement}\n")
    if written:
        tell(console, written)


def _part(entry: Entry) -> str:
    """The folder of its file."""
    return entry.module.split(".")[1] if "." in entry.module else entry.module
