"""The pictures with numbers in them: well-formed, and refused where a vector is gone."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import committed
import pytest

from bridge.pages import pictures
from bridge.source.excerpt import SourceError

ROOT = Path(__file__).resolve().parents[3]
SVG = "{http://www.w3.org/2000/svg}"
NAMES = [f"{pictures.FOLDER}/{name}.svg" for name in ("softmax", "online", "masks", "tolerances")]
SHOWN = ("causal-bottom-right", "document", "tile-loop", "window")
ALL = sorted((ROOT / pictures.FOLDER).glob("*.svg"))


@cache
def draw_all() -> dict[str, str]:
    return pictures.pictures(committed.families(*SHOWN))


def words(text: str) -> list[str]:
    return ["".join(one.itertext()) for one in ET.fromstring(text).iter(f"{SVG}text")]


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_every_picture_is_for_light_and_dark(path: Path) -> None:
    """Each class of the light colours has one of the dark, but for those that have no colour."""
    text = path.read_text("utf-8")
    assert ET.fromstring(text).get("viewBox")
    style = re.search(r"<style>\n(.*)\n@media \(prefers-color-scheme:dark\)\{(.*)\}", text)
    light, dark = style.groups()
    used = set(re.findall(r'class="(\w)"', text))
    assert used <= set(re.findall(r"\.(\w)[,{]", light))
    assert used <= set(re.findall(r"\.(\w)[,{]", dark))


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_every_picture_is_on_a_page(path: Path) -> None:
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    assert any(f"images/{path.name})" in page.read_text("utf-8") for page in pages)


def test_what_the_pictures_say() -> None:
    said = words(draw_all()["docs/images/softmax.svg"])
    assert "divided by the sum 1 + 4 + 2 + 8 + 1 = 16" in said
    assert [one for one in said if "/16" in one] == ["1/16", "4/16", "2/16", "8/16", "1/16"]
    said = words(draw_all()["docs/images/online.svg"])
    assert [one for one in said if one.startswith(("l =", "α ="))] == [
        "l = 1/4 + 1 = 5/4", "l = 5/4 + 1/2 = 7/4", "α = 1", "l = 1/2·7/4 + 9/8 = 2", "α = 1/2",
    ]  # fmt: skip
    masks = draw_all()["docs/images/masks.svg"]
    # Top-left 1 + 2, bottom-right 4 + 5, the window 2 + 3 + 4, documents 1 + 1 + 4 + 4.
    assert masks.count('class="b"') == 3 + 9 + 9 + 10
    said = words(draw_all()["docs/images/tolerances.svg"])
    assert {"float32", "float16", "bfloat16"} <= set(said)
    shares = [int(one.removesuffix(" %")) for one in said if one.endswith(" %")]
    assert len(shares) == 6
    assert all(95 <= sum(shares[n : n + 2]) <= 100 for n in (0, 2, 4))


def test_a_vector_that_is_gone_makes_no_picture() -> None:
    with pytest.raises(SourceError, match="there is no family 'causal-bottom-right' of vectors"):
        pictures.pictures(committed.families(*SHOWN[1:]))
