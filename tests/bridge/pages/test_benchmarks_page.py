"""The benchmarks' page: what `bench` prints is read back, and drawn as it is."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import report
from bench.cases import Case, Mask
from bench.measure import Measured, Result
from bench.timing import Rate
from bridge.pages import benchmarks, benchmarks_page
from bridge.source.excerpt import SourceError

ROOT = Path(__file__).resolve().parents[3]
SVG = "{http://www.w3.org/2000/svg}"
MACHINE = report.Machine(
    "x86_64, AVX2", "x86_64, AVX2", 4, 0.5, "3.12.0", {"torch": "2.13.0"}, "abc1234+"
)
RATES = [Rate("matrix product", "float32", "n = 8", 1.0, 1e9), Rate("copy", "bytes", "", 1.0, 1e9)]


def result(name: str, ms: float, ratio: float | None) -> Result:
    return Result(
        name, "timed", None, 8, 0.1, 0.5, 7, ms, ms / 2, 1.5e-4, 2.5, 0.5, 0.25, ratio
    )  # fmt: skip


def measured(mask: str, *ratios: float, operation: str = "forward") -> Measured:
    length = 1 if operation == "decode" else 64
    case = Case(operation, "float32", 1, 4, 2, length, 64, 8, Mask.named(mask, 16))  # type: ignore[arg-type]
    names = ("sdpa-flash", "flex")
    peers = [result(n, 3.0, ratio) for n, ratio in zip(names, ratios, strict=False)]
    refused = Result("flash-attn", "refused", "it is not here")
    best = min(ratios)
    return Measured(case, (result("pyimpl", 2.0, None), *peers, refused), names[0], best)


RUN = [
    measured("full", 0.5, 2.0),
    measured("window", 12.25),
    measured("full", 0.25, operation="decode"),
]


def printed(run: list[Measured], machine: report.Machine = MACHINE, gpu: bool = False) -> str:
    """The lines of `python -m bench`, as `bench.__main__` puts them together."""
    lines = [
        *report.heading("python -m bench --device cpu", "2026-01-02T03:04:05Z", machine),
        *map(report.rate_line, RATES),
    ]
    before = None
    for one in run:
        if one.case.operation != before:
            lines += ["", report.headings(one.case.operation, gpu)]
        before = one.case.operation
        lines += report.case_lines(one, gpu)
    return "\n".join([*lines, *report.summary(run)]) + "\n"


def test_what_the_benchmark_prints_is_read_back() -> None:
    found = benchmarks.parse(f"Said before.\n\n{printed(RUN)}\n{printed(RUN[:1])}", "results.txt")
    assert found.preface == "Said before."
    first, second = found.runs
    assert (first.options, first.date) == ("--device cpu", "2026-01-02T03:04:05Z")
    assert (first.device, first.threads, first.load) == ("x86_64, AVX2", 4, "load average 0.5")
    assert first.versions == "Python 3.12.0, torch 2.13.0, commit abc1234+"
    assert not first.gpu
    assert [case.mask for case in first.cases] == ["full", "window (16, 0)", "full"]
    assert first.cases[0].ms == {"pyimpl": 2.0, "sdpa-flash": 3.0, "flex": 3.0}
    assert first.cases[0].ratios == {"sdpa-flash": 0.5, "flex": 2.0}
    assert {name: len(some) for name, some in first.operations().items()} == {
        "forward": 2,
        "decode": 1,
    }
    assert len(second.cases) == 1


def test_a_run_on_a_gpu_is_told_by_its_columns() -> None:
    (run,) = benchmarks.parse(printed(RUN, gpu=True), "results.txt").runs
    assert run.gpu
    assert run.cases[0].ms["pyimpl"] == 2.0
    results = benchmarks.Results("results.txt", "", (run,))
    assert "All of these runs were made on a CPU" not in benchmarks_page.page([results])


def test_what_another_program_wrote_is_not_drawn_and_named() -> None:
    found = benchmarks.parse("$ python -m other\nthis\n", "other.txt")
    assert found.runs == ()
    assert "[other.txt](../other.txt)" in benchmarks_page.page([found])
    assert benchmarks.parse("", "empty.txt").runs == ()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  pyimpl ", "  what is this ", "results.txt:9: no line of a benchmark"),
        (" ms ", " s ", "results.txt:9: these are not the columns"),
        ("forward float32, batch", "forwards, batch", "no line of a benchmark"),
        ("Python 3.12.0", "Snake 3.12.0", "no line of a benchmark: 'Snake 3.12.0"),
    ],
)
def test_what_cannot_be_read_fails(old: str, new: str, said: str) -> None:
    text = printed(RUN)
    assert old in text
    with pytest.raises(SourceError, match=re.escape(said)):
        benchmarks.parse(text.replace(old, new), "results.txt")


def test_a_run_without_cases_fails() -> None:
    with pytest.raises(SourceError, match="a run without date, versions or cases"):
        benchmarks.parse(printed([]), "results.txt")


def test_the_figure_has_a_mark_for_each_ratio_in_order() -> None:
    (run,) = benchmarks.parse(printed(RUN), "results.txt").runs
    svg = ElementTree.fromstring(benchmarks_page.draw(run.operations()["forward"]))
    marks = {}
    for path in svg.iter(f"{SVG}path"):
        title = path.find(f"{SVG}title")
        if title is not None:
            found = re.match(r"translate\(([\d.]+) ", path.get("transform", ""))
            assert found is not None
            marks[str(title.text)] = float(found[1])
    assert list(marks) == [
        "full: 0.5 times as fast as sdpa-flash",
        "full: 2.0 times as fast as flex",
        "window (16, 0): 12.25 times as fast as sdpa-flash",
    ]
    half, twice, many = marks.values()
    ticks = {
        str(text.text): float(text.get("x", "0"))
        for text in svg.iter(f"{SVG}text")
        if re.fullmatch(r"[\d.]+", str(text.text))
    }
    assert (half, twice) == (ticks["0.5"], ticks["2"])
    assert ticks["1"] - half == pytest.approx(twice - ticks["1"], abs=0.2)
    assert ticks["10"] < many < ticks["20"]


def test_a_peer_has_one_colour_in_all_figures() -> None:
    """Whoever else was timed: the colour of a mark goes by the peer, not by its place."""

    def colours(cases: list[benchmarks.Case]) -> dict[str, str]:
        svg = ElementTree.fromstring(benchmarks_page.draw(cases))
        return {
            str(title.text).rpartition(" ")[2]: path.get("class", "")
            for path in svg.iter(f"{SVG}path")
            if (title := path.find(f"{SVG}title")) is not None
        }

    (run,) = benchmarks.parse(printed([measured("full", 0.5, 2.0)]), "results.txt").runs
    both = colours(run.cases)
    assert len(set(both.values())) == 2
    del run.cases[0].ratios["sdpa-flash"]
    assert colours(run.cases) == {"flex": both["flex"]}


def test_a_ratio_beyond_the_axis_stands_at_its_end() -> None:
    (run,) = benchmarks.parse(printed([measured("full", 0.001, 1000.0)]), "results.txt").runs
    assert "times as fast as flex" in benchmarks_page.draw(run.cases)


def test_the_page_says_machine_date_and_versions_of_every_run() -> None:
    page = (ROOT / benchmarks_page.PAGE).read_text("utf-8")
    runs = [run for one in benchmarks.read(ROOT) for run in one.runs]
    assert runs
    for run in runs:
        for part in (run.device, run.versions, run.date[:10], run.file, f"`{run.options}`"):
            assert part in page
        for case in run.cases:
            for ratio in case.ratios.values():
                assert f" {ratio:.2f} |" in page
    assert ("All of these runs were made on a CPU" in page) == (not any(r.gpu for r in runs))


def test_the_numbers_are_those_of_the_page_on_performance() -> None:
    """Its table has one of each run: forward by two peers, backward by one."""
    text = (ROOT / "docs" / "performance.md").read_text("utf-8")
    drawn = {f"`{Path(one.file).name}`": one for one in benchmarks.read(ROOT)}
    name = "`2026-11-22-cpu.txt`"
    assert name in text
    (run,) = drawn[name].runs
    table = text.partition(name)[2].partition("| --- ")[2].partition("\n\n")[0]
    rows = table.splitlines()[1:]
    masks = {"Boolean mask": "boolean (256, 256)"}
    assert len(rows) == 5
    for row in rows:
        what, flash, flex, backward = (cell.strip() for cell in row.split("|")[1:-1])
        said = [("forward", "sdpa-flash", flash), ("forward", "flex", flex)]
        for operation, peer, number in [*said, ("backward", "sdpa-flash", backward)]:
            cases = run.operations()[operation]
            (case,) = [case for case in cases if case.mask == masks.get(what, what)]
            assert f"{case.ratios[peer]:.2f}" == number, (row, peer)
