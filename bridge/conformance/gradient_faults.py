"""Faults planted in the backward pass of `pyimpl`, each in a copy of the whole package."""

from __future__ import annotations

from bridge.conformance.planting import Fault


def _fault(
    name: str, description: str, file: str, through: str | None, old: str, new: str
) -> Fault:
    return Fault(name=name, description=description, file=file, through=through, old=old, new=new)


_TILED, _KERNEL = "tiled_backward.py", "kernels/backward.py"
_TILE = "kernels/_gradient.py"

GRADIENT_FAULTS = (
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
