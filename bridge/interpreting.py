"""Whether Triton interprets its kernels, settled where a process begins."""

from __future__ import annotations

import os
import sys

_NAME = "TRITON_INTERPRET"


def settle(interpret: bool | None = None) -> None:
    """Have Triton interpret its kernels in this process and in those that it starts.

    interpret: None for "where there is no GPU"; a TRITON_INTERPRET of the environment is then left
    as it is. Call it first where a process begins: Triton reads the variable when it is imported,
    for its own functions, and when a kernel is defined. PyTorch imports Triton by itself at the
    first call of one of `pyimpl`'s operators, whatever the backend. So where Triton is imported
    already nothing is changed: half of it interpreted, no kernel runs at all.
    """
    if "triton" in sys.modules:
        return
    if interpret is None:
        import torch

        if _NAME not in os.environ and not torch.cuda.is_available():
            os.environ[_NAME] = "1"
    elif interpret:
        os.environ[_NAME] = "1"
    else:
        os.environ.pop(_NAME, None)
