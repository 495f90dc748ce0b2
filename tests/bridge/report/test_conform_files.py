"""Tests of the files of `conform`: JUnit XML, a page, JSON."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from committed import families
from misuse import misuse
from rich.console import Console

import bridge.__main__ as command_line
from bridge.command import ROOT
from bridge.conformance.adapters.own import PyimplTiled
from bridge.conformance.functions.features import Features
from bridge.conformance.judging.judge import by_size
from bridge.conformance.judging.run import run
from bridge.conformance.outcomes.outcome import Description, Outcome
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.tensors.batch import Batch, Outputs
from bridge.report import page as pages
from bridge.report import tables
from bridge.report.junit import junit
from bridge.report.page import command, page, theorem_sentences
from bridge.vectors import load as loader
from bridge.vectors.model.attention import Family
from bridge.vectors.model.operations import ComesToAttention

EVIL = "<script>alert(1)</script>\x00 & \"quoted\" 'too' ]]>"
VOID = {"meta", "link", "br", "hr", "img"}


class Evil(PyimplTiled):
    """Wrong in every way, and says it in signs that mean something in XML and HTML."""

    name = "evil"

    def __init__(self, spoil: Callable[[Outputs], Outputs] | None = None) -> None:
        super().__init__()
        self.spoil = spoil

    def run(self, batch: Batch) -> Outputs:
        if self.spoil is None:
            raise RuntimeError(EVIL)
        return self.spoil(super().run(batch))

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        assert self.spoil is not None
        return [self.spoil(one) for one in super().run_vector(vector, dtype, device)]


def outcome(adapter: Evil | PyimplTiled, chosen: list[Family], name: str = "evil:f") -> Outcome:
    result = replace(run(adapter, chosen, "float32", details=True), adapter=name)
    able = Features(("float32",), frozenset({"scale"}), {"softcap": EVIL}, presumed=EVIL)
    return Outcome(Subject(name, "flash", ("lse",)), Description(("float32",), able), result)


def judge_spoiled(chosen: list[Family], value: float = 7.0) -> Outcome:
    def spoil(outputs: Outputs) -> Outputs:
        out = outputs.out.clone()
        out[..., 0, 0] = value
        return Outputs(out, outputs.lse)

    return outcome(Evil(spoil), chosen)


class Checked(HTMLParser):
    """Whether every element is closed, in its order; which there are; and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def check_html(text: str) -> Checked:
    parser = Checked()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def test_junit_has_a_case_for_each_vector() -> None:
    chosen = families("one-key", "softcap", "cache-edits")
    root = ElementTree.fromstring(junit([judge_spoiled(chosen)]))
    (suite,) = root
    cases = suite.findall("testcase")
    assert len(cases) == sum(len(f.vectors) for f in chosen) == int(suite.get("tests", ""))
    failed = [c for c in cases if c.find("failure") is not None]
    skipped = [c for c in cases if c.find("skipped") is not None]
    assert len(failed) == int(suite.get("failures", "")) == int(root.get("failures", "")) > 0
    assert len(skipped) == int(suite.get("skipped", "")) == 15
    message = failed[0].find("failure").get("message")  # type: ignore[union-attr]
    assert message is not None
    assert ", got 7.0, error " in message
    assert {c.get("classname") for c in cases} == {"one-key", "softcap", "cache-edits"}


def test_that_there_was_no_sandbox_is_in_each_file() -> None:
    chosen = families("one-key")
    walled = judge_spoiled(chosen)
    why = "<b>why</b> & so"
    plain = replace(walled, without_walls=why, also=(Path("a b.py"),))
    for one, said in ((walled, False), (plain, True)):
        shown = check_html(page([one], chosen))
        assert (f"NO SANDBOX: {why}." in shown.text) == said
        assert ("--also 'a b.py'" in shown.text) == said
        told = ElementTree.fromstring(junit([one])).find(".//property[@name='without_sandbox']")
        assert (told is not None) == said
        assert (one.to_json()["without_sandbox"] is not None) == said


def test_the_smallest_input_that_fails_comes_first() -> None:
    chosen = families("small-random")
    result = judge_spoiled(chosen).result
    failed = {v.id: v.size for v in result.failures}
    sizes = list(failed.values())
    assert sizes != sorted(sizes, key=by_size)
    console = Console(file=io.StringIO(), width=80)
    section = {"device": "cpu", "results": [{**result.to_json(), "adapter": "[b]mine"}]}
    tables.implementations(console, section)
    written = console.file.getvalue()  # type: ignore[attr-defined]
    at = written.index("[b]mine float32 fails, the smallest input first:")
    lines = written[at:].splitlines()[1:]
    shown = [failed[line.split(":")[0].strip()] for line in lines[:5]]
    assert shown == sorted(sizes, key=by_size)[:5]
    assert lines[5] == f"  and {len(failed) - 5} more"
    pattern = r"  \S+: output\[.*\]: expected \S+, got 7.0, error \S+, tolerance \S+"
    assert all(re.fullmatch(pattern, line) for line in lines[:5])


def test_junit_is_xml_whatever_a_function_says() -> None:
    root = ElementTree.fromstring(junit([outcome(Evil(), families("one-key"), EVIL)]))
    message = root.find(".//failure").get("message")  # type: ignore[union-attr]
    assert message is not None
    assert "<script>alert(1)</script>\ufffd &" in message


def test_the_page_shows_inputs_rows_and_theorem() -> None:
    chosen = families("small-random")
    one = judge_spoiled(chosen)
    parser = check_html(page([one], chosen))
    vector = chosen[0].vectors[0]
    sentence = theorem_sentences(ROOT / "docs" / "theorems.toml")[vector.theorem]
    for wanted in (vector.id, vector.reason, vector.theorem, sentence, vector.lean, "expected"):
        assert wanted in parser.text, wanted
    assert command(one, vector.id) in parser.text
    assert "--rounding-model flash --without lse" in parser.text
    failed = len(one.result.failures)
    assert parser.seen.count("details") == failed


def test_no_table_is_wider_than_a_small_screen() -> None:
    text = page([judge_spoiled(families("one-key"))], families("one-key"))
    assert text.count("<table>") == text.count('<div class="wide"><table>') > 2


def test_each_row_has_its_error_and_its_tolerance() -> None:
    chosen = families("grouped-query")
    one = judge_spoiled(chosen)
    result = one.result.failures[0]
    vector = next(v for v in chosen[0].vectors if v.id == result.id)
    expected = pages._expected_rows(vector, vector.attentions())  # type: ignore[attr-defined]
    lines = pages._lines(result, *expected)  # type: ignore[attr-defined]
    output = [line for line in lines if line.part == "output"]
    assert tuple(line.ratio for line in output) == pytest.approx(result.rows, rel=1e-3)
    assert len(lines) == 2 * len(output)
    wrong = [line for line in output if line.ratio > 1]
    assert wrong
    for line in wrong:
        assert line.got[0] == 7.0
        assert line.error == abs(7.0 - line.expected[line.worst])


def test_the_page_escapes_everything() -> None:
    chosen = families("one-key")
    text = page([outcome(Evil(), chosen, EVIL)], chosen)
    parser = check_html(text)
    assert "script" not in parser.seen
    assert "<script>" not in text
    assert "<script>alert(1)</script>" in parser.text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_the_page_shows_what_are_no_numbers(value: float) -> None:
    chosen = families("one-key")
    text = check_html(page([judge_spoiled(chosen, value)], chosen)).text
    assert {"nan": "NaN", "inf": "∞", "-inf": "−∞"}[str(value)] in text


def test_a_page_of_many_failures_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_SHOWN", 3)
    chosen = families("one-key", "small-random")
    one = judge_spoiled(chosen)
    parser = check_html(page([one], chosen))
    assert parser.seen.count("details") == 3
    assert f"{len(one.result.failures) - 3} more, without their inputs" in parser.text


def test_without_the_list_of_theorems_the_id_stays(tmp_path: Path) -> None:
    chosen = families("one-key")
    text = check_html(page([judge_spoiled(chosen)], chosen, tmp_path / "theorems.toml")).text
    assert chosen[0].vectors[0].theorem in text
    (tmp_path / "theorems.toml").write_text("damaged [")
    assert theorem_sentences(tmp_path / "theorems.toml") == {}


def test_a_page_of_everything_passed() -> None:
    chosen = families("one-key")
    one = outcome(PyimplTiled(), chosen)
    text = check_html(page([one], chosen)).text
    assert "passed" in text
    assert "Failed" not in text


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(command_line.main, ["conform", "pyimpl-tiled", *arguments])


def test_the_files_are_written(tmp_path: Path) -> None:
    names = {"--json": "a.json", "--junit": "a.xml", "--html": "a.html"}
    options = [word for o, name in names.items() for word in (o, str(tmp_path / name))]
    done = invoke("--family", "one-key", "--dtype", "float32", *options)
    assert done.exit_code == 0, done.output
    assert "one-key" in done.stdout
    (report,) = json.loads((tmp_path / "a.json").read_text())
    assert report["ok"] is True
    assert ElementTree.parse(tmp_path / "a.xml").getroot().get("failures") == "0"
    check_html((tmp_path / "a.html").read_text())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "a.json", "a.xml"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--json", "sdpa-math"], "--json: 'sdpa-math' does not end with .json"),
        (["--html", "/no/such/folder/a.html"], "--html: there is no folder for"),
        (["--junit", "."], "--junit: '.' is a folder"),
        (["--html", "/proc/a.html"], "--html: '/proc/a.html' cannot be written"),
        (["--html", "a" * 300], "cannot be written: File name too long"),
        (["--junit", "/tmp/../tmp/a.x", "--html", "/tmp/a.x"], "is the file of --junit, too"),
    ],
)
def test_files_that_cannot_be_written_are_said(
    arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Before anything runs.
    monkeypatch.delattr(loader, "load")
    words = ("conform", "pyimpl-tiled", "--dtype", "float32", *arguments)
    assert sentence in misuse(command_line.main, *words)


def test_a_long_name_leaves_the_numbers_whole() -> None:
    name = "a/long/path/to/a/kernel/of/mine.py:attention"
    one = outcome(PyimplTiled(), families("one-key"), name)
    console = Console(width=80, record=True, file=io.StringIO())
    tables.implementations(console, {"device": "cpu", "results": [one.to_json()]})
    shown = console.export_text()
    assert "…" not in shown
    for heading in ("passed", "failed", "unsupported", "error/", "tolerance", "float32"):
        assert heading in shown


def test_the_table_by_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    chosen = ("--family", "one-key", "--family", "cache-edits")
    out = invoke(*chosen, "--dtype", "float32", "--dtype", "float64").stdout
    assert "pyimpl-tiled by family, over float64, float32" in out
    (line,) = [line for line in out.splitlines() if "│ one-key" in line]
    assert [cell.strip() for cell in line.split("│")][2:6] == ["one-key", "24", "0", "0"]
    assert "Unsupported, 30: takes no vectors of cache" in out
