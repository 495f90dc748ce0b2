"""The map of the theorems: each of them once, with the arrows that Lean's terms have."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
from edits import edit
from small_maps import SMALL, SPEC, theorem

from bridge.index import maps as stored
from bridge.pages import map_data, theorem_map
from bridge.pages.topics import OTHERS, TOPICS, by_topic, topic_of
from bridge.source.excerpt import Excerpt, SourceError

ROOT = Path(__file__).resolve().parents[3]
SVG = "{http://www.w3.org/2000/svg}"


def test_a_topic_has_its_theorems_what_they_speak_of_and_what_they_rest_on() -> None:
    topics = by_topic(SMALL.theorems.values())
    assert [topic.title for topic in topics] == [TOPICS[0].title, TOPICS[2].title, OTHERS.title]
    graph = theorem_map.of_topic(SMALL, topics[TOPICS[0]])
    assert graph.arrows == {
        # weight and Row are parts of softmax.
        (f"{SPEC}softmax", "sum"): "speaks",
        (f"{SPEC}softmax", "safe"): "speaks",
        ("sum", "safe"): "rests",
    }
    assert graph.columns == {f"{SPEC}softmax": 0, "sum": 1, "safe": 2}
    graph = theorem_map.of_topic(SMALL, topics[TOPICS[2]])
    assert {key: node.kind for key, node in graph.nodes.items()} == {
        f"{SPEC}flash": "definition", "safe": "elsewhere", "sum": "elsewhere", "loop": "theorem",
    }  # fmt: skip
    assert graph.columns == {f"{SPEC}flash": 0, "safe": 0, "sum": 0, "loop": 1}


def test_boxes_lead_to_theorems_rows_and_lines() -> None:
    graph = theorem_map.of_topic(SMALL, list(SMALL.theorems.values()))
    assert graph.nodes["loop"].href == "theorems.md#loop"
    assert graph.nodes[f"{SPEC}flash"].href == "coverage.md#op-flash"
    assert graph.nodes[f"{SPEC}Row"].href == "../Attention/Spec/A.lean#L3-L5"


def test_topics_that_use_each_other_have_the_arrow_of_more_uses() -> None:
    circle = {
        "a": theorem("a", "Softmax", ["Row"], []),
        "b": theorem("b", "Online", ["Row"], ["a"]),
        "c": theorem("c", "Online", ["Row"], ["a"]),
        "d": theorem("d", "Flash", ["Row"], ["b", "c"]),
        "e": theorem("e", "Softmax", ["Row"], ["d"]),
    }
    graph = theorem_map.of_topics(by_topic(circle.values()))
    softmax, online, flash = (TOPICS[n].slug for n in range(3))
    assert set(graph.arrows) == {(softmax, online), (online, flash)}
    assert theorem_map.draw(graph, "Topics")


def test_the_drawing_has_a_box_for_each_node_and_a_path_for_each_arrow() -> None:
    graph = theorem_map.of_topic(SMALL, list(SMALL.theorems.values()))
    svg = ElementTree.fromstring(theorem_map.draw(graph, "Title & more"))
    boxes = svg.findall(f"{SVG}a")
    said = {"".join(str(t.text) for t in box.iter(f"{SVG}text")): box for box in boxes}
    assert len(boxes) == len(said) == len(graph.nodes)
    assert said["loop"].get("href") == "../theorems.md#loop"
    title = said["loop"].find(f"{SVG}title")
    assert title.text == "loop < is so."
    keys = list(graph.nodes)
    arrows = {
        (keys[int(p.get("data-from", ""))], keys[int(p.get("data-to", ""))]): p.get("class")
        for p in svg.iter(f"{SVG}path")
        if p.get("data-from")
    }
    assert arrows == graph.arrows
    # Text is as wide as its box allows.
    for text, box in said.items():
        rect = box.find(f"{SVG}rect")
        assert float(rect.get("width", "0")) >= 7.23 * len(text) + 20


def test_the_list_says_all_that_the_index_says() -> None:
    page = theorem_map.texts(SMALL)[theorem_map.PAGE]
    assert (
        "- [sum](theorems.md#sum) speaks of [`Row`](../Attention/Spec/A.lean#L3-L5), "
        "[`weight`](coverage.md#op-weight), [`softmax`](coverage.md#op-softmax); used by "
        "[safe](theorems.md#safe), [loop](theorems.md#loop).\n"
    ) in page
    assert "; rests on [safe](theorems.md#safe), [sum](theorems.md#sum).\n" in page
    assert "The 4 listed theorems" in page
    assert "the 3 places" in page


def test_every_main_theorem_of_the_library_is_drawn_once_with_what_it_rests_on() -> None:
    known = json.loads((ROOT / stored.FILE).read_text("utf-8"))["theorems"]
    drawn, rests = [], set()
    for path in sorted((ROOT / theorem_map.FOLDER).glob("*.svg")):
        svg = ElementTree.fromstring(path.read_text("utf-8"))
        if svg.get("class") != "map" or path.name == "topics.svg":
            continue
        label = {
            box.get("data-node"): "".join(str(t.text) for t in box.iter(f"{SVG}text"))
            for box in svg.iter(f"{SVG}a")
        }
        drawn += [label[b.get("data-node")] for b in svg.iter(f"{SVG}a")
                  if b.get("class") == "theorem"]  # fmt: skip
        rests |= {
            (label[p.get("data-from")], label[p.get("data-to")])
            for p in svg.iter(f"{SVG}path")
            if p.get("class") == "rests" and p.get("data-from")
        }
    assert sorted(drawn) == sorted(known)
    assert rests == {(id, other) for other, one in known.items() for id in one["rests_on"]}
    assert len(rests) > 50


def test_the_theorems_of_the_library_have_topics() -> None:
    known = json.loads((ROOT / stored.FILE).read_text("utf-8"))["theorems"]
    homes = {id: topic_of(one["module"]) for id, one in known.items()}
    assert homes["softcap-derivative"].title == "The backward pass"
    assert homes["softcap"].title == "Masks and changes of the scores"
    assert set(homes.values()) >= set(TOPICS)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the files from which the maps are read."""
    shutil.copytree(ROOT / "Attention", tmp_path / "Attention")
    (tmp_path / "docs").mkdir()
    for name in (stored.FILE, "docs/theorems.toml"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    implemented: Mapping[str, list[Excerpt]] = {}
    monkeypatch.setattr(map_data, "implementations", lambda _: implemented)
    return tmp_path


def test_the_maps_of_the_checkout_are_read(checkout: Path) -> None:
    maps = map_data.read(checkout, [])
    assert maps.theorems["flash-eq-attention"].rests_on == ("online-any-blocks",)
    assert maps.definitions[f"{SPEC}flash"].operation
    assert "def flash " in maps.definitions[f"{SPEC}flash"].lean.text


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("docs/theorems.toml", 'id = "safe-softmax"', 'id = "safer"',
         "of the listed theorems safe-softmax, which is gone"),
        ("docs/theorems.toml", "Attention.Proof.safeSoftmax_eq_softmax", "Attention.Proof.other",
         "another Lean name for safe-softmax"),
        ("docs/theorems.toml", "# docs/theorems.md",
         '[[theorem]]\nid = "x"\nkind = "sanity"\nlean = "X"\nsentence = "X."\n#',
         "of the listed theorems not x"),
        ("Attention/Spec/Softmax.lean", "def safeSoftmax", "def saferSoftmax",
         "of the definitions of the Spec Attention.Spec.safeSoftmax, which is gone"),
        ("Attention/Spec/Softmax.lean", "end Attention.Spec",
         "/-- More. -/\ndef more : Nat := 1\n\nend Attention.Spec",
         "of the definitions of the Spec not Attention.Spec.more"),
        (stored.FILE, stored.FORMAT, "attention-maps-0", "has not the format attention-maps-2"),
    ],
)  # fmt: skip
def test_what_vanishes_or_comes_without_its_map_fails(
    checkout: Path, file: str, old: str, new: str, said: str
) -> None:
    edit(checkout / file, old, new)
    with pytest.raises(SourceError, match=said) as raised:
        map_data.read(checkout, [])
    assert str(raised.value).endswith(stored.COMMAND)
