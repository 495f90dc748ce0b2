"""Every link of a finished site leads to a file and an anchor of it."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

# A comment, a script, or a tag with its attributes. Nearly all of a site's pages is code, a tag for
# each word: `html.parser` takes half a minute.
_TAG = re.compile(
    r"<!--.*?-->|<script\b(?P<script>[^>]*)>.*?</script\s*>"
    r"""|<[A-Za-z][^\s/>"']*(?P<attributes>(?:[^>"']|"[^"]*"|'[^']*')*)>""",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(
    r"""(?:^|(?<=[\s/"']))(?P<name>[^\s/>"'=]+)\s*=\s*"""
    r"""(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'>]+))"""
)


@dataclass(frozen=True)
class Page:
    """The anchors of a page, which links may lead to, and its own links in their order."""

    anchors: frozenset[str]
    links: tuple[str, ...]


def read(text: str) -> Page:
    """The anchors and links of a page of HTML."""
    anchors, links = set(), []
    for tag in _TAG.finditer(text):
        for one in _ATTRIBUTE.finditer(tag["attributes"] or tag["script"] or ""):
            name = one["name"].lower()
            if name in ("id", "name", "href", "src"):
                value = html.unescape(one["double"] or one["single"] or one["bare"] or "")
                if name in ("href", "src"):
                    links.append(value)
                elif value:
                    anchors.add(value)
    return Page(frozenset(anchors), tuple(links))


def problems(site: Path, left_out: str) -> list[str]:
    """One sentence for each link of the site's pages that leads nowhere. Links to other sites are
    not followed; an address that begins with a slash works under one path alone.

    left_out: a folder of pages whose own links are another program's affair.
    """
    files = {path.relative_to(site).as_posix(): path for path in site.rglob("*") if path.is_file()}
    pages = {
        name: read(files[name].read_text("utf-8")) for name in sorted(files) if name[-5:] == ".html"
    }
    return [
        f"{name}: the link {link!r} {problem}"
        for name, page in pages.items()
        if not name.startswith(f"{left_out}/")
        for link in page.links
        if (problem := _problem(files, name, link, pages)) is not None
    ]


def _problem(
    files: Mapping[str, Path], name: str, link: str, pages: Mapping[str, Page]
) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None if parts.scheme in ("http", "https", "data") else "has an unknown scheme"
    if parts.path.startswith("/"):
        return "begins with a slash"
    beside = posixpath.dirname(name)
    target = posixpath.normpath(posixpath.join(beside, unquote(parts.path))) if parts.path else name
    if target == ".." or target.startswith("../"):
        return "leads out of the site"
    if target not in files:
        return "leads to no file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "leads to no anchor of its page"
    return None
