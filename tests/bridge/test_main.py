"""The command line: what it prints and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import bridge.__main__ as command_line
from bridge.vectors import load as loader
from bridge.vectors.model import Family


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(command_line.main, list(arguments))


FAMILIES = loader.load()


def one_family(change: Callable[[Family], Family] = lambda f: f) -> list[Family]:
    return [change(f) for f in FAMILIES if f.name == "one-key"]


def test_conform_ends_with_0_when_everything_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "load", one_family)
    result = invoke("conform", "pyimpl-reference", "--dtype", "float64", "--json")
    assert result.exit_code == 0
    (report,) = json.loads(result.stdout)
    assert report["ok"] is True
    assert len(report["vectors"]) == 12


def test_conform_ends_with_1_when_a_vector_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(family: Family) -> Family:
        first, *others = family.vectors
        row = replace(
            first.expected[0], numerators=tuple(n + 1 for n in first.expected[0].numerators)
        )
        first = replace(first, expected=(row, *first.expected[1:]))
        return replace(family, vectors=(first, *others))

    monkeypatch.setattr(loader, "load", lambda: one_family(wrong))
    result = invoke("conform", "pyimpl-reference", "--dtype", "float64")
    assert result.exit_code == 1
    assert "✘" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["conform", "nothing"],
            "IMPLEMENTATION: there is no 'nothing'; there are pyimpl-reference",
        ),
        (["conform", "--dtype", "int8"], "--dtype: 'int8' is not a dtype"),
        (["conform", "pyimpl-triton", "--dtype", "float64"], "pyimpl-triton does not take float64"),
        (["conform", "--device", "nowhere"], "--device: PyTorch cannot use 'nowhere' here"),
        (["conform", "--device", "meta"], "--device: PyTorch cannot use 'meta' here"),
    ],
)
def test_misuse_is_one_sentence_and_ends_with_2(arguments: list[str], sentence: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["verify", "audit", "watch", "vectors"])
def test_without_a_checkout_it_says_so(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command_line, "ROOT", tmp_path)
    result = invoke(command)
    assert result.exit_code == 2
    assert "needs a checkout" in result.stderr


def test_damaged_vectors_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged() -> list[Family]:
        raise loader.VectorError("one-key.json: is not JSON.")

    monkeypatch.setattr(loader, "load", damaged)
    result = invoke("conform", "pyimpl-reference")
    assert result.exit_code == 2
    assert "one-key.json: is not JSON." in result.stderr
