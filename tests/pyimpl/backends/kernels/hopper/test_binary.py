"""The kernel compiled without a device is held to what makes it fast, and a change of its text that
loses that is seen. That each of its cases fits is a step of `make test` of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("compiled_plants.py")
ROOT = Path(__file__).resolve().parents[5]
# By what is planted: what is replaced in the kernel's text, and what is said then.
PLANTS: dict[str, tuple[dict[str, str], set[str]]] = {
    "nothing": ({}, set()),
    # The assembler moves the exponentials behind the wait for the products.
    "exponentials are not held": (
        {"        l = _held(l)\n": ""},
        {"of 66 exponentials in the loop 0 are taken while products are under way"},
    ),
}
THOROUGH: dict[str, tuple[dict[str, str], set[str]]] = {
    "few registers for those that compute": (
        {"[REGISTERS, 24]": "[152, 24]"},
        {"the compiler serialises its matrix instructions"},
    ),
    "all warps have as many registers": (
        {"[REGISTERS, 24]": "[168, 168]"},
        {"no warps give their registers away", "instructions in the loop move spilled registers"},
    ),
}


def check(plants: dict[str, tuple[dict[str, str], set[str]]]) -> None:
    """Compile each, in a process that does not interpret."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, SCRIPT], cwd=ROOT, env=environment | {"PYTHONPATH": str(ROOT)},
        input=json.dumps({name: replaced for name, (replaced, _) in plants.items()}),
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, (_, wanted) in plants.items():
        for sentence in wanted:
            assert any(sentence in said for said in found[name]), (name, found[name])
        assert bool(found[name]) == bool(wanted), (name, found[name])


def test_the_binary_keeps_exponentials_beside_products() -> None:
    check(PLANTS)


@pytest.mark.thorough
def test_what_else_loses_speed_is_seen() -> None:
    check(THOROUGH)
