"""What the tests of `bridge.ttir` share: kernels in a few lines of TTIR, and copies of the package
pyimpl with a fault planted in a kernel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bridge.ttir.compare import Level
from bridge.ttir.machine import Machine
from bridge.ttir.memory import Memory
from bridge.ttir.parse import parse
from pyimpl.kernels._numerics import INTERPRETED

NEEDS_COMPILER = pytest.mark.skipif(
    INTERPRETED.value, reason="`test_compiled` runs this where Triton compiles"
)
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

# Run in one process for all: PyTorch and Triton are imported once, and each copy of pyimpl by a
# child of its own.
_CHILD = """
import json, os, pathlib, sys, traceback
import torch, triton.compiler, triton.backends.compiler
from bridge.spec.masks import Alignment
from bridge.ttir import definition, fields, formal, machine, parse, rational
torch.set_num_threads(1)

def said(level, name):
    from bridge.ttir.compare import Shape, forward
    from bridge.ttir.faults import CannotTell, Violation
    shape = {
        "full": Shape(q_len=2, kv_len=37),
        "causal": Shape(q_len=18, kv_len=18, window=(None, 0)),
        "masked rows": Shape(q_len=5, kv_len=3, window=(None, 0), alignment=Alignment.BOTTOM_RIGHT),
        "groups": Shape(heads=4, kv_heads=2, q_len=3, kv_len=17, window=(None, 14)),
    }[name]
    try:
        return "equal" if forward(shape, level).equal else "wrong"
    except Violation as violation:
        return violation.kind
    except CannotTell:
        return "cannot tell"

for folder, runs in json.load(sys.stdin):
    child = os.fork()
    if child == 0:
        try:
            sys.path.insert(0, folder)
            found = [said(*run) for run in runs]
            pathlib.Path(folder, "said.json").write_text(json.dumps(found))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)
    os.waitpid(child, 0)
"""
LEVELS: tuple[Level, ...] = ("rational", "formal", "fields")
SHAPES = ("full", "causal", "masked rows", "groups")
# A level and a shape.
Run = tuple[str, str]


def with_faults(folder: Path, runs: Mapping[str, Sequence[Run]]) -> dict[str, dict[Run, str]]:
    """By the names of faults, "" for none: what comparisons of the forward kernel with it say."""
    work = []
    for number, (fault, wanted) in enumerate(runs.items()):
        copy = folder / str(number)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "pyimpl", copy / "pyimpl", ignore=ignored)
        if fault:
            name, old, new = FAULTS[fault]
            path = copy / "pyimpl" / "kernels" / name
            text = path.read_text("utf-8")
            assert text.count(old) == 1, f"{fault}: {old!r} is not once in {name}"
            path.write_text(text.replace(old, new), "utf-8")
        work.append((copy, wanted))
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join([str(work[0][0].parent), str(ROOT)])
    given = json.dumps([(str(copy), wanted) for copy, wanted in work])
    done = subprocess.run(
        [sys.executable, "-P", "-c", _CHILD], input=given,
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    found = [json.loads((copy / "said.json").read_text("utf-8")) for copy, _ in work]
    return {
        fault: dict(zip(wanted, said, strict=True))
        for (fault, wanted), said in zip(runs.items(), found, strict=True)
    }


def kernel(arguments: str, body: str) -> str:
    """TTIR of a kernel with these arguments and operations."""
    return f"module {{\n  tt.func public @k({arguments}) {{\n{body}\n    tt.return\n  }}\n}}\n"


def run(text: str, memory: Memory, *arguments: Any, programs: int = 1) -> Machine:
    """The kernel in a text of TTIR, run."""
    machine = Machine(parse(text).kernel, memory, arguments)
    machine.run((programs,))
    return machine
