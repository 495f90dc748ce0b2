"""`docs/claims.md`: each claim of the source documents in a line, with the verdict on it. Quotes
and statements stand on the site (`bridge.site.full`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bridge.audit import claims
from bridge.pages.render import render
from bridge.source.excerpt import SourceError

PAGE = "docs/claims.md"


def page(root: Path, families: Iterable[str]) -> str:
    """The text of the page. Raises SourceError if the manifest is wrong."""
    return render(
        "claims.md.jinja", verdicts=list(claims.VERDICTS), slug=slug, **page_data(root, families)
    )


def page_data(root: Path, families: Iterable[str]) -> dict[str, Any]:
    """The data of pages of claims. Raises SourceError if the manifest is wrong."""
    manifest = claims.read(root)
    lean = claims.read_declarations(root)
    found = claims.problems(manifest, lean, frozenset(families))
    if found:
        raise SourceError(f"{claims.FILE}: {'; '.join(found)}")
    return {
        "manifest": manifest,
        "lean": lean,
        "counts": {d.id: Counter(c.verdict for c in manifest.of(d)) for d in manifest.documents},
        "rows": {(claim.document, claim.heading): claim for claim in manifest.claims},
        "anchor": anchor,
    }


def first_shown(manifest: claims.Manifest) -> dict[str, claims.Claim]:
    """By Lean name, the first row that names it: there its code is shown, elsewhere linked."""
    found: dict[str, claims.Claim] = {}
    for claim in manifest.claims:
        for name in claim.lean:
            found.setdefault(name, claim)
    return found


def anchor(one: claims.Claim | claims.Document) -> str:
    """The anchor of the heading of a row or a document, as GitHub makes it."""
    if isinstance(one, claims.Claim):
        text = f"{one.document} {one.heading}"
    else:
        text = f"{one.id} {one.title}"
    return slug(text)


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def fence_code(text: str, language: str = "") -> str:
    """A block of code that holds the text whatever backticks are in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
