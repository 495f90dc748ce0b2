"""Changes of the Gluon forward kernel that lose what makes it fast, and what has to be said then of
its binary: what the tests of several versions of Triton share."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

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
        {"[240, 24]": "[152, 24]"},
        {"the compiler serialises its matrix instructions"},
    ),
    "all warps have as many registers": (
        {"[240, 24]": "[168, 168]"},
        {"no warps give their registers away", "instructions in the loop move spilled registers"},
    ),
}


def check(
    plants: dict[str, tuple[dict[str, str], set[str]]], environment: Mapping[str, str]
) -> None:
    """Compile each, in a process of this environment, which does not interpret."""
    done = subprocess.run(
        [sys.executable, SCRIPT], cwd=ROOT, env=environment,
        input=json.dumps({name: replaced for name, (replaced, _) in plants.items()}),
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, (_, wanted) in plants.items():
        for sentence in wanted:
            assert any(sentence in said for said in found[name]), (name, found[name])
        assert bool(found[name]) == bool(wanted), (name, found[name])
