"""The command: that it runs on a CPU, the files it writes, and its messages about misuse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from bench import __main__ as command
from bench import plot

SMALL = [
    "--device", "cpu", "--lengths", "16", "--head-dims", "8", "--heads", "4", "--repeats", "1",
    "--window", "2", "--peers", "sdpa-flash", "sdpa-cudnn",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _no_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take seconds, and are tested elsewhere."""
    rate = command.Rate("matrix product", "float32", "fake", 1.0, 1e12)
    monkeypatch.setattr(command, "matmul_rate", lambda *_: rate)
    copy = command.Rate("copy", "bytes", "fake", 1.0, 1e12)
    monkeypatch.setattr(command, "copy_rate", lambda *_: copy)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one sentence that it says, with status 2."""
    with pytest.raises(SystemExit) as end:
        command.main([*SMALL, *map(str, arguments)])
    said = capsys.readouterr()
    assert end.value.code == 2
    assert said.err.startswith("python -m bench: ")
    assert said.err.count("\n") == 1
    assert said.out == ""
    return said.err


def test_it_measures_and_writes_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, found = tmp_path / "run.txt", tmp_path / "run.json"
    command.main([*SMALL, "--page-size", "4", "--output", str(text), "--json", str(found)])
    said = capsys.readouterr().out
    assert text.read_text("utf-8") == said
    assert said.startswith("$ python -m bench --device cpu --lengths 16 ")
    whole = json.loads(found.read_text("utf-8"))
    cases = [one["case"] for one in whole["cases"]]
    names = [(case["operation"], case["mask"]["name"], case["page_size"]) for case in cases]
    assert names == [
        *[(operation, mask, None) for operation in ("forward", "forward+backward", "backward")
          for mask in ("full", "causal", "window", "window-both", "boolean")],
        ("decode", "full", None),
        ("decode", "full", 4),
    ]  # fmt: skip
    assert [(case["heads"], case["kv_heads"]) for case in cases] == [(4, 4)] * 15 + [(4, 1)] * 2
    for one in whole["cases"][:-1]:
        statuses = {result["name"]: result["status"] for result in one["results"]}
        assert statuses == {"pyimpl": "timed", "sdpa-flash": "timed", "sdpa-cudnn": "refused"}
    assert sorted(tmp_path.iterdir()) == [found, text]


@pytest.mark.parametrize(
    ("operation", "measured"),
    [
        ("forward", {"forward"}),
        ("backward", {"forward+backward", "backward"}),
        ("decode", {"decode"}),
    ],
)
def test_one_operation_alone(operation: str, measured: set[str], tmp_path: Path) -> None:
    found = tmp_path / "run.json"
    command.main([operation, *SMALL, "--json", str(found)])
    whole = json.loads(found.read_text("utf-8"))
    assert {one["case"]["operation"] for one in whole["cases"]} == measured
    copied = [rate for rate in whole["rates"] if rate["dtype"] == "bytes"]
    assert bool(copied) == (operation == "decode")


def test_the_figure_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    command.main(["decode", *SMALL, "--plot", str(tmp_path / "run.png")])
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--backend", "cudnn"], "argument --backend: invalid choice: 'cudnn'"),
        (["--peers", "xla"], "argument --peers: invalid choice: 'xla'"),
        (["--device", "tpu"], "argument --device: invalid choice: 'tpu'"),
        (["--dtypes", "float64"], "argument --dtypes: invalid choice: 'float64'"),
        (["--repeats", "0"], "argument --repeats: '0' is not a whole number from 1 on"),
        (["--minutes", "-1"], "argument --minutes: '-1' is not a number above 0"),
        (["--minutes", "nan"], "argument --minutes: 'nan' is not a number above 0"),
        (["--kv-heads", "3"], "argument --kv-heads: 3 does not divide the heads, 4"),
        (["--json", "/nowhere/a.json"], "/nowhere/a.json cannot be written: No such file"),
        (["--output", "/nowhere/a.txt"], "/nowhere/a.txt cannot be written: No such file"),
        (["--plot", "/nowhere/a.png"], "/nowhere/a.png cannot be written: No such file"),
    ],
)
def test_misuse_is_one_sentence_and_status_2(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in refusal(capsys, *arguments)


def test_an_operation_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(["prefill"])
    assert end.value.code == 2
    assert "argument operation: invalid choice: 'prefill'" in capsys.readouterr().err


def test_cuda_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "PyTorch has no CUDA device here" in refusal(capsys, "--device", "cuda")


def test_a_backend_that_does_not_take_the_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "--head-dims", 300, "--backend", "triton")
    assert "argument --backend: backend 'triton' takes head sizes up to 256" in said


def test_a_figure_of_an_unknown_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "--plot", tmp_path / "run.bmp")
    assert "must end in one of .png, .svg, .pdf" in said


def test_a_figure_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plot, "has_matplotlib", lambda: False)
    said = refusal(capsys, "--plot", tmp_path / "run.png")
    assert "argument --plot: needs the package matplotlib, which is not installed" in said
    assert list(tmp_path.iterdir()) == []


def test_two_files_of_one_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run"
    said = refusal(capsys, "--json", path, "--output", path)
    assert "--json, --plot and --output must name different files" in said


def test_a_run_that_is_interrupted_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command.Bench, "measure", interrupt)
    with pytest.raises(SystemExit) as end:
        command.main([*SMALL, "--json", str(tmp_path / "run.json")])
    assert end.value.code == 130
    assert capsys.readouterr().err == "python -m bench: interrupted; no file was written\n"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_can_no_longer_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command, "write_whole", fails)
    with pytest.raises(SystemExit) as end:
        command.main(["decode", *SMALL, "--json", str(tmp_path / "run.json")])
    assert end.value.code == 1
    assert capsys.readouterr().err.endswith("could not be written: No space left on device\n")


def test_what_is_measured_on_a_gpu_unless_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    cases = command.cases(command.complete_options(command.parser(), []))
    forward = [case for case in cases if case.operation == "forward"]
    decode = [case for case in cases if case.operation == "decode"]
    assert {case.dtype for case in cases} == {"bfloat16", "float16"}
    assert {case.head_dim for case in cases} == {64, 128, 256}
    assert {case.kv_len for case in forward} == {1024, 4096, 16384}
    assert {case.mask.name for case in forward} == {"full", "causal"}
    assert {case.batch * case.q_len for case in forward} == {16384}
    assert {(case.heads, case.kv_heads, case.q_len) for case in decode} == {(32, 8, 1)}
    assert {case.kv_len for case in decode} == {1024, 8192, 65536}
    assert (len(forward), len(decode)) == (36, 18)
    for operation in ("forward+backward", "backward"):
        same = [replace(case, operation="forward") for case in cases if case.operation == operation]
        assert same == forward


def test_what_is_measured_on_a_cpu_unless_said_otherwise() -> None:
    cases = command.cases(
        command.complete_options(command.parser(), ["forward", "--device", "cpu"])
    )
    assert [str(case) for case in cases] == [
        f"forward float32, batch 1, heads 8, head_dim 64, length 4096, {mask}"
        for mask in ("full", "causal", "window (256, 0)", "window (256, 256)",
                     "boolean (256, 256)")
    ]  # fmt: skip


def test_the_backward_pass_on_a_cpu_takes_shorter_sequences() -> None:
    options = command.complete_options(command.parser(), ["backward", "--device", "cpu"])
    cases = command.cases(options)
    assert {case.kv_len for case in cases} == {2048}
    assert len(cases) == 10
    assert options.minutes == command.MINUTES[False]
