"""The position-wise feed-forward network, as a module."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pyimpl.internal.dropout import checked_p
from pyimpl.internal.implements import implements
from pyimpl.modules.internal.drops import PYTORCH, Drops
from pyimpl.modules.internal.sizes import check_dtype, positive


class FeedForward(nn.Module):
    """max(0, x W₁ + b₁) W₂ + b₂, for each position alone: `Attention.Spec.FeedForward.rows`.

    Vaswani et al. 2017, "Attention Is All You Need", section 3.3.

    Args:
        d_model: width of input and output.
        dim_feedforward: width between the two maps.
        dropout: the probability with which a hidden number is dropped in training mode, by
            `torch.nn.Dropout`.
        bias: whether b₁ and b₂ are there.
        device, dtype: of the parameters.

    Raises:
        TypeError, ValueError: an argument that is none of these.
    """

    def __init__(
        self,
        d_model: int,
        dim_feedforward: int = 2048,
        *,
        dropout: float = 0.0,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        width, hidden = positive("d_model", d_model), positive("dim_feedforward", dim_feedforward)
        check_dtype(dtype)
        self.linear1 = nn.Linear(width, hidden, bias=bias, device=device, dtype=dtype)
        self.dropout = nn.Dropout(checked_p("dropout", dropout))
        self.linear2 = nn.Linear(hidden, width, bias=bias, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights uniform after Glorot and Bengio (Xavier), biases 0."""
        for linear in (self.linear1, self.linear2):
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    @implements("Attention.Spec.FeedForward.rows")
    def forward(self, x: Tensor, drops: Drops = PYTORCH) -> Tensor:
        """The output, of the shape of `x`, `[..., d_model]`; dropout is drawn from `drops`."""
        out: Tensor = self.linear2(drops.drop(self.dropout, torch.relu(self.linear1(x))))
        return out
