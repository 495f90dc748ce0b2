"""The command `try`: its verdict follows the functions' results."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

import bridge.__main__ as command_line
from bridge.conformance.adapters import builtin as adapters
from bridge.conformance.adapters.sdpa import SdpaMath
from bridge.conformance.requests import trial
from bridge.conformance.requests.trial import Trial
from bridge.conformance.tensors.batch import Batch, Outputs

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def found() -> Trial:
    return trial.trial(ROOT, trial.read_families(), Console(file=io.StringIO()))


def show(found: Trial) -> str:
    said = io.StringIO()
    trial.show(Console(file=said, width=80), found, ROOT)
    return said.getvalue()


@pytest.mark.thorough
def test_the_right_functions_pass_and_the_mistake_is_found(found: Trial) -> None:
    assert found.ok
    assert {result.adapter for result in found.right} == set(trial.RIGHT)
    vectors = sum(len(family.vectors) for family in found.families)
    assert all(sum(v.status == "passed" for v in r.vectors) == vectors for r in found.right)
    assert found.wrong.failures
    assert found.wrong.failures[0].theorem == "online-any-blocks"


@pytest.mark.thorough
def test_the_finding_is_shown_with_its_theorem(found: Trial) -> None:
    said = re.sub(r"\s+", " ", show(found))
    assert f"examples/tile_loop.py:attention fails {len(found.wrong.failures)} vectors" in said
    assert "maximum-moves-000: output[0, 3]: expected -7.765625, got -13.8" in said
    assert "online-any-blocks: Online softmax over any partition of a row" in said
    assert re.search(r"Lean, Attention/Proof/Online/Attention.lean:\d+: theorem online_any_b", said)
    assert "The right ones pass, and the mistake is found." in said
    assert "-m bridge conform FILE.py:NAME" in said


def test_the_readme_shows_what_it_prints(found: Trial) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    block = text.partition("\n    examples/tile_loop.py:")[2].partition("\n\n")[0]
    number = sum(len(family.vectors) for family in found.families)
    assert f"runs {number} vectors on PyTorch's attention" in text
    assert len(block.splitlines()) == 7
    assert re.sub(r"\s+", " ", block).strip() in re.sub(r"\s+", " ", show(found))


def test_it_fits_a_terminal(found: Trial) -> None:
    lines = show(found).splitlines()
    assert len(lines) <= 40
    assert all(len(line) <= 80 for line in lines if ".venv/bin/python" not in line)


def test_a_mistake_that_no_vector_finds_fails(found: Trial) -> None:
    vectors = tuple(replace(v, status="passed") for v in found.wrong.vectors)
    mended = replace(found, wrong=replace(found.wrong, vectors=vectors))
    assert not mended.ok
    said = show(mended)
    assert "no vector finds anything wrong" in said
    assert "Not as it should be" in said


def test_a_right_function_that_fails_is_named(
    found: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Doubled(SdpaMath):
        def run(self, batch: Batch) -> Outputs:
            return Outputs(2 * super().run(batch).out)

    monkeypatch.setitem(adapters.BUILTIN, "sdpa-math", Doubled)
    families = found.families[:1]
    again = trial.trial(ROOT, families, Console(file=io.StringIO()))
    assert not again.ok
    assert "sdpa-math: maximum-moves-000: output" in show(again)


def test_the_example_passes_when_its_mistake_is_mended(tmp_path: Path) -> None:
    """The comment in it says how."""
    text = (ROOT / "examples" / "tile_loop.py").read_text("utf-8")
    (marked,) = [line for line in text.splitlines() if "the mistake" in line]
    code = marked.partition("#")[0]
    assert "o = o + " in code
    (tmp_path / "mended.py").write_text(
        text.replace(marked, code.replace("o + ", "rescale * o + "))
    )
    result = CliRunner().invoke(
        command_line.main,
        ["conform", f"{tmp_path}/mended.py:attention", "--dtype", "float32"]
        + [f"--family={name}" for name in ("maximum-moves", "small-random")],
    )
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("ok", [True, False])
def test_the_exit_status_is_the_verdict(
    ok: bool, found: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = found if ok else replace(found, right=(replace(found.right[0], vectors=()),))
    one = one if ok else replace(one, wrong=replace(found.wrong, vectors=()))
    monkeypatch.setattr(trial, "trial", lambda *_: one)
    monkeypatch.setattr(trial, "show", lambda *_: None)
    assert CliRunner().invoke(command_line.main, ["try"]).exit_code == (0 if ok else 1)
