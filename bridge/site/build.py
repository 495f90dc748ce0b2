"""The pages of the checkout as a static site: Markdown to HTML, with the source files that they
link to, line by line."""

from __future__ import annotations

import html
import os
import posixpath
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bridge.site import contents, links, reference, shell
from bridge.site.contents import Part
from bridge.site.full import Made
from bridge.site.markdown import Converted, convert, highlighted, in_html
from bridge.site.shell import Group, ShellError

# Shown line by line; other files that a page links to are copied.
_SOURCES = {".lean": "lean", ".py": "python", ".jinja": "html+jinja", ".toml": "toml"}


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
        number = _write(root, beside / "site", beside / "work", made, with_reference)
        if out.exists():
            shutil.rmtree(out)
        (beside / "site").rename(out)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return number


def _group(name: str | None, pages: Sequence[str]) -> Group:
    return Group(name, tuple(contents.document(page) for page in pages))


def replaceable(out: Path) -> bool:
    """Whether nothing but an older site would be lost if a site were built there."""
    if not out.exists():
        return True
    return out.is_dir() and ((out / "_static" / "katex").is_dir() or not any(out.iterdir()))


def _write(root: Path, out: Path, work: Path, made: Sequence[Made], with_reference: bool) -> int:
    by_name = {one.name: one for one in made}
    moved = {
        (one.under, there): (one.name, here or "")
        for one in made
        for there, here in one.anchors.items()
    }
    try:
        site = _Site(root, out, contents.parts(root), by_name, moved)
    except ValueError as error:
        raise SiteError(str(error)) from error
    pages = [contents.FRONT, *(page for part in site.parts for page in part.pages), *by_name]
    converted = {page: _converted(site, page) for page in pages}
    docs = {page: contents.document(page) for page in pages}
    below = {docs[contents.FRONT]: [_group(part.name, part.pages) for part in site.parts]}
    for under in dict.fromkeys(one.under for one in made):
        some = [one.name for one in made if one.under == under]
        below[docs[under]] = [_group(None, some)]
    try:
        shell.write(
            out,
            {docs[page]: one.body for page, one in converted.items()},
            below,
            scripts={docs[page]: scripts for page, scripts in contents.SCRIPTS.items()},
            others=[_source(site, name) for name in sorted(site.linked) if _is_source(name)],
            temporary=work,
        )
    except ShellError as error:
        raise SiteError(str(error)) from error
    for name in sorted(site.linked):
        if not _is_source(name):
            place = out / _shown_at(name)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, place)
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
        if page in site.made and target.startswith(f"{reference.FOLDER}/"):
            return posixpath.relpath(given, "..")
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


def _is_source(name: str) -> bool:
    return Path(name).suffix in _SOURCES


def _shown_at(name: str) -> str:
    return f"source/{name}" + (".html" if _is_source(name) else "")


def _source(site: _Site, name: str) -> tuple[str, str, str]:
    """A file of the checkout, line by line: its address without `.html`, its title, its HTML."""
    file = site.root / name
    whole = highlighted(file.read_text("utf-8").rstrip("\n"), _SOURCES[file.suffix], numbered=True)
    body = f'<h1>{html.escape(name)}</h1>\n<div class="source">{whole}</div>'
    return _shown_at(name).removesuffix(".html"), name, body
