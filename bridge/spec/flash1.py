"""FlashAttention-1's update.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Flash1.lean`.
"""

from __future__ import annotations

from bridge.spec.attention import ScoredValue
from bridge.spec.core import Arithmetic
from bridge.spec.online import State, finish, merge, of_block
from bridge.spec.vector import vec_smul


def step_block_flash1(s: State, block: list[ScoredValue], *, d: int, num: Arithmetic) -> State:
    """FlashAttention-1's update as the paper has it, where `o` is divided already: m̃, l̃ and P̃ V
    of the block against its own maximum; m' = max (m, m̃), l' = exp (m − m') · l + exp (m̃ −
    m') · l̃ and o' = (l · exp (m − m') · o + exp (m̃ − m') · P̃ V) / l'.

    Lean: `Attention.Spec.Online.stepBlockFlash1`.
    """
    s_ = merge(State(m=s.m, l=s.l, o=vec_smul(s.l, s.o)), of_block(block, d=d, num=num), num=num)
    return State(m=s_.m, l=s_.l, o=finish(s_, d=d, num=num))
