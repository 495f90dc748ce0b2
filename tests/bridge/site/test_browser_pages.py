"""Every page of the site in a browser, on screens of several widths: no error, nothing wider than
the screen, nothing cut off."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from in_browser import MARKS, PHONE, STEPPER, console_of, open_page, screen

pytestmark = MARKS


# The parts of a page: each may be too wide, or cut off.
PARTS = (
    '<div class="arithmatex', '<span class="arithmatex', "<pre", 'class="beside', "<table",
    "<details", "<svg", "<img",
)  # fmt: skip


def pages(site: Path, *, everything: bool) -> list[Path]:
    """Those of the documentation; of sources and of pdoc's reference one is much as another. Not
    everything: of a folder's pages, which one template makes, the largest alone; of the others the
    first, the stepper, one that has columns in few words, and of each part the one that has most of
    it."""
    others = ("source", "api")
    found = sorted(p for p in site.rglob("*.html") if p.relative_to(site).parts[0] not in others)
    if everything:
        return found
    folders = {p.parent for p in found} - {site}
    largest = [max(folder.glob("*.html"), key=lambda p: p.stat().st_size) for folder in folders]
    texts = {p: p.read_text("utf-8").partition("<article")[2] for p in found if p.parent == site}
    chosen = {site / name for name in ("index.html", STEPPER, "online.html")}
    for part in PARTS:
        most = max(texts, key=lambda p: texts[p].count(part))
        assert texts[most].count(part), part
        chosen.add(most)
    return [*sorted(chosen), *sorted(largest)]


@dataclass(frozen=True)
class Seen:
    """A page as it is on screens of some widths. cut_off: the finding of `CUT_OFF`; columns: that
    of `COLUMNS`, for pages that have them."""

    page: str
    said: list[str]
    titled: bool
    raw_formulas: list[str]
    widths: dict[int, int]
    cut_off: dict[int, list[str]]
    columns: dict[int, tuple[list[str], int, bool]]


@pytest.fixture(
    scope="module", params=[False, pytest.param(True, marks=pytest.mark.thorough)],
    ids=["a page of each kind", "every page"],
)  # fmt: skip
def seen(request: pytest.FixtureRequest, browser: Any, site: Path) -> list[Seen]:
    """Pages of the documentation and one of sources, each read once, since reading takes longest:
    on a phone's screen first, then on wider ones."""
    source = site / "source" / "Attention" / "Spec" / "Online.lean.html"
    some = pages(site, everything=request.param)
    assert len(some) > (100 if request.param else 8)
    return [look_at(browser, page, site) for page in [*some, source]]


def look_at(browser: Any, page: Path, site: Path) -> Seen:
    name, columns = page.relative_to(site).as_posix(), 'class="beside"' in page.read_text("utf-8")
    open_page(browser, page, PHONE)
    found = Seen(
        name,
        console_of(browser),
        browser.find_element("tag name", "h1").is_displayed(),
        [one.text for one in browser.find_elements("css selector", RAW)],
        *({}, {}, {}),
    )
    for size in (PHONE, (1280, 900), *(WIDE_COLUMNS if columns else ())):
        screen(browser, size)
        # A phone shows a page that is wider made smaller: `innerWidth` is then the page's own.
        width = browser.execute_script("return document.scrollingElement.scrollWidth")
        found.widths[size[0]] = width
        found.cut_off[size[0]] = browser.execute_script(CUT_OFF)
        if columns and size != PHONE:
            found.columns[size[0]] = tuple(browser.execute_script(COLUMNS))
    return found


# Formulas that are not set.
RAW = ".arithmatex:not(:has(.katex))"
WIDE_COLUMNS = ((1500, 900), (1920, 900))

# Of code in columns the parts cut off, and whether any columns stand side by side.
COLUMNS = """
for (const one of document.querySelectorAll("details")) one.open = true;
const code = [...document.querySelectorAll(".beside pre > code")];
const left = (one) => one.getBoundingClientRect().left;
return [
  code.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent),
  code.filter((one) => getComputedStyle(one).whiteSpace !== "pre").length,
  [...document.querySelectorAll(".beside")]
    .some((one) => new Set([...one.children].map(left)).size > 1),
];
"""


# Formulas, comments and drawings of which a part is neither seen nor reached by scrolling.
CUT_OFF = """
for (const one of document.querySelectorAll("details")) one.open = true;
const scrolls = (one, way) => {
  for (let at = one; at && at.tagName !== "ARTICLE"; at = at.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(at)["overflow" + way])) return at;
  return null;
};
const cut = [];
for (const one of document.querySelectorAll(".katex-html .base, article pre > code")) {
  const box = one.getBoundingClientRect(), text = one.textContent.slice(0, 40);
  if (box.right > innerWidth + 1 && !scrolls(one, "X")) cut.push(`too wide: ${text}`);
  const around = one.closest("div.arithmatex, pre")?.getBoundingClientRect();
  if (around && (box.top < around.top - 1 || box.bottom > around.bottom + 1))
    cut.push(`too high: ${text}`);
}
for (const svg of document.querySelectorAll(".drawing svg")) {
  const all = svg.getBBox(), seen = svg.viewBox.baseVal;
  if (all.x < -1 || all.y < -1 || all.x + all.width > seen.width + 1
      || all.y + all.height > seen.height + 1) cut.push("drawing");
  if (svg.clientWidth > innerWidth && !scrolls(svg.parentElement, "X")) cut.push("drawing's box");
}
return cut;
"""


def test_every_page(seen: list[Seen]) -> None:
    for one in seen:
        assert one.said == [], one.page
        assert one.titled, one.page
        assert one.raw_formulas == [], one.page
        # Nothing is wider than the screen, so that a phone need not scroll to both sides.
        for size, width in one.widths.items():
            assert width <= size, f"{one.page}: {width - size} px too wide"


def test_columns_of_code_fit(seen: list[Seen]) -> None:
    """No line of Lean or Python that stand beside each other is cut off or broken; where the screen
    has not the width, they stand one below the other."""
    some = [one for one in seen if one.columns]
    assert len(some) >= 2
    for one in some:
        for width, (cut, broken, side_by_side) in one.columns.items():
            assert (cut, broken) == ([], 0), f"{one.page} at {width}"
            assert not (width <= 1280 and side_by_side), one.page
    (online,) = (one for one in some if one.page == "online.html")
    assert online.columns[1920][2]


def test_nothing_is_cut_off(browser: Any, site: Path, seen: list[Seen]) -> None:
    for one in seen:
        assert not any(one.cut_off.values()), f"{one.page}: {one.cut_off}"
    # It would be seen.
    browser.get((site / "backward.html").as_uri())
    browser.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<style>div.arithmatex, article pre, "
        "article code { overflow: hidden !important; max-height: 10px; }</style>')"
    )
    assert browser.execute_script(CUT_OFF) != []
