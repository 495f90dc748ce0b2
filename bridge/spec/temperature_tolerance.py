"""How far the gradient by a temperature may be off.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/TemperatureTolerance.lean`.
"""

from __future__ import annotations

from bridge.spec.core import Arithmetic, Value
from bridge.spec.gradient_tolerance import GradientTerm
from bridge.spec.tolerance import absolute


def stored_gradient_term(
    stored: Value,
    stored_tiny: Value,
    exact: Value,
    size: Value,
    error: Value,
    other: Value,
    *,
    num: Arithmetic,
) -> GradientTerm:
    """A component of the gradient by queries times their temperature, `exact`, of size `size` at
    most and computed up to `error`, that is stored in a format of unit roundoff `stored` whose
    numbers below the normal ones are off by at most `storedTiny`. It meets `other`: the
    temperature in the gradient by the query, and the query in that by the temperature.

    Lean: `Attention.Spec.storedGradientTerm`.
    """
    return GradientTerm(
        size=size,
        error=error + stored * (absolute(exact, num=num) + error) + stored_tiny,
        other=other,
    )
