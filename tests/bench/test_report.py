"""The run in words and as JSON."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import pytest
from bench_fakes import CPU, FakeClock, case, fake_bench, peer, refusing_peer

from bench import report
from bench.cases import Mask
from bench.measure import Measured, Result
from bench.peers import OURS, Refused
from bench.report import Machine
from bench.timing import Rate

DECODE = case(operation="decode", q_len=1, kv_len=8, mask=Mask("full"))
RATES = [
    Rate("matrix product", "float32", "2 × 2, no TF32", 1.0, 1e9),
    Rate("copy", "bytes", "256 MiB, read and written", 1.0, 1e9),
]


@pytest.fixture(scope="module")
def run() -> list[Measured]:
    peers = {"other": peer(), "absent": refusing_peer(Refused("is not here"))}
    rates = {rate.dtype: rate for rate in RATES}
    return list(fake_bench(FakeClock([1.0, 2.0]), peers, rates=rates).run([case(), DECODE], 1e3))


def test_a_line_for_each_that_was_timed(run: list[Measured]) -> None:
    lines = report.case_lines(run[0], on_gpu=False)
    assert lines[0] == "forward float32, batch 1, heads 2, head_dim 8, length 4, causal"
    assert [line.split()[0] for line in lines[1:]] == [OURS, "other"]
    columns = report.headings("forward", on_gpu=False).split()
    assert columns == [
        "forward", "ms", "TFLOP/s", "of", "matmul", "pyimpl/it", "rounds", "error/allowed",
    ]  # fmt: skip
    assert lines[2].split()[1] == "2000.000"
    assert lines[2].split()[4:6] == ["2.00", "3"]


def test_decode_has_its_bytes_and_a_gpu_its_time_of_issue(run: list[Measured]) -> None:
    assert "GB/s  of copy" in report.headings("decode", on_gpu=False)
    assert "issue ms" in report.headings("forward", on_gpu=True)
    for operation, measured in (("forward", run[0]), ("decode", run[1])):
        for on_gpu in (False, True):
            lines = report.case_lines(measured, on_gpu)
            assert len({len(line) for line in lines[1:]}) == 1
            assert len(lines[1]) == len(report.headings(operation, on_gpu))  # type: ignore[arg-type]


def test_the_summary_names_the_best_peer_and_what_was_not_timed(run: list[Measured]) -> None:
    text = "\n".join(report.summary(run))
    assert "length 4, causal  2.00 of other" in text
    assert "absent, 2 of 2 cases, refused: is not here" in text


@pytest.mark.parametrize(("issue_ms", "bound"), [(79.0, False), (80.0, True), (300.0, True)])
def test_what_the_host_bounds_is_marked(run: list[Measured], issue_ms: float, bound: bool) -> None:
    ours = replace(run[0].results[0], ms=100.0, issue_ms=issue_ms)
    one = replace(run[0], results=(ours, *run[0].results[1:]))
    assert report.case_lines(one, on_gpu=True)[1].endswith("  bound by the host") == bound
    assert any(x.endswith(", bound by the host") for x in report.summary([one], True)) == bound
    lines = [*report.case_lines(one, on_gpu=False), *report.summary([one])]
    assert not any("bound by the host" in line for line in lines)


def test_the_summary_says_why_there_is_no_ratio() -> None:
    ours, wrong = Result(OURS, "timed"), Result(OURS, "wrong", "an error of 1")
    alone, none = Measured(case(), (ours,), None, None), Measured(case(), (wrong,), None, None)
    text = "\n".join(report.summary([alone, none]))
    assert "no peer to compare with" in text
    assert "pyimpl was not timed" in text
    assert "pyimpl, 1 of 2 cases, wrong: an error of 1" in text


def test_the_json_holds_everything(run: list[Measured]) -> None:
    machine = Machine.here(CPU)
    whole = json.loads(report.as_json("python -m bench", "2026-01-02", machine, RATES, run))
    assert whole.keys() == {
        "format", "command", "date", "machine", "load_average_after", "rates", "cases",
    }  # fmt: skip
    assert whole["format"] == report.FORMAT
    assert whole["machine"]["versions"].keys() >= {"torch", "numpy"}
    assert whole["machine"].keys() == {
        "device", "processor", "cpu_threads", "load_average", "python", "versions", "commit",
    }  # fmt: skip
    assert [rate["per_second"] for rate in whole["rates"]] == [1e9, 1e9]
    first = whole["cases"][0]
    assert first.keys() == {"case", "results", "best_peer", "ratio_to_best"}
    assert first["case"]["mask"] == {"name": "causal", "left": None, "right": 0}
    assert first["case"]["flops"] == case().flops
    assert first["case"]["shown"] == {"heads": "2", "mask": "causal"}
    assert first["best_peer"] == "other"
    ours, other, absent = first["results"]
    assert ours["name"] == OURS
    assert other["speed_ratio"] == first["ratio_to_best"] == 2.0
    assert other.keys() == ours.keys() == absent.keys()
    assert (absent["status"], absent["reason"]) == ("refused", "is not here")


def test_an_infinite_error_is_null_in_the_json() -> None:
    wrong = Result("other", "wrong", "not finite", max_error=float("inf"))
    run = [Measured(case(), (wrong,), None, None)]
    whole = json.loads(report.as_json("", "", Machine.here(CPU), [], run))
    assert whole["cases"][0]["results"][0]["max_error"] is None


def test_sources_that_are_no_checkout_have_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(128, "git")

    monkeypatch.setattr(report.subprocess, "run", fails)
    assert Machine.here(CPU).commit is None


def test_rates_in_words() -> None:
    assert report.rate_line(RATES[0]) == (
        "matrix product, float32 (2 × 2, no TF32): 0.001 TFLOP/s, 1.000 ms"
    )
    assert report.rate_line(RATES[1]).endswith("read and written): 1.0 GB/s, 1.000 ms")
