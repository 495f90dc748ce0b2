"""A function is named by a verb or a noun, not by a bare participle (`drawn`, `missing`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# But for nouns and verbs that end as participles do.
PARTICIPLE = (
    r"(?!(bed|embed|feed|need|seed|speed|bring|ring|string|nothing|everything|binding|docstring|"
    r"finding|heading|listing|packing|padding|rounding|timing|warning)(_|$))"
    r"([a-z]+ed|[a-z]+ing|(un|re|over|mis|fore|with)?(begun|bent|born|bought|bound|broken|brought|"
    r"built|caught|chosen|done|drawn|felt|forgotten|found|given|gone|grown|heard|held|hidden|kept|"
    r"known|laid|left|lent|lost|made|meant|met|paid|proven|said|seen|sent|shown|sold|sought|spent|"
    r"spilt|spoilt|spoken|stuck|taken|thrown|told|torn|understood|won|worn|written)|"
    r"un(cut|put|read|set|split))"
)
PARTICLE = (
    r"(about|after|apart|as|at|away|back|before|between|by|down|for|from|here|in|into|of|off|on|"
    r"out|over|since|there|through|to|together|under|up|with)"
)
# A participle alone, with a particle and whatever follows it, or with another participle.
NAME = re.compile(rf"_*{PARTICIPLE}(_{PARTICLE}(_\w+)?|(_and|_or)_{PARTICIPLE})?_*")
# In a decorator or the type of the result. A property and a fixture are things, a class method an
# adjective of its class (`Shards.striped`), a context manager says what goes on in its block, as
# `contextlib.closing` does; names in functions that Triton compiles stand in the kernels' Lean.
MARKS = ("property", "fixture", "classmethod", "contextmanager", "AbstractContextManager", "jit",
         "device_function")  # fmt: skip
# The Spec's own names; functions under test and cases, whose names are adjectives of a function.
ELSEWHERE = ("bridge/spec", "tests/generated", "cheats", "attention_functions.py",
             "flashinfer_solutions.py", "judged_here.py", "gluon_cases.py")  # fmt: skip


def participles(text: str) -> Iterator[str]:
    if any(NAME.fullmatch(name) for name in re.findall(r"\bdef (\w+)", text)):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and NAME.fullmatch(node.name):
                marks = "".join(
                    map(ast.dump, [*node.decorator_list, *filter(None, [node.returns])])
                )
                if not any(one in marks for one in MARKS):
                    yield node.name


def test_a_bare_participle_is_found() -> None:
    text = "@property\ndef kept(): ...\ndef seed(): ...\ndef draw():\n    def _masked(): ...\n"
    assert [*participles(text + "def drawn_rows(): ...\ndef given(): ...")] == ["given", "_masked"]


@pytest.mark.parametrize("name", ["unseen", "_unwritten", "unmet", "bound", "missing", "asking_"])
def test_so_is_one_with_a_prefix_and_one_that_goes_on(name: str) -> None:
    assert [*participles(f"def {name}(): ...\ndef unfold(): ...\ndef string(): ...")] == [name]


@pytest.mark.parametrize(
    "name",
    ["laid_out", "_stored_by_lake", "lost_of_mean", "rounded_up", "added_and_kept", "seen_in"],
)
def test_so_is_one_with_a_particle(name: str) -> None:
    others = "def rounding_of_sum(): ...\ndef add_to(): ...\ndef kept_rows(): ...\n"
    assert [*participles(f"{others}def {name}(): ...")] == [name]


def test_functions_are_named_by_verbs_and_nouns() -> None:
    found = []
    for folder in ("pyimpl", "bridge", "bench", "tests", "examples", "packages", "contrib"):
        for path in sorted(ROOT.glob(f"{folder}/**/*.py")):
            if not any(part in path.as_posix() for part in ELSEWHERE):
                found += [f"{path}: {name}" for name in participles(path.read_text("utf-8"))]
    assert found == []
