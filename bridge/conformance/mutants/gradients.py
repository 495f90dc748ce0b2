"""Mutants of the backward pass of `pyimpl`, each in a copy of the whole package."""

from __future__ import annotations

from bridge.conformance.mutants.planting import Mutant, mutants_of

_TILED, _KERNEL = "backends/tiled_backward.py", "backends/kernels/backward.py"

_in_tiled = mutants_of(_TILED)
_in_gradients_through_tiled = mutants_of("internal/gradients.py", through=_TILED)
_in_tile = mutants_of("backends/kernels/parts/gradient.py", through=_KERNEL)
_in_backward_keys = mutants_of("backends/kernels/backward_keys.py", through=_KERNEL)
_in_backward_queries = mutants_of("backends/kernels/backward_queries.py", through=_KERNEL)
_in_scores = mutants_of("internal/scores.py", through=_TILED)
_in_gradients_through_kernel = mutants_of("internal/gradients.py", through=_KERNEL)
_in_backward_bias = mutants_of("backends/kernels/backward_bias.py", through=_KERNEL)

GRADIENT_MUTANTS: tuple[Mutant, ...] = (
    _in_tiled(
        "tiled-delta-missing", "D is not subtracted from dP",
        "grad_p.sub_(delta).mul_(p)", "grad_p.mul_(p)",
    ),
    _in_tiled(
        "tiled-scale-twice", "dQ is multiplied by the scale twice",
        "grad_q.mul_(self.options.scale)", "grad_q.mul_(self.options.scale**2)",
    ),
    _in_tiled(
        "tiled-masked-kept", "the weight of a masked pair is not 0",
        "            self.hide(s.view(by_head), hidden)\n", "            pass\n",
    ),
    _in_tiled(
        "tiled-keys-and-values-exchanged", "dV gets the gradients of the scores",
        "self.gradients.key[:, keys], grad_s.mT, q", "self.gradients.key[:, keys], p.mT, q",
    ),
    _in_gradients_through_tiled(
        "lse-gradient-ignored", "the gradient by the log-sum-exp is left out",
        "return delta if grad_lse is None else delta - grad_lse", "return delta",
    ),
    _in_tile(
        "kernel-delta-missing", "D is not subtracted from dP",
        "grad_s = of.p * (grad_p - pairs.delta)", "grad_s = of.p * grad_p",
    ),
    _in_tile(
        "kernel-masked-kept", "the weight of a masked pair is not 0",
        "tl.where(visible, exponent,", "tl.where(pairs.inside, exponent,",
    ),
    _in_tile(
        "kernel-stale-log-sum-exp", "P is taken against another log-sum-exp",
        "exponent = s - pairs.lse", "exponent = s - tl.max(pairs.lse)",
    ),
    _in_backward_keys(
        "kernel-dv-not-added", "dV is that of the last tile of queries",
        "grad_v += dot(", "grad_v = dot(", ("gradient-tiles", "gradient"),
        "several tiles of queries",
    ),
    _in_backward_keys(
        "kernel-group-sum-dropped", "only one query head of a group adds to dK and dV",
        "for member in range(group):", "for member in range(1):", ("gradient-grouped",),
        "several heads of queries for one of keys",
    ),
    _in_backward_keys(
        "kernel-scale-twice", "dK is multiplied by the scale twice",
        "grad_k = grad_k * grad_scale", "grad_k = grad_k * grad_scale * grad_scale",
    ),
    _in_backward_keys(
        "kernel-dk-of-scores-times-values", "dK is summed with P in the place of dS",
        "grad_k += dot(grad_x, q)", "grad_k += dot(round_to(found.p, q.dtype), q)",
    ),
    _in_backward_queries(
        "kernel-dq-not-added", "dQ is that of the last tile of keys",
        "grad_q += dot(", "grad_q = dot(", ("gradient-tiles", "gradient"), "several tiles of keys",
    ),
    _in_tiled(
        "tiled-softcap-derivative-missing", "dQ and dK lack 1 − tanh²",
        "grad_s.mul_(tanh.square_().neg_().add_(1.0).nan_to_num_(nan=0.0))\n", "pass\n",
        ("gradient-softcap",),
    ),
    _in_tiled(
        "tiled-softcap-derivative-in-bias", "the gradient by the bias has 1 − tanh² too",
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
    _in_tiled(
        "tiled-slopes-sign", "the gradient of the slopes has the other sign",
        "self.gradients.slopes.sub_(", "self.gradients.slopes.add_(", ("gradient-alibi",),
    ),
    _in_tiled(
        "tiled-slopes-signed-distance", "the distance in the gradient of the slopes is signed",
        "(grad_s * self.distance(tile).abs())", "(grad_s * self.distance(tile))",
        ("gradient-alibi",),
    ),
    _in_gradients_through_tiled(
        "tiled-bias-not-summed", "of the parts that share a bias the first alone counts",
        "gradient = gradient.sum(dim=over, keepdim=True)",
        "gradient = gradient[tuple(slice(0, 1 if i in over else None) for i in range(4))]",
        ("gradient-bias",),
    ),
    _in_gradients_through_tiled(
        "tiled-sinks-sign", "the gradient of the sinks has the other sign",
        "return -(weights * delta).sum(dim=(0, 2))", "return (weights * delta).sum(dim=(0, 2))",
        ("gradient-sinks",),
    ),
    _in_scores(
        "temperature-omitted", "the queries are not multiplied by the temperature",
        "scale_by_head(query, options.temperature)", "query", ("gradient-temperature",),
    ),
    _in_gradients_through_tiled(
        "temperature-chain-rule-missing", "dQ is that by the scaled queries",
        "scale_by_head(by_scaled, temperature)", "by_scaled", ("gradient-temperature",),
    ),
    _in_gradients_through_kernel(
        "temperature-gradient-of-the-gradient", "dt is ⟨dQ', dQ'⟩",
        "products = by_scaled * query.to(by_scaled.dtype)", "products = by_scaled * by_scaled",
        ("gradient-temperature",),
    ),
    _in_tile(
        "kernel-softcap-derivative-missing", "dQ and dK lack 1 − tanh²",
        "grad_x = grad_s * (1.0 - of.x * of.x)", "grad_x = grad_s", ("gradient-softcap",),
    ),
    _in_tile(
        "kernel-softcap-derivative-of-the-score", "1 − tanh² is taken of the capped score",
        "grad_x = grad_s * (1.0 - of.x * of.x)",
        "grad_x = grad_s * (1.0 - (scores.cap * of.x) * (scores.cap * of.x))",
        ("gradient-softcap",),
    ),
    _in_backward_queries(
        "kernel-slopes-sign", "the gradient of the slopes has the other sign",
        "tl.store(slope_ptrs, -grad_slope, mask=inside)",
        "tl.store(slope_ptrs, grad_slope, mask=inside)", ("gradient-alibi",),
    ),
    _in_backward_queries(
        "kernel-slopes-signed-distance", "the distance in the gradient of the slopes is signed",
        "grad_s * distances(pairs)", "grad_s * (pairs.positions - pairs.keys)", ("gradient-alibi",),
    ),
    _in_backward_bias(
        "kernel-bias-not-summed", "the heads and tiles that share a bias do not add up",
        "grad += grad_s", "grad = grad_s", ("gradient-bias",),
    ),
    _in_backward_bias(
        "kernel-bias-rows-not-summed", "of the queries that share a bias the largest term counts",
        "tl.store(base + keys * or_one(stride_cn), tl.sum(grad, 0), mask=keys < kv_len)",
        "tl.store(base + keys * or_one(stride_cn), tl.max(grad, 0), mask=keys < kv_len)",
        ("gradient-bias",),
    ),
    _in_gradients_through_kernel(
        "kernel-sinks-sign", "the gradient of the sinks has the other sign",
        "return -(weights * delta).sum(dim=(0, 2))", "return (weights * delta).sum(dim=(0, 2))",
        ("gradient-sinks",),
    ),
    _in_gradients_through_kernel(
        "kernel-sinks-blind-queries", "a query that sees the sink alone adds nothing to dsink",
        "return -(weights * delta).sum(dim=(0, 2))",
        "return -(torch.where(weights < 1, weights, 0.0) * delta).sum(dim=(0, 2))",
        ("gradient-sinks",), "queries that see no key",
    ),
)  # fmt: skip
