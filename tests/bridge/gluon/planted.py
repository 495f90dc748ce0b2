"""Bugs to plant in the Gluon forward kernel: texts and their replacements."""

from __future__ import annotations

from typing import Any

from gluon_cases import backward_case, ragged, windowed
from planted_bug import EARLY, IN_USE, Planted

from bridge.gluon.faults import Kind
from bridge.gluon.kernels import BACKWARD, FORWARD

_P_AWAITED = "o, p, p_next = warpgroup_mma_wait(0, deps=[o_later, p, p_next])\n        "
_V_RELEASED = "mbarrier.arrive(v_empty.index(v_slot), count=1)\n        "
_FIRST_AWAITED = "s = warpgroup_mma_wait(0, deps=[s_later])\n        "
_OUT_AWAITED = "                tma.store_wait(pendings=0)\n"
_OUT_READ = (
    "            if OUT == FROM_ITS_OWN:\n"
    "                # The output of the item before has been read.\n" + _OUT_AWAITED
)
_K_RELEASED = "mbarrier.arrive(k_empty.index(k_slot), count=1)\n        "


_SUMS_AWAITED = "                tma.store_wait(pendings=0)\n                for c"
_DK_AWAITED = "dk, ds_operand = warpgroup_mma_wait(0, deps=[dk_later, ds_operand])\n            "
_AHEAD_AWAITED = "dk, ds = warpgroup_mma_wait(1, deps=[dk_later, ds])\n        "
_BEFORE_RELEASED = "mbarrier.arrive(q_empty.index(before), count=1)\n"
_Q_RELEASED = "mbarrier.arrive(q_empty.index(slot), count=1)\n"
_WIDE_AWAITED = "sums, operand = warpgroup_mma_wait(0, deps=[later, operand])\n        "


def _forward(old: str, new: str, *kinds: Kind, of: Any = windowed, **more: Any) -> Planted:
    return Planted(FORWARD, ((old, new),), of, frozenset(kinds), **more)


PLANTED = {
    "values-released-too-early": _forward(
        _P_AWAITED + _V_RELEASED, _V_RELEASED + _P_AWAITED, IN_USE
    ),
    "keys-released-too-early": _forward(
        _FIRST_AWAITED + _K_RELEASED, _K_RELEASED + _FIRST_AWAITED, IN_USE
    ),
    "wrong-phase": _forward(
        "wait(k_full.index(k_slot), k_phase)", "wait(k_full.index(k_slot), k_phase ^ 1)",
        "never written", "deadlock", EARLY,
    ),
    "wait-too-weak": _forward(
        "warpgroup_mma_wait(1, deps=[s_later])", "warpgroup_mma_wait(2, deps=[s_later])",
        "read in flight",
    ),
    "never-released": _forward(_K_RELEASED + "weights", "weights", "deadlock"),
    "wrong-row": _forward("(last - i) * BLOCK_N, 0]", "(last - i) * BLOCK_N + 1, 0]"),
    "stale-weights": _forward("        p = p_next\n", ""),
    "not-rescaled": _forward(
        "o = o * gl.convert_layout(alpha, gl.SliceLayout(1, o.type.layout))[:, None]", "o = o"
    ),
    "deadlock": _forward(
        "expect(k_full.index(slot), k_desc", "expect(k_full.index(slot), 2 * k_desc", "deadlock"
    ),
    "released-twice": _forward(
        "    mbarrier.arrive(q_empty.index(place), count=1)\n        mbarrier.wait(v_full",
        "    mbarrier.arrive(q_empty.index(place), count=2)\n        mbarrier.wait(v_full",
        "too many arrivals",
    ),
    "one-consumer-counted": _forward(
        "init(v_empty.index(i), count=CONSUMERS)", "init(v_empty.index(i), count=1)",
        IN_USE, "deadlock",
    ),
    "operand-not-kept": Planted(
        FORWARD,
        (
            ("deps=[o_later, p, p_next])", "deps=[o_later, p_next])"),
            ("o, p, p_next =", "o, p_next ="),
        ),
        windowed, frozenset({"operand not kept"}),
    ),
    "queries-not-awaited": _forward(
        "        mbarrier.wait(q_full.index(place), parity)\n", "", EARLY
    ),
    "queries-overwritten": _forward(
        "            mbarrier.wait(q_empty.index(place), parity ^ 1)\n", "", IN_USE, EARLY
    ),
    "tile-too-many": _forward("for i in range(tiles):", "for i in range(tiles + 1):", "deadlock"),
    "turns-of-all-alike": _forward(
        "turn if W else turn ^ 1)", "turn)", "deadlock", chosen=(("in_turns", 1),)
    ),
    "copy-without-a-reader": _forward(
        "for i in range(tiles):", "for i in range(tiles + 1):", "never awaited", of=ragged
    ),
    "output-overwritten": _forward(_OUT_READ, "", IN_USE, chosen=(("out", 2),)),
    "output-not-awaited": _forward(
        "    if OUT == FROM_ITS_OWN:\n        tma.store_wait(pendings=0)\n", "",
        "never awaited", chosen=(("out", 2),),
    ),
    "queries-come-into-the-output": _forward(
        _OUT_AWAITED + "                mbarrier.arrive(q_empty",
        "                mbarrier.arrive(q_empty",
        IN_USE, "never awaited", chosen=(("out", 1),),
    ),
    "output-over-queries-in-use": _forward(
        "        if OUT != FROM_QUERIES:\n            mbarrier", "        mbarrier",
        IN_USE, "too many arrivals", chosen=(("out", 1),),
    ),
    "one-buffer-for-the-queries-of-two-items": _forward(
        "return number % ITEMS * CONSUMERS + w,", "return w,",
        IN_USE, EARLY, "deadlock", chosen=(("items", 2),),
    ),
    "padding-seen": _forward("(keys < kv_len)", "(keys <= kv_len)", of=ragged),
    "hidden-key-seen": _forward("(rows + right)[:, None]", "(rows + right + 1)[:, None]"),
    "denominator-not-rescaled": _forward("l * alpha + gl.sum(p, 1)", "l + gl.sum(p, 1)"),
}  # fmt: skip


def _backward(old: str, new: str, *kinds: Kind, **more: Any) -> Planted:
    return Planted(BACKWARD, ((old, new),), backward_case, frozenset(kinds), **more)


PLANTED_BACKWARD = {
    "queries-released-too-early": _backward(
        _DK_AWAITED + _Q_RELEASED, _Q_RELEASED + " " * 12 + _DK_AWAITED.rstrip(" "), IN_USE
    ),
    "one-buffer-for-the-exchange": _backward(
        "ds_bufs.index(2 * (turn & 1) + W).store(ds)", "ds_bufs.index(W).store(ds)",
        IN_USE, EARLY,
    ),
    "exchange-not-awaited": _backward(
        "            mbarrier.wait(ds_full.index(turn & 1), turn >> 1 & 1)\n", "",
        "never written", EARLY,
    ),
    "phase-of-the-exchange": _backward("turn >> 1 & 1", "turn & 1", "deadlock", "never written"),
    "sums-overwritten": _backward(_SUMS_AWAITED, "                for c", IN_USE),
    "sums-not-awaited": _backward(
        "    if SUMS:\n        tma.store_wait(pendings=0)\n", "", "never awaited"
    ),
    "values-not-counted": _backward(
        "PARTS * (k_desc.block_type.nbytes + v_desc.block_type.nbytes)",
        "PARTS * k_desc.block_type.nbytes",
        EARLY,
    ),
    "gradient-without-delta": _backward("ds = p * (dp - delta[None, :])", "ds = p * dp"),
    "sums-of-one-half": _backward(
        "for w in gl.static_range(2):\n                        of_w",
        "for w in gl.static_range(1):\n                        of_w",
    ),
    # Of heads of 128, whose scores come ahead.
    "ahead-queries-released-too-early": _backward(
        _AHEAD_AWAITED + _BEFORE_RELEASED,
        _BEFORE_RELEASED + " " * 8 + _AHEAD_AWAITED.rstrip(" "), IN_USE, head_dim=128,
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
        _WIDE_AWAITED + _Q_RELEASED, _Q_RELEASED + " " * 8 + _WIDE_AWAITED.rstrip(" "), IN_USE,
        head_dim=256,
    ),
}  # fmt: skip
