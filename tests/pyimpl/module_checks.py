"""What the tests of the modules share: random parameters, and judging an output."""

from __future__ import annotations

import copy

import torch
from attention_checks import NAMES, tiled_profile
from torch import Tensor, nn

from bridge.conformance.allowance import ScoreChanges, attention_allowance
from bridge.conformance.profile import FORMATS
from pyimpl.modules import MultiHeadAttention


def randomised(module: nn.Module, seed: int = 0) -> nn.Module:
    """The module with all parameters normal, biases too, which modules begin with at 0."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            spread = 1.0 if parameter.dim() != 2 else parameter.shape[1] ** -0.5
            numbers = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(spread * numbers)
    return module


def normal(*size: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal numbers that every dtype of the tests holds exactly."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*size, generator=generator).bfloat16().to(dtype)


def linear_error(
    x: Tensor, error: Tensor, linear: nn.Linear, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The projection of `x`, and by how much a correct one in `dtype` may be off whose input is off
    by `error`: the products are summed in float32 or wider (Higham's γ), the sum and the sum with
    the bias are stored."""
    weight = linear.weight.double()
    bias = torch.zeros(()).double() if linear.bias is None else linear.bias.double()
    stored = FORMATS[NAMES[dtype]].unit
    rounding = (x.shape[-1] + 2) * min(stored, FORMATS["float32"].unit)
    rounding = rounding / (1 - rounding) + 2 * stored
    size = (x.abs() + error) @ weight.abs().mT + bias.abs()
    return x @ weight.mT + bias, error @ weight.abs().mT + rounding * size


@torch.no_grad()
def module_allowance(
    module: MultiHeadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    visible: Tensor | None = None,
    added: Tensor | None = None,
) -> Tensor:
    """Largest error of a correct module of this dtype, `[batch, q_len, output_dim]`, float64.

    query, key, value: `[batch, length, width]`, as the module receives them. visible, added:
    boolean and floating masks that broadcast to `[batch, heads, q_len, kv_len]`.
    """
    inputs = [(x.double(), torch.zeros_like(x).double()) for x in (query, key, value)]
    return attended(module, inputs, visible=visible, added=added)[1]


@torch.no_grad()
def attended(
    module: MultiHeadAttention,
    inputs: list[tuple[Tensor, Tensor]],
    *,
    visible: Tensor | None = None,
    added: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The output of the module, in float64, and by how much a correct one of its dtype may be off
    whose query, key and value are: `inputs`, each with its largest error.

    The errors of the projections shift a score by at most δ, so that each weight changes by at most
    a factor e^{2δ}; to what comes of that is added the allowance of attention itself, twice, since
    it is computed from exact projections.
    """
    dtype = module.q_proj.weight.dtype
    linears = (module.q_proj, module.k_proj, module.v_proj)
    pairs = [
        linear_error(x, error, linear, dtype)
        for (x, error), linear in zip(inputs, linears, strict=True)
    ]
    appended = 0
    extra = [(module.bias_k, module.bias_v)] if module.bias_k is not None else []
    extra += [(torch.zeros(1), torch.zeros(1))] if module.add_zero_attn else []
    for one in extra:
        for i, row in zip((1, 2), one, strict=True):
            x, error = pairs[i]
            row = row.double().expand(x.shape[0], 1, x.shape[2])
            pairs[i] = (torch.cat((x, row), 1), torch.cat((error, torch.zeros_like(row)), 1))
        appended += 1
    group = module.num_heads // module.num_kv_heads
    heads = (module.num_heads, module.num_kv_heads, module.num_kv_heads)
    (q, dq), (k, dk), (v, dv) = (
        [x.unflatten(-1, (h, -1)).transpose(1, 2).repeat_interleave(r, 1) for x in pair]
        for pair, h, r in zip(pairs, heads, (1, group, group), strict=True)
    )
    scale = module.head_dim**-0.5
    sizes = (*q.shape[:3], inputs[1][0].shape[1])
    mask = torch.ones(sizes, dtype=torch.bool) if visible is None else visible.expand(sizes)
    bias = torch.zeros(sizes).double() if added is None else added.double().expand(sizes)
    mask = nn.functional.pad(mask & (bias > -torch.inf), (0, appended), value=True)
    bias = nn.functional.pad(bias, (0, appended)).masked_fill(~mask, 0.0)
    scores = (scale * q @ k.mT + bias).masked_fill(~mask, -torch.inf)
    weights = torch.nan_to_num(scores.softmax(-1))
    shift = scale * (dq @ (k.abs() + dk).mT + q.abs() @ dk.mT)
    shift = shift.masked_fill(~mask, 0.0).amax(-1, keepdim=True) if mask.shape[-1] else 0.0
    factor = torch.as_tensor(2 * shift).exp()
    out = weights @ v
    spread = (weights.unsqueeze(-1) * (v.unsqueeze(2) - out.unsqueeze(3)).abs()).sum(3)
    own = attention_allowance(
        q.numpy(), k.numpy(), v.numpy(), scale=scale, mask=mask.numpy(),
        profile=tiled_profile(dtype), changes=ScoreChanges(added=bias.numpy()),
    )  # fmt: skip
    error = factor * (weights @ dv) + (factor - 1) * spread + 2 * torch.from_numpy(own)
    out, error = (x.transpose(1, 2).flatten(-2) for x in (out, error))
    return linear_error(out, error, module.out_proj, dtype)


def judge_module(
    result: Tensor,
    expected: Tensor,
    module: MultiHeadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    **masks: Tensor | None,
) -> None:
    """Fail unless `result`, `[batch, q_len, output_dim]` of `module`, is within its allowance of
    `expected`, which was computed in float64 and has an allowance too."""
    allowed = module_allowance(module, query, key, value, **masks)
    allowed += module_allowance(copy.deepcopy(module).double(), query, key, value, **masks)
    assert result.dtype == module.q_proj.weight.dtype
    assert result.shape == expected.shape
    error = (result.double() - expected).abs()
    assert bool((error <= allowed).all()), f"{(error - allowed).max()} over the allowance"
