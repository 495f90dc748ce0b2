"""`docs/faults.md`: every fault that `make verify` or a test plants, as an edit of the sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from bridge.conformance.faults.attention import FAULTS, TWINS
from bridge.conformance.faults.modules import MODULE_FAULTS
from bridge.conformance.faults.planting import Fault
from bridge.pages.render import render

PAGE = "docs/faults.md"


class Edit(NamedTuple):
    """A fault with its edit as a diff."""

    fault: Fault
    diff: str


def page() -> str:
    """The text of the page."""
    return render(
        "faults.md.jinja",
        files=by_file(FAULTS),
        modules=by_file(MODULE_FAULTS),
        twins=[edit(t) for t in TWINS],
    )


def by_file(faults: Sequence[Fault]) -> Mapping[str, list[Edit]]:
    """By edited file, its faults in their order."""
    ordered = sorted(faults, key=lambda fault: fault.file)
    return {file: [edit(f) for f in some] for file, some in groupby(ordered, lambda f: f.file)}


def edit(fault: Fault) -> Edit:
    """The lines that go with `-`, those that come with `+`."""
    gone = [f"- {line}" for line in fault.old.splitlines()]
    come = [f"+ {line}" for line in fault.new.splitlines()]
    return Edit(fault, "\n".join(gone + come))
