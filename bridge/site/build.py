"""The pages of the checkout as a static site by Zensical, with the source files that they link to,
line by line."""

from __future__ import annotations

import html
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bridge.errors import MendableError
from bridge.site import code, contents, links, reference
from bridge.site.full import Made
from bridge.templates import template

ASSETS = Path(__file__).parent / "assets"
# Shown line by line; other files that a page links to are copied.
_SOURCES = {".lean": "lean4", ".py": "python", ".jinja": "html+jinja"}
# A block of code, an image that is a paragraph, the address of another image or link.
# How wide a drawing is, in pixels.
_WIDTH = re.compile(r'<svg [^>]*\bwidth="(\d+)"')
_PARTS = re.compile(
    r"(?P<code>^(?P<fence>`{3,}).*?^(?P=fence)$)"
    r"|^!\[(?P<alt>[^\]]*)\]\((?P<picture>[^)\s]+)\)$"
    r"""|(?P<before>\]\(|\b(?:href|src)=["'])(?P<address>[^)"'\s]+)(?=[)"'])""",
    re.MULTILINE | re.DOTALL,
)


class SiteError(MendableError, ValueError):
    """A site that cannot be built. The message has a sentence for each reason."""


@dataclass
class _Site:
    """The site that is being built: the checkout, and the files that pages have linked to. moved:
    by page and anchor of the checkout, where the site has it."""

    root: Path
    moved: dict[tuple[str, str], tuple[str, str]]
    linked: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)


def build(root: Path, out: Path, made: Sequence[Made] = (), *, with_reference: bool = True) -> int:
    """Write the site into `out`, in place of its old contents. Returns the number of pages. Raises
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
        (beside / "site").rename(out)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return number


def replaceable(out: Path) -> bool:
    """Whether nothing but an older site would be lost if a site were built there."""
    if not out.exists():
        return True
    return out.is_dir() and ((out / "assets" / "katex").is_dir() or not any(out.iterdir()))


def _write(root: Path, beside: Path, made: Sequence[Made], with_reference: bool) -> int:
    moved = {
        (one.under, there): (one.name, here or "")
        for one in made
        for there, here in one.anchors.items()
    }
    try:
        parts = contents.parts(root)
    except ValueError as error:
        raise SiteError(str(error)) from error
    site, pages = _Site(root, moved), beside / "pages"
    named = [contents.FRONT, *(page for some in parts.values() for page in some)]
    texts = {page: (page, (root / page).read_text("utf-8")) for page in named}
    texts |= {one.name: (one.under, one.text) for one in made}
    for page, (written_in, text) in texts.items():
        _put(pages / contents.tree(page), _markdown(site, page, written_in, text))
    if site.broken:
        raise SiteError("; ".join(site.broken))
    for name in sorted(site.linked):
        _source(root, name, pages / _source_page(name))
    shutil.copytree(ASSETS, pages / "assets")
    titles = {page: _title(text) for page, (_, text) in texts.items()}
    nav = contents.navigation(parts, made, titles, reference.PAGES if with_reference else {})
    _put(beside / "mkdocs.yml", template("bridge.site", "mkdocs.yml.jinja").render(nav=nav))
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--config-file", beside / "mkdocs.yml"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SiteError(f"zensical has failed: {(done.stderr or done.stdout).strip()}")
    # It knows no page that it could lead to from everywhere.
    (beside / "site" / "404.html").unlink()
    if with_reference:
        reference.write(beside / "site")
    # pdoc links to bases that are private, which it leaves out.
    if found := links.problems(beside / "site", left_out=reference.FOLDER):
        raise SiteError("; ".join(found))
    return len(texts)


def _title(text: str) -> str:
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1] if found else ""


def _markdown(site: _Site, page: str, written_in: str, text: str) -> str:
    """A page as Python-Markdown reads it: addresses as the site has them, drawings in the page
    itself, so that their links work, and Markdown within HTML."""

    def show(found: re.Match[str]) -> str:
        if found["code"]:
            return found[0]
        if found["picture"]:
            return _picture(site, page, written_in, found["alt"], found["picture"])
        return found["before"] + _link(site, page, written_in, found["address"])

    return _PARTS.sub(show, re.sub(r"^<(div|details)\b", r"<\1 markdown", text, flags=re.M))


def _picture(site: _Site, page: str, written_in: str, alt: str, address: str) -> str:
    name = posixpath.normpath(posixpath.join(posixpath.dirname(written_in), address))
    if not name.startswith(contents.DRAWINGS) or not (site.root / name).is_file():
        link = _link(site, page, written_in, address)
        return f'<p class="picture" tabindex="0"><img src="{link}" alt="{html.escape(alt)}"></p>'
    text = (site.root / name).read_text("utf-8")
    drawn = _WIDTH.search(text)
    width = f' style="--drawn: {drawn[1]}px"' if drawn else ""
    svg = _markdown(site, page, name, text)
    # In the page it has the page's colours, which a reader may choose.
    svg = svg.replace("@media (prefers-color-scheme:dark)", "[data-md-color-scheme=slate]")
    said = html.escape(alt)
    box = f'<div class="drawing" tabindex="0" role="group" aria-label="{said}"{width}>'
    return f"{box}{svg}</div>"


def _link(site: _Site, page: str, written_in: str, given: str) -> str:
    """The address on the site for an address in a page: other pages by their names on the site,
    files of the checkout as they are shown there."""
    path, _, anchor = given.partition("#")
    if not path or "://" in given:
        return given
    target = posixpath.normpath(posixpath.join(posixpath.dirname(written_in), path))
    file = site.root / target
    if target.startswith(("..", "/")) or not file.exists():
        site.broken.append(f"{written_in}: there is no file {given!r}")
        return given
    if file.is_dir():
        # A folder has no page: its name stands there without a link.
        return ""
    if target.endswith(".md"):
        target, anchor = site.moved.get((target, anchor), (target, anchor))
        there = contents.tree(target)
    else:
        site.linked.add(target)
        there = _source_page(target)
        # An address of several lines leads to the first.
        anchor = anchor.partition("-")[0].replace("L", "L-", 1)
    there = re.sub(r"\.md$", ".html", there)
    here = posixpath.dirname(contents.tree(page))
    return posixpath.relpath(there, here or ".") + (f"#{anchor}" if anchor else "")


def _source_page(name: str) -> str:
    return f"source/{name}" + (".md" if Path(name).suffix in _SOURCES else "")


def _source(root: Path, name: str, place: Path) -> None:
    file = root / name
    if file.suffix not in _SOURCES:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
        return
    shown = code.number_lines(file.read_text("utf-8"), _SOURCES[file.suffix])
    head = "---\nsearch: { exclude: true }\nhide: [toc]\n---\n"
    _put(place, f"{head}# {name}\n\n{shown}\n")


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
