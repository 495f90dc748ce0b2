"""The site: every page there, links checked, nothing half-written."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from misuse import misuse

import pyimpl
from bridge import __main__, command
from bridge.audit import statements
from bridge.site import code, contents, full, links
from bridge.site.build import SiteError, build

ROOT = Path(__file__).resolve().parents[3]


def address(page: str) -> str:
    return contents.tree(page).removesuffix(".md") + ".html"


@pytest.mark.thorough
def test_every_page_is_reached_by_next(site: Path) -> None:
    """From the first page on, in the order of the contents."""
    pages = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/**/*.md")}
    named = [page for part in contents.parts(ROOT).values() for page in part]
    assert len(named) == len(set(named))
    assert pages <= set(named)
    at, seen = site / "index.html", []
    while at not in seen:
        seen.append(at)
        found = re.search(r'<link rel="next" href="([^"]+)"', at.read_text("utf-8"))
        if found is None:
            break
        at = (at.parent / found[1]).resolve()
    reached = [path.relative_to(site).as_posix() for path in seen if path.is_relative_to(site)]
    assert [page for page in reached if page in map(address, named)] == list(map(address, named))


@pytest.mark.thorough
def test_no_page_is_too_large_for_a_phone(site: Path) -> None:
    pages = {
        path.relative_to(site).as_posix(): path.stat().st_size for path in site.rglob("*.html")
    }
    assert {name: size for name, size in pages.items() if size > 300_000} == {}


@pytest.mark.thorough
def test_no_page_needs_a_network(site: Path) -> None:
    """Nor a place: the files that a page loads are beside it, by an address relative to it."""
    for path in site.rglob("*.html"):
        text = re.sub(r"<pre>.*?</pre>", "", path.read_text("utf-8"), flags=re.DOTALL)
        if path.is_relative_to(site / "api"):
            # pdoc has everything in the page.
            assert not re.search(r'<(?:script|img|link)\b[^>]*\b(?:src|href)="http', text)
            continue
        loaded = re.findall(r'<(?:script|img|link)\b[^>]*\b(?:src|href)="([^"]*)"', text)
        assert loaded
        for address in loaded:
            assert not re.match(r"[a-z]+:(?!,)|/", address) or address == "data:,", address
    for sheet in (site / "assets" / "stylesheets").rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:|//)", sheet.read_text("utf-8")), sheet.name
    css = (site / "assets" / "katex" / "katex.min.css").read_text("utf-8")
    fonts = set(re.findall(r"url\(([^)]*\.woff2)\)", css))
    assert fonts
    for font in fonts:
        assert (site / "assets" / "katex" / font).is_file()


@pytest.mark.thorough
def test_the_reference_is_of_the_docstrings(site: Path) -> None:
    front = (site / "index.html").read_text("utf-8")
    assert 'href="./api/pyimpl.html"' in front
    text = (site / "api" / "pyimpl.html").read_text("utf-8")
    assert 'id="attention"' in text
    assert "A key that no query may attend to has no influence" in text
    assert not (site / "api" / "bridge" / "spec.html").exists()
    # Each module that the front names has a page, which it leads to.
    modules = re.findall(r"`(pyimpl\.[\w.]+)`", pyimpl.__doc__ or "")
    assert len(modules) > 8
    for module in set(modules) - {"pyimpl.attention"}:
        page = f"{module.replace('.', '/')}.html"
        assert (site / "api" / page).is_file(), module
        assert f'href="{page}"' in text, module
    # The options of a bundle stand in the signature, each by its name.
    packed = text.partition('id="attention_varlen"')[2].partition("</section>")[0]
    assert "alibi_slopes" in packed.partition("docstring")[0]


@pytest.mark.thorough
def test_lines_of_sources_are_anchors(site: Path) -> None:
    text = (site / "online.html").read_text("utf-8")
    found = re.findall(r'href="(source/Attention/Spec/Online\.lean\.html)#(L-\d+)"', text)
    assert found
    shown = (site / found[0][0]).read_text("utf-8")
    for _, anchor in found:
        assert f'id="{anchor}"' in shown


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout with all pages, each empty but for its heading."""
    root = tmp_path / "checkout"
    for pages in contents.parts(ROOT).values():
        for page in pages:
            (root / page).parent.mkdir(parents=True, exist_ok=True)
            (root / page).write_text(f"# {page}\n", "utf-8")
    (root / "README.md").write_text("# Front\n", "utf-8")
    return root


# Those to files are looked at before anything is built.
NO_FILE = {
    "[x](docs/nothing.md)": "README.md: there is no file 'docs/nothing.md'",
    "[x](../outside.md)": "README.md: there is no file '../outside.md'",
    "[x](Makefile.py#L9)": "README.md: there is no file 'Makefile.py#L9'",
    '<a href="docs/gone.md">x</a>': "README.md: there is no file 'docs/gone.md'",
    "![x](docs/gone.svg)": "README.md: there is no file 'docs/gone.svg'",
    "<a href='/root'>x</a>": "README.md: there is no file '/root'",
}
NO_ANCHOR = {
    "[x](#nowhere)": "index.html: the link '#nowhere' leads to no anchor of its page",
    "[x](docs/online.md#nowhere)": (
        "index.html: the link 'online.html#nowhere' leads to no anchor of its page"
    ),
    '[x](docs/online.md "title")': "index.html: the link 'docs/online.html' leads to no file",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrong", [NO_FILE, NO_ANCHOR], ids=["file", "anchor"])
def test_a_link_that_leads_nowhere_fails(small: Path, wrong: dict[str, str]) -> None:
    out = small / "site"
    build(small, out, with_reference=False)
    before = (out / "index.html").read_bytes()
    (small / "README.md").write_text("\n\n".join(["# Front", *wrong]), "utf-8")
    with pytest.raises(SiteError) as raised:
        build(small, out, with_reference=False)
    assert str(raised.value).split("; ") == list(wrong.values())
    assert (out / "index.html").read_bytes() == before
    assert [p.name for p in small.iterdir() if p.name.startswith(".")] == []


def test_a_line_beyond_the_end_of_a_file_fails(small: Path) -> None:
    (small / "code.py").write_text("one = 1\n", "utf-8")
    (small / "README.md").write_text("# Front\n\n[x](code.py#L1-L2) [y](code.py#L7)\n", "utf-8")
    with pytest.raises(SiteError) as raised:
        build(small, small / "site", with_reference=False)
    assert str(raised.value) == (
        "index.html: the link 'source/code.py.html#L-7' leads to no anchor of its page"
    )


def test_a_page_that_the_contents_name_must_be_there(small: Path) -> None:
    (small / "docs" / "online.md").unlink()
    with pytest.raises(SiteError, match=r"names docs/online\.md, not in the checkout"):
        build(small, small / "site", with_reference=False)


@pytest.mark.thorough
def test_the_command(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "ROOT", small)
    # This checkout has no theorems; of the project's own `site` makes them.
    monkeypatch.setattr(full, "pages", lambda root, stored: [])
    monkeypatch.setattr(statements, "read_kept", lambda root: {})
    (small / "lakefile.lean").touch()
    run = CliRunner().invoke
    done = run(__main__.main, ["site"])
    assert done.exit_code == 0, done.output
    assert (small / "build" / "site" / "index.html").is_file()
    assert run(__main__.main, ["site"]).exit_code == 0
    kept = small / "mine"
    kept.mkdir()
    (kept / "index.html").write_text("mine", "utf-8")
    said = misuse(__main__.main, "site", "--out", str(kept))
    assert "--out must be a new or empty folder or an older site" in said
    assert (kept / "index.html").read_text("utf-8") == "mine"
    shutil.rmtree(kept)
    (small / "README.md").write_text("[x](gone.md)", "utf-8")
    assert "there is no file 'gone.md'" in misuse(__main__.main, "site")


def article(page: Path) -> str:
    """The part of a page that is its own."""
    return page.read_text("utf-8").partition("<article")[2].partition("</article>")[0]


def test_a_page_is_read_as_on_github(small: Path) -> None:
    (small / "README.md").write_text(PAGE, "utf-8")
    (small / "docs" / "online.md").write_text("# Online\n\n## A `b` — c\n\n## A `b` — c\n", "utf-8")
    (small / "one.svg").write_text("<svg/>", "utf-8")
    build(small, small / "site", with_reference=False)
    body = article(small / "site" / "index.html")
    for said in (
        '<h1 id="a-b--c">A <code>b</code> — c',
        '<span class="arithmatex">\\(x^2\\)</span>',
        "It costs 5$ or 6$.",
        "&lt;script&gt;",
        '<span class="kn">def</span>',
        '<p class="picture" tabindex="0"><img src="source/one.svg" alt="Words."></p>',
        '<p>See <img alt="Words." src="source/one.svg"',
        "<td>b | c</td>",
    ):
        assert said in body, said
    assert re.search(r'<div class="arithmatex">\s*\\\[\s*y &lt; 1\s*\\\]\s*</div>', body)
    assert re.search(r"<details>\s*<summary>More</summary>\s*<p><em>inside</em></p>", body)
    assert re.search(r"<li>one\s*<ul>\s*<li>within</li>", body)


PAGE = """# A `b` — c

$x^2$

$$y < 1$$

It costs 5$ or 6$.

```nonsense
<script>
```

```lean
def f := 1
```

![Words.](one.svg)

See ![Words.](one.svg) here.

| a |
| --- |
| b \\| c |

<details><summary>More</summary>

*inside*

</details>

- one
    - within
"""


def test_a_drawing_stands_in_the_page_with_links_that_lead_where_its_file_says(
    small: Path,
) -> None:
    svg = '<svg class="map"><a href="../online.md"><text>x</text></a></svg>'
    (small / "docs" / "maps").mkdir()
    (small / "docs" / "maps" / "a.svg").write_text(svg, "utf-8")
    (small / "docs" / "a.svg").write_text(svg, "utf-8")
    (small / "README.md").write_text(
        '# F\n\n![A & "b"](docs/maps/a.svg)\n\n![c](docs/a.svg)\n', "utf-8"
    )
    build(small, small / "site", with_reference=False)
    text = (small / "site" / "index.html").read_text("utf-8")
    assert (
        '<div class="drawing" tabindex="0" role="group" aria-label="A &amp; &quot;b&quot;">'
        '<svg class="map"><a href="online.html"><text>x</text></a></svg></div>'
    ) in text
    assert '<img src="source/docs/a.svg" alt="c">' in text
    (small / "docs" / "maps" / "a.svg").write_text(svg.replace("online.md", "gone.md"), "utf-8")
    with pytest.raises(SiteError, match=r"docs/maps/a\.svg: there is no file '\.\./gone\.md'"):
        build(small, small / "site", with_reference=False)


@pytest.mark.thorough
def test_the_maps_are_on_the_site(site: Path) -> None:
    """Every theorem's box leads to its entry; that the links lead somewhere, the build has seen."""
    drawn = "".join(p.read_text("utf-8") for p in (site / "theorem-map").glob("*.html"))
    boxes = r'<a class="theorem" data-node="\d+" href="\.\./theorems/([\w-]+\.html)#([^"]+)"'
    found = re.findall(boxes, drawn)
    ids = [id for _, id in found]
    assert len(ids) == len(set(ids)) > 100
    for page, id in found:
        assert f'<h2 id="{id}"' in (site / "theorems" / page).read_text("utf-8")
    front = (site / "maps.html").read_text("utf-8")
    for page in ("theorem-map", "coverage", "claims", "mutants", "benchmarks"):
        assert f'<td><a href="{page}.html">' in front
    assert (site / "benchmarks.html").read_text("utf-8").count('<svg xmlns="http://www.w3.org') > 1


def test_links_to_a_line_lead_to_what_stands_in_full(small: Path) -> None:
    page = "docs/theorems.md"
    (small / page).write_text(
        '# T\n\n<a id="sum"></a>[sum](theorems.md#sum) [self](#sum) [topic](theorems.md#first)\n',
        "utf-8",
    )
    (small / "README.md").write_text("# F\n\n[s](docs/theorems.md#sum)\n", "utf-8")
    text = (
        "# The first topic\n\n## sum\n\n[r](../README.md) [t](theorems.md#sum) [u](theorems.md)\n"
    )
    made = full.Made("docs/theorems/a.md", page, text, {"first": None, "sum": "sum"})
    site = small / "site"
    assert build(small, site, [made], with_reference=False) > 1
    listed = (site / "theorems.html").read_text("utf-8")
    there = ["theorems/a.html#sum", "#sum", "theorems/a.html"]
    assert links_of(article(site / "theorems.html")) == there
    assert 'href="theorems/a.html#sum"' in (site / "index.html").read_text("utf-8")
    links_there = links_of(article(site / "theorems" / "a.html"))
    assert links_there == ["../index.html", "a.html#sum", "../theorems.html"]
    # In the contents it stands below its page.
    assert re.search(r'<a href="\./theorems/a\.html" class="md-nav__link">', listed)


def links_of(html: str) -> list[str]:
    return list(links.read(html).links)


def test_links_and_anchors_are_those_of_tags_alone() -> None:
    """However an attribute is quoted; neither of a script's text nor of a comment or of code."""
    page = links.read(
        """<A HREF='a&amp;b'\n id=one><img alt="a > b" src = "c.svg"/><a name="two" data-id="no">
        <script src="s.js">"<a href='no'>"</script><!-- <a href="no"> -->&lt;a href="no"&gt; x < y
        <p id=""><a href="">"""
    )
    assert page.links == ("a&b", "c.svg", "s.js", "")
    assert page.anchors == {"one", "two"}


def test_lines_are_numbered_and_plain_names_have_no_mark() -> None:
    shown = code.number_lines("a = 1\nb = 2", "python")
    assert re.findall(r'id="(L-\d+)"', shown) == ["L-1", "L-2"]
    assert '>1</span></a>a <span class="o">=</span> <span class="mi">1</span>' in shown
