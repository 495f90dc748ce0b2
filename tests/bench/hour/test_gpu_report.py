"""The report of findings: errors first, then tables and proposals, by machine."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from bench_fakes import FakeClock, case, fake_bench, peer

from bench import gpu_report, plot
from bench.hour import tables
from bench.hour.candidates import LARGE, Candidate, default, tuned_cases
from bench.hour.findings import Finding
from bench.report import Machine
from bridge.pages import benchmarks

FULL, CAUSAL = tuned_cases("forward", LARGE)[:2]
USUAL = {x: default("forward", x, 90) for x in (FULL, CAUSAL)}
OPTIONS = dict(USUAL[FULL].options)
WARPS, KEYS = 2 * OPTIONS["num_warps"], 2 * OPTIONS["block_n"]


def show(**changed: int) -> str:
    """The usual options, some of them changed, as a report has them."""
    found = OPTIONS | changed
    return str(tuple(found[x] for x in ("block_m", "block_n", "num_warps", "num_stages")))


def start(run: int = 1, device: str = "NVIDIA H200") -> Finding:
    machine = Machine(device, "x86_64", 16, 0.5, "3.12.3", {"torch": "2.11.0"}, "abc1234")
    return {
        "run": run, "what": "start", "identity": [device, "3.6.0"], "capability": 90,
        "date": f"2026-12-0{run}T10:00:00Z", "machine": asdict(machine), "nvidia_smi": "",
    }  # fmt: skip


def other(one: Candidate, **options: int) -> Candidate:
    return replace(one, options=tuple(sorted((dict(one.options) | options).items())))


def timing(one: Candidate, ms: float, run: int = 1) -> Finding:
    return {
        "run": run, "what": "timed", "candidate": one.plain, "ms": ms, "spread": 0.01,
        "issue_ms": 0.01, "tflops": one.case.flops / ms / 1e9, "gbps": 1.0, "not_captured": None,
    }  # fmt: skip


def through_json(findings: list[Finding]) -> list[Finding]:
    return [json.loads(json.dumps(x)) for x in findings]


def measurement(seconds: float, name: str, wrong: bool = False) -> dict[str, Any]:
    peers = {name: peer((lambda out: out + 1.0) if wrong else (lambda out: out))}
    clock = FakeClock([1.0, seconds])
    return asdict(fake_bench(clock, peers).measure(case(), 1000.0))


FOUND = [
    start(),
    {"run": 1, "what": "rate", "rate": {"what": "copy", "dtype": "bytes", "detail": "1 GiB",
                                        "ms": 0.5, "per_second": 4.3e12}},
    {"run": 1, "what": "latency", "call": "one addition", "how": "captured", "cache": "hot",
     "ms": 0.0031, "spread": 0.1, "issue_ms": 0.004},
    {"run": 1, "what": "compiled", "candidate": USUAL[FULL].plain, "seconds": 3.0,
     "kernels": {"k": {"shared": 9, "registers": 229, "spilled": 0}}},
    timing(USUAL[FULL], 1.0),
    timing(USUAL[CAUSAL], 0.6),
    timing(other(USUAL[FULL], num_warps=WARPS), 0.8),
    timing(other(USUAL[CAUSAL], num_warps=WARPS), 0.6),
    # Faster, but not known of the other mask.
    timing(other(USUAL[FULL], block_n=KEYS), 0.1),
    timing(replace(USUAL[FULL], variant="no maximum"), 0.75),
    {"run": 1, "what": "peers", "captured": False, "measured": measurement(0.5, "sdpa-cudnn")},
    {"run": 1, "what": "peers", "captured": False, "measured": measurement(2.0, "flex")},
    {"run": 1, "what": "race", "candidate": USUAL[FULL].plain, "on": "it", "runs": 50,
     "different": 0},
    {"run": 1, "what": "vectors", "family": "softcap", "dtype": "float32", "failures": [],
     "counts": {"passed": 5, "failed": 0, "unsupported": 1}, "ratio": 0.5},
    {"run": 1, "what": "job", "job": "tune x", "status": "crashed", "reason": "status -11"},
    {"run": 1, "what": "stage", "stage": "flex", "statuses": {"ok": 1}, "left": 3},
]  # fmt: skip


def text(*more: Finding) -> str:
    return "\n".join(gpu_report.report(through_json([*FOUND, *more])))


def test_the_fastest_options_stand_first() -> None:
    lines = [x for x in text().splitlines() if " ms ± " in x]
    assert [x.split()[0] for x in lines] == ["0.1000", "0.8000", "1.0000", "0.6000", "0.6000"]
    assert lines[2].endswith(f"{show()}, 229 registers, 0 B spilled, as launch_options has it")
    assert f"{FULL.flops / 1e9:.4g} TFLOP/s" in lines[2]


def test_options_are_proposed_that_are_faster_for_all_masks_together() -> None:
    # 1.25 times as fast full, as fast causal: √1.25.
    assert (
        f"  forward, head_dim 64: {show(num_warps=WARPS)} instead of {show()}: "
        "1.12 times as fast (causal 1.00, full 1.25), of 2"
    ) in text()


def test_what_is_hardly_faster_is_not_proposed() -> None:
    found = [start(), timing(USUAL[FULL], 1.0), timing(other(USUAL[FULL], num_warps=WARPS), 0.98)]
    lines = tables.proposals(through_json(found))
    assert lines[1:] == [f"  forward, head_dim 64: {show()} stays, of 2"]


def test_two_loops_and_one_are_compared() -> None:
    where = tuned_cases("keys", LARGE)[0]
    found = [start()]
    for kernel, ms in (("keys", 1.5), ("queries", 1.0), ("sums", 2.25)):
        found += [
            timing(default(kernel, where, 90), ms),
            timing(default(kernel, where, 90), 2 * ms),
        ]
    (line,) = [x for x in tables.proposals(through_json(found)) if "backward" in x]
    assert line.endswith("two loops 5.0000 ms, one with atomic additions 4.5000 ms")


def test_what_was_judged_is_counted() -> None:
    def check_of(job: str, ratio: float, wrong: str | None = None) -> Finding:
        return {
            "run": 1, "what": "checked", "job": job, "candidate": USUAL[FULL].plain, "on": "it",
            "rows": 8, "error_over_tolerance": ratio, "wrong": wrong,
        }  # fmt: skip

    found = [
        check_of("correct a", 0.3), check_of("correct a", 0.6), check_of("correct b", 0.4),
        check_of("correct b", 2.0, "an error"), check_of("tune a", 0.1), check_of("tune b", 0.7),
    ]  # fmt: skip
    assert tables.checks(through_json(found)) == [
        "Right, against float64",
        "  forward: 1 of 2 cases as launch_options has them, 2 other choices; largest error 0.7 of "
        "the tolerance",
    ]


def test_a_kernel_that_computes_some_gradients_is_not_paid_for_all() -> None:
    where = tuned_cases("queries", LARGE)[0]
    lines = tables.fastest(through_json([start(), timing(default("queries", where, 90), 1.0)]))
    assert f"{0.6 * where.flops / 1e9:.4g} TFLOP/s" in lines[-1]


@pytest.mark.parametrize(("variant_ms", "said"), [(0.75, "25% less"), (1.1, "10% more")])
def test_what_is_left_out_may_cost(variant_ms: float, said: str) -> None:
    found = [
        timing(USUAL[FULL], 1.0),
        timing(replace(USUAL[FULL], variant="no maximum"), variant_ms),
    ]
    assert tables.why(through_json(found))[1].endswith(said)


def test_what_is_left_out_says_what_it_takes() -> None:
    assert "  forward, head_dim 64: no maximum: 0.7500 of 1.0000 ms, 25% less" in text()


def test_what_is_left_out_of_a_kernel_that_was_not_timed() -> None:
    found = [timing(replace(USUAL[FULL], variant="no maximum"), 0.75)]
    assert tables.why(through_json(found))[1:] == [
        "  forward, head_dim 64: no maximum: 0.7500 ms, the whole was not timed"
    ]


def test_the_peers_of_a_case_stand_together() -> None:
    lines = text().splitlines()
    (line,) = [x for x in lines if x.endswith("0.50 of sdpa-cudnn")]
    assert line.startswith(f"  {case()}")
    assert sum(x.startswith("  pyimpl ") for x in lines) == 1
    assert any(x.startswith("  flex ") for x in lines)


def test_the_rest() -> None:
    found = text()
    for line in (
        "2026-12-01T10:00:00Z, NVIDIA H200, 16 CPU threads, load average 0.5",
        "copy, bytes (1 GiB): 4300.0 GB/s, 0.500 ms",
        "one addition, captured, level-2 cache hot: 3.1 µs, issued in 4.0 µs",
        "The same inputs again: 1 pairs of kernel and case, 0 with other bits",
        "  float32: 1 families, 5 passed, 0 failed, 1 unsupported",
        "  crashed: tune x: status -11",
        "  run 1, flex: 3 left out when its time was over",
    ):
        assert line in found
    assert "WRONG" not in found


def test_what_is_wrong_stands_before_all_else() -> None:
    bad = [
        {"run": 1, "what": "checked", "job": "correct x", "candidate": USUAL[FULL].plain,
         "on": "the small case",
         "rows": 8, "error_over_tolerance": 3.0, "wrong": "an error of 1"},
        {"run": 1, "what": "race", "candidate": USUAL[CAUSAL].plain, "on": "it", "runs": 50,
         "different": 2},
        {"run": 1, "what": "peers", "captured": False, "measured": measurement(1.0, "flex", True)},
        {"run": 1, "what": "vectors", "family": "softcap", "dtype": "float16",
         "failures": ["softcap-3 failed"], "counts": {"passed": 0, "failed": 1, "unsupported": 0},
         "ratio": 2.0},
    ]  # fmt: skip
    lines = text(*bad).splitlines()
    at = lines.index("WRONG")
    assert at == 4  # after the time, the machine and the versions
    assert lines[at + 1].startswith(f"  {USUAL[FULL].name}; on the small case: an error of 1")
    assert lines[at + 2].endswith("on it: other bits in 2 of 50 runs")
    assert lines[at + 3].startswith(f"  flex, {case()}: an error of 1, ")
    assert lines[at + 4] == "  vectors, float16: softcap-3 failed"
    assert gpu_report.summary(through_json([*FOUND, *bad]))[1] == "WRONG"


def test_each_machine_for_itself() -> None:
    h100 = [start(2, "NVIDIA H100"), timing(USUAL[FULL], 5.0, run=2)]
    parts = text(*h100).split("$ python -m bench.gpu_hour")
    assert len(parts) == 3
    assert "NVIDIA H100" not in parts[1]
    assert "5.0000 ms" in parts[2]
    assert "5.0000 ms" not in parts[1]
    assert f"{show()} stays, of 1" in "\n".join(gpu_report.summary(through_json([*FOUND, *h100])))


def test_the_command_reads_a_file_that_breaks_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = tmp_path / "found.jsonl", tmp_path / "out.txt"
    path.write_text("".join(json.dumps(x) + "\n" for x in FOUND) + '{"run": 1, "wh', "utf-8")
    assert gpu_report.main([str(path), "--output", str(output)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("$ python -m bench.gpu_hour\n")
    assert output.read_text("utf-8") == said


@pytest.mark.skipif(not plot.has_matplotlib(), reason="needs matplotlib")
def test_the_peers_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    path.write_text("".join(json.dumps(x) + "\n" for x in FOUND), "utf-8")
    assert gpu_report.main([str(path), "--plot", str(tmp_path / "peers.svg")]) == 0
    assert "<svg" in (tmp_path / "peers.svg").read_text("utf-8")
    (panel,) = plot.panels(tables.measurements(through_json(FOUND)), [])
    assert set(panel.series) == {"pyimpl", "sdpa-cudnn", "flex"}


def test_the_json_is_that_of_the_benchmark(tmp_path: Path) -> None:
    path, target = tmp_path / "found.jsonl", tmp_path / "peers.json"
    found = [*FOUND, {"run": 1, "what": "peers", "captured": True,
                      "measured": measurement(0.9, "sdpa-flash")}]  # fmt: skip
    path.write_text("".join(json.dumps(x) + "\n" for x in found), "utf-8")
    assert gpu_report.main([str(path), "--json", str(target)]) == 0
    run = benchmarks.parse(target.read_bytes(), "peers.json")
    assert (run.command, run.date) == ("python -m bench.gpu_hour", "2026-12-01T10:00:00Z")
    # Of a case that was timed both ways not the CUDA graph.
    assert [one.ratios for one in run.cases] == [{"sdpa-cudnn": 0.5, "flex": 2.0}]
    path.write_text("".join(json.dumps(x) + "\n" for x in (found[0], found[-1])), "utf-8")
    assert gpu_report.main([str(path), "--json", str(target)]) == 0
    run = benchmarks.parse(target.read_bytes(), "peers.json")
    assert [one.ratios for one in run.cases] == [{"sdpa-flash": 0.9}]


def test_nothing_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "found.jsonl").touch()
    assert gpu_report.main([str(tmp_path / "found.jsonl")]) == 0
    assert capsys.readouterr().out == "nothing was found\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none"], "argument FILE: none cannot be read: No such file or directory"),
        (["found", "--output", "."], "argument --output: . cannot be written: Is a directory"),
        (["found", "--json", "x.json"], "argument --json: found has no findings to write"),
        (
            ["found", "--plot", "x.txt"],
            "argument --plot: x.txt must end in one of .png, .svg, .pdf",
        ),
    ],
)
def test_misuse_is_one_sentence(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "found").touch()
    with pytest.raises(SystemExit) as end:
        gpu_report.main(arguments)
    assert end.value.code == 2
    assert capsys.readouterr().err == f"python -m bench.gpu_report: {said}\n"
