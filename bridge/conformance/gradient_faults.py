"""Faults planted in the backward pass of `pyimpl`, in a copy of its sources, and which vector of
gradients catches each.

The files of the backward pass import each other, so the package is copied as a whole, under a name
of its own and without its `__init__`, whose operators PyTorch knows already.
"""

from __future__ import annotations

import importlib
import itertools
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch

import pyimpl
from bridge.conformance import gradients
from bridge.conformance.adapters import interpret_without_gpu
from bridge.conformance.gradient_inputs import ORDER, array, inputs_of
from bridge.conformance.gradients import Floats
from bridge.conformance.planting import Fault, FaultError
from bridge.vectors.gradients import GradientVector
from pyimpl import reference
from pyimpl._gradients import Gradients, Wanted

_numbers = itertools.count(1)
# What a backward pass of `pyimpl` is: `pyimpl.reference_backward.attention_backward` is one.
Backward = Callable[..., Gradients]
# By the file that is run: the function in it, and tiles so small that there are several.
ENTRIES: dict[str, tuple[str, dict[str, Any]]] = {
    "tiled_backward.py": ("flash_backward", {"block_m": 2, "block_n": 3}),
    "kernels/backward.py": ("backward", {"blocks": {"block_m": 16, "block_n": 16}}),
}


def _fault(
    name: str, description: str, file: str, through: str | None, old: str, new: str
) -> Fault:
    return Fault(name=name, description=description, file=file, through=through, old=old, new=new)


_TILED, _KERNEL = "tiled_backward.py", "kernels/backward.py"
_TILE = "kernels/_gradient.py"

FAULTS = (
    _fault(
        "tiled-delta-missing", "D is not subtracted from dP", _TILED, None,
        "grad_p.sub_(delta).mul_(p)", "grad_p.mul_(p)",
    ),
    _fault(
        "tiled-scale-twice", "dQ is multiplied by the scale twice", _TILED, None,
        "grad_q.mul_(self.options.scale)", "grad_q.mul_(self.options.scale**2)",
    ),
    _fault(
        "tiled-masked-kept", "the weight of a masked pair is not 0", _TILED, None,
        "        self.hide(p.view(by_head), tile, hidden)\n", "",
    ),
    _fault(
        "tiled-keys-and-values-exchanged", "dV gets the gradients of the scores", _TILED, None,
        "self.gradients.key[:, keys].baddbmm_(grad_s.mT, q)",
        "self.gradients.key[:, keys].baddbmm_(p.mT, q)",
    ),
    _fault(
        "lse-gradient-ignored", "the gradient by the log-sum-exp is left out",
        "_gradients.py", _TILED,
        "return delta if grad_lse is None else delta - grad_lse", "return delta",
    ),
    _fault(
        "kernel-delta-missing", "D is not subtracted from dP", _TILE, _KERNEL,
        "grad_s = p * (grad_p - pairs.delta)", "grad_s = p * grad_p",
    ),
    _fault(
        "kernel-masked-kept", "the weight of a masked pair is not 0", _TILE, _KERNEL,
        "        p = tl.where(visible, p, 0.0)\n", "        p = tl.where(pairs.inside, p, 0.0)\n",
    ),
    _fault(
        "kernel-stale-log-sum-exp", "P is taken against another log-sum-exp", _TILE, _KERNEL,
        "p = tl.exp2(s - pairs.lse)", "p = tl.exp2(s - tl.max(pairs.lse))",
    ),
    _fault(
        "kernel-dv-not-added", "dV is that of the last tile of queries",
        "kernels/backward_keys.py", _KERNEL,
        "grad_v += dot(", "grad_v = dot(",
    ),
    _fault(
        "kernel-group-sum-dropped", "only one query head of a group adds to dK and dV",
        "kernels/backward_keys.py", _KERNEL,
        "for member in range(group):", "for member in range(1):",
    ),
    _fault(
        "kernel-scale-twice", "dK is multiplied by the scale twice",
        "kernels/backward_keys.py", _KERNEL,
        "grad_k = grad_k * grad_scale", "grad_k = grad_k * grad_scale * grad_scale",
    ),
    _fault(
        "kernel-dk-of-scores-times-values", "dK is summed with P in the place of dS",
        "kernels/backward_keys.py", _KERNEL,
        "grad_k += dot(round_to(found.grad_x, q.dtype), q)",
        "grad_k += dot(round_to(found.p, q.dtype), q)",
    ),
    _fault(
        "kernel-dq-not-added", "dQ is that of the last tile of keys",
        "kernels/backward_queries.py", _KERNEL,
        "grad_q += dot(", "grad_q = dot(",
    ),
)  # fmt: skip


@contextmanager
def planted(fault: Fault | None, entry: str) -> Iterator[Backward]:
    """The backward pass of `entry` from a copy of the package with the fault in it, or without one
    for None. Raises FaultError if the fault cannot be planted."""
    if entry.startswith("kernels/"):
        interpret_without_gpu()
    name = f"faulty_pyimpl_{next(_numbers)}"
    source = Path(pyimpl.__file__).parent
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        package = Path(folder) / name
        shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
        (package / "__init__.py").write_text("", "utf-8")
        if fault is not None:
            edited = fault.apply((package / fault.file).read_text("utf-8"))
            (package / fault.file).write_text(edited, "utf-8")
        for path in package.rglob("*.py"):
            text = path.read_text("utf-8")
            path.write_text(
                re.sub(r"^(\s*(?:from|import) )pyimpl\b", rf"\1{name}", text, flags=re.MULTILINE),
                "utf-8",
            )
        module = f"{name}.{entry.removesuffix('.py').replace('/', '.')}"
        with mock.patch.object(sys, "path", [folder, *sys.path]):
            try:
                title, tiles = ENTRIES[entry]
                yield partial(getattr(importlib.import_module(module), title), **tiles)
            finally:
                for loaded in [m for m in sys.modules if m.partition(".")[0] == name]:
                    del sys.modules[loaded]


def computed(function: Backward, vector: GradientVector, dtype: torch.dtype) -> dict[str, Floats]:
    """The gradients of a vector by a backward pass, from what the reference gives forwards."""
    given = inputs_of(vector, dtype)
    options = given.options
    out, lse = reference.attention(given.query, given.key, given.value, options)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    wanted = Wanted(
        slopes=options.alibi_slopes is not None, bias=True, sinks=options.sinks is not None
    )
    found: Any = function(
        given.query,
        given.key,
        given.value,
        out.to(dtype),
        lse.to(wide),
        given.grad_out,
        given.grad_lse.to(wide),
        options,
        wanted,
    )
    by_name = dict(zip(ORDER, found, strict=True))
    for name in gradients.expected(vector):
        if by_name[name] is None:
            raise FaultError(f"the backward pass gave no gradient of {name}")
    return {name: array(vector, name, x) for name, x in by_name.items() if x is not None}


def caught_by(fault: Fault, vectors: Iterable[GradientVector]) -> str | None:
    """The first of the vectors that a float32 backward pass with the fault fails; None if it
    passes all. Raises FaultError if the fault cannot be planted."""
    with planted(fault, fault.entry) as function:
        for vector in vectors:
            found = computed(function, vector, torch.float32)
            if any(gradients.wrong_gradients(vector, found, 2.0**-24)):
                return vector.id
    return None
