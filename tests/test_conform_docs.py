"""The page on `conform`: its example runs, and its tables name what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bridge.conformance.adapters import libraries
from bridge.conformance.features import ARGUMENTS
from bridge.conformance.outcome import Conditions, outcomes
from bridge.conformance.rounding_model import CHOICES
from bridge.conformance.subject import Subject
from bridge.vectors.load import load

PAGE = Path(__file__).resolve().parent.parent / "docs" / "conform.md"
TEXT = PAGE.read_text("utf-8")


def test_the_function_of_the_page_passes(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    file = tmp_path / "mine.py"
    file.write_text(code)
    families = load(names=["small-random"])
    subject = Subject(f"{file}:attention")
    (outcome,) = outcomes(subject, families, ("bfloat16",), Conditions(required=True))
    assert outcome.result.ok
    assert not outcome.result.failures


@pytest.mark.parametrize("name", [*ARGUMENTS, *ARGUMENTS.values(), *CHOICES, *libraries.FOREIGN])
def test_the_page_names_it(name: str) -> None:
    assert f"`{name}`" in TEXT
