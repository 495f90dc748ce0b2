"""Attention functions that tests judge by `bridge.check`, as a stranger's module has them."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def right(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    return scaled_dot_product_attention(query, key, value, is_causal=is_causal, scale=scale)


def unscaled(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return scaled_dot_product_attention(query, key, value, scale=1.0)


class Grouped:
    @staticmethod
    def right(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return scaled_dot_product_attention(query, key, value)


def made() -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    def inner(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return value

    return inner
