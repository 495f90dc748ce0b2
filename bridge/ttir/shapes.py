"""The shapes for which `make test-all` compares the kernels with attention for all inputs."""

from __future__ import annotations

from typing import Any

from bridge.spec.masks import Alignment
from bridge.ttir.compare import Shape

_BOTTOM: dict[str, Any] = {"window": (None, 0), "alignment": Alignment.BOTTOM_RIGHT}
_SMALL: dict[str, Any] = {"head_dim": 2, "value_dim": 2}
_GROUPED: dict[str, Any] = {"heads": 2, "kv_heads": 1, **_SMALL}
FORWARD = {
    "masked rows": Shape(heads=2, kv_heads=2, q_len=20, kv_len=16, **_BOTTOM),
    "window": Shape(q_len=17, kv_len=35, window=(3, 2)),
    "packed": Shape(
        batch=3, heads=2, q_len=18, kv_len=20, lengths=((3, 5), (18, 20), (0, 4)), **_BOTTOM
    ),
    "biases": Shape(q_len=3, kv_len=17, bias=True, alibi=True, **_BOTTOM, **_GROUPED),
    "packed slopes": Shape(
        batch=2, q_len=3, kv_len=5, alibi=True, lengths=((2, 5), (3, 4)), **_BOTTOM
    ),
}
BACKWARD = {
    "causal": Shape(q_len=6, kv_len=4, window=(None, 0)),
    "grouped": Shape(q_len=3, kv_len=4, window=(None, 0), **_GROUPED),
    "two tiles": Shape(q_len=17, kv_len=17, head_dim=1, value_dim=1, window=(1, 0)),
    "packed": Shape(
        batch=2, q_len=3, kv_len=4, lengths=((2, 4), (3, 1)), **_BOTTOM, **_GROUPED
    ),
    "biases": Shape(q_len=2, kv_len=3, bias=True, alibi=True, **_GROUPED),
}  # fmt: skip
_CACHES = Shape(
    batch=2, heads=4, kv_heads=2, q_len=2, kv_len=37, lengths=((2, 20), (2, 37)), **_BOTTOM
)
# Each with the options of `compare_decode.decode`.
DECODE: dict[str, tuple[Shape, dict[str, Any]]] = {
    "splits": (_CACHES, {"splits": 3}),
    "pages": (_CACHES, {"splits": 2, "page_size": 16}),
    "one length": (Shape(q_len=1, kv_len=33), {"splits": 2}),
}
