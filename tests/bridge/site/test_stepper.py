"""The arithmetic of the stepper, on the vectors of the exact model."""

from __future__ import annotations

import json
import subprocess
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from edits import edit

from bridge.pages.worked.row import Worked
from bridge.spec import softmax
from bridge.spec.core import EXACT
from bridge.toolchain.node import find_node
from bridge.vectors.load import load
from bridge.vectors.model.attention import Row

ONLINE = Path(__file__).resolve().parents[3] / "bridge" / "site" / "assets" / "online.js"
FAMILIES = (
    "small-random", "masked-holes", "fully-masked", "maximum-moves", "one-key", "equal-scores",
    "large-spread", "tile-loop", "softmax-weights", "scales",
)  # fmt: skip
SIZES = [1, 2, 3, 16, 1000]


def number(text: str) -> Fraction:
    return Fraction(text.replace("−", "-"))


def step_all(rows: list[dict[str, Any]], script: Path = ONLINE) -> list[dict[str, Any]]:
    node = find_node(lambda _: None).node
    program = Path(__file__).with_name("online_on_vectors.js")
    done = subprocess.run(
        [node, program, script], input=json.dumps(rows), capture_output=True, text=True, check=True
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@cache
def cases() -> list[Worked]:
    return [
        Worked(family, vector.id, query)
        for family in load(names=FAMILIES)
        for vector in family.vectors
        for query in range(min(vector.q_len, 3))
        if vector.kv_len <= 50
    ]


@cache
def weights(one: Worked) -> list[Fraction]:
    found: list[Fraction] = softmax.softmax(one.scores, num=EXACT)
    return found


def wrong(script: Path = ONLINE, *, every: int = 1) -> list[str]:
    """The vectors, or one in so many of them, on which the stepper and Lean differ in some
    number."""
    worked = cases()[::every]
    rows = [
        {
            "scores": one.scores,
            "values": [[str(Fraction(x)) for x in value] for value in one.vector.v],
            "sizes": SIZES,
        }
        for one in worked
    ]
    found = []
    for one, result in zip(worked, step_all(rows, script), strict=True):
        expected = one.vector.expected[one.query]
        assert isinstance(expected, Row)
        right = [
            [number(x) for x in result["batch"]] == one.output,
            [number(x) for x in result["weights"]] == weights(one),
            all([number(x) for x in out] == one.output for out in result["outputs"]),
            all(m == expected.max for m in result["maxima"]),
            all(number(l) == expected.denominator for l in result["denominators"]),
        ]
        if not all(right):
            found.append(one.vector.id)
    return found


@pytest.mark.thorough
def test_the_stepper_is_exact_on_the_vectors() -> None:
    assert len(cases()) > 200
    assert wrong() == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("right", "planted"),
    [
        ("weights.reduce(add, mul(alpha, state.l))", "weights.reduce(add, state.l)"),
        ("add(sum, mul(weights[j], key.value[c])), mul(alpha, x))",
         "add(sum, mul(weights[j], key.value[c])), x)"),
        ("const m = larger(state.m, rowMax(block));", "const m = rowMax(block);"),
        ("s === null ? zero : exp(s - m)", "s === null ? exp(-m) : exp(s - m)"),
        ("at += size", "at += size + 1"),
    ],
)  # fmt: skip
def test_a_mutant_in_the_stepper_is_found(right: str, planted: str, tmp_path: Path) -> None:
    script = tmp_path / "online.js"
    edit(ONLINE, right, planted, script)
    # Numbers that a mistake lets grow take long.
    assert wrong(script, every=10) != []
