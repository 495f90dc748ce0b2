"""The pages of the checkout as a static site: Markdown to HTML, with the source files that they
link to, line by line."""

from __future__ import annotations

import os
import posixpath
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pygments.formatters import HtmlFormatter

from bridge.site import contents, links, reference
from bridge.site.contents import Part
from bridge.site.full import Made
from bridge.site.markdown import Converted, convert, highlighted, in_html
from bridge.templates import template

ASSETS = Path(__file__).parent / "assets"
# Shown line by line; other files that a page links to are copied.
_SOURCES = {".lean": "lean", ".py": "python", ".jinja": "html+jinja", ".toml": "toml"}
# Of code, in light and in dark: their colours stand out from the background (WCAG's 4.5).
_STYLES = ("xcode", "monokai")


class SiteError(ValueError):
    """A site that cannot be built. The message has a sentence for each reason."""


@dataclass
class _Site:
    """What is being built: the checkout, the folder, pages that stand on the site alone by their
    names, and the files that pages have linked to. moved: by page and anchor of the checkout, where
    the site has it."""

    root: Path
    out: Path
    parts: list[Part]
    made: dict[str, Made]
    moved: dict[tuple[str, str], tuple[str, str]]
    with_reference: bool
    titles: dict[str, str] = field(default_factory=dict)
    linked: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)


def build(root: Path, out: Path, made: Sequence[Made] = (), *, with_reference: bool = True) -> int:
    """Write the site into `out`, in place of what was there; how many pages it has. Raises
    SiteError, and leaves `out` as it was, if a link leads nowhere; OSError.

    made: pages that stand on the site alone (`bridge.site.full`). with_reference: with the pages of
    `bridge.site.reference`, which are those of the packages that run, not of `root`.
    """
    beside = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    try:
        number = _write(root, beside, made, with_reference)
        if out.exists():
            shutil.rmtree(out)
        beside.rename(out)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return number


def replaceable(out: Path) -> bool:
    """Whether nothing but an older site would be lost if a site were built there."""
    if not out.exists():
        return True
    return out.is_dir() and ((out / "assets" / "code.css").is_file() or not any(out.iterdir()))


def _write(root: Path, out: Path, made: Sequence[Made], with_reference: bool) -> int:
    by_name = {one.name: one for one in made}
    moved = {
        (one.under, there): (one.name, here or "")
        for one in made
        for there, here in one.anchors.items()
    }
    try:
        site = _Site(root, out, contents.parts(root), by_name, moved, with_reference)
    except ValueError as error:
        raise SiteError(str(error)) from error
    shutil.copytree(ASSETS, out / "assets")
    (out / "assets" / "code.css").write_text(_code_css(), "utf-8")
    pages = [contents.FRONT, *(page for part in site.parts for page in part.pages), *by_name]
    converted = {page: _converted(site, page) for page in pages}
    site.titles = {page: one.title for page, one in converted.items()}
    for page, one in converted.items():
        _page(site, page, one)
    for name in sorted(site.linked):
        _source(site, name)
    if with_reference:
        reference.write(out)
    # pdoc links to bases that are private, which it leaves out.
    found = site.broken + links.problems(out, left_out=reference.FOLDER)
    if found:
        raise SiteError("; ".join(found))
    return len(pages)


def _converted(site: _Site, page: str) -> Converted:
    if page in site.made:
        one = site.made[page]
        return convert(one.text, _linking(site, page, one.under))
    text = (site.root / page).read_text("utf-8")
    return convert(text, _linking(site, page), lambda given: _drawing(site, page, given))


def _drawing(site: _Site, page: str, given: str) -> str | None:
    """The text of an image that stands in the page itself, with its links; None for another."""
    name = posixpath.normpath(posixpath.join(posixpath.dirname(page), given))
    if not name.startswith(contents.DRAWINGS) or not (site.root / name).is_file():
        return None
    return in_html((site.root / name).read_text("utf-8"), _linking(site, page, name))


def _linking(site: _Site, page: str, written_in: str | None = None) -> Callable[[str], str]:
    """What becomes of an address in a page: other pages by their names on the site, files of the
    checkout as they are shown there. written_in: the file that has it, if it is not the page's."""
    beside = posixpath.dirname(written_in or page)

    def link(given: str) -> str:
        path, _, anchor = given.partition("#")
        if not path or "://" in given:
            return given
        target = posixpath.normpath(posixpath.join(beside, path))
        file = site.root / target
        if target.startswith("..") or not file.exists():
            site.broken.append(f"{written_in or page}: there is no file {given!r}")
            return given
        if file.is_dir():
            # A folder has no page: its name stands there without a link.
            return ""
        if target.endswith(".md"):
            target, anchor = site.moved.get((target, anchor), (target, anchor))
            there = contents.address(target)
        else:
            site.linked.add(target)
            there = _shown_at(target)
            # Of several lines the first.
            anchor = anchor.partition("-")[0].replace("L", "L-", 1)
        here = posixpath.dirname(contents.address(page))
        return posixpath.relpath(there, here or ".") + (f"#{anchor}" if anchor else "")

    return link


def _shown_at(name: str) -> str:
    return f"source/{name}" + (".html" if Path(name).suffix in _SOURCES else "")


def _page(site: _Site, page: str, one: Converted) -> None:
    html = template("bridge.site", "page.html.jinja").render(
        title=one.title,
        body=one.body,
        headings=[h for h in one.headings if h.level == 2],
        scripts=contents.SCRIPTS.get(page, ()),
        **_around(site, contents.address(page), page),
    )
    _put(site.out / contents.address(page), html)


def _source(site: _Site, name: str) -> None:
    place = site.out / _shown_at(name)
    place.parent.mkdir(parents=True, exist_ok=True)
    file = site.root / name
    if file.suffix not in _SOURCES:
        shutil.copyfile(file, place)
        return
    whole = highlighted(file.read_text("utf-8").rstrip("\n"), _SOURCES[file.suffix], numbered=True)
    around = _around(site, _shown_at(name), None)
    _put(
        place, template("bridge.site", "source.html.jinja").render(title=name, body=whole, **around)
    )


def _around(site: _Site, address: str, page: str | None) -> dict[str, object]:
    """What every page has about it: contents and the way to the front."""
    up = "../" * address.count("/")
    parts = [
        (
            part.name,
            [
                (up + contents.address(p), site.titles[p], p == page)
                for p in (q for shown in part.pages for q in (shown, *_below(site, shown, page)))
            ],
        )
        for part in site.parts
    ]
    if site.with_reference:
        packages = reference.PACKAGES.items()
        pages = [(f"{up}{reference.FOLDER}/{name}.html", said, False) for name, said in packages]
        parts.insert(-1, ("Reference", pages))
    return {"up": up, "front": up + contents.address(contents.FRONT), "parts": parts}


def _below(site: _Site, shown: str, page: str | None) -> list[str]:
    """The pages that belong to one, where it or one of them is being read."""
    names = [name for name, one in site.made.items() if one.under == shown]
    return names if page in (shown, *names) else []


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _code_css() -> str:
    """The colours of code, light and dark."""
    shapes: list[Any] = [HtmlFormatter(style=style, cssclass="code") for style in _STYLES]
    light, dark = (shape.get_style_defs(".code") for shape in shapes)
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
