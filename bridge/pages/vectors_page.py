"""`docs/vectors.md`: the format of the vectors, and which there are."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from bridge.pages.render import render
from bridge.pages.trackers import Item
from bridge.vectors.export import HEX_FORMAT
from bridge.vectors.format.files import MAX_BYTES, MAX_DEPTH
from bridge.vectors.format.index import INDEX_FORMAT, VECTORS_FORMAT
from bridge.vectors.format.rules import Rule, fnv1a
from bridge.vectors.model.attention import Family
from bridge.vectors.model.gradients import PER_HEAD

PAGE = "docs/vectors.md"
# A rule as the page explains it, and how many of its numbers.
EXAMPLE, SHOWN = Rule("attention/example", 3, 2, 4), 12


def page(families: Sequence[Family], trackers: Sequence[Item]) -> str:
    """The text of the page."""
    return render(
        "vectors.md.jinja",
        families=families,
        trackers=trackers,
        total=sum(len(family.vectors) for family in families),
        theorems=lambda family: list(dict.fromkeys(v.theorem for v in family.vectors)),
        index_format=INDEX_FORMAT,
        vectors_format=VECTORS_FORMAT,
        hex_format=HEX_FORMAT,
        per_head=PER_HEAD,
        example=EXAMPLE,
        example_state=fnv1a(EXAMPLE.drawn_from),
        example_numbers=[str(Fraction(int(x), EXAMPLE.over)) for x in EXAMPLE.numerators(SHOWN)],
        max_bytes=MAX_BYTES,
        max_depth=MAX_DEPTH,
    )
