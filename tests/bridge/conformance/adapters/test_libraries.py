"""Adapters of other libraries: their declarations, and their results where they are installed."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import committed
import pytest
from click.testing import CliRunner
from misuse import misuse

import bridge.__main__ as command_line
from bridge.conformance.adapters import builtin as adapters
from bridge.conformance.adapters import libraries
from bridge.conformance.adapters.adapter import ALL_DTYPES
from bridge.conformance.judging.run import run
from bridge.conformance.tolerances.rounding_model import FORMATS
from bridge.vectors.model.attention import AttentionVector, Family

HERE = [name for name in libraries.FOREIGN if libraries.missing_packages(name) is None]
# A few of each kind of mask and change of scores; each shape is compiled anew by some.
CHOSEN = ("small-random", "window", "bias", "softcap", "alibi", "unequal-lengths", "grouped-query")


def some() -> list[Family]:
    return [f for name in CHOSEN for f in committed.some(name, 3)]


def without_masked_rows() -> list[Family]:
    """Without queries that see no key: their results are these libraries' own choice."""
    return [
        replace(
            f,
            vectors=tuple(
                v
                for v in f.vectors
                if not isinstance(v, AttentionVector) or not any(r.masked for r in v.expected)
            ),
        )
        for f in some()
    ]


@pytest.mark.parametrize("name", libraries.FOREIGN)
def test_what_they_declare(name: str) -> None:
    adapter = libraries.find(name)
    assert adapter.name == name
    for dtype in adapter.dtypes:
        assert dtype in ALL_DTYPES
        rounding = adapter.rounding(dtype, "cpu")
        assert rounding.input == rounding.output == FORMATS[dtype]
    assert name not in adapters.BUILTIN


@pytest.mark.parametrize("name", HERE)
def test_they_pass_what_they_cover(name: str) -> None:
    adapter = libraries.find(name)
    for dtype in {adapter.dtypes[0], adapter.dtypes[-1]}:
        result = run(adapter, without_masked_rows(), dtype)
        assert [v.id for v in result.failures] == []
        if not name.startswith(("sdpa-", "flash-")):
            assert sum(v.status == "passed" for v in result.vectors) >= 12


def test_flex_takes_softcap_slopes_bias_and_masks() -> None:
    adapter = libraries.find("flex")
    chosen = committed.families("fully-masked", "score-mods", "alibi", "bias")
    result = run(adapter, chosen, "float32")
    assert not result.failures
    families_passed = {v.family for v in result.vectors if v.status == "passed"}
    assert families_passed == {"fully-masked", "alibi", "bias"}
    assert all(v.lse_ratio is not None for v in result.vectors if v.status == "passed")


@pytest.mark.parametrize("name", ["sdpa-efficient", "sdpa-cudnn", "flash-attn"])
def test_what_is_for_gpus_says_so_on_a_cpu(name: str) -> None:
    adapter = libraries.find(name)
    result = run(adapter, some(), adapter.dtypes[0])
    assert {v.status for v in result.vectors} == {"unsupported"}
    assert any("GPUs alone" in str(v.reason) for v in result.vectors)


@pytest.mark.skipif(
    importlib.util.find_spec("flash_attn") is not None, reason="flash-attn is installed"
)
def test_a_package_that_is_not_here_is_one_sentence() -> None:
    said = misuse(command_line.main, "conform", "flash-attn")
    assert "flash-attn needs packages that are not installed: pip install flash-attn" in said


def test_no_package_is_imported_before_its_adapter_runs() -> None:
    text = CliRunner().invoke(command_line.main, ["conform", "--help"]).stdout
    for name in libraries.FOREIGN:
        assert f"  {name} " in text
