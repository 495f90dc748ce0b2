"""`docs/mutants.md`: every mutant that `make verify` or a test plants, as an edit of the
sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from bridge.conformance.mutants.attention import EQUIVALENT, MUTANTS
from bridge.conformance.mutants.modules import MODULE_MUTANTS
from bridge.conformance.mutants.planting import Mutant
from bridge.pages.render import render

PAGE = "docs/mutants.md"


class Edit(NamedTuple):
    """A mutant with its edit as a diff."""

    mutant: Mutant
    diff: str


def page() -> str:
    """The text of the page."""
    return render(
        "mutants.md.jinja",
        files=by_file(MUTANTS),
        modules=by_file(MODULE_MUTANTS),
        equivalent=[edit(t) for t in EQUIVALENT],
    )


def by_file(mutants: Sequence[Mutant]) -> Mapping[str, list[Edit]]:
    """By edited file, its mutants in their order."""
    ordered = sorted(mutants, key=lambda mutant: mutant.file)
    return {file: [edit(f) for f in some] for file, some in groupby(ordered, lambda f: f.file)}


def edit(mutant: Mutant) -> Edit:
    """The lines that go with `-`, those that come with `+`."""
    gone = [f"- {line}" for line in mutant.old.splitlines()]
    come = [f"+ {line}" for line in mutant.new.splitlines()]
    return Edit(mutant, "\n".join(gone + come))
