"""Why a simulated kernel ends early: it does something that no kernel may."""

from __future__ import annotations

import re
import sys
from types import FrameType
from typing import Literal

Kind = Literal[
    "deadlock",
    "barrier",
    "too many arrivals",
    "read before it has landed",
    "overwritten while in use",
    "never awaited",
    "read in flight",
    "operand not kept",
    "never written",
    "outside its tensor",
    "stored twice",
    "shape",
    "race",
    "part of a warp",
    "not aligned",
]
# In the globals of a module that `load` made: its lines.
LINES = "__simulated_lines__"
_ASSIGNED = re.compile(r"\s*(\w+)(?:\s*:\s*[\w.]+)?\s*=[^=]")


class Fault(Exception):
    """The kernel is wrong. kind: in which way; the message: one sentence."""

    def __init__(self, kind: Kind, sentence: str) -> None:
        self.kind: Kind = kind
        super().__init__(sentence)


def _kernel_frame() -> FrameType | None:
    """The innermost frame of a kernel."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and LINES not in frame.f_globals:
        frame = frame.f_back
    return frame


def line() -> str:
    """The line of the running kernel, as "line 12"."""
    frame = _kernel_frame()
    return "line ?" if frame is None else f"line {frame.f_lineno}"


def assigned_name(otherwise: str) -> str:
    """The variable that the kernel's line under way assigns to."""
    frame = _kernel_frame()
    if frame is None:
        return otherwise
    found = _ASSIGNED.match(frame.f_globals[LINES][frame.f_lineno - 1])
    return otherwise if found is None else found[1]
