"""The benchmarks' page: the output of `bench --json` is read back, and drawn as it is."""

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


def measurement(mask: str, *ratios: float, operation: str = "forward") -> Measured:
    length = 1 if operation == "decode" else 64
    case = Case(operation, "float32", 1, 4, 2, length, 64, 8, Mask.of_name(mask, 16))  # type: ignore[arg-type]
    names = ("sdpa-flash", "flex")
    peers = [result(n, 3.0, ratio) for n, ratio in zip(names, ratios, strict=False)]
    refused = Result("flash-attn", "refused", "it is not here")
    best = min(ratios)
    return Measured(case, (result("pyimpl", 2.0, None), *peers, refused), names[0], best)


RUN = [
    measurement("full", 0.5, 2.0),
    measurement("window", 12.25),
    measurement("full", 0.25, operation="decode"),
]


def json_of(run: list[Measured]) -> str:
    """The output of `python -m bench --json`."""
    command, date = "python -m bench --device cpu", "2026-01-02T03:04:05Z"
    return report.as_json(command, date, MACHINE, RATES, run)


def read(*run: Measured) -> benchmarks.Run:
    return benchmarks.parse(json_of([*run]), "results.json")


def test_what_the_benchmark_writes_is_read_back() -> None:
    run = read(*RUN)
    assert (run.command, run.date, run.file) == (
        "python -m bench --device cpu", "2026-01-02T03:04:05Z", "results.json"
    )  # fmt: skip
    assert run.versions == "Python 3.12.0, torch 2.13.0, commit abc1234+"
    assert [case.case.mask for case in run.cases] == ["full", "window (16, 0)", "full"]
    assert run.cases[0].ms == {"pyimpl": 2.0, "sdpa-flash": 3.0, "flex": 3.0}
    assert run.cases[0].ratios == {"sdpa-flash": 0.5, "flex": 2.0}
    some = {name: len(several) for name, several in run.operations().items()}
    assert some == {"forward": 2, "decode": 1}


def test_a_run_on_a_gpu_is_told_by_its_device() -> None:
    """A CPU's times until a call returns are measured, too."""
    run = read(*RUN)
    words = "All of these runs were made on a CPU"
    assert words in benchmarks_page.page([run])
    assert "05 UTC, CPU" in benchmarks_page.page([run])
    run.machine.device = "NVIDIA H200"
    assert words not in benchmarks_page.page([run])
    assert "05 UTC, GPU" in benchmarks_page.page([run])


def test_what_another_program_wrote_is_not_drawn_and_named(tmp_path: Path) -> None:
    folder = tmp_path / benchmarks.FOLDER
    folder.mkdir(parents=True)
    (folder / "other.txt").write_text("this\n")
    (folder / "run.json").write_text(json_of(RUN))
    page = benchmarks_page.texts(tmp_path)[benchmarks_page.PAGE]
    assert "Kept as well, as text: [bench/results/other.txt](" in page
    assert [run.file for run in benchmarks.read(tmp_path)] == ["bench/results/run.json"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"ms": 2.0', '"ms": "2"', "Expected `float | null`, got `str` - at `$.cases[0].results"),
        ('"speed_ratio"', '"ratio"', "missing required field `speed_ratio`"),
        ("attention-bench-1", "attention-bench-2", "Invalid enum value 'attention-bench-2'"),
        ('"format"', "format", "results.json: JSON is malformed"),
    ],
)
def test_what_cannot_be_read_fails(old: str, new: str, said: str) -> None:
    text = json_of(RUN)
    assert old in text
    with pytest.raises(SourceError, match=re.escape(said)):
        benchmarks.parse(text.replace(old, new), "results.json")


def test_a_run_without_cases_fails() -> None:
    with pytest.raises(SourceError, match="of length >= 1"):
        read()


def test_the_figure_has_a_mark_for_each_ratio_in_order() -> None:
    run = read(*RUN)
    svg = ElementTree.fromstring(benchmarks_page.draw(run.operations()["forward"]))
    marks = {}
    for path in svg.iter(f"{SVG}path"):
        title = path.find(f"{SVG}title")
        if title is not None:
            found = re.match(r"translate\(([\d.]+) ", path.get("transform", ""))
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

    run = read(measurement("full", 0.5, 2.0))
    both = colours(run.cases)
    assert len(set(both.values())) == 2
    run.cases[0].results[1].speed_ratio = None
    assert colours(run.cases) == {"flex": both["flex"]}


def test_a_ratio_beyond_the_axis_stands_at_its_end() -> None:
    run = read(measurement("full", 0.001, 1000.0))
    assert "times as fast as flex" in benchmarks_page.draw(run.cases)


def test_the_page_says_machine_date_and_versions_of_every_run() -> None:
    page = (ROOT / benchmarks_page.PAGE).read_text("utf-8")
    runs = benchmarks.read(ROOT)
    assert runs
    for run in runs:
        for part in (
            run.machine.device,
            run.versions,
            run.date[:10],
            run.file,
            f"`.venv/bin/{run.command}`",
        ):
            assert part in page
        for case in run.cases:
            for ratio in case.ratios.values():
                assert f" {ratio:.2f} |" in page
    assert ("All of these runs were made on a CPU" in page) == (not any(r.gpu for r in runs))


def test_the_numbers_are_those_of_the_page_on_performance() -> None:
    """Its table has one of each run: forward by two peers, backward by one."""
    text = (ROOT / "docs" / "performance.md").read_text("utf-8")
    drawn = {f"`{Path(one.file).name}`": one for one in benchmarks.read(ROOT)}
    name = "`2026-11-27-cpu.json`"
    assert name in text
    run = drawn[name]
    table = text.partition(name)[2].partition("| --- ")[2].partition("\n\n")[0]
    rows = table.splitlines()[1:]
    masks = {"Boolean mask": "boolean (256, 256)"}
    assert len(rows) == 5
    for row in rows:
        what, flash, flex, backward = (cell.strip() for cell in row.split("|")[1:-1])
        said = [("forward", "sdpa-flash", flash), ("forward", "flex", flex)]
        for operation, peer, number in [*said, ("backward", "sdpa-flash", backward)]:
            cases = run.operations()[operation]
            (case,) = [case for case in cases if case.case.mask == masks.get(what, what)]
            assert f"{case.ratios[peer]:.2f}" == number, (row, peer)
