"""What is planted in the Gluon forward kernel: texts and what takes their places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from gluon_cases import backward_case, ragged, windowed

from bridge.gluon.faults import Kind
from bridge.gluon.kernels import BACKWARD, FORWARD
from bridge.gluon.load import Change, Loader
from bridge.vectors.model.attention import Vector

_P_AWAITED = "o, p, p_next = warpgroup_mma_wait(0, deps=[o_later, p, p_next])\n        "
_V_RELEASED = "mbarrier.arrive(v_empty.index(v_slot), count=1)\n        "
_FIRST_AWAITED = "s = warpgroup_mma_wait(0, deps=[s_later])\n        "
_OUT_AWAITED = "                tma.store_wait(pendings=0)\n"
_OUT_READ = (
    "            if OUT == FROM_ITS_OWN:\n"
    "                # The output of the item before has been read.\n" + _OUT_AWAITED
)
_K_RELEASED = "mbarrier.arrive(k_empty.index(k_slot), count=1)\n        "


@dataclass(frozen=True)
class Planted:
    """changes: of the kernel's text. said: of which kinds the faults are, in some schedule each;
    empty: numbers are wrong. of: makes the case that shows it. chosen: launch options with which it
    shows; head_dim: the size of heads.
    """

    changes: tuple[Change, ...]
    said: frozenset[Kind] = frozenset()
    of: Callable[[], Vector] = windowed
    chosen: tuple[tuple[str, int], ...] = ()
    head_dim: int = 64


def _kinds(*kinds: Kind) -> frozenset[Kind]:
    return frozenset(kinds)


_SUMS_AWAITED = "                tma.store_wait(pendings=0)\n                for c"
_DK_AWAITED = "dk, ds_operand = warpgroup_mma_wait(0, deps=[dk_later, ds_operand])\n            "
_AHEAD_AWAITED = "dk, ds = warpgroup_mma_wait(1, deps=[dk_later, ds])\n        "
_BEFORE_RELEASED = "mbarrier.arrive(q_empty.index(before), count=1)\n"
_Q_RELEASED = "mbarrier.arrive(q_empty.index(slot), count=1)\n"
_WIDE_AWAITED = "sums, operand = warpgroup_mma_wait(0, deps=[later, operand])\n        "


@cache
def plant(name: str) -> ModuleType:
    """A kernel's module with something planted in it."""
    if name in PLANTED:
        return Loader(PLANTED[name].changes).module(FORWARD)
    return Loader(PLANTED_BACKWARD[name].changes).module(BACKWARD)


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
        (
            (
                "    mbarrier.arrive(q_empty.index(place), count=1)\n        mbarrier.wait(v_full",
                "    mbarrier.arrive(q_empty.index(place), count=2)\n        mbarrier.wait(v_full",
            ),
        ),
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
        (("        mbarrier.wait(q_full.index(place), parity)\n", ""),),
        _kinds("read before it has landed"),
    ),
    "queries-overwritten": Planted(
        (("            mbarrier.wait(q_empty.index(place), parity ^ 1)\n", ""),),
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
        ragged,
    ),
    "output-overwritten": Planted(
        ((_OUT_READ, ""),), _kinds("overwritten while in use"), chosen=(("out", 2),)
    ),
    "output-not-awaited": Planted(
        (("    if OUT == FROM_ITS_OWN:\n        tma.store_wait(pendings=0)\n", ""),),
        _kinds("never awaited"),
        chosen=(("out", 2),),
    ),
    "queries-come-into-the-output": Planted(
        (
            (
                _OUT_AWAITED + "                mbarrier.arrive(q_empty",
                "                mbarrier.arrive(q_empty",
            ),
        ),
        _kinds("overwritten while in use", "never awaited"),
        chosen=(("out", 1),),
    ),
    "output-over-queries-in-use": Planted(
        (("        if OUT != FROM_QUERIES:\n            mbarrier", "        mbarrier"),),
        _kinds("overwritten while in use", "too many arrivals"),
        chosen=(("out", 1),),
    ),
    "one-buffer-for-the-queries-of-two-items": Planted(
        (("return number % ITEMS * CONSUMERS + w,", "return w,"),),
        _kinds("overwritten while in use", "read before it has landed", "deadlock"),
        chosen=(("items", 2),),
    ),
    "padding-seen": Planted((("(keys < kv_len)", "(keys <= kv_len)"),), of=ragged),
    "hidden-key-seen": Planted((("(rows + right)[:, None]", "(rows + right + 1)[:, None]"),)),
    "denominator-not-rescaled": Planted((("l * alpha + gl.sum(p, 1)", "l + gl.sum(p, 1)"),)),
}


def _backward(old: str, new: str, *kinds: Kind, head_dim: int = 64) -> Planted:
    return Planted(((old, new),), _kinds(*kinds), backward_case, head_dim=head_dim)


_IN_USE: Kind = "overwritten while in use"
PLANTED_BACKWARD = {
    "queries-released-too-early": _backward(
        _DK_AWAITED + _Q_RELEASED, _Q_RELEASED + " " * 12 + _DK_AWAITED.rstrip(" "), _IN_USE
    ),
    "one-buffer-for-the-exchange": _backward(
        "ds_bufs.index(2 * (turn & 1) + W).store(ds)", "ds_bufs.index(W).store(ds)",
        _IN_USE, "read before it has landed",
    ),
    "exchange-not-awaited": _backward(
        "            mbarrier.wait(ds_full.index(turn & 1), turn >> 1 & 1)\n", "",
        "never written", "read before it has landed",
    ),
    "phase-of-the-exchange": _backward("turn >> 1 & 1", "turn & 1", "deadlock", "never written"),
    "sums-overwritten": _backward(_SUMS_AWAITED, "                for c", _IN_USE),
    "sums-not-awaited": _backward(
        "    if SUMS:\n        tma.store_wait(pendings=0)\n", "", "never awaited"
    ),
    "values-not-counted": _backward(
        "PARTS * (k_desc.block_type.nbytes + v_desc.block_type.nbytes)",
        "PARTS * k_desc.block_type.nbytes",
        "read before it has landed",
    ),
    "gradient-without-delta": _backward("ds = p * (dp - delta[None, :])", "ds = p * dp"),
    "sums-of-one-half": _backward(
        "for w in gl.static_range(2):\n                        of_w",
        "for w in gl.static_range(1):\n                        of_w",
    ),
    # Of heads of 128, whose scores come ahead.
    "ahead-queries-released-too-early": _backward(
        _AHEAD_AWAITED + _BEFORE_RELEASED,
        _BEFORE_RELEASED + " " * 8 + _AHEAD_AWAITED.rstrip(" "), _IN_USE, head_dim=128,
    ),
    "ahead-wait-too-weak": _backward(
        "warpgroup_mma_wait(2, deps=[s_later])", "warpgroup_mma_wait(3, deps=[s_later])",
        "read in flight", head_dim=128,
    ),
    "ahead-of-its-own-queries": _backward(
        "ds, q_before, dk, is_async=True)\n        mbarrier.wait(g",
        "ds, q, dk, is_async=True)\n        mbarrier.wait(g",
        head_dim=128,
    ),
    "ahead-last-tile-not-added": _backward(
        "dk, ds = warpgroup_mma_wait(0, deps=[dk_later, ds])",
        "_, ds = warpgroup_mma_wait(0, deps=[dk_later, ds])", head_dim=128,
    ),
    "ahead-first-tile-again": _backward(
        "begin = first + 1", "begin = first", "deadlock", head_dim=128
    ),
    "ahead-first-tile-of-each-head-left-out": _backward(
        "                begin = first\n", "", "never awaited", "copy without a reader",
        head_dim=128,
    ),
    "wide-wait-too-weak": _backward(
        "s = warpgroup_mma_wait(W, deps", "s = warpgroup_mma_wait(1, deps", "read in flight",
        head_dim=256,
    ),
    "wide-released-too-early": _backward(
        _WIDE_AWAITED + _Q_RELEASED, _Q_RELEASED + " " * 8 + _WIDE_AWAITED.rstrip(" "), _IN_USE,
        head_dim=256,
    ),
}  # fmt: skip
