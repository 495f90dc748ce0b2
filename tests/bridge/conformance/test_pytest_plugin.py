"""The fixtures that pytest has by this package, in a pytest of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bridge import limits
from bridge.conformance.requests.one_vector import FEATURES, OneVector, one_by_one
from bridge.limits import Limit

ROOT = Path(__file__).resolve().parents[3]
HEAD = """
import pytest
from torch.nn.functional import scaled_dot_product_attention as sdpa

def attention(query, key, value, *, is_causal=False, scale=None):
    return sdpa(query, key, value, is_causal=is_causal, scale=scale)

def transposed(query, key, value):
    return sdpa(query, key, value).transpose(-1, -2)
"""


def run(folder: Path, text: str, *arguments: str) -> tuple[int, str]:
    """Status and output of pytest on this test module."""
    (folder / "test_mine.py").write_text(HEAD + text)
    command = [sys.executable, "-m", "pytest", "-p", "bridge.pytest_plugin", "-rA", "--tb=short"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command += ["-p", "no:cacheprovider", "--strict-markers", *arguments, str(folder)]
    done = limits.run(command, Limit(300, 300), cwd=folder, env=env)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.thorough
def test_each_vector_is_a_test(tmp_path: Path) -> None:
    status, said = run(
        tmp_path,
        """
@pytest.mark.attention(features=["scale", "is-causal"], families=["small-random", "causal"])
def test_right(attention_vector):
    attention_vector.judge(attention(*attention_vector.args, **attention_vector.kwargs))

@pytest.mark.attention(features=["scale"], vectors=["small-random-009"], dtypes=["bfloat16"])
def test_wrong(attention_vector):
    attention_vector.judge(attention(*attention_vector.args))
""",
    )
    assert status == 1
    assert "PASSED test_mine.py::test_right[causal-000-float32]" in said
    assert "PASSED test_mine.py::test_right[small-random-000-float32]" in said
    assert "FAILED test_mine.py::test_wrong[small-random-009-bfloat16]" in said
    assert "AssertionError: small-random-009: output[" in said
    assert "1 failed" in said


def test_a_function_is_judged_whole(tmp_path: Path) -> None:
    status, said = run(
        tmp_path,
        """
def test_right(attention_check):
    attention_check(attention, dtypes=["float32"], families=["causal"], require=["is-causal"])

def test_wrong(attention_check):
    attention_check(transposed, dtypes=["float32"], families=["default-scale"])
""",
    )
    assert status == 1
    assert "PASSED test_mine.py::test_right" in said
    assert "FAILED test_mine.py::test_wrong" in said
    assert "fails, the smallest input first:" in said
    assert "Traceback" not in said


def test_a_test_that_judges_nothing_fails(tmp_path: Path) -> None:
    """Unless it is skipped, or has failed already."""
    status, said = run(
        tmp_path,
        """
pytestmark = pytest.mark.attention(vectors=["default-scale-000"])

def test_forgets(attention_vector):
    attention(*attention_vector.args, **attention_vector.kwargs)

def test_skips(attention_vector):
    pytest.skip("not here")

def test_judges(attention_vector):
    attention_vector.judge(attention(*attention_vector.args))
""",
    )
    assert status == 1
    assert "the test judged nothing: it has to call attention_vector.judge" in said
    assert "FAILED test_mine.py::test_forgets[default-scale-000-float32]" in said
    assert "1 failed, 1 passed, 1 skipped" in said


WRONG_MARKS = {
    "features=['masks']": "pytest.mark.attention: features: 'masks' is not a feature of a",
    "families=['no']": "pytest.mark.attention: families: 'no' is not a family; docs/",
    "dtype='float32'": "pytest.mark.attention: one_by_one() got an unexpected keyword",
    "['float32']": "pytest.mark.attention takes its arguments by name",
    "families=['varlen']": "no vector that is chosen does with these features alone",
}


@pytest.mark.thorough
def test_a_wrong_mark_is_one_sentence(tmp_path: Path) -> None:
    """Each in a module of its own, in one run."""
    names = [f"test_wrong_{number}.py" for number in range(len(WRONG_MARKS))]
    for name, mark in zip(names, WRONG_MARKS, strict=True):
        text = f"@pytest.mark.attention({mark})\ndef test_it(attention_vector): pass\n"
        (tmp_path / name).write_text(HEAD + text)
    status, said = run(tmp_path, "def test_other(): pass\n")
    assert status == 2
    assert "Traceback" not in said
    # The message about each stands under its name.
    for name, sentence in zip(names, WRONG_MARKS.values(), strict=True):
        _, named, rest = said.partition(f"ERROR collecting {name} ")
        assert named, said
        assert sentence in rest.partition("ERROR collecting ")[0], said


def test_torch_is_not_imported_for_other_tests(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\ndef test_other(): assert 'torch' not in sys.modules\n"
    )
    (tmp_path / "test_mine.py").unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", "bridge.pytest_plugin", "-q"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = limits.run([*command, str(tmp_path)], Limit(60, 120), cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout


def the_one(**chosen: object) -> OneVector:
    (found,) = one_by_one(features={*FEATURES} - {"lse"}, **chosen)  # type: ignore[arg-type]
    return found


def test_a_vector_gives_the_arguments_that_it_needs() -> None:
    found = the_one(vectors=["causal-000"])
    assert found.kwargs["is_causal"] is True
    assert [x.dim() for x in found.args] == [4, 4, 4]
    assert found.theorem


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("shape", "returned an output of shape"),
        ("dtype", "returned an output of torch.float64 instead of torch.float32"),
        ("input", "changed its input query"),
        ("mask", "changed its input attn_mask"),
        ("nothing", "returned None instead of a tensor"),
    ],
)
def test_what_is_wrong_with_a_result_is_said(what: str, sentence: str) -> None:
    found = the_one(vectors=["block-mask-000" if what == "mask" else "small-random-000"])
    query, _, value = found.args
    result: object = value.new_zeros(*query.shape[:-1], value.shape[-1])
    if what == "shape":
        result = value.new_zeros(1)
    elif what == "dtype":
        assert not isinstance(result, tuple)
        result = result.double()  # type: ignore[attr-defined]
    elif what == "input":
        query += 1
    elif what == "mask":
        found.kwargs["attn_mask"].logical_not_()
    else:
        result = None
    with pytest.raises(AssertionError, match=sentence):
        found.judge(result)  # type: ignore[arg-type]
