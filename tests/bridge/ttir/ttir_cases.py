"""What the tests of `bridge.ttir` share: kernels in a few lines of TTIR, and faults planted in the
forward kernel."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from triton.runtime.jit import JITFunction

from bridge.spec.masks import Alignment
from bridge.ttir.compare import Level, Shape, forward
from bridge.ttir.faults import CannotTell, Violation
from bridge.ttir.machine import Machine
from bridge.ttir.memory import Memory
from bridge.ttir.parse import parse
from pyimpl.kernels._numerics import INTERPRETED

NEEDS_COMPILER = pytest.mark.skipif(
    INTERPRETED.value, reason="`test_compiled` runs this where Triton compiles"
)

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
        "_bounds.py",
        "whole_stop = tl.minimum(whole_stop, length // block)",
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

LEVELS: tuple[Level, ...] = ("rational", "formal", "fields")
SHAPES = {
    "full": Shape(q_len=2, kv_len=37),
    "causal": Shape(q_len=18, kv_len=18, window=(None, 0)),
    "masked rows": Shape(q_len=5, kv_len=3, window=(None, 0), alignment=Alignment.BOTTOM_RIGHT),
    "groups": Shape(heads=4, kv_heads=2, q_len=3, kv_len=17, window=(None, 14)),
}


@contextmanager
def planted(fault: str) -> Iterator[None]:
    """The source that Triton compiles of one function has this fault for so long; "": none."""
    if not fault:
        yield
        return
    file, old, new = FAULTS[fault]
    module = importlib.import_module(f"pyimpl.kernels.{file.removesuffix('.py')}")
    (function,) = (
        f
        for f in vars(module).values()
        if isinstance(f, JITFunction) and f.__module__ == module.__name__ and old in f.src
    )
    right = function.src
    function._unsafe_update_src(right.replace(old, new))
    try:
        yield
    finally:
        function._unsafe_update_src(right)


def said(level: Level, shape: str) -> str:
    """What the comparison of the forward kernel says."""
    try:
        return "equal" if forward(SHAPES[shape], level).equal else "wrong"
    except Violation as violation:
        return violation.kind
    except CannotTell:
        return "cannot tell"


def kernel(arguments: str, body: str) -> str:
    """TTIR of a kernel with these arguments and operations."""
    return f"module {{\n  tt.func public @k({arguments}) {{\n{body}\n    tt.return\n  }}\n}}\n"


def run(
    text: str, memory: Memory, *arguments: Any, programs: int = 1, masked_after: bool = False
) -> Machine:
    """The kernel in a text of TTIR, run."""
    machine = Machine(parse(text).kernel, memory, arguments, masked_after=masked_after)
    machine.run((programs,))
    return machine
