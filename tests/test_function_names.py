"""A function is named by a verb or a noun, not by a bare participle (`drawn`, `missing`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# But for nouns and verbs that end as participles do.
PARTICIPLE = re.compile(
    r"_*(?!(bed|embed|feed|need|seed|speed|bring|ring|string|nothing|everything|binding|docstring|"
    r"finding|heading|listing|packing|padding|rounding|timing|warning)_*$)"
    r"([a-z]+ed|[a-z]+ing|(un|re|over|mis|fore|with)?(begun|bent|born|bought|bound|broken|brought|"
    r"built|caught|chosen|done|drawn|felt|forgotten|found|given|gone|grown|heard|held|hidden|kept|"
    r"known|laid|left|lent|lost|made|meant|met|paid|proven|said|seen|sent|shown|sold|sought|spent|"
    r"spilt|spoilt|spoken|stuck|taken|thrown|told|torn|understood|won|worn|written)|"
    r"un(cut|put|read|set|split))_*"
)
# A property and a fixture are things, a class method an adjective of its class (`Shards.striped`),
# a context manager says what goes on in its block, as `contextlib.closing` does; names in functions
# that Triton compiles stand in the kernels' Lean.
DECORATORS = ("property", "fixture", "classmethod", "contextmanager", "jit", "device_function")
# The Spec's own names; functions under test and cases, whose names are adjectives of a function.
ELSEWHERE = ("bridge/spec", "tests/generated", "cheats", "attention_functions.py",
             "flashinfer_solutions.py", "judged_here.py", "gluon_cases.py")  # fmt: skip


def participles(text: str) -> Iterator[str]:
    if any(PARTICIPLE.fullmatch(name) for name in re.findall(r"\bdef (\w+)", text)):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and PARTICIPLE.fullmatch(node.name):
                decorators = "".join(map(ast.unparse, node.decorator_list))
                if not any(one in decorators for one in DECORATORS):
                    yield node.name


def test_a_bare_participle_is_found() -> None:
    text = "@property\ndef kept(): ...\ndef seed(): ...\ndef draw():\n    def _masked(): ...\n"
    assert [*participles(text + "def drawn_rows(): ...\ndef given(): ...")] == ["given", "_masked"]


@pytest.mark.parametrize("name", ["unseen", "_unwritten", "unmet", "bound", "missing", "asking_"])
def test_so_is_one_with_a_prefix_and_one_that_goes_on(name: str) -> None:
    assert [*participles(f"def {name}(): ...\ndef unfold(): ...\ndef string(): ...")] == [name]


def test_functions_are_named_by_verbs_and_nouns() -> None:
    found = []
    for folder in ("pyimpl", "bridge", "bench", "tests", "examples"):
        for path in sorted(ROOT.glob(f"{folder}/**/*.py")):
            if not any(part in path.as_posix() for part in ELSEWHERE):
                found += [f"{path}: {name}" for name in participles(path.read_text("utf-8"))]
    assert found == []
