"""Every link of a finished site leads to a file and an anchor of it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value is not None:
                self.links.append(value)


def problems(site: Path, left_out: str) -> list[str]:
    """One sentence for each link of the site's pages that leads nowhere. Links to other sites are
    not followed; an address that begins with a slash works under one path alone.

    left_out: a folder of pages whose own links are another program's affair.
    """
    found = sorted(site.rglob("*.html"))
    pages = {p: _read(p) for p in found if not p.is_relative_to(site / left_out)}
    said = []
    for path, page in pages.items():
        for link in page.links:
            problem = _problem(site, path, link, pages)
            if problem is not None:
                said.append(f"{path.relative_to(site).as_posix()}: the link {link!r} {problem}")
    return said


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text("utf-8"))
    page.close()
    return page


def _problem(site: Path, path: Path, link: str, pages: dict[Path, _Page]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None if parts.scheme in ("http", "https", "data") else "has an unknown scheme"
    if parts.path.startswith("/"):
        return "begins with a slash"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_relative_to(site.resolve()):
        return "leads out of the site"
    if not target.is_file():
        return "leads to no file"
    if parts.fragment and target.suffix == ".html":
        known = pages[target] if target in pages else _read(target)
        if unquote(parts.fragment) not in known.anchors:
            return "leads to no anchor of its page"
    return None
