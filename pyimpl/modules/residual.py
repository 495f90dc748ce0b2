"""A sublayer with its residual sum, its layer normalisation and its dropout, as a module."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from pyimpl.internal import arguments as check
from pyimpl.internal.dropout import checked_p
from pyimpl.internal.implements import implements
from pyimpl.modules.internal.drops import PYTORCH, Drops


class Residual(nn.Module):
    """x + f(norm(x)) with `norm_first`, otherwise norm(x + f(x)), for any sublayer f; the output of
    f is dropped out.

    The order of Vaswani et al. 2017, section 5.4, is the second; the first is that of Xiong et al.
    2020, "On Layer Normalization in the Transformer Architecture".

    Args:
        d_model: width of x.
        norm_first: which of the two.
        dropout: the probability with which a number of f's output is dropped in training mode, by
            `torch.nn.Dropout`.
        eps: added to the variance in the normalisation.
        bias: whether the normalisation adds a bias.
        device, dtype: of the parameters.
    """

    def __init__(
        self,
        d_model: int,
        *,
        norm_first: bool,
        dropout: float,
        eps: float,
        bias: bool,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check.check_bool("norm_first", norm_first)
        self.norm_first = norm_first
        self.norm = nn.LayerNorm(d_model, eps, bias=bias, device=device, dtype=dtype)
        self.dropout = nn.Dropout(checked_p("dropout", dropout))

    def forward(
        self, x: Tensor, sublayer: Callable[[Tensor], Tensor], drops: Drops = PYTORCH
    ) -> Tensor:
        """The output, of the shape of `x`, `[..., d_model]`, which `sublayer` keeps; dropout is
        drawn from `drops`."""
        if self.norm_first:
            return x + drops.drop(self.dropout, sublayer(self._norm(x)))
        return self._norm(x + drops.drop(self.dropout, sublayer(x)))

    @implements("Attention.Spec.LayerNorm.rows")
    def _norm(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(x)
        return out

    def extra_repr(self) -> str:
        """Where the normalisation is."""
        return f"norm_first={self.norm_first}"
