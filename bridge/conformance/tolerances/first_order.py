"""By how much a correct module of `pyimpl.modules` may be off, to first order: its operations in
float64, each with the largest error that it makes itself, and how each of these moves the result.

An error δ of one number, made by one operation, moves a result y by ∂y/∂x · δ; the derivatives are
those of the whole that follows, so an error that a later operation takes away (a normalisation the
mean, a softmax a number that all scores share) counts nothing, unlike in `module_tolerance`, which
carries bounds from operation to operation and says nothing of many layers in a row. The sum over
all operations is taken twice, for the terms of second order. That they are no larger is looked at:
the same computation with every error at its largest, signs drawn, may not leave the bound. The
factor is the one number here that is chosen.

`docs/tolerances.md` lists the roundings of each operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from bridge.conformance.tolerances.module_tolerance import NoBound, format_of, rounding_of
from bridge.conformance.tolerances.rounding_model import FORMATS
from bridge.conformance.tolerances.tolerance import attention_tolerance
from pyimpl.modules import DecoderLayer, EncoderLayer, FeedForward, MultiHeadAttention
from pyimpl.modules.residual import Residual

# How often the whole is computed with errors of drawn signs.
_CORNERS = 4
# Terms of second order may add this factor times those of first order. It is chosen, not
# derived: `docs/tolerances.md`, "Modules", says why any factor of this order will do.
SECOND_ORDER = 2


def _bias_of(module: nn.Linear | nn.LayerNorm) -> Tensor:
    """The bias, 0 where there is none."""
    return torch.zeros(()).double() if module.bias is None else module.bias.double()


class Rounded:
    """One computation: the numbers that are rounded in it, and by how much at most.

    signs: None for the exact result; otherwise the generator that draws the sign of each error.
    """

    def __init__(self, dtype: torch.dtype, signs: torch.Generator | None = None) -> None:
        self.form = format_of(dtype)
        self.rounding = rounding_of(dtype)
        self.unit = min(self.form.unit, FORMATS["float32"].unit)
        self.signs = signs
        self.errors: list[tuple[Tensor, Tensor]] = []

    def round(self, x: Tensor, error: Tensor) -> Tensor:
        """x with an error of its own."""
        error = error.detach().expand_as(x)
        if self.signs is not None:
            return x + error * (2 * torch.randint(2, x.shape, generator=self.signs) - 1)
        mark = torch.zeros_like(x, requires_grad=True)
        self.errors.append((mark, error))
        return x + mark

    def movement(self, x: Tensor) -> Tensor:
        """By how much the errors so far may move x, to first order: Σ |∂x/∂mark|·error."""
        marks = [mark for mark, _ in self.errors]
        unit = torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape)
        slopes = torch.autograd.grad(
            x, marks, unit, is_grads_batched=True, allow_unused=True, retain_graph=True
        )
        total = torch.zeros(x.numel(), dtype=torch.float64)
        for slope, (_, error) in zip(slopes, self.errors, strict=True):
            if slope is not None:
                total = total + (slope.abs() * error).flatten(1).sum(1)
        return total.reshape(x.shape).detach()

    def _storing_error(self, size: Tensor, times: int = 1) -> Tensor:
        """The largest error of storing numbers of at most this size so many times."""
        return times * (self.form.unit * size + self.form.underflow(False))

    def store(self, x: Tensor) -> Tensor:
        """A sum, or another single operation."""
        return self.round(x, self._storing_error(x.abs()))

    def linear(self, x: Tensor, module: nn.Linear) -> Tensor:
        """Products summed in float32 or wider (Higham's γ); the sum and that with the bias are
        stored."""
        weight = module.weight.double()
        bias = _bias_of(module)
        count = (x.shape[-1] + 2) * self.unit
        size = x.abs() @ weight.abs().mT + bias.abs()
        error = count / (1 - count) * size + self._storing_error(size, 2)
        return self.round(x @ weight.mT + bias, error)

    def layer_norm(self, x: Tensor, norm: nn.LayerNorm) -> Tensor:
        """Layer normalisation. Errors: in float32 or wider, c = x − μ by sums of n numbers; s, also
        if one pass over the numbers finds it, with an error of n u rms(x) (Chan, Golub and LeVeque
        1983, table 1)."""
        n = x.shape[-1]
        share = (n + 8) * self.unit
        c = x - x.mean(-1, keepdim=True)
        c = self.round(c, share * (x.abs() + x.abs().mean(-1, keepdim=True)))
        s = (c.square().mean(-1, keepdim=True) + norm.eps).sqrt()
        s = self.round(s, 4 * self.unit * s + share * x.square().mean(-1, keepdim=True).sqrt())
        gain = norm.weight.double()
        bias = _bias_of(norm)
        out = c / s * gain + bias
        size = (c / s * gain).abs() + bias.abs()
        return self.round(out, 6 * self.unit * size + self._storing_error(size))

    def feed_forward(self, x: Tensor, module: FeedForward) -> Tensor:
        """A hidden number h that may be off by E comes out of max(0, ·) as its error times the
        slope there, 0 or 1, makes it, and where it may change its sign by E − |h| more at most."""
        hidden = self.linear(x, module.linear1)
        above = hidden.clamp(min=0)
        if self.signs is None:
            more = SECOND_ORDER * self.movement(hidden) - hidden.detach().abs()
            # The sum over all errors is taken that many times.
            above = self.round(above, more.clamp(min=0) / SECOND_ORDER)
        return self.linear(above, module.linear2)

    def attend(
        self, module: MultiHeadAttention, x: Tensor, keys: Tensor, values: Tensor, visible: Tensor
    ) -> Tensor:
        """x, keys, values: `[length, width]`; visible: `[q_len, kv_len]`. The error of attention
        itself is at most the tolerance of its inputs."""
        projected = (
            self.linear(x, module.q_proj),
            self.linear(keys, module.k_proj),
            self.linear(values, module.v_proj),
        )
        q, k, v = (y.reshape(len(y), module.num_heads, -1).transpose(0, 1) for y in projected)
        scale = module.head_dim**-0.5 if module.scale is None else module.scale
        scores = scale * (q @ k.mT)
        # A row that sees nothing has the weights 0, and no derivative.
        some = visible.any(-1, keepdim=True)
        scores = torch.where(visible | ~some, scores, -torch.inf)
        heads = torch.where(some, scores.softmax(-1) @ v, 0.0)
        own = attention_tolerance(
            q.detach().numpy(),
            k.detach().numpy(),
            v.detach().numpy(),
            scale=scale,
            mask=visible.numpy(),
            rounding=self.rounding,
        )
        heads = self.round(heads, torch.from_numpy(own))
        return self.linear(heads.transpose(0, 1).flatten(1), module.out_proj)

    def residual(self, x: Tensor, module: Residual, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """A sublayer with its sum and its normalisation."""
        if module.norm_first:
            return self.store(x + sublayer(self.layer_norm(x, module.norm)))
        return self.layer_norm(self.store(x + sublayer(x)), module.norm)

    def encoder_layer(self, x: Tensor, layer: EncoderLayer, visible: Tensor) -> Tensor:
        """visible: `[length, length]`."""
        attention, feed_forward = layer.self_attn, layer.feed_forward
        x = self.residual(x, layer.residual1, lambda x: self.attend(attention, x, x, x, visible))
        return self.residual(x, layer.residual2, lambda x: self.feed_forward(x, feed_forward))

    def decoder_layer(
        self, x: Tensor, context: Tensor, layer: DecoderLayer, visible: Tensor, seen: Tensor
    ) -> Tensor:
        """visible: `[length, length]`, causality included; seen: `[length, …]`, of the context."""
        own, cross, feed_forward = layer.self_attn, layer.cross_attn, layer.feed_forward

        def attend_context(x: Tensor) -> Tensor:
            return self.attend(cross, x, context, context, seen)

        x = self.residual(x, layer.residual1, lambda x: self.attend(own, x, x, x, visible))
        x = self.residual(x, layer.residual2, attend_context)
        return self.residual(x, layer.residual3, lambda x: self.feed_forward(x, feed_forward))

    def embed(self, tokens: Sequence[int], table: Tensor, places: Tensor) -> Tensor:
        """Given numbers, added."""
        return self.store(table.double()[list(tokens)] + places[: len(tokens)].double())

    def shares(self, x: Tensor) -> Tensor:
        """n exponentials of differences, whose arguments are rounded, a sum and a quotient."""
        shares = x.softmax(-1)
        difference = x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True)
        relative = (2 * (x.shape[-1] + 8) + difference) * self.unit
        return self.round(shares, relative * shares + self._storing_error(shares, 2))


def tolerance(compute: Callable[[Rounded], Tensor], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The result of `compute` without errors, a matrix in float64, and by how much each element may
    be off in the dtype.

    Raises NoBound where errors of the size that they may have move the result further than that.
    """
    exact = Rounded(dtype)
    with torch.enable_grad():
        out = compute(exact)
        allowed = SECOND_ORDER * exact.movement(out)
    signs = torch.Generator().manual_seed(0)
    for _ in range(_CORNERS):
        with torch.no_grad():
            moved = compute(Rounded(dtype, signs))
        # The smallest numbers are below the rounding of this computation itself.
        slack = 64 * math.ulp(1.0) * (1 + out.detach().abs())
        if not bool(((moved - out).abs() <= allowed + slack).all()):
            raise NoBound("errors of this size move the result by more than to first order")
    return out.detach(), allowed
