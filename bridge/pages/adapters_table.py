"""The adapters of other packages' attention, for `docs/conform.md`, as they say it themselves."""

from __future__ import annotations

from itertools import groupby

from bridge.conformance.adapters import builtin as adapters
from bridge.conformance.adapters import libraries
from bridge.conformance.adapters.builtin import Maker


def table() -> str:
    """A row for each, or for several that have all in common; in Markdown."""
    foreign = [
        make for make in (adapters.BUILTIN | libraries.FOREIGN).values() if make.foreign is not None
    ]
    rows = ["| name | needs | unsupported, in addition to other layouts |", "| --- | --- | --- |"]
    for columns, makers in groupby(foreign, _columns):
        names = ", ".join(f"`{make.name}`" for make in makers)
        rows.append(f"| {' | '.join((names, *columns))} |")
    return "\n".join(rows) + "\n"


def _columns(make: Maker) -> tuple[str, str]:
    """The columns of packages it needs and of unsupported features."""
    if make.about is None:
        raise ValueError(f"the adapter {make.name} has no `about` for docs/conform.md")
    needs = [f"`{package}`" for package in make.packages.values()]
    needs += ["a GPU"] if make.about.on_gpu else []
    return ", ".join(needs) or "–", make.about.unsupported
