"""Attention over a net is as near as the theorem says, and would not be if it were another."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from bench import approximation as module
from bench.approximation import FUNCTIONS, HILLS, Function, construct, errors, net, probes

ROOT = Path(__file__).resolve().parents[2]
WIDE = 2001  # points that are tried on an axis, where it is the only one
ids = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)


def sample_points(function: Function) -> Tensor:
    """Points of the box, more than the net has."""
    return probes(function, WIDE if function.n == 1 else 83)


@ids
def test_the_error_is_at_most_epsilon(function: Function) -> None:
    made = construct(function)
    for beta in (made.beta_log, made.beta):
        assert errors(function, beta, sample_points(function)).max() <= function.epsilon


@ids
def test_what_the_theorem_asks_for(function: Function) -> None:
    made = construct(function)
    centres = net(function.a, function.b, made.steps, function.n)
    assert len(centres) == made.points == (made.steps + 1) ** function.n
    assert function.a == centres.amin() <= centres.amax() <= function.b
    # f moves by at most ε/2 over δ√n, by its constant and between points that are tried.
    reach = made.delta * math.sqrt(function.n)
    assert function.lipschitz * reach <= function.epsilon / 2
    points = sample_points(function)[:2000]
    near = torch.cdist(points, points) <= reach
    moved = torch.cdist(function.f(points), function.f(points), p=torch.inf)
    assert moved[near].max() <= function.epsilon / 2
    assert made.beta_log < made.beta


def test_the_net_is_the_theorems() -> None:
    """Digit k of j to the base N + 1 is coordinate k."""
    expected = [[x, y] for y in (0.0, 0.5, 1.0) for x in (0.0, 0.5, 1.0)]
    assert net(0.0, 1.0, 2, 2).tolist() == expected


def too_warm(beta: float, points: Tensor, centres: Tensor, values: Tensor) -> Tensor:
    return TRUE(beta / 1e4, points, centres, values)


def query_without_factor(beta: float, points: Tensor, centres: Tensor, values: Tensor) -> Tensor:
    return TRUE(beta, points / 2, centres, values)


def values_in_another_order(beta: float, points: Tensor, centres: Tensor, values: Tensor) -> Tensor:
    return TRUE(beta, points, centres, values.flip(0))


def some_points_left_out(beta: float, points: Tensor, centres: Tensor, values: Tensor) -> Tensor:
    half = len(centres) // 2
    return TRUE(beta, points, centres[:half], values[:half])


TRUE = module.attend_points


@ids
@pytest.mark.parametrize(
    "mutant",
    [too_warm, query_without_factor, values_in_another_order, some_points_left_out],
    ids=lambda mutant: mutant.__name__,
)
def test_another_construction_is_farther(
    mutant: object, function: Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "attend_points", mutant)
    made = construct(function)
    assert errors(function, made.beta_log, sample_points(function)).max() > function.epsilon


def test_the_table_of_the_page_is_current() -> None:
    page = (ROOT / "docs" / "approximation.md").read_text("utf-8")
    assert module.table() in page, "run .venv/bin/python -m bench.approximation"


@pytest.mark.thorough
def test_the_figure_is_the_same_each_time() -> None:
    pytest.importorskip("matplotlib")
    first = module.draw(".svg")
    assert first == module.draw(".svg")
    text = first.decode()
    assert all(name in text for name in ("f ± ε", "largest error / ε", HILLS.name))


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "table", lambda: "the table")
    assert module.main([]) == 0
    assert capsys.readouterr().out == "the table\n"


def test_misuse_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, why in (
        (tmp_path / "a.txt", "must end in one of"),
        (tmp_path / "no" / "a.svg", "No"),
    ):
        with pytest.raises(SystemExit) as ended:
            module.main(["--plot", str(path)])
        assert ended.value.code == 2
        assert why in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(module, "has_matplotlib", lambda: False)
    with pytest.raises(SystemExit):
        module.main(["--plot", str(tmp_path / "a.svg")])
    assert "needs the package matplotlib" in capsys.readouterr().err
