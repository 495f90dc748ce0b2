"""docs/theorems.md, a line a theorem, and the pages of the site that have them in full."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from bridge.audit.theorems import KINDS
from bridge.pages import theorems_page, topics
from bridge.site import full
from bridge.site.full import Made

ROOT = Path(__file__).resolve().parents[3]
LISTED = tomllib.loads((ROOT / "docs" / "theorems.toml").read_text("utf-8"))["theorem"]


@cache
def make_all() -> list[Made]:
    stored = {"Attention.Proof.flash_eq_attention": "⊢ as Lean has it"}
    return [one for one in full.pages(ROOT, stored) if one.under == theorems_page.PAGE]


def test_every_theorem_has_one_line() -> None:
    text = (ROOT / theorems_page.PAGE).read_text("utf-8")
    line = (
        r'^- <a id="([^"]+)"></a>(\*\*)?\[\1\]\(theorems\.md#\1\)(?(2)\*\*)(?: \((\w+)\))?: (.*)$'
    )
    lines = re.findall(line, text, re.M)
    assert sorted(id for id, *_ in lines) == sorted(one["id"] for one in LISTED)
    said = {id: sentence for id, *_, sentence in lines}
    marked = {id: kind or ("main" if bold else "corollary") for id, bold, kind, _ in lines}
    assert marked == {one["id"]: one["kind"] for one in LISTED}
    for one in LISTED:
        sentence, _, link = said[one["id"]].rpartition(" ([Lean](")
        assert sentence == one["sentence"]
        file, first, last = re.fullmatch(r"\.\./([^#]+)#L(\d+)-L(\d+)\)\)", link).groups()  # type: ignore[union-attr]
        shown = (ROOT / file).read_text("utf-8").splitlines()[int(first) - 1 : int(last)]
        assert one["lean"].endswith(shown[0].split()[1])
    assert len(text.splitlines()) < 2 * len(LISTED)


def test_how_many_there_are_of_each_kind_is_said() -> None:
    text = (ROOT / theorems_page.PAGE).read_text("utf-8")
    for kind, called in KINDS.items():
        number = sum(one["kind"] == kind for one in LISTED)
        assert re.search(rf"^- \**{number} {called}\b", text, re.M)


def test_the_theorems_of_a_topic_are_folded() -> None:
    """So that the page is a list of topics until a reader opens one."""
    text = (ROOT / theorems_page.PAGE).read_text("utf-8")
    sections = text.split("\n## ")[2:]
    assert len(sections) == len(topics.TOPICS)
    for section in sections:
        before, _, folded = section.partition("<details><summary>")
        number = int(folded.partition(" theorems</summary>")[0])
        inside, _, after = folded.partition("\n\n</details>")
        assert (before.count("<a id="), inside.count("<a id=")) == (0, number)
        assert after.strip() == ""


def test_within_a_topic_they_stand_in_the_order_of_the_list() -> None:
    text = (ROOT / theorems_page.PAGE).read_text("utf-8")
    order = [one["id"] for one in LISTED]
    for section in text.split("\n## ")[2:]:
        ids = re.findall(r'^- <a id="([^"]+)">', section, re.M)
        assert ids == sorted(ids, key=order.index)


@pytest.mark.thorough
def test_every_theorem_stands_in_full_on_one_page_of_the_site() -> None:
    assert {re.sub(r"-\d+\.md$", ".md", one.name) for one in make_all()} == {
        f"docs/theorems/{topic.slug}.md" for topic in topics.TOPICS
    }
    for one in LISTED:
        (page,) = (page for page in make_all() if one["id"] in page.anchors)
        assert f"\n## {one['id']}\n\n{one['sentence']}\n" in page.text


def test_no_two_pages_have_one_anchor() -> None:
    anchors = [anchor for page in make_all() for anchor in page.anchors]
    assert len(anchors) == len(set(anchors))
    for page in make_all():
        headings = set(re.findall(r"^## (\S+)$", page.text, re.M))
        assert {here for here in page.anchors.values() if here} == headings


def test_statement_definitions_and_python_stand_together() -> None:
    (page,) = (page for page in make_all() if "flash-eq-attention" in page.anchors)
    section = page.text.partition("\n## flash-eq-attention\n")[2].partition("\n## ")[0]
    assert "[Exponential S R]" in section
    assert "theorem flash_eq_attention" in section
    assert "<summary>As Lean has stored it</summary>\n\n```lean\n⊢ as Lean has it\n```" in section
    assert "[`Attention.Spec.flash`](theorems.md#Attention.Spec.flash):\n" in section
    assert re.search(r"\[`pyimpl\.[\w.]+`\]\(\.\./pyimpl/[\w/]+\.py#L\d+-L\d+\)", section)
    assert "Vectors: [" in section
    (page,) = (page for page in make_all() if "Attention.Spec.flash" in page.anchors)
    definition = page.text.partition("\n## Attention.Spec.flash\n")[2].partition("\n## ")[0]
    assert "def flash " in definition
    assert "```python\n" in definition


def test_what_a_statement_needs_is_shown_once_before_it_is_named() -> None:
    (page,) = (page for page in make_all() if "decoder-causal" in page.anchors)
    first = page.text.partition("\n## decoder-causal\n")[2].partition("\n## ")[0]
    assert "def SeesNoLater" in first
    assert page.text.count("def SeesNoLater") == 1
    shown = page.text.index('<a id="Attention.Proof.SeesNoLater"></a>')
    assert shown < page.text.index(
        "[`Attention.Proof.SeesNoLater`](#Attention.Proof.SeesNoLater) is"
    )
