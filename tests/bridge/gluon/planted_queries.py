"""Bugs to plant in the Gluon kernel for dQ: texts and their replacements."""

from __future__ import annotations

from typing import Any

from gluon_cases import queries_case
from planted_bug import EARLY, IN_USE, Planted

from bridge.gluon.faults import Kind
from bridge.gluon.kernels import QUERIES


def _plant(old: str, new: str, *kinds: Kind, **more: Any) -> Planted:
    return Planted(QUERIES, ((old, new),), queries_case, frozenset(kinds), **more)


_DQ_AWAITED = "dq, ds = warpgroup_mma_wait(1, deps=[dq_later, ds])\n        "
_K_RELEASED = "mbarrier.arrive(k_empty.index(before), count=1)\n        "
_DP_AWAITED = "dp = warpgroup_mma_wait(0, deps=[dp_later])\n        "
_V_RELEASED = "mbarrier.arrive(v_empty.index(v_slot), count=1)\n        "
_STORE = "(dq_desc, [batch, head, row, 0], q_buf)\n"
_WIDE_AWAITED = "dq, ds = warpgroup_mma_wait(0, deps=[dq_later, ds])\n        "
_WIDE_RELEASED = "mbarrier.arrive(k_empty.index(k_slot), count=1)\n        "
PLANTED = {
    "keys-released-too-early": _plant(
        _DQ_AWAITED + _K_RELEASED, _K_RELEASED + _DQ_AWAITED, IN_USE
    ),
    "values-released-too-early": _plant(
        _DP_AWAITED + _V_RELEASED + "ds = gl", _V_RELEASED + _DP_AWAITED + "ds = gl", IN_USE,
        # With two buffers the next release of keys orders it all the same.
        chosen=(("values", 1),),
    ),
    "wait-too-weak": _plant(
        "s = warpgroup_mma_wait(2, deps", "s = warpgroup_mma_wait(3, deps", "read in flight"
    ),
    "gradients-too-early": _plant(
        "dp = warpgroup_mma_wait(0, deps=[dp_later])\n        mbarrier.arrive(v_empty"
        ".index(v_slot), count=1)\n        ds = gl",
        "dp = warpgroup_mma_wait(1, deps=[dp_later])\n        mbarrier.arrive(v_empty"
        ".index(v_slot), count=1)\n        ds = gl",
        "read in flight",
    ),
    "other-keys": _plant("        before = k_slot\n        k_slot", "        k_slot",
                         IN_USE, EARLY, "deadlock", "too many arrivals"),
    "numbers-not-counted": _plant("TENSORS + NUMBERS", "TENSORS", EARLY),
    "output-not-awaited": _plant(
        _STORE + "        tma.store_wait(pendings=0)\n", _STORE, IN_USE, "never awaited"
    ),
    "output-over-queries-in-use": _plant(
        "        q.store((dq", "        mbarrier.arrive(q_empty.index(place), count=1)\n"
        "        q.store((dq", IN_USE, "too many arrivals",
    ),
    "one-buffer-of-keys": _plant(
        "next_buffer(k_slot, k_phase, KEYS)", "next_buffer(k_slot, k_phase, 1)",
        "deadlock", IN_USE, EARLY, "never written", "too many arrivals",
    ),
    "turns-of-all-alike": _plant(
        "turn if W else turn ^ 1)", "turn)", "deadlock", chosen=(("in_turns", 1),)
    ),
    "gradient-without-delta": _plant("ds = p * (dp - delta[:, None])", "ds = p * dp"),
    "hidden-key-seen": _plant("(rows + right)[:, None]", "(rows + right + 1)[:, None]"),
    "first-tile-left-out": _plant(
        "dq_later = warpgroup_mma(ds, keys_before, dq, is_async=True)\n        mbarrier",
        "dq_later = warpgroup_mma(ds, keys_before, dq, use_acc=False, is_async=True)\n"
        "        mbarrier",
    ),
    "not-scaled": _plant("(dq * grad_scale)", "(dq * scale)"),
    "wide-released-too-early": _plant(
        _WIDE_AWAITED + _WIDE_RELEASED + "k_slot", _WIDE_RELEASED + _WIDE_AWAITED + "k_slot",
        IN_USE, head_dim=256,
    ),
    "wide-without-the-other-tiles": _plant(
        "v_phase, turn, 1, tiles, last", "v_phase, turn, 1, tiles - 1, last", "deadlock",
        "never awaited", head_dim=256,
    ),
}  # fmt: skip
