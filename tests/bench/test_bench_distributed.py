"""The timing of attention in shards: its output. Its counts are tested where there are processes,
`tests/pyimpl/distributed`."""

from __future__ import annotations

import pytest

from bench import distributed
from bench.distributed import Measured, lines, main


def test_what_is_hidden() -> None:
    assert Measured("ring", 1.0, 8, waited=0.1, messages=0.4).hidden == 0.75
    assert Measured("ring", 1.0, 8, waited=0.9, messages=0.4).hidden == 0.0
    assert Measured("ring", 1.0, 0, waited=0.0, messages=0.0).hidden is None


def test_the_slowest_process_is_shown() -> None:
    slow = Measured("ring", 0.2, 2_000_000, waited=0.01, messages=0.02)
    (line,) = lines([[Measured("ring", 0.1, 1, 0.0, 1.0)], [slow]])
    assert line.split() == ["2", "ring", "200.0", "2.00", "10.0", "20.0", "50%"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--length", "0"], "argument --length: '0' is not a whole number from 1 on"),
        (["--processes", "3"], "argument --heads: 3 processes do not divide the heads, 4"),
    ],
)
def test_misuse(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"python -m bench.distributed: {text}\n"


@pytest.mark.thorough
def test_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    sizes = ["--length", "64", "--head-dim", "8", "--repeats", "1"]
    assert distributed.main(["--processes", "1", "2", *sizes]) == 0
    title, header, *rows = capfd.readouterr().out.splitlines()
    assert title.startswith("length 64, 4 heads of 8")
    assert header.split()[:2] == ["processes", "function"]
    assert [row.split()[:2] for row in rows] == [
        ["1", "ring"], ["1", "ulysses"], ["2", "ring"], ["2", "ulysses"]
    ]  # fmt: skip
