"""Mutants of the backward pass of `pyimpl`, each in a copy of the whole package."""

from __future__ import annotations

from bridge.conformance.mutants.planting import Mutant


def _mutant(
    name: str,
    description: str,
    file: str,
    through: str | None,
    old: str,
    new: str,
    promising: tuple[str, ...] = (),
    needs: str | None = None,
) -> Mutant:
    return Mutant(
        name=name,
        description=description,
        file=file,
        through=through,
        old=old,
        new=new,
        promising=promising,
        needs=needs,
    )


_TILED, _KERNEL = "backends/tiled_backward.py", "backends/kernels/backward.py"
_TILE = "backends/kernels/parts/gradient.py"

GRADIENT_MUTANTS = (
    _mutant(
        "tiled-delta-missing", "D is not subtracted from dP", _TILED, None,
        "grad_p.sub_(delta).mul_(p)", "grad_p.mul_(p)",
    ),
    _mutant(
        "tiled-scale-twice", "dQ is multiplied by the scale twice", _TILED, None,
        "grad_q.mul_(self.options.scale)", "grad_q.mul_(self.options.scale**2)",
    ),
    _mutant(
        "tiled-masked-kept", "the weight of a masked pair is not 0", _TILED, None,
        "            self.hide(s.view(by_head), hidden)\n", "            pass\n",
    ),
    _mutant(
        "tiled-keys-and-values-exchanged", "dV gets the gradients of the scores", _TILED, None,
        "self.gradients.key[:, keys].baddbmm_(grad_s.mT, q)",
        "self.gradients.key[:, keys].baddbmm_(p.mT, q)",
    ),
    _mutant(
        "lse-gradient-ignored", "the gradient by the log-sum-exp is left out",
        "internal/gradients.py", _TILED,
        "return delta if grad_lse is None else delta - grad_lse", "return delta",
    ),
    _mutant(
        "kernel-delta-missing", "D is not subtracted from dP", _TILE, _KERNEL,
        "grad_s = of.p * (grad_p - pairs.delta)", "grad_s = of.p * grad_p",
    ),
    _mutant(
        "kernel-masked-kept", "the weight of a masked pair is not 0", _TILE, _KERNEL,
        "tl.where(visible, exponent,", "tl.where(pairs.inside, exponent,",
    ),
    _mutant(
        "kernel-stale-log-sum-exp", "P is taken against another log-sum-exp", _TILE, _KERNEL,
        "exponent = s - pairs.lse", "exponent = s - tl.max(pairs.lse)",
    ),
    _mutant(
        "kernel-dv-not-added", "dV is that of the last tile of queries",
        "backends/kernels/backward_keys.py", _KERNEL,
        "grad_v += dot(", "grad_v = dot(",
        ("gradient-tiles", "gradient"), "several tiles of queries",
    ),
    _mutant(
        "kernel-group-sum-dropped", "only one query head of a group adds to dK and dV",
        "backends/kernels/backward_keys.py", _KERNEL,
        "for member in range(group):", "for member in range(1):",
        ("gradient-grouped",), "several heads of queries for one of keys",
    ),
    _mutant(
        "kernel-scale-twice", "dK is multiplied by the scale twice",
        "backends/kernels/backward_keys.py", _KERNEL,
        "grad_k = grad_k * grad_scale", "grad_k = grad_k * grad_scale * grad_scale",
    ),
    _mutant(
        "kernel-dk-of-scores-times-values", "dK is summed with P in the place of dS",
        "backends/kernels/backward_keys.py", _KERNEL,
        "grad_k += dot(grad_x, q)",
        "grad_k += dot(round_to(found.p, q.dtype), q)",
    ),
    _mutant(
        "kernel-dq-not-added", "dQ is that of the last tile of keys",
        "backends/kernels/backward_queries.py", _KERNEL,
        "grad_q += dot(", "grad_q = dot(",
        ("gradient-tiles", "gradient"), "several tiles of keys",
    ),
    _mutant(
        "tiled-softcap-derivative-missing", "dQ and dK lack 1 − tanh²", _TILED, None,
        "grad_s.mul_(tanh.square_().neg_().add_(1.0).nan_to_num_(nan=0.0))\n", "pass\n",
        ("gradient-softcap",),
    ),
    _mutant(
        "tiled-softcap-derivative-in-bias", "the gradient by the bias has 1 − tanh² too",
        _TILED, None,
        """        self.add_to_options(grad_s.view(by_head), tile)
        # A gradient 0 would not silence the NaN of a key that is hidden.
        if tanh is not None:
            grad_s.mul_(tanh.square_().neg_().add_(1.0).nan_to_num_(nan=0.0))
""", """        if tanh is not None:
            grad_s.mul_(tanh.square_().neg_().add_(1.0).nan_to_num_(nan=0.0))
        self.add_to_options(grad_s.view(by_head), tile)
""",
        ("gradient-softcap",),
    ),
    _mutant(
        "tiled-slopes-sign", "the gradient of the slopes has the other sign", _TILED, None,
        "self.gradients.slopes.sub_(", "self.gradients.slopes.add_(", ("gradient-alibi",),
    ),
    _mutant(
        "tiled-slopes-signed-distance", "the distance in the gradient of the slopes is signed",
        _TILED, None,
        "(grad_s * self.distance(tile).abs())", "(grad_s * self.distance(tile))",
        ("gradient-alibi",),
    ),
    _mutant(
        "tiled-bias-not-summed", "of what a bias is shared by the first alone counts",
        "internal/gradients.py", _TILED,
        "gradient = gradient.sum(dim=over, keepdim=True)",
        "gradient = gradient[tuple(slice(0, 1 if i in over else None) for i in range(4))]",
        ("gradient-bias",),
    ),
    _mutant(
        "tiled-sinks-sign", "the gradient of the sinks has the other sign",
        "internal/gradients.py", _TILED,
        "return -(weights * delta).sum(dim=(0, 2))", "return (weights * delta).sum(dim=(0, 2))",
        ("gradient-sinks",),
    ),
    _mutant(
        "temperature-omitted", "the queries are not multiplied by the temperature",
        "internal/scores.py", _TILED,
        "scale_by_head(query, options.temperature)", "query", ("gradient-temperature",),
    ),
    _mutant(
        "temperature-chain-rule-missing", "dQ is that by the scaled queries",
        "internal/gradients.py", _TILED,
        "scale_by_head(by_scaled, temperature)", "by_scaled", ("gradient-temperature",),
    ),
    _mutant(
        "temperature-gradient-of-the-gradient", "dt is ⟨dQ', dQ'⟩",
        "internal/gradients.py", _KERNEL,
        "products = by_scaled * query.to(by_scaled.dtype)", "products = by_scaled * by_scaled",
        ("gradient-temperature",),
    ),
    _mutant(
        "kernel-softcap-derivative-missing", "dQ and dK lack 1 − tanh²", _TILE, _KERNEL,
        "grad_x = grad_s * (1.0 - of.x * of.x)", "grad_x = grad_s", ("gradient-softcap",),
    ),
    _mutant(
        "kernel-softcap-derivative-of-the-score", "1 − tanh² is taken of the capped score",
        _TILE, _KERNEL,
        "grad_x = grad_s * (1.0 - of.x * of.x)",
        "grad_x = grad_s * (1.0 - (scores.cap * of.x) * (scores.cap * of.x))",
        ("gradient-softcap",),
    ),
    _mutant(
        "kernel-slopes-sign", "the gradient of the slopes has the other sign",
        "backends/kernels/backward_queries.py", _KERNEL,
        "tl.store(slope_ptrs, -grad_slope, mask=inside)",
        "tl.store(slope_ptrs, grad_slope, mask=inside)", ("gradient-alibi",),
    ),
    _mutant(
        "kernel-slopes-signed-distance", "the distance in the gradient of the slopes is signed",
        "backends/kernels/backward_queries.py", _KERNEL,
        "tl.sum(grad_s * distances(pairs), 1)",
        "tl.sum(grad_s * (pairs.positions - pairs.keys), 1)", ("gradient-alibi",),
    ),
    _mutant(
        "kernel-bias-not-summed", "the heads and tiles that share a bias do not add up",
        "backends/kernels/backward_bias.py", _KERNEL,
        "grad += grad_s", "grad = grad_s", ("gradient-bias",),
    ),
    _mutant(
        "kernel-bias-rows-not-summed", "of the queries that share a bias the largest term counts",
        "backends/kernels/backward_bias.py", _KERNEL,
        "tl.store(base + keys * or_one(stride_cn), tl.sum(grad, 0), mask=keys < kv_len)",
        "tl.store(base + keys * or_one(stride_cn), tl.max(grad, 0), mask=keys < kv_len)",
        ("gradient-bias",),
    ),
    _mutant(
        "kernel-sinks-sign", "the gradient of the sinks has the other sign",
        "internal/gradients.py", _KERNEL,
        "return -(weights * delta).sum(dim=(0, 2))", "return (weights * delta).sum(dim=(0, 2))",
        ("gradient-sinks",),
    ),
    _mutant(
        "kernel-sinks-blind-queries", "a query that sees the sink alone adds nothing to dsink",
        "internal/gradients.py", _KERNEL,
        "return -(weights * delta).sum(dim=(0, 2))",
        "return -(torch.where(weights < 1, weights, 0.0) * delta).sum(dim=(0, 2))",
        ("gradient-sinks",), "queries that see no key",
    ),
)  # fmt: skip
