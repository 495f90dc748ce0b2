"""Online softmax.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Online.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.spec.attention import ScoredValue
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.maximum import max_score, rescale, row_max
from bridge.spec.sum import sum_over
from bridge.spec.vector import vec_add, vec_smul, vec_sum_over, vec_zero


@dataclass(frozen=True)
class State:
    """The running state of online softmax.

    m: the largest unmasked score so far; `none` (−∞) before the first.

    l: the denominator so far, Σ exp (s − m).

    o: the output so far, not yet divided: Σ exp (s − m) · v.

    Lean: `Attention.Spec.Online.State`.
    """

    m: Score | None
    l: Value
    o: list[Value]


def empty(*, d: int, num: Arithmetic) -> State:
    """The state of no keys.

    Lean: `Attention.Spec.Online.empty`.
    """
    return State(m=None, l=num.value(0), o=vec_zero(d=d, zero=num.value(0)))


def finish(s: State, *, d: int, num: Arithmetic) -> list[Value]:
    """The output of a state: o / l, and 0 where every key was masked.

    Lean: `Attention.Spec.Online.finish`.
    """
    return vec_zero(d=d, zero=num.value(0)) if s.m is None else [x / s.l for x in s.o]


def step(s: State, key: ScoredValue, *, num: Arithmetic) -> State:
    """One more key.

    Lean: `Attention.Spec.Online.step`.
    """
    m = max_score(s.m, key.score)
    alpha = rescale(s.m, m, num=num)
    p = rescale(key.score, m, num=num)
    return State(m=m, l=alpha * s.l + p, o=vec_add(vec_smul(alpha, s.o), vec_smul(p, key.value)))


def of_block(block: list[ScoredValue], *, d: int, num: Arithmetic) -> State:
    """The state of one block of keys, computed from scratch.

    Lean: `Attention.Spec.Online.ofBlock`.
    """
    m = row_max([x.score for x in block])
    return State(
        m=m,
        l=sum_over(lambda key: rescale(key.score, m, num=num), block, zero=num.value(0)),
        o=vec_sum_over(
            lambda key: vec_smul(rescale(key.score, m, num=num), key.value),
            block,
            d=d,
            zero=num.value(0),
        ),
    )


def step_block(s: State, block: list[ScoredValue], *, d: int, num: Arithmetic) -> State:
    """One more block of keys, as the inner loop of FlashAttention-2 takes it.

    Lean: `Attention.Spec.Online.stepBlock`.
    """
    m = max_score(s.m, row_max([x.score for x in block]))
    alpha = rescale(s.m, m, num=num)
    return State(
        m=m,
        l=alpha * s.l
        + sum_over(lambda key: rescale(key.score, m, num=num), block, zero=num.value(0)),
        o=vec_add(
            vec_smul(alpha, s.o),
            vec_sum_over(
                lambda key: vec_smul(rescale(key.score, m, num=num), key.value),
                block,
                d=d,
                zero=num.value(0),
            ),
        ),
    )


def merge(a: State, b: State, *, num: Arithmetic) -> State:
    """The state of two disjoint sets of keys from the states of each.

    Lean: `Attention.Spec.Online.merge`.
    """
    m = max_score(a.m, b.m)
    alpha = rescale(a.m, m, num=num)
    beta = rescale(b.m, m, num=num)
    return State(
        m=m, l=alpha * a.l + beta * b.l, o=vec_add(vec_smul(alpha, a.o), vec_smul(beta, b.o))
    )


def online(blocks: list[list[ScoredValue]], *, d: int, num: Arithmetic) -> State:
    """The state after all blocks, taken one after the other.

    Lean: `Attention.Spec.Online.online`.
    """
    result = empty(d=d, num=num)
    for block in blocks:
        result = step_block(result, block, d=d, num=num)
    return result


def step_block_divided(s: State, block: list[ScoredValue], *, d: int, num: Arithmetic) -> State:
    """FlashAttention-1's update, where `o` is divided already: multiply back, take the block,
    divide again. (The paper takes the block's weights against its own maximum first; here, as
    in `stepBlock`, they are taken against the new one.)

    Lean: `Attention.Spec.Online.stepBlockDivided`.
    """
    s_ = step_block(State(m=s.m, l=s.l, o=vec_smul(s.l, s.o)), block, d=d, num=num)
    return State(m=s_.m, l=s_.l, o=finish(s_, d=d, num=num))
