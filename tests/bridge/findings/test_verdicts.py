"""`docs/verdicts.json`: verdicts are kept by their questions, and said as they were found."""

from __future__ import annotations

import json
from pathlib import Path

from bridge.findings import verdicts
from bridge.pages.findings_page import verdict_levels, verdict_subject
from bridge.proving.published import PUBLISHED
from bridge.proving.verdict import Finding, LevelResult, Verdict
from bridge.ttir.compare import Shape

FLEX = PUBLISHED["flex_attention"]
_EQUAL = LevelResult("fields", equal=[Shape()], elements=7)


def _verdict(*levels: LevelResult) -> Verdict:
    return Verdict(FLEX.name, list(levels), {"f16"}, "", 0.0, [])


def test_a_verdict_takes_the_place_of_that_on_the_same_question(tmp_path: Path) -> None:
    assert verdicts.read(tmp_path) == []
    verdicts.keep(tmp_path, FLEX, _verdict(_EQUAL), "bottom-right", backward=False)
    verdicts.keep(tmp_path, FLEX, _verdict(_EQUAL), "top-left", backward=False)
    finding = Finding(Shape(q_len=2, kv_len=3), "3 of 4 elements", "tt.load at /a/b/c.py:7")
    wrong = LevelResult("fields", finding=finding, wrong=True)
    verdicts.keep(tmp_path, FLEX, _verdict(wrong), "top-left", backward=False)
    top, bottom = verdicts.read(tmp_path)
    assert (top["verdict"], bottom["verdict"]) == ("WRONG", "EQUAL")
    assert top["finding"] == {
        "shape": "1 head, 2 × 3, d 3", "what": "3 of 4 elements", "operation": "c.py:7"
    }  # fmt: skip
    assert set(top["versions"]) == {"torch", "triton"}
    assert verdicts.command(top).endswith("prove flex_attention --keep")
    assert "--alignment bottom-right --keep" in verdicts.command(bottom)
    assert verdict_levels(top) == "none is equal"
    assert verdict_levels(bottom) == "random numbers: 7 elements of 1 shape"
    assert verdict_subject(bottom).endswith("bottom-right")


def test_a_level_that_cannot_tell_is_said(tmp_path: Path) -> None:
    finding = Finding(Shape(), "an absolute value")
    formal = LevelResult("formal", finding=finding)
    verdicts.keep(tmp_path, FLEX, _verdict(_EQUAL, formal), "top-left", backward=False)
    (entry,) = verdicts.read(tmp_path)
    assert verdict_levels(entry) == "random numbers: 7 elements of 1 shape; all inputs: CANNOT TELL"


def test_another_format_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / verdicts.FILE).write_text(json.dumps({"format": "x", "verdicts": [1]}), "utf-8")
    assert verdicts.read(tmp_path) == []
