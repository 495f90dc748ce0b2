"""The benchmark of short calls: its numbers from given times, and its command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from bench import short_calls


def test_the_least_times_and_the_median_of_neighbours_ratios() -> None:
    rounds = [(6e-6, 3e-6), (4e-6, 4e-6), (9e-6, 2e-6)]
    assert short_calls.summary(rounds) == {
        "us": 4.0, "sdpa_us": 2.0, "more_us": 2.0, "ratio": 2.0, "median_ratio": 2.0,
    }  # fmt: skip


def test_calls_are_made_in_turns_and_once_before_they_are_timed() -> None:
    made: list[str] = []
    calls = [lambda: made.append("a"), lambda: made.append("b")]
    found = short_calls.in_turns(calls, 2)
    assert made == ["a", "a", "b", "b"] * 2
    assert len(found) == 2
    assert all(len(one) == 2 and min(one) > 0 for one in found)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    threads = torch.get_num_threads()
    assert short_calls.main(["--rounds", "2", "--json", str(tmp_path / "found.json")]) == 0
    assert torch.get_num_threads() == threads
    found = json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert list(found) == [
        "1 × 1 × 8 × 16", "1 × 1 × 8 × 16 causal", "1 × 8 × 128 × 64", "1 × 8 × 128 × 64 causal",
    ]  # fmt: skip
    assert all(min(one["us"], one["sdpa_us"], one["median_ratio"]) > 0 for one in found.values())
    assert "1 × 8 × 128 × 64 causal" in capsys.readouterr().out


def test_no_rounds_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        short_calls.main(["--rounds", "0"])
    assert "--rounds must be at least 1, not 0" in capsys.readouterr().err
