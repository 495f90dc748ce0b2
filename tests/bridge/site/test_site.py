"""The site: every page there, links checked, nothing half-written."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from bridge import __main__, command
from bridge.audit import statements
from bridge.site import contents, full, links
from bridge.site.build import SiteError, build
from bridge.site.markdown import convert, highlighted, slug

ROOT = Path(__file__).resolve().parents[3]


def same(address: str) -> str:
    return address


def test_every_page_is_in_the_contents(site: Path) -> None:
    pages = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/**/*.md")}
    named = [page for part in contents.parts(ROOT) for page in part.pages]
    assert len(named) == len(set(named))
    assert pages <= set(named)
    front = (site / "index.html").read_text("utf-8")
    for page in named:
        assert (site / contents.address(page)).is_file()
        assert f'<a href="{contents.address(page)}"' in front


def test_no_page_needs_a_network(site: Path) -> None:
    """Nor a place: what a page loads is beside it, by an address relative to it."""
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
    css = (site / "assets" / "katex" / "katex.min.css").read_text("utf-8")
    fonts = set(re.findall(r"url\(([^)]*\.woff2)\)", css))
    assert fonts
    for font in fonts:
        assert (site / "assets" / "katex" / font).is_file()


def test_the_reference_is_of_the_docstrings(site: Path) -> None:
    front = (site / "index.html").read_text("utf-8")
    for package in ("pyimpl", "bridge"):
        assert f'href="api/{package}.html"' in front
    text = (site / "api" / "pyimpl.html").read_text("utf-8")
    assert 'id="attention"' in text
    assert "A key that no query may attend to has no influence" in text
    assert not (site / "api" / "bridge" / "spec.html").exists()


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
    for part in contents.parts(ROOT):
        for page in part.pages:
            (root / page).parent.mkdir(parents=True, exist_ok=True)
            (root / page).write_text(f"# {page}\n", "utf-8")
    (root / "README.md").write_text("# Front\n", "utf-8")
    return root


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[x](docs/nothing.md)", "README.md: there is no file 'docs/nothing.md'"),
        ("[x](../outside.md)", "README.md: there is no file '../outside.md'"),
        ("[x](#nowhere)", "index.html: the link '#nowhere' leads to no anchor of its page"),
        (
            "[x](docs/online.md#nowhere)",
            "index.html: the link 'online.html#nowhere' leads to no anchor of its page",
        ),
        ("[x](Makefile.py#L9)", "README.md: there is no file 'Makefile.py#L9'"),
        ('<a href="docs/gone.md">x</a>', "README.md: there is no file 'docs/gone.md'"),
        ("![x](docs/gone.svg)", "README.md: there is no file 'docs/gone.svg'"),
        ("<a href='/root'>x</a>", "index.html: the link '/root' begins with a slash"),
    ],
)
def test_a_link_that_leads_nowhere_fails(small: Path, text: str, said: str) -> None:
    out = small / "site"
    build(small, out, with_reference=False)
    before = (out / "index.html").read_bytes()
    (small / "README.md").write_text(f"# Front\n\n{text}\n", "utf-8")
    with pytest.raises(SiteError) as raised:
        build(small, out, with_reference=False)
    assert said in str(raised.value)
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


def test_the_command(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "ROOT", small)
    # This checkout has no theorems; of the project's own `site` makes them.
    monkeypatch.setattr(full, "pages", lambda root, stored: [])
    monkeypatch.setattr(statements, "kept", lambda root: {})
    (small / "lakefile.lean").touch()
    run = CliRunner().invoke
    done = run(__main__.main, ["site"])
    assert done.exit_code == 0, done.output
    assert (small / "build" / "site" / "index.html").is_file()
    assert run(__main__.main, ["site"]).exit_code == 0
    kept = small / "mine"
    kept.mkdir()
    (kept / "index.html").write_text("mine", "utf-8")
    done = run(__main__.main, ["site", "--out", str(kept)])
    assert done.exit_code == 2
    assert "--out must be a new or empty folder or an older site" in done.output
    assert (kept / "index.html").read_text("utf-8") == "mine"
    shutil.rmtree(kept)
    (small / "README.md").write_text("[x](gone.md)", "utf-8")
    done = run(__main__.main, ["site"])
    assert done.exit_code == 2
    assert "there is no file 'gone.md'" in done.output


def test_markdown() -> None:
    page = convert("# A `b` — c\n\n$x^2$\n\n$$y < 1$$\n\nIt costs 5$ or 6$.\n", same)
    assert page.title == "A b — c"
    assert page.headings[0].anchor == slug("A b — c") == "a-b--c"
    assert '<span class="math inline">x^2</span>' in page.body
    assert re.search(r'<div class="math block">\s*y &lt; 1\s*</div>', page.body)
    assert "It costs 5$ or 6$." in page.body
    assert "&lt;script&gt;" in convert("```nonsense\n<script>\n```\n", same).body


def test_a_picture_by_itself_scrolls() -> None:
    alone = convert("![Words.](images/one.svg)\n", same).body
    assert alone.startswith('<p class="picture" tabindex="0"><img src="images/one.svg"')
    within = convert("See ![Words.](images/one.svg) here.\n", same).body
    assert within.startswith("<p>See <img")


def test_links_of_pages_and_sources() -> None:
    page = convert('[a](x.md#y) <img src="p.svg"> ![b](q.svg)', lambda address: f"to/{address}")
    assert links_of(page.body) == ["to/x.md#y", "to/p.svg", "to/q.svg"]


def test_a_drawing_stands_in_the_page_with_links_that_lead_where_its_file_says(
    small: Path,
) -> None:
    svg = '<svg class="map"><a href="../online.md"><text>x</text></a></svg>'
    (small / "docs" / "maps").mkdir()
    (small / "docs" / "maps" / "a.svg").write_text(svg, "utf-8")
    (small / "docs" / "a.svg").write_text(svg, "utf-8")
    (small / "README.md").write_text(
        '# F\n\n![A & "b"](docs/maps/a.svg) ![c](docs/a.svg)\n', "utf-8"
    )
    build(small, small / "site", with_reference=False)
    text = (small / "site" / "index.html").read_text("utf-8")
    assert (
        '<span class="drawing" tabindex="0" role="group" aria-label="A &amp; &quot;b&quot;">'
        '<svg class="map"><a href="online.html"><text>x</text></a></svg></span>'
    ) in text
    assert '<img src="source/docs/a.svg" alt="c" />' in text
    (small / "docs" / "maps" / "a.svg").write_text(svg.replace("online.md", "gone.md"), "utf-8")
    with pytest.raises(SiteError, match=r"docs/maps/a\.svg: there is no file '\.\./gone\.md'"):
        build(small, small / "site", with_reference=False)


def test_the_maps_are_on_the_site(site: Path) -> None:
    """Every theorem's box leads to its entry; that the links lead somewhere, the build has seen."""
    drawn = (site / "theorem-map.html").read_text("utf-8")
    boxes = r'<a class="theorem" data-node="\d+" href="theorems/([\w-]+\.html)#([^"]+)"'
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
    assert links_of(listed.partition("<article>")[2].partition("</article>")[0]) == there
    assert 'href="theorems/a.html#sum"' in (site / "index.html").read_text("utf-8")
    whole = (site / "theorems" / "a.html").read_text("utf-8")
    links_there = links_of(whole.partition("<article>")[2].partition("</article>")[0])
    assert links_there == ["../index.html", "a.html#sum", "../theorems.html"]
    # In the contents it stands below its page, for who reads one of the two.
    below = '<a href="theorems/a.html">The first topic</a>'
    assert below in listed
    assert below not in (site / "index.html").read_text("utf-8")
    assert '<a href="../theorems/a.html" aria-current="page">The first topic</a>' in whole


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


def test_code_is_highlighted() -> None:
    assert '<span class="kn">def</span>' in highlighted("def f := 1", "lean")
    numbered = highlighted("a = 1\nb = 2", "python", numbered=True)
    assert re.findall(r'id="(L-\d+)"', numbered) == ["L-1", "L-2"]
