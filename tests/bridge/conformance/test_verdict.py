"""`from bridge import check`: an attention function judged from Python."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import judged_here
import pytest
from click.testing import CliRunner

import bridge
from bridge.conform import conform
from bridge.conformance.functions.features import CallableError
from bridge.verdict import Verdict, check, name_of

HERE = Path(judged_here.__file__)
SCHEMA = json.loads((Path(bridge.__file__).parent / "report/conform.schema.json").read_text())
QUICK: dict[str, Any] = {"dtypes": ["float32"], "families": ["small-random"]}


@pytest.fixture(scope="module")
def passed() -> Verdict:
    return check(judged_here.right, **QUICK, require=["is-causal", "float32"])


@pytest.fixture(scope="module")
def unsupported() -> Verdict:
    return check(judged_here.right, **QUICK, require=["scale", "sinks"])


def test_a_right_function_passes(passed: Verdict) -> None:
    assert passed
    assert passed.ok
    (outcome,) = passed.outcomes
    assert outcome.subject.name == f"{HERE}:right"
    assert {v.status for v in outcome.result.vectors} == {"passed"}
    assert "small-random" in str(passed)
    assert repr(passed) == f"<Verdict on {HERE}:right: passes, 0 vectors failed>"


def test_a_wrong_function_fails_and_says_how() -> None:
    verdict = check(judged_here.unscaled, dtypes=["float32"], families=["default-scale"])
    assert not verdict
    assert "fails, the smallest input first:" in str(verdict)
    assert "Likely cause:" in str(verdict)
    (result,) = json.loads(verdict.json())
    assert not result["ok"]
    assert result["lacking"] == {}


def test_what_is_required_and_unsupported_fails(unsupported: Verdict) -> None:
    assert not unsupported
    (outcome,) = unsupported.outcomes
    assert outcome.result.ok
    assert outcome.lacking == {"sinks": "has no argument sinks"}
    assert "sinks is required but unsupported: has no argument sinks" in str(unsupported)
    assert "sinks unsupported" in unsupported.html()
    (result,) = json.loads(unsupported.json())
    assert not result["ok"]
    suites = ElementTree.fromstring(unsupported.junit())
    assert suites.get("failures") == "1"
    assert suites.get("tests") == str(len(outcome.result.vectors) + 1)
    (case,) = [case for case in suites.iter("testcase") if case.get("classname") == "required"]
    assert case.get("name") == "sinks"


def test_the_command_fails_for_it_too() -> None:
    words = [f"{HERE}:right", "--dtype", "float32", "--family", "small-random"]
    found = CliRunner().invoke(conform, [*words, "--require", "softcap"])
    assert found.exit_code == 1
    assert "softcap is required but unsupported" in found.output


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (judged_here.right, f"{HERE}:right"),
        (judged_here.Grouped.right, f"{HERE}:Grouped.right"),
        (subprocess.run, f"{subprocess.__file__}:run"),
        (json.dumps, "json:dumps"),
        (ElementTree.fromstring, "xml.etree.ElementTree:XML"),
        (math.sqrt, "math:sqrt"),
    ],
)
def test_a_function_is_found_by_its_name(function: Callable[..., Any], name: str) -> None:
    assert name_of(function) == name


@pytest.mark.parametrize(
    "function",
    [lambda query, key, value: value, judged_here.made(), partial(judged_here.right), 3, None],
)
def test_one_that_no_other_process_can_import_is_refused(function: Any) -> None:
    with pytest.raises(ValueError, match=r"^function: .* defines at its top level is accepted"):
        check(function, **QUICK)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dtypes": "float32"}, "dtypes: 'float32' is given; a list of them is accepted"),
        ({"also": Path("x")}, "also: 'x' is given; a list of them is accepted"),
        ({"dtypes": ["int8"]}, "dtypes: 'int8' is not a dtype"),
        ({"require": ["masks"]}, "require: 'masks' is not a feature or a dtype; scale, is-causal"),
        ({"require": ["lse"], "without": ["lse"]}, "require: 'lse' is declared unsupported, too"),
        ({"alignment": "left"}, "alignment: 'left' is not an alignment; top-left, bottom-right"),
        ({"families": ["smal-random"]}, "families: 'smal-random' is not a family; the nearest is"),
        ({"time_limit": 0.0}, "time_limit: 0 is not a number of seconds above 0"),
        ({"device": "nowhere"}, "device: PyTorch cannot use 'nowhere' here"),
    ],
)
def test_misuse_is_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^\w+: ") as caught:
        check(judged_here.right, **options)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_a_function_that_is_not_there_is_named() -> None:
    with pytest.raises(CallableError, match=r"judged_here.py:rigth: .* there is right"):
        check(f"{HERE}:rigth", **QUICK)


def test_importing_the_package_imports_no_torch() -> None:
    assert bridge.check is check
    code = "import bridge, sys; assert 'torch' not in sys.modules; bridge.check; import torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        getattr(bridge, "chek")  # noqa: B009


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Candidates: right, wrong, without the function."""
    head = "from torch.nn.functional import scaled_dot_product_attention as sdpa\n"
    found = tmp_path / "candidates"
    found.mkdir()
    for name, body in {
        "__init__": "",
        "right": f"{head}def f(q, k, v): return sdpa(q, k, v)\n",
        "wrong": f"{head}def f(q, k, v): return sdpa(q, k, v, scale=1.0)\n",
        "without": f"{head}def g(q, k, v): return sdpa(q, k, v)\n",
    }.items():
        (found / f"{name}.py").write_text(body)
    return found


@pytest.mark.thorough
def test_the_files_of_a_folder_are_judged_into_one_table(folder: Path) -> None:
    words = [f"{folder}/:f", "--dtype", "float32", "--family", "default-scale"]
    found = CliRunner().invoke(conform, words)
    assert found.exit_code == 1
    assert "3 of 3 done" in found.stderr
    assert f"{folder}/wrong.py:f float32 fails" in found.stdout
    assert "Behaves like: scores are not scaled at all" in found.stdout
    assert f"Not judged: {folder}/without.py:f: {folder}/without.py has no 'f'" in found.stdout
    assert f"{folder}/right.py:f float32 fails" not in found.stdout


def test_a_function_of_which_nothing_was_judged_does_not_pass(folder: Path) -> None:
    """Beside one that passes. Alone it is misuse of --dtype (tests/bridge/test_main.py)."""
    text = "def f(q, k, v):\n    if q.itemsize != 8: raise TypeError('doubles')\n    return v * 1\n"
    (folder / "wrong.py").write_text(text)
    verdict = check(f"{folder}/:f", dtypes=["float32"], families=["default-scale"])
    assert not verdict
    assert [outcome.ok for outcome in verdict.outcomes] == [True]
    sentence = f"{folder}/wrong.py:f: does not take float32, but float64"
    assert f"Not judged: {sentence}" in " ".join(str(verdict).split("\n"))
    suites = ElementTree.fromstring(verdict.junit())
    assert suites.get("errors") == "2"
    assert sentence in {error.get("message") for error in suites.iter("error")}
    assert {case.get("name") for case in suites.iter("testcase")} >= {
        f"{folder}/wrong.py:f", f"{folder}/without.py:f"
    }  # fmt: skip
    validator = jsonschema.Draft202012Validator(SCHEMA)
    entries = json.loads(verdict.json())
    validator.validate(entries)
    assert len(entries) == 3
    assert entries[1:] == [
        {"adapter": f"{folder}/{name}.py:f", "ok": False, "not_judged": why}
        for name, why in {
            "without": f"{folder}/without.py has no 'f'",
            "wrong": "does not take float32, but float64",
        }.items()
    ]
    for broken in ({"ok": True}, {"vectors": []}, {"not_judged": None}):
        assert not validator.is_valid([{**entries[1], **broken}])
    assert "not judged: does not take float32, but float64" in verdict.html()
    row = next(line for line in str(verdict).split("\n") if "not judged" in line)
    assert "✘" in row


@pytest.mark.thorough
def test_functions_of_which_none_was_judged_have_entries(folder: Path) -> None:
    (folder / "right.py").unlink()
    (folder / "wrong.py").write_text("raise ImportError('<none> of it')\n")
    verdict = check(f"{folder}/:f", dtypes=["float32"], families=["default-scale"])
    assert not verdict
    assert not verdict.outcomes
    entries = json.loads(verdict.json())
    jsonschema.Draft202012Validator(SCHEMA).validate(entries)
    assert [entry["adapter"] for entry in entries] == [
        f"{folder}/{name}.py:f" for name in ("without", "wrong")
    ]
    assert "<none> of it" in entries[1]["not_judged"]
    assert "&lt;none&gt; of it" in verdict.html()


@pytest.mark.parametrize("name", ["\x1b[2Jx.py", "x\nall pass.py", "x\udcff.py"])
def test_a_name_that_is_no_text_is_refused(name: str, folder: Path) -> None:
    """A report would show it as something else."""
    (folder / name).write_text("def f(q, k, v): return v\n")
    with pytest.raises(ValueError, match=r"^function: .* a name of printable chara") as caught:
        check(f"{folder}/:f")
    assert str(caught.value).isprintable()


@pytest.mark.thorough
def test_each_function_of_a_folder_has_its_outcome(folder: Path) -> None:
    verdict = check(f"{folder}/:f", dtypes=["float32"], families=["default-scale"])
    assert [outcome.ok for outcome in verdict.outcomes] == [True, False]


def test_right_functions_together_pass(folder: Path) -> None:
    (folder / "wrong.py").unlink()
    (folder / "without.py").unlink()
    assert check(f"{folder}/:f", dtypes=["float32"], families=["default-scale"])


def test_a_folder_without_files_is_misuse(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^function: .* has no Python file$"):
        check(f"{tmp_path}/:f")


@pytest.mark.thorough
def test_the_json_is_of_its_schema(passed: Verdict, unsupported: Verdict, tmp_path: Path) -> None:
    """Passing, unsupported, failing with a cause, and with numbers that JSON does not have;
    nothing beside the schema's fields."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    file = tmp_path / "endless.py"
    file.write_text("def f(q, k, v): return q.new_full((*q.shape[:-1], v.shape[-1]), float('nan'))")
    wrong = check(judged_here.unscaled, dtypes=["float32"], families=["default-scale"])
    nan = check(f"{file}:f", dtypes=["float32"], families=["default-scale"])
    for verdict in (passed, unsupported, wrong, nan):
        assert [e.message for e in validator.iter_errors(json.loads(verdict.json()))] == []
    assert '"nan"' in nan.json()
    (result,) = json.loads(wrong.json())
    assert result["likely"]["causes"]
    for broken in ({**result, "more": 1}, {**result, "ok": "yes"}, {"adapter": "x"}):
        assert not validator.is_valid([broken])
