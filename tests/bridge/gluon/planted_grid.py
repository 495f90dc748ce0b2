"""Bugs to plant in the Gluon kernel for dK and dV where a program has several tiles of keys:
texts and their replacements."""

from __future__ import annotations

from typing import Any

from gluon_cases import grid_case
from planted_bug import EARLY, IN_USE, Planted

from bridge.gluon.faults import Kind
from bridge.gluon.kernels import BACKWARD
from bridge.gluon.load import Change


def _plant(*changes: Change, said: tuple[Kind, ...] = (), **more: Any) -> Planted:
    return Planted(BACKWARD, changes, grid_case, frozenset(said), **more)


_RELEASED = "mbarrier.arrive(kv_empty.index(place), count=1)\n"
_AWAITED = "    mbarrier.wait(kv_full.index(place), parity)\n"
_AWAITED_EMPTY = "        mbarrier.wait(kv_empty.index(place), parity ^ 1)\n"
_DK = "    dk = gl.zeros([HALF, HEAD_DIM], gl.float32, layout)\n"
PLANTED = {
    "phase-of-the-keys-begun-anew": _plant(
        ("number % ITEMS, number // ITEMS & 1", "number % ITEMS, 0"),
        said=(IN_USE, "too many arrivals"),
    ),
    "phase-of-the-queries-begun-anew": _plant(
        ("            slot, phase, turn = _sum_half(", "            _, _, turn = _sum_half("),
        said=("deadlock", EARLY, IN_USE, "too many arrivals"),
    ),
    "buffer-of-the-queries-begun-anew": _plant(
        ("            slot, phase, turn = _sum_half(", "            _, phase, turn = _sum_half("),
        said=("deadlock", EARLY, IN_USE, "too many arrivals"),
    ),
    "turn-of-the-exchange-begun-anew": _plant(
        ("            slot, phase, turn = _sum_half(", "            slot, phase, _ = _sum_half("),
        said=("deadlock", EARLY, IN_USE, "too many arrivals"),
    ),
    "sum-not-begun-anew": _plant(
        ("HALF = gl.constexpr(64)\n", "HALF = gl.constexpr(64)\nleft_over = {}\n"),
        (_DK, _DK.replace("gl.zeros", "left_over.pop(W) if W in left_over else gl.zeros")),
        ("    return slot, phase, turn\n", "    left_over[W] = dk\n    return slot, phase, turn\n"),
    ),
    "a-tile-twice": _plant(
        ("_item(\n        number, (heads", "_item(\n        gl.minimum(number, 1), (heads"),
        said=("stored twice",),
    ),
    "a-tile-left-out": _plant(
        ("_rounds(num_batches * num_kv_heads * key_tiles)",
         "_rounds(num_batches * num_kv_heads * key_tiles - 1)"),
    ),
    "tiles-of-one-head": _plant(
        ("dk_ptr += batch * stride_cb + kv_head * stride_ch", "dk_ptr += batch * stride_cb"),
        said=("stored twice",),
    ),
    "keys-released-too-early": _plant(
        (_AWAITED + "    if AHEAD", _AWAITED + "    " + _RELEASED + "    if AHEAD"),
        ("come meanwhile.\n        " + _RELEASED, "come meanwhile.\n        pass\n"),
        said=(IN_USE,),
    ),
    "keys-never-released": _plant(
        ("come meanwhile.\n        " + _RELEASED, "come meanwhile.\n        pass\n"),
        said=("deadlock",),
    ),
    "keys-overwritten": _plant(
        (_AWAITED_EMPTY, "        pass\n"), said=(IN_USE, EARLY, "too many arrivals")
    ),
    "release-of-one-half-counted": _plant(
        ("init(kv_empty.index(i), count=2)", "init(kv_empty.index(i), count=1)"),
        said=(IN_USE, EARLY, "too many arrivals", "deadlock"),
    ),
    "one-buffer-for-the-keys-of-two-tiles": _plant(
        ("number % ITEMS, number // ITEMS & 1", "0, number // ITEMS & 1"),
        said=(IN_USE, "too many arrivals"),
        items=2,
    ),
    "values-of-the-other-buffer": _plant(
        ("v = v_bufs.index(2 * place + W)", "v = v_bufs.index(2 * (1 - place) + W)"),
        said=(IN_USE, EARLY, "never written"),
        items=2,
    ),
    "ahead-in-the-first-buffer": _plant(
        ("dv, first, from_slot, from_phase, k", "dv, first, 0, from_phase, k"),
        said=("deadlock", EARLY, IN_USE, "too many arrivals"),
        head_dim=128,
    ),
    "wide-released-too-early": _plant(
        (_AWAITED + "    slot = from", _AWAITED + "    " + _RELEASED + "    slot = from"),
        ("    if ITEMS:\n        " + _RELEASED + "    if W == 0", "    if W == 0"),
        said=(IN_USE,),
        head_dim=256,
    ),
    "wide-phase-begun-anew": _plant(
        ("            slot, phase = _sum_wide(", "            _sum_wide("),
        said=("deadlock", EARLY, IN_USE, "too many arrivals"),
        head_dim=256,
    ),
}  # fmt: skip
