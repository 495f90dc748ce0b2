"""The page on `conform`: its example runs, and its tables name what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bridge.conformance import callables, libraries
from bridge.conformance.abilities import ARGUMENTS
from bridge.conformance.profile import CHOICES
from bridge.conformance.run import run
from bridge.vectors.load import load

PAGE = Path(__file__).resolve().parent.parent / "docs" / "conform.md"
TEXT = PAGE.read_text("utf-8")


def test_the_adapter_of_the_page_is_one(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    file = tmp_path / "mine.py"
    file.write_text(code)
    adapter = callables.find(f"{file}:MyKernel")
    assert callables.is_adapter(adapter)
    result = run(adapter, load(names=["causal", "small-random"]), "bfloat16")
    assert result.ok
    assert any(v.reason == "takes no masks" for v in result.vectors)


@pytest.mark.parametrize("name", [*ARGUMENTS, *ARGUMENTS.values(), *CHOICES, *libraries.FOREIGN])
def test_the_page_names_it(name: str) -> None:
    assert f"`{name}`" in TEXT
