"""The page on `conform`: its example runs, and its tables are complete."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from pathlib import Path

import pytest

from bridge import limits
from bridge.conformance.adapters import libraries
from bridge.conformance.functions.features import ARGUMENTS
from bridge.conformance.outcomes.outcome import Conditions, outcomes
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.tolerances.rounding_model import CHOICES
from bridge.limits import Limit
from bridge.vectors.load import load

PAGE = Path(__file__).resolve().parent.parent / "docs" / "conform.md"
TEXT = PAGE.read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
MINE = """
import pytest
from torch.nn.functional import scaled_dot_product_attention

def my_attention(query, key, value, *, is_causal=False, scale=None):
    return scaled_dot_product_attention(query, key, value, is_causal=is_causal, scale=scale)

"""


def test_the_function_of_the_page_passes(tmp_path: Path) -> None:
    *_, code = PYTHON
    file = tmp_path / "mine.py"
    file.write_text(code)
    families = load(names=["small-random"])
    subject = Subject(f"{file}:attention")
    (outcome,) = outcomes(subject, families, ("bfloat16",), Conditions(required=True))
    assert outcome.result.ok
    assert not outcome.result.failures


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    """The function judged from Python, as a test, and the two tests; on one family."""
    (call, tests, _) = PYTHON
    text = MINE + tests + "def test_call():\n" + textwrap.indent(call, "    ")
    few = text.replace("require=", 'families=["causal"], require=')
    file = tmp_path / "test_mine.py"
    file.write_text(few)
    command = [sys.executable, "-m", "pytest", "-p", "bridge.pytest_plugin", "-rA", str(file)]
    env = {**os.environ, "PYTHONPATH": str(PAGE.parents[1]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = limits.run(command, Limit(300, 300), cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout
    assert "PASSED test_mine.py::test_one_vector[causal-003-float32]" in done.stdout
    assert few.count('families=["causal"]') == 3


@pytest.mark.parametrize("name", [*ARGUMENTS, *ARGUMENTS.values(), *CHOICES, *libraries.FOREIGN])
def test_the_page_names_it(name: str) -> None:
    assert f"`{name}`" in TEXT
