"""Changes of Gluon kernels that lose the reason of their speed, and the sentences about their
binaries that must come then: for the tests of several versions of Triton."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SCRIPT = Path(__file__).with_name("compiled_plants.py")
ROOT = Path(__file__).resolve().parents[5]
Plants = dict[str, tuple[str, dict[str, str], set[str]]]
# By the name of the change: its kernel, the text to replace, its replacement, and the sentence.
PLANTS: Plants = {
    "nothing": ("forward", {}, set()),
    # The assembler moves the exponentials behind the wait for the products.
    "exponentials are not held": (
        "forward",
        {"        l = _held(l)\n": ""},
        {"of 66 exponentials in the loop 0 are taken while products are under way"},
    ),
    "exponentials of dQ are not held": (
        "queries",
        {"        p = _held(p, kv_len)\n": ""},
        {"are taken while products are under way"},
    ),
}
THOROUGH: Plants = {
    "nothing in dQ": ("queries", {}, set()),
    # The assembler knows that no exponential is below 0, and leaves the stores out.
    "exponentials of dQ are held by their sign": (
        "queries",
        {"setp.lt.s32 never, $32, 0": "setp.lt.f32 never, $16, 0f00000000"},
        {"are taken while products are under way"},
    ),
    "few registers for those that compute": (
        "forward",
        {"[240, 24]": "[152, 24]"},
        {"the compiler serialises its matrix instructions"},
    ),
    "all warps have as many registers": (
        "forward",
        {"[240, 24]": "[168, 168]"},
        {"no warps give their registers away", "instructions in the loop move spilled registers"},
    ),
}


def check(plants: Plants, environment: Mapping[str, str]) -> None:
    """Compile each, in a process of this environment, which does not interpret."""
    done = subprocess.run(
        [sys.executable, SCRIPT], cwd=ROOT, env=environment,
        input=json.dumps({name: plant[:2] for name, plant in plants.items()}),
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, (_, _, wanted) in plants.items():
        for sentence in wanted:
            assert any(sentence in said for said in found[name]), (name, found[name])
        assert bool(found[name]) == bool(wanted), (name, found[name])
