"""The texts of the kernels, TTIR, do not depend on the numbers that they are given; they are made
here for a GPU that need not be there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from attention_checks import inputs

from pyimpl.backends.kernels.forward import launch
from pyimpl.internal.scores import ScoreOptions


@pytest.fixture(scope="module")
def made() -> Any:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    ended = subprocess.run(
        [sys.executable, Path(__file__).with_name("kernel_texts.py")],
        env=environment | {"PYTHONPATH": str(Path(__file__).parents[4])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize(
    "kernel", ["forward", "packed", "decode", "combine", "rows", "keys", "queries"]
)
def test_no_kernel_depends_on_lengths_heads_and_groups(made: Any, kernel: str) -> None:
    found = made["keys"][kernel]
    assert len(found) == 5
    assert found == [found[0]] * 5


@pytest.mark.parametrize("kind", ["full", "causal"])
def test_five_shapes_have_one_text(made: Any, kind: str) -> None:
    texts = [text for name, text in made["texts"].items() if name.startswith(kind)]
    assert len(texts) == 5
    assert "tt.dot" in texts[0]
    assert texts == [texts[0]] * 5


def test_the_text_of_a_causal_launch_is_another(made: Any) -> None:
    assert len(set(made["texts"].values())) == 2


def test_what_is_said_of_alignment_changes_no_operation(made: Any) -> None:
    aligned, other = made["hints"]
    assert "tt.load" in aligned
    assert aligned == other


def test_the_table_is_read_once_for_a_tile_that_lies_in_one_page(made: Any) -> None:
    """Tiles of 32 keys; where a tile may lie in several pages, once for each key."""
    each, once = "tensor<32x!tt.ptr<i32>>", "!tt.ptr<i32>"
    assert {size: set(found) for size, found in made["tables"].items()} == {
        "16": {each}, "24": {each}, "32": {once}, "96": {once},
    }  # fmt: skip
    # Two loops: over tiles that every row sees, and over the others.
    assert [len(found) for found in made["tables"].values()] == [2] * 4


def test_triton_makes_constants_of_a_tuples_members(made: Any) -> None:
    """Why each stride is a parameter of its own (decision 0027). Where this fails, strides can be
    handed over as one tuple."""
    assert made["tuples"] == {"(3, 5)": ["i32", "i32"], "(1, 5)": ["constexpr", "i32"]}


def test_what_a_launch_says_of_its_text_is_what_triton_makes_of_it(made: Any) -> None:
    assert len(made["agree"]) == 35
    assert [name for name, agrees in made["agree"].items() if not agrees] == []


def test_what_a_text_depends_on() -> None:
    query, key, value, _ = inputs((1, 2, 20, 30, 16, 16), torch.float32)
    lse = query.new_empty(query.shape[:-1])

    def facts_of(key: torch.Tensor, **changes: Any) -> tuple[dict[str, str], dict[str, object]]:
        options = ScoreOptions(0.25, **changes)
        return launch(query, key, value, query, lse, options, capability=80).specialisation()

    types, constants = facts_of(key)
    assert (types["query_ptr"], types["stride_kn"], types["scale"]) == ("*fp32", "i32", "fp32")
    absent = {"mask_ptr", "cu_q_ptr", "right", "stride_qd", "stride_mm"}
    assert {name for name in absent if types[name] == "constexpr" and constants[name] is None} == (
        absent
    )
    # A window, a stride along vectors that is not 1 or that 32 bits do not hold: other texts.
    assert facts_of(key, right=3)[0]["right"] == "i32"
    assert facts_of(key.mT.contiguous().mT)[0]["stride_kd"] == "i32"
    far = torch.empty_strided(key.shape, (2**40, 2**33, 2**32, 1), device="meta")
    with pytest.raises(ValueError, match="key must be"):
        facts_of(far)
    query, value, lse = query.to("meta"), value.to("meta"), lse.to("meta")
    assert facts_of(far)[0]["stride_kn"] == "i64"
