"""Single pages of the site in a browser, as readers use them: on a wide screen and on a phone's,
light and dark."""

from __future__ import annotations

import functools
import http.server
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from in_browser import (
    LAPTOP,
    MARKS,
    PHONE,
    STEPPER,
    WIDE,
    WITHOUT_SEARCH,
    button,
    console_of,
    open_page,
    open_stepper,
    screen,
    wait_for,
)

import pyimpl

ROOT = Path(__file__).resolve().parents[3]
pytestmark = MARKS
MAPS = (
    "maps.html",
    "theorem-map/rounding.html",
    "coverage.html",
    "kernel-coverage.html",
    "benchmarks.html",
)


@contextmanager
def search(browser: Any) -> Iterator[None]:
    """A page reads the 2 MB that the search is in, which is most of its time, so pages are kept
    from it except here."""
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Network.setBlockedURLs", WITHOUT_SEARCH)


def test_the_list_of_theorems_is_short_until_a_topic_is_opened(browser: Any, site: Path) -> None:
    open_page(browser, site / "theorems.html", PHONE)
    shown = browser.find_elements("css selector", "article details a[id]")
    assert len(shown) > 200
    assert not any(link.is_displayed() for link in shown[:3])
    height = browser.execute_script("return document.scrollingElement.scrollHeight")
    assert height < 8 * PHONE[1]


def test_a_picture_can_be_read_on_a_phone(browser: Any, site: Path) -> None:
    """It is wider than the screen, and scrolls."""
    screen(browser, PHONE)
    for page in ("online", "masks", "backward", "architecture"):
        browser.get((site / f"{page}.html").as_uri())
        picture = browser.find_element("css selector", ".picture img")
        assert picture.size["width"] >= 500, page


OVER_THE_EDGE = """
const edge = document.documentElement.viewBox.baseVal;
return [...document.querySelectorAll("text")].filter((text) => {
  const box = text.getBBox();
  const right = box.x + box.width, bottom = box.y + box.height;
  return box.x < 0 || box.y < 0 || right > edge.width || bottom > edge.height;
}).map((text) => text.textContent);
"""


@pytest.mark.parametrize(
    "picture", sorted((ROOT / "docs" / "images").glob("*.svg")), ids=lambda p: p.name
)
def test_no_word_of_a_picture_is_cut_off(browser: Any, picture: Path) -> None:
    open_page(browser, picture, WIDE)
    assert browser.execute_script("return document.querySelectorAll('text').length") > 0
    assert browser.execute_script(OVER_THE_EDGE) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_reference(browser: Any, site: Path, size: tuple[int, int], scheme: str) -> None:
    screen(browser, size, scheme)
    for name in ("pyimpl", "pyimpl/modules", "tools/bridge/vectors/model"):
        page = site / "api" / f"{name}.html"
        assert page.is_file()
        browser.get(page.as_uri())
        assert console_of(browser) == [], name
        assert browser.execute_script("return document.scrollingElement.scrollWidth") <= size[0]
        assert browser.execute_script(CONTRAST) == [], name
        links = browser.find_elements("css selector", "nav.pdoc a")
        assert (site / "index.html").as_uri() in [link.get_attribute("href") for link in links]


def test_the_reference_opens_with_pyimpl(browser: Any, site: Path) -> None:
    """Its list has the purpose of each function, and its search nothing of the tools."""
    open_page(browser, site / "api" / "index.html", WIDE)
    front = (site / "api" / "pyimpl.html").as_uri()
    wait_for(lambda: browser.current_url == front, "the front page")
    links = browser.find_elements("css selector", ".module-info table a")
    found = {link.text for link in links}
    others = {"attention", "implements"}
    assert found >= {*pyimpl.__all__, "pyimpl.modules", "pyimpl.state"} - others
    search = (site / "api" / "search.js").read_text("utf-8")
    assert len(search) < 1_500_000
    assert {name.partition(".")[0] for name in re.findall(r'"fullname": "([^"]+)"', search)} == {
        "pyimpl"
    }


def test_an_error_would_be_seen(browser: Any, site: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text("<script>nothing()</script><img src=none.svg>", "utf-8")
    browser.get(broken.as_uri())
    found: list[str] = []

    def are_both_there() -> bool:
        # That a resource is missing may be said after the page is there.
        found.extend(console_of(browser))
        return len(found) == 2

    wait_for(are_both_there, "both errors")


def test_under_a_path_of_a_server(browser: Any, site: Path) -> None:
    handler = functools.partial(Quiet, directory=str(site.parent.parent))
    local = ("localhost", 0)
    with http.server.ThreadingHTTPServer(local, handler) as server, search(browser):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        screen(browser, WIDE)
        for page in (
            "index.html",
            "online.html",
            "decisions/0001-scores-and-values-are-two-types.html",
        ):
            browser.get(f"http://localhost:{server.server_port}/under/a%20path/{page}")
            assert console_of(browser) == [], page
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_the_contents_lead_from_page_to_page(browser: Any, site: Path) -> None:
    open_page(browser, site / "softmax.html", PHONE)
    link = browser.find_element("css selector", '.md-nav--primary a[href$="online.html"]')
    assert not link.is_displayed()
    browser.find_element("css selector", "label[for=__drawer].md-header__button").click()
    wait_for(link.is_displayed, "the contents")
    wait_for(lambda: try_click(link), "the contents at rest")
    assert browser.find_element("tag name", "h1").text.startswith("The online state")


def try_click(element: Any) -> bool:
    """Whether it could be clicked: while it moves it cannot."""
    from selenium.common.exceptions import WebDriverException

    try:
        element.click()
    except WebDriverException:
        return False
    return True


def test_search_from_the_disk(browser: Any, site: Path) -> None:
    """Pages of sources are not in it."""
    from selenium.webdriver.common.keys import Keys

    screen(browser, WIDE)
    with search(browser):
        browser.get((site / "theorems" / "rounding.html").as_uri())
        wait_for(lambda: browser.execute_script(FOUND) is not None, "the search")
        browser.find_element("css selector", ".md-search__button").click()
        browser.switch_to.active_element.send_keys("online softmax, step by step")
        wait_for(lambda: browser.execute_script(FOUND), "results")
        found = browser.execute_script(FOUND)
        assert any(link.startswith((site / STEPPER).as_uri()) for link in found)
        assert not any("/source/" in link for link in found)
        browser.switch_to.active_element.send_keys(Keys.ENTER)
        wait_for(lambda: browser.current_url.startswith((site / STEPPER).as_uri()), "the page")
        assert console_of(browser) == []


# The search has a tree of its own.
FOUND = """
const root = [...document.querySelectorAll("div")].find((one) => one.shadowRoot)?.shadowRoot;
return root ? [...root.querySelectorAll("a[href]")].map((one) => one.href) : null;
"""


def test_the_reader_chooses_the_colours(browser: Any, site: Path) -> None:
    """Whatever the system has; pictures and drawings follow, and the next page keeps them."""
    screen(browser, WIDE, "light")
    fill = "getComputedStyle(document.querySelector('.drawing text')).fill"
    colours = []
    for page in ("theorem-map.html", "maps.html"):
        browser.get((site / page).as_uri())
        for _ in range(3):
            colours.append(browser.execute_script(f"return [{BEHIND}, {fill}]"))
            browser.find_element(
                "css selector", "[data-md-component=palette] label:not([hidden])"
            ).click()
    browser.execute_script("localStorage.clear()")
    light = ["rgb(255, 255, 255)", "rgb(28, 30, 33)"]
    dark = ["rgb(20, 23, 27)", "rgb(228, 230, 234)"]
    assert colours == [light, light, dark] * 2


BEHIND = "getComputedStyle(document.body).backgroundColor"


def test_code_is_copied(browser: Any, site: Path) -> None:
    open_page(browser, site / "index.html", WIDE)
    button = "#try-it ~ .highlight [data-md-type=copy]"
    wait_for(lambda: browser.find_elements("css selector", button), "the buttons")
    browser.find_element("css selector", button).click()
    said_so = ".md-dialog--active"
    wait_for(lambda: browser.find_elements("css selector", said_so), "that it was copied")


# In a drawing, the lowest contrast between text and its background (4.5), and between lines or
# marks and the page (3).
DRAWN = """
const channels = (text) => text.match(/[\\d.]+/g).map(Number);
const luminance = (text) => {
  const [x, y, z] = channels(text).map((c) => {
    const s = c / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const ratio = (a, b) => {
  const pair = [luminance(a), luminance(b)];
  return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
};
const page = getComputedStyle(document.body).backgroundColor;
const low = [];
let seen = 0;
for (const text of document.querySelectorAll(".drawing text")) {
  const box = text.closest("a")?.querySelector("rect");
  const found = ratio(getComputedStyle(text).fill, box ? getComputedStyle(box).fill : page);
  seen++;
  if (found < 4.5) low.push(`${text.textContent} ${found.toFixed(2)}`);
}
for (const part of document.querySelectorAll(".map rect, .map [data-from], .bench [class^=p]")) {
  const look = getComputedStyle(part);
  const found = ratio(look.stroke === "none" ? look.fill : look.stroke, page);
  if (found < 3) low.push(`${part.getAttribute("class")} ${found.toFixed(2)}`);
}
return [seen, low];
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, LAPTOP, PHONE], ids=["wide", "laptop", "phone"])
@pytest.mark.parametrize("page", ["maps.html", "theorem-map/rounding.html", "benchmarks.html"])
def test_drawings_are_seen(
    browser: Any, site: Path, page: str, size: tuple[int, int], scheme: str
) -> None:
    open_page(browser, site / page, size, scheme)
    seen, low = browser.execute_script(DRAWN)
    assert seen > 10
    assert low == []
    for drawing in browser.find_elements("css selector", ".drawing"):
        svg = drawing.find_element("tag name", "svg")
        # As large as it was drawn, or somewhat smaller if it fits then; on a phone it scrolls in
        # its box. Chromium lays out in 64ths of a pixel.
        drawn = int(svg.get_attribute("width"))
        shown = svg.size["width"]
        assert (0.85 * drawn - 1 / 64 if size != PHONE else drawn) <= shown <= drawn
        assert drawing.size["width"] <= size[0]
        if size != PHONE:
            assert shown <= drawing.size["width"]
        # No text is wider than its box.
        wide = browser.execute_script(
            "return [...arguments[0].querySelectorAll('a')].filter((a) => "
            "[...a.querySelectorAll('text')].some((t) => t.getBBox().width + 12 > "
            "a.querySelector('rect').getBBox().width)).map((a) => a.textContent)",
            svg,
        )
        assert wide == []


def test_a_map_by_keyboard(browser: Any, site: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    screen(browser, PHONE)
    page = site / "theorem-map" / "online-softmax-and-merging.html"
    browser.get(page.as_uri())
    drawing = browser.find_element("css selector", ".drawing")
    browser.execute_script("arguments[0].focus()", drawing)
    drawing.send_keys(Keys.TAB)
    box = browser.switch_to.active_element
    assert box.tag_name == "a"
    width = "return getComputedStyle(arguments[0].querySelector('rect')).strokeWidth"
    assert browser.execute_script(width, box) == "3px"
    node = box.get_attribute("data-node")
    near = browser.execute_script(
        "return [...arguments[0].querySelectorAll('path.near')]"
        ".map((p) => [p.dataset.from, p.dataset.to])",
        drawing,
    )
    assert near
    assert all(node in pair for pair in near)
    others = drawing.find_elements("css selector", "a:not(.near)")
    assert others
    assert float(style(browser, "document.querySelector('.chosen a:not(.near)')", "opacity")) < 1
    target = box.get_dom_attribute("href")
    box.send_keys(Keys.ENTER)
    file, _, anchor = target.partition("#")
    assert browser.current_url == f"{(page.parent / file).resolve().as_uri()}#{anchor}"


@pytest.mark.parametrize(
    ("page", "title"), [("coverage", '"vectors: "'), ("kernel-coverage", '"proved in Lean: "')]
)
def test_coverage_on_a_phone_has_no_row_that_scrolls(
    browser: Any, site: Path, page: str, title: str
) -> None:
    open_page(browser, site / f"{page}.html", PHONE)
    wide = browser.execute_script(
        "return [...document.querySelectorAll('.coverage td')]"
        ".filter((t) => t.getBoundingClientRect().right > window.innerWidth).length"
    )
    assert wide == 0
    third = "[...document.querySelectorAll('.coverage td:nth-child(3)')]"
    content = f"return {third}.map((cell) => getComputedStyle(cell, '::before').content)"
    assert set(browser.execute_script(content)) == {title}
    folded = browser.find_element("css selector", ".coverage summary")
    folded.click()
    assert browser.find_element("css selector", ".coverage details[open] a").is_displayed()


def style(browser: Any, element: str, name: str) -> str:
    found: str = browser.execute_script(f"return getComputedStyle({element}).{name}")
    return found


CONTRAST = """
const channels = (text) => text.match(/[\\d.]+/g).map(Number);
function luminance([r, g, b]) {
  const [x, y, z] = [r, g, b].map((c) => {
    const s = c / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}
function behind(element) {
  for (let at = element; at; at = at.parentElement) {
    const found = channels(getComputedStyle(at).backgroundColor);
    if (found.length === 3 || found[3] === 1) return found;
  }
  return [255, 255, 255];
}
const low = new Set();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
  if (element.closest("script, style, :disabled, .katex-mathml")) continue;
  const pair = [channels(getComputedStyle(element).color), behind(element)].map(luminance);
  const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  if (ratio < 4.5) low.add(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
}
return [...low];
"""


STYLED = """
return document.readyState === "complete"
    && [...document.querySelectorAll("link[rel=stylesheet]")].every(link => link.sheet);
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(browser: Any, site: Path, scheme: str) -> None:
    """WCAG 2.2, level AA: a ratio of at least 4.5 between text and its background."""
    screen(browser, WIDE, scheme)
    for page in ("index.html", "online.html", STEPPER, "source/Attention/Spec/Online.lean.html",
                 "source/pyimpl/state.py.html", "theorems.html", *MAPS):  # fmt: skip
        if page == STEPPER:
            open_stepper(browser, site)
            button(browser, "next").click()
        else:
            browser.get((site / page).as_uri())
        # On a machine that is busy the style may come after the page.
        wait_for(lambda: browser.execute_script(STYLED), "the style of the page")
        background = browser.execute_script(
            "return getComputedStyle(document.body).backgroundColor"
        )
        assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 27)")
        assert browser.execute_script(CONTRAST) == [], page
