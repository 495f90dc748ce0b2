"""What is planted in the Gluon forward kernel: texts and what takes their places."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType

from gluon_cases import RAGGED, WINDOWED

from bridge.gluon.faults import Kind
from bridge.gluon.kernels import FORWARD
from bridge.gluon.load import Change, Loader
from bridge.vectors.model.operations import GroupedQueryVector

_P_AWAITED = "o, p, p_next = warpgroup_mma_wait(0, deps=[o_later, p, p_next])\n        "
_V_RELEASED = "mbarrier.arrive(v_empty.index(v_slot), count=1)\n        "
_FIRST_AWAITED = "s = warpgroup_mma_wait(0, deps=[s_later])\n        "
_K_RELEASED = "mbarrier.arrive(k_empty.index(k_slot), count=1)\n        "


@dataclass(frozen=True)
class Planted:
    """changes: of the kernel's text. said: of which kinds the faults are, in some schedule each;
    empty: numbers are wrong. of: the case that shows it. chosen: launch options with which it
    shows."""

    changes: tuple[Change, ...]
    said: frozenset[Kind] = frozenset()
    of: GroupedQueryVector = WINDOWED
    chosen: tuple[tuple[str, int], ...] = ()


def _kinds(*kinds: Kind) -> frozenset[Kind]:
    return frozenset(kinds)


@cache
def planted(name: str) -> ModuleType:
    """The forward kernel with something planted in it."""
    return Loader(PLANTED[name].changes).module(FORWARD)


PLANTED = {
    "values-released-too-early": Planted(
        ((_P_AWAITED + _V_RELEASED, _V_RELEASED + _P_AWAITED),), _kinds("overwritten while in use")
    ),
    "keys-released-too-early": Planted(
        ((_FIRST_AWAITED + _K_RELEASED, _K_RELEASED + _FIRST_AWAITED),),
        _kinds("overwritten while in use"),
    ),
    "wrong-phase": Planted(
        (("wait(k_full.index(k_slot), k_phase)", "wait(k_full.index(k_slot), k_phase ^ 1)"),),
        _kinds("never written", "deadlock", "read before it has landed"),
    ),
    "wait-too-weak": Planted(
        (("warpgroup_mma_wait(1, deps=[s_later])", "warpgroup_mma_wait(2, deps=[s_later])"),),
        _kinds("read in flight"),
    ),
    "never-released": Planted(((_K_RELEASED + "weights", "weights"),), _kinds("deadlock")),
    "wrong-row": Planted((("(last - i) * BLOCK_N, 0]", "(last - i) * BLOCK_N + 1, 0]"),)),
    "stale-weights": Planted((("        p = p_next\n", ""),)),
    "not-rescaled": Planted(
        (("o = o * gl.convert_layout(alpha, gl.SliceLayout(1, o.type.layout))[:, None]", "o = o"),),
    ),
    "deadlock": Planted(
        (("expect(k_full.index(slot), k_desc", "expect(k_full.index(slot), 2 * k_desc"),),
        _kinds("deadlock"),
    ),
    "released-twice": Planted(
        (("arrive(q_empty.index(W), count=1)", "arrive(q_empty.index(W), count=2)"),),
        _kinds("too many arrivals"),
    ),
    "one-consumer-counted": Planted(
        (("init(v_empty.index(i), count=CONSUMERS)", "init(v_empty.index(i), count=1)"),),
        _kinds("overwritten while in use", "deadlock"),
    ),
    "operand-not-kept": Planted(
        (
            ("deps=[o_later, p, p_next])", "deps=[o_later, p_next])"),
            ("o, p, p_next =", "o, p_next ="),
        ),
        _kinds("operand not kept"),
    ),
    "queries-not-awaited": Planted(
        (("        mbarrier.wait(q_full.index(W), number & 1)\n", ""),),
        _kinds("read before it has landed"),
    ),
    "queries-overwritten": Planted(
        (("            mbarrier.wait(q_empty.index(w), number & 1 ^ 1)\n", ""),),
        _kinds("overwritten while in use", "read before it has landed"),
    ),
    "tile-too-many": Planted(
        (("for i in range(tiles):", "for i in range(tiles + 1):"),), _kinds("deadlock")
    ),
    "turns-of-all-alike": Planted(
        (("turn if W else turn ^ 1)", "turn)"),), _kinds("deadlock"), chosen=(("in_turns", 1),)
    ),
    "copy-without-a-reader": Planted(
        (("for i in range(tiles):", "for i in range(tiles + 1):"),),
        _kinds("never awaited"),
        RAGGED,
    ),
    "padding-seen": Planted((("(keys < kv_len)", "(keys <= kv_len)"),), of=RAGGED),
    "hidden-key-seen": Planted((("(rows + right)[:, None]", "(rows + right + 1)[:, None]"),)),
    "denominator-not-rescaled": Planted((("l * alpha + gl.sum(p, 1)", "l + gl.sum(p, 1)"),)),
}
