"""The tests for a GPU (`tests/gpu`) are right themselves: a part of them, in the interpreter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


# Packages that the project needs otherwise, and that the tests for a GPU do without.
WITHOUT = ("click", "jsonschema", "lean_dojo", "msgspec", "platformdirs", "rich")


@pytest.mark.thorough
def test_they_are_collected_without_what_a_gpu_machine_may_lack() -> None:
    program = f"""
import sys
import pytest

class Missing:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {WITHOUT}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing)
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--collect-only", "tests/gpu"]))
"""
    chosen = {"ATTENTION_GPU_TESTS": "interpreter", "TRITON_INTERPRET": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, env=os.environ | chosen, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.thorough
@pytest.mark.parametrize(("chosen", "least"), [("not thorough", 15), ("thorough", 35)])
def test_they_pass_in_the_interpreter(chosen: str, least: int) -> None:
    asked = {"ATTENTION_GPU_TESTS": "interpreter", "TRITON_INTERPRET": "1"}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", chosen, "tests/gpu"],
        cwd=ROOT, env=os.environ | asked, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed is not None
    assert int(passed[1]) >= least
