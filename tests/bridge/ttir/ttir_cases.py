"""What the tests of `bridge.ttir` share: kernels in a few lines of TTIR, and copies of the
project's kernels with a fault planted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from bridge.ttir.machine import Machine
from bridge.ttir.memory import Memory
from bridge.ttir.parse import parse

ROOT = Path(__file__).resolve().parents[3]

# Faults of the forward kernel: file, text and what stands in its place.
FAULTS = {
    "o not rescaled": ("_loop.py", "o = alpha[:, None] * o", "o = o * 1.0"),
    "l not rescaled": ("_loop.py", "l = alpha * l + tl.sum(p, 1)", "l = l + tl.sum(p, 1)"),
    "causal off by one": (
        "_loop.py",
        "keys[None, :] <= rows.positions[:, None] + scores.right",
        "keys[None, :] < rows.positions[:, None] + scores.right",
    ),
    "ragged last tile not masked": (
        "_loop.py",
        "visible = (keys < at.stop)[None, :]",
        "visible = (keys >= 0)[None, :]",
    ),
    "ragged last tile taken as whole": (
        "_loop.py",
        "whole_stop = tl.minimum(whole_stop, kv_len // BLOCK_N)",
        "whole_stop = whole_stop",
    ),
    "NaN for rows without a key": (
        "_loop.py",
        'm_finite = tl.where(m_new == float("-inf"), 0.0, m_new)',
        "m_finite = m_new",
    ),
    "division by 0 for rows without a key": (
        "_loop.py",
        "return o / tl.where(none, 1.0, l)[:, None]",
        "return o / l[:, None]",
    ),
    "group by remainder": ("forward.py", "return head // group", "return head % group"),
    "one tile too few": (
        "_bounds.py",
        "tl.maximum(row_last + shift + right + 1, 0)",
        "tl.maximum(row_last + shift + right, 0)",
    ),
    "maximum not scaled": ("_loop.py", "largest = largest * factor", "largest = largest"),
}

_CHILD = """
import json, sys
from bridge.ttir.compare import Shape, forward
from bridge.ttir.faults import CannotTell, Violation
from bridge.spec.masks import Alignment
causal = {"window": (None, 0)}
shapes = {
    "full": Shape(q_len=20, kv_len=37),
    "causal": Shape(q_len=20, kv_len=20, **causal),
    "masked rows": Shape(q_len=20, kv_len=16, alignment=Alignment.BOTTOM_RIGHT, **causal),
    "groups": Shape(heads=4, kv_heads=2, q_len=3, kv_len=17, window=(None, 14)),
}
found = {}
for level in sys.argv[1:]:
    for name, shape in shapes.items():
        try:
            compared = forward(shape, level)
            said = "equal" if compared.equal else "wrong"
        except Violation as violation:
            said = violation.kind
        except CannotTell:
            said = "cannot tell"
        found[f"{level}, {name}"] = said
print(json.dumps(found))
"""


def with_fault(folder: Path, fault: str | None, *levels: str) -> dict[str, str]:
    """What the comparisons at these levels say of the forward kernel with this fault, or none."""
    shutil.copytree(
        ROOT / "pyimpl", folder / "pyimpl", ignore=shutil.ignore_patterns("__pycache__")
    )
    if fault is not None:
        name, old, new = FAULTS[fault]
        path = folder / "pyimpl" / "kernels" / name
        text = path.read_text("utf-8")
        assert text.count(old) >= 1, f"{fault}: {old!r} is not in {name}"
        path.write_text(text.replace(old, new), "utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-P", "-c", _CHILD, *levels],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said: dict[str, str] = json.loads(done.stdout)
    return said


def kernel(arguments: str, body: str) -> str:
    """TTIR of a kernel with these arguments and operations."""
    return f"module {{\n  tt.func public @k({arguments}) {{\n{body}\n    tt.return\n  }}\n}}\n"


def run(text: str, memory: Memory, *arguments: Any, programs: int = 1) -> Machine:
    """The kernel in a text of TTIR, run."""
    machine = Machine(parse(text).kernel, memory, arguments)
    machine.run((programs,))
    return machine
