"""Vectors and matrices put together and cut.

Written by `.venv/bin/python -m bridge translate` from `Attention/Algebra/Block.lean`.
"""

from __future__ import annotations

from bridge.spec.core import Value


def vec_append(a: list[Value], b: list[Value]) -> list[Value]:
    """The components of `a`, then those of `b`.

    Lean: `Attention.Vec.append`.
    """
    return a + b


def vec_first(m: int, a: list[Value]) -> list[Value]:
    """The first `m` components.

    Lean: `Attention.Vec.first`.
    """
    return a[:m]
