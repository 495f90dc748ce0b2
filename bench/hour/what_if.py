"""Kernels with one thing left out: the time that is saved is about the time that it takes. Their
answers are wrong, and nobody looks at them.

Each is one line of the kernels' sources written otherwise, in a copy of the package `pyimpl`.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class WhatIf:
    """old stands once in the file, of the folder `pyimpl/backends/kernels`, and becomes new.
    kernels: whose loop it is."""

    file: str
    old: str
    new: str
    kernels: tuple[str, ...] = ("forward",)


_LOOP = "parts/loop.py"
_GLUON = "hopper/forward_kernel.py"
_BACKWARD = ("keys", "queries")
WHAT_IFS: dict[str, WhatIf] = {
    "no exponential": WhatIf(
        _LOOP, "p = tl.exp2(s - m_finite[:, None])", "p = s - m_finite[:, None]"
    ),
    "no maximum": WhatIf(_LOOP, "largest = tl.max(s, 1)\n", "largest = m + 1.0\n"),
    "no rescaling of O": WhatIf(_LOOP, "o = alpha[:, None] * o\n", "o = 1.0 * o\n"),
    "no product with V, V not loaded": WhatIf(
        _LOOP, "o = o + dot(round_to(p, v.dtype), v)", "o = o + tl.sum(p, 1)[:, None]"
    ),
    "always the first tile of keys": WhatIf(
        _LOOP, "begin = tl.cast(tile * BLOCK_N, tl.int64)", "begin = tl.cast(0, tl.int64)"
    ),
    "no exponential in the backward pass": WhatIf(
        "parts/gradient.py",
        "Weights(tl.exp2(exponent), x, visible)",
        "Weights(exponent, x, visible)",
        _BACKWARD,
    ),
    "no exponential in Gluon": WhatIf(
        _GLUON, "p = gl.exp2(s * scale - shift[:, None])", "p = s * scale - shift[:, None]",
        ("hopper",),
    ),
    "no maximum in Gluon": WhatIf(
        # Not m + 1, which stays −∞: all weights would be NaN, and a product of constants is cheap.
        _GLUON, "m_new = gl.maximum(m, gl.max(s, 1) * scale)", "m_new = gl.maximum(m, 0.0)",
        ("hopper",),
    ),
    "no rescaling of O in Gluon": WhatIf(
        _GLUON, "o = o * gl.convert_layout(alpha, gl.SliceLayout(1, o.type.layout))[:, None]",
        "o = o * 1.0", ("hopper",),
    ),
    "no exponential in Gluon, dK and dV": WhatIf(
        "hopper/backward_kernel.py", "return gl.exp2(exponents)", "return exponents",
        ("hopper-keys",),
    ),
    "no exponential in Gluon, dQ": WhatIf(
        "hopper/queries_kernel.py", "return gl.exp2(exponents)", "return exponents",
        ("hopper-queries",),
    ),
}  # fmt: skip


def write(name: str, folder: Path) -> Path:
    """A folder in `folder` with the package `pyimpl` where this is left out. Raises ValueError
    where the line is no longer as it was."""
    change = WHAT_IFS[name]
    target = folder / name.replace(" ", "-").replace(",", "")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(
        ROOT / "pyimpl", target / "pyimpl", ignore=shutil.ignore_patterns("__pycache__")
    )
    path = target / "pyimpl" / "backends" / "kernels" / change.file
    text = path.read_text("utf-8")
    if text.count(change.old) != 1:
        raise ValueError(
            f"{change.file} has {change.old!r} {text.count(change.old)} times, not once"
        )
    path.write_text(text.replace(change.old, change.new), "utf-8")
    return target
