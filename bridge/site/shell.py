"""The shell of the site by Sphinx: contents, search, the ways to the next page and between light
and dark, about pages that are HTML already."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.parsers import Parser
from sphinx.util.docutils import docutils_namespace, patch_docutils

ASSETS = Path(__file__).parent / "assets"
# As `bridge.site.markdown` writes them; those within other HTML stay with it.
_HEADING = re.compile(r'^<h([1-6]) id="([^"]*)">(.*)</h\1>$', re.MULTILINE)
_SETTINGS = {
    "extensions": ["bridge.site.shell", "sphinx_copybutton"],
    "project": "Attention, proved and checked",
    "html_title": "Attention, proved and checked",
    "html_theme": "furo",
    "html_theme_options": {"top_of_page_buttons": []},
    "html_favicon": str(ASSETS / "icon.svg"),
    "html_static_path": [str(ASSETS)],
    "html_css_files": ["katex/katex.min.css", "style.css"],
    "html_js_files": ["katex/katex.min.js", "formulas.js"],
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_show_copyright": False,
    "html_use_index": False,
    # Pages are not read anew from a disk to show where a word stands in them.
    "html_show_search_summary": False,
    "copybutton_exclude": ".linenos",
}


class ShellError(ValueError):
    """Sphinx has something to say about the pages."""


@dataclass(frozen=True)
class Group:
    """Pages that stand below another in the contents, under a name or none."""

    name: str | None
    pages: tuple[str, ...]


def write(
    out: Path,
    bodies: Mapping[str, str],
    below: Mapping[str, Sequence[Group]],
    *,
    scripts: Mapping[str, Sequence[str]],
    others: Iterable[tuple[str, str, str]],
    temporary: Path,
) -> None:
    """Write pages and their shell into `out`. Raises ShellError for what Sphinx warns of.

    bodies: by page, its HTML; `index` is the front. below: what stands below a page in the
    contents. scripts: of `assets`, what a page runs beside what each does. others: pages that are
    neither in the contents nor searched: address without `.html`, title, HTML. temporary: a folder
    that is not there yet, for the pages as Sphinx takes them.
    """
    for page, body in bodies.items():
        place = temporary / "pages" / f"{page}.body"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(body, "utf-8")
    warnings = io.StringIO()
    settings = {**_SETTINGS, "shell_below": {page: list(some) for page, some in below.items()}}
    with patch_docutils(), docutils_namespace():
        app = Sphinx(
            temporary / "pages", None, out, temporary / "read", "html",
            confoverrides=settings, status=None, warning=warnings, freshenv=True,
        )  # fmt: skip

        trees: dict[int, str] = {}

        def about(_app: Sphinx, page: str, _template: str, context: dict[str, Any], _: Any) -> None:
            for script in scripts.get(page, ()):
                app.add_js_file(script)
            if page not in bodies:
                context["toctree"] = _once(trees, page.count("/"), context["toctree"])

        # Before Furo, which takes the contents from there.
        app.connect("html-page-context", about, priority=400)
        app.connect(
            "html-collect-pages",
            lambda _: [(a, {"title": t, "body": b}, "page.html") for a, t, b in others],
        )
        app.build()
    if warnings.getvalue():
        raise ShellError(" ".join(warnings.getvalue().split()))
    for left in (".buildinfo", "objects.inv"):
        (out / left).unlink(missing_ok=True)


class _Page(Parser):
    """HTML, cut into sections at its headings; what stands between them stays as it is."""

    supported = ("body",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        before, *rest = _HEADING.split(inputstring)
        document.extend(_as_it_is(before))
        within: list[tuple[int, nodes.Element]] = [(0, document)]
        for at in range(0, len(rest), 4):
            level, anchor, title, text = int(rest[at]), *rest[at + 1 : at + 4]
            while within[-1][0] >= level:
                within.pop()
            section = nodes.section("", nodes.title("", "", *_inline(title)), ids=[anchor])
            section.extend(_as_it_is(text))
            within[-1][1].append(section)
            within.append((level, section))
        env = document.settings.env
        last = document.children[-1]
        assert isinstance(last, nodes.Element)
        last.extend(
            _contents(env.docname, group) for group in env.config.shell_below.get(env.docname, ())
        )


def _once(trees: dict[int, str], depth: int, made: Callable[..., str]) -> Callable[..., str]:
    """The contents of a page that is not in them: the same for all of one depth. To make them takes
    longer than the rest of the page."""

    def tree(**how: Any) -> str:
        if depth not in trees:
            trees[depth] = made(**how)
        return trees[depth]

    return tree


def _as_it_is(text: str) -> list[nodes.Node]:
    return [nodes.raw("", text, format="html")] if text.strip() else []


def _inline(title: str) -> Iterable[nodes.Node]:
    """The text of a heading, with what is code in it."""
    for at, part in enumerate(re.split(r"<code>(.*?)</code>", title)):
        text = html.unescape(re.sub(r"<[^>]*>", "", part))
        if text:
            yield nodes.literal("", text) if at % 2 else nodes.Text(text)


def _contents(page: str, group: Group) -> nodes.Node:
    return addnodes.toctree(
        parent=page,
        entries=[(None, one) for one in group.pages],
        includefiles=list(group.pages),
        caption=group.name,
        rawcaption=group.name,
        maxdepth=-1,
        glob=False,
        hidden=True,
        includehidden=False,
        numbered=0,
        titlesonly=True,
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_config_value("shell_below", {}, "", types=[dict])
    app.add_source_suffix(".body", "body")
    app.add_source_parser(_Page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
