"""Numbers and tables in pages written by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bridge.pages import hand_written, sizes
from bridge.source.excerpt import SourceError
from bridge.vectors.format.index import entries_of
from bridge.vectors.load import load

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "tests" / "vectors"
NUMBERS = {"vectors": 31, "families": 4, "mutants": 7}
SAID = ("{vectors} vectors in {families} families", "{mutants} mutants: {mutants} caught")
PAGES = {
    "a.md": "So 3 vectors in\n12 families. And 1024 vectors.\n\n    5 mutants: 6 caught\n",
    "b.md": "<!-- t: written by bridge pages -->\n<!-- end of t -->\n9 families; 1003 vectors in 9 "
    "families.\n",
}


def test_numbers_and_tables_are_renewed() -> None:
    made = hand_written.renew(PAGES, SAID, NUMBERS, {"t": "| x |\n"})
    assert made == {
        "a.md": "So 31 vectors in\n4 families. And 1024 vectors.\n\n    7 mutants: 7 caught\n",
        "b.md": "<!-- t: written by bridge pages -->\n\n| x |\n\n<!-- end of t -->\n9 families; 31 "
        "vectors in 4 families.\n",
    }
    assert hand_written.renew(made, SAID, NUMBERS, {"t": "| x |\n"}) == made
    longer = hand_written.renew(made, SAID, NUMBERS, {"t": "| x |\n| y |\n"})
    assert "\n\n| x |\n| y |\n\n<!-- end" in longer["b.md"]


@pytest.mark.parametrize(
    ("said", "tables", "why"),
    [
        (("{vectors} inputs",), {"t": ""}, "no page says '{vectors} inputs' any more"),
        (SAID, {"t": "", "u": ""}, "no page has a place for the table 'u' any more"),
        (SAID, {"u": ""}, "there is no table 't'; there are u"),
    ],
)
def test_what_has_no_place_is_an_error(
    said: tuple[str, ...], tables: dict[str, str], why: str
) -> None:
    with pytest.raises(SourceError, match=re.escape(why)):
        hand_written.renew(PAGES, said, NUMBERS, tables)


COUNTED = re.compile(
    r"\b\d+ (?:theorems are listed|theorems, each|vectors in|pairs of|mutants|of them (?:on|main))"
    r"|(?:took|`make verify` \|) \d+ minutes|\b\d+ minutes after"
    r"|… \(\d+ "
)


COUNTING = ("README.md", "docs/running.md", "docs/what-is-proved.md")


def test_every_count_is_written_by_the_command() -> None:
    """A number that no sentence of the table covers would stay as it is."""
    pages = {name: (ROOT / name).read_text("utf-8") for name in COUNTING}
    found = {name: len(COUNTED.findall(text)) for name, text in pages.items()}
    assert all(found.values())
    none = dict.fromkeys(re.findall(r"\{(\w+)\}", "".join(hand_written.SAID)), 99999)
    others = "\n".join(
        (ROOT / "docs" / name).read_text("utf-8") for name in ("conform.md", "trust.md")
    )
    text = {"all": "\n".join(pages.values()), "others": others}
    places = re.findall(r"<!-- ([\w-]+): written by bridge pages -->", "".join(text.values()))
    tables = dict.fromkeys(places, "")
    made = hand_written.renew(text, hand_written.SAID, none, tables)
    for counted in re.finditer(COUNTED, made["all"]):
        assert "99999" in counted[0], counted[0]


def test_no_count_of_the_second_kernel_is_typed_by_hand() -> None:
    """Neither those of the table of statements, nor any other that has no sentence of its own."""
    page = (ROOT / "docs" / "trust.md").read_text("utf-8")
    section = page.split("\n### The second kernel\n")[1].split("\n## ")[0]
    said = [sentence for sentence in hand_written.SAID if "{bodiless" in sentence]
    names = {name for sentence in said for name in re.findall(r"\{(\w+)\}", sentence)}
    count = r"\b\d[\d,]{2,}\b|\b\d+ (?:theorems|definitions|opaque|axioms|declarations)"
    made = hand_written.renew({"": section}, said, dict.fromkeys(names, 99999), {})[""]
    found = re.findall(count, made)
    assert len(found) == 6
    assert all("99999" in one for one in found), found


def test_constants_without_a_body_are_counted_in_the_table() -> None:
    table = json.loads((ROOT / "docs" / "core-statements.json").read_text("utf-8"))
    found = hand_written.numbers(ROOT, ())
    assert found["bodiless"] == sum(map(len, table.values()))
    assert found["bodiless_theorems"] == len(table["theorem"])
    assert found["bodiless_definitions"] == len(table["definition"])
    assert found["bodiless_opaque"] == len(table["opaque constant"])
    assert found["bodiless_axioms"] == len(table["axiom"])


def test_the_numbers_are_those_of_the_project() -> None:
    families = load()
    found = hand_written.numbers(ROOT, families)
    assert found["vectors"] == sum(len(family.vectors) for family in families)
    alone = {"layer", "transformer", "tile-bounds", "philox", "cache"}
    judged = [len(f.vectors) for f in families if f.operation not in alone]
    assert found["judged"] == sum(judged)


def test_the_sizes_are_those_of_the_vectors() -> None:
    """Compared with the files themselves."""
    lines = sizes.table(load()).splitlines()[2:]
    rows = {line.split(" | ")[0].strip("| `"): line.split(" | ")[1:] for line in lines}
    assert {"gradient", "varlen", "paged", "dropout", "cascade"} <= rows.keys()
    for operation in ("attention", "grouped-query"):
        names = [e["file"] for e in entries_of(FOLDER) if e["operation"] == operation]
        files = [json.loads((FOLDER / name).read_text("utf-8")) for name in names]
        vectors = [one for file in files for one in file["vectors"]]
        largest = [max(one[name] for one in vectors) for name in ("q_len", "kv_len")]
        assert rows[operation][:3] == [str(len(vectors)), *map(str, largest)]
    assert rows["attention"][3].startswith("1 to 20, 24, 25, ")


def test_sizes_are_listed_in_their_order() -> None:
    assert sizes._list_numbers([8, 3, 1, 2, 5, 6, 8]) == "1 to 3, 5, 6, 8"
