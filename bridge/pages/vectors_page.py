"""`docs/vectors.md`: the format of the vectors, and which there are."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.pages.render import render
from bridge.pages.trackers import Item
from bridge.vectors.export import HEX_FORMAT
from bridge.vectors.format.files import MAX_BYTES, MAX_DEPTH
from bridge.vectors.format.index import INDEX_FORMAT, VECTORS_FORMAT
from bridge.vectors.model.attention import Family

PAGE = "docs/vectors.md"


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
        max_bytes=MAX_BYTES,
        max_depth=MAX_DEPTH,
    )
