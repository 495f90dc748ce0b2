"""Launches of the project's kernels over a memory of exact numbers: tiles in, tiles out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bridge.ttir.domain import Numbers
from bridge.ttir.launched import run
from bridge.ttir.memory import Memory
from pyimpl.backends.kernels import (
    backward,
    backward_bias,
    backward_keys,
    backward_queries,
    combine,
    decode,
    forward,
    varlen,
)
from pyimpl.backends.kernels.parts.backward_launch import Given
from pyimpl.backends.kernels.parts.launch import Launch
from pyimpl.backends.kernels.parts.sequences import Sequences
from pyimpl.internal.scores import ScoreOptions


@dataclass
class Kernels:
    """The kernels for one dtype and capability.

    blocks: the lengths of tiles of queries and keys, powers of two ≥ 16. ran: called with each
    launch before it runs. roundings: those of all machines so far.
    """

    memory: Memory
    dtype: torch.dtype = torch.float32
    arch: int = 90
    blocks: tuple[int, int] = (16, 16)
    ran: Callable[[Launch], Any] = lambda launch: None
    roundings: set[str] = field(default_factory=set)

    def tensor(self, numbers: Numbers) -> Tensor:
        """A tensor of the kernels' dtype."""
        return self.memory.tensor(numbers, self.dtype)

    def _run(self, launch: Launch) -> None:
        self.ran(launch)
        if launch.programs:
            self.roundings |= run(launch, self.memory, self.arch).roundings

    def integers(self, launch: Launch, stored: Tensor) -> list[Any]:
        """The integers that any launch stores into this tensor, as lists."""
        self._run(launch)
        found: list[Any] = np.asarray(self.memory.read(stored)).tolist()
        return found

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, options: ScoreOptions
    ) -> tuple[Tensor, Tensor]:
        """`pyimpl.backends.kernels.forward`."""
        out = self.memory.empty((*q.shape[:-1], v.shape[-1]), self.dtype)
        lse = self.memory.empty(q.shape[:-1])
        block_m, block_n = self.blocks
        self._run(
            forward.launch(
                q, k, v, out, lse, options,
                capability=self.arch, block_m=block_m, block_n=block_n,
            )
        )  # fmt: skip
        return out, lse

    def varlen(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        sequences: Sequences,
        options: ScoreOptions,
    ) -> tuple[Tensor, Tensor]:
        """`backends.kernels.varlen`; q `[total, heads, head_dim]`, log-sum-exp `[heads, total]`."""
        out = self.memory.empty((*q.shape[:-1], v.shape[-1]), self.dtype)
        lse = self.memory.empty((q.shape[1], q.shape[0]))
        block_m, block_n = self.blocks
        self._run(
            varlen.launch(
                q, k, v, sequences.cu_seqlens_q, sequences.cu_seqlens_k, out, lse, options,
                max_q_len=sequences.max_q_len, bottom_right=sequences.bottom_right,
                capability=self.arch, block_m=block_m, block_n=block_n,
            )
        )  # fmt: skip
        return out, lse

    def decode(self, *given: Any, **named: Any) -> tuple[Tensor, Tensor]:
        """`backends.kernels.decode` or, with a page table, `decode_paged`, and `combine`; of the
        arguments of `decode_splits`."""
        return self.combine(*self.decode_splits(*given, **named))

    def decode_splits(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        options: ScoreOptions,
        *,
        splits: int,
        kv_lens: Tensor | None = None,
        page_table: Tensor | None = None,
        bottom_right: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """The outputs `[splits, batch, heads, q_len, value_dim]` and log-sum-exps of `decode`'s
        splits."""
        parts = self.memory.empty((splits, *q.shape[:-1], v.shape[-1]))
        lses = self.memory.empty((splits, *q.shape[:-1]))
        self._run(
            decode.launch(
                q, k, v, parts, lses, options, kv_lens=kv_lens, page_table=page_table,
                bottom_right=bottom_right, capability=self.arch, block_n=self.blocks[1],
            )
        )  # fmt: skip
        return parts, lses

    def combine(self, parts: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
        """`pyimpl.backends.kernels.combine`."""
        out = self.memory.empty(parts.shape[1:], self.dtype)
        lse = self.memory.empty(lses.shape[1:])
        self._run(combine.launch(parts, lses, out, lse))
        return out, lse

    def backward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        out: Tensor,
        lse: Tensor,
        grad_out: Tensor,
        grad_lse: Tensor | None,
        options: ScoreOptions,
        sequences: Sequences | None = None,
        *,
        atomics: bool = False,
    ) -> dict[str, Tensor]:
        """The kernels of `kernels.backward`, which has `atomics` too: gradients by the names
        "query", "key", "value" and, with a bias, "bias"."""
        row_lse, delta = self.memory.empty(lse.shape), self.memory.empty(lse.shape)
        self._run(backward.row_numbers_launch(out, grad_out, lse, grad_lse, row_lse, delta))
        given = Given(q, k, v, grad_out, row_lse, delta, options, sequences)
        grads = {
            name: self.memory.empty(x.shape, self.dtype)
            for name, x in (("query", q), ("key", k), ("value", v))
        }
        chosen = {
            "block_m": self.blocks[0], "block_n": self.blocks[1], "num_warps": 4, "num_stages": 1
        }  # fmt: skip
        how: dict[str, Any] = {"capability": self.arch, "chosen": chosen}
        by_keys = (given, grads["key"], grads["value"])
        if atomics:
            domain = self.memory.domain
            zero = domain.integers(np.zeros((), np.int64))
            shape = tuple(q.shape)
            sums = self.memory.tensor(domain.each(lambda x: np.broadcast_to(x, shape), zero))
            self._run(backward_keys.launch(*by_keys, sums, **how))
            # As `backward` does with the sums.
            scaled = domain.multiply(self.memory.read(sums), domain.scalar(options.scale))
            grads["query"] = self.tensor(scaled)
        else:
            self._run(backward_keys.launch(*by_keys, **how))
            self._run(backward_queries.launch(given, grads["query"], None, **how))
        if options.bias is not None:
            bias = options.bias
            shape = (1,) * (4 - bias.dim()) + tuple(bias.shape)
            grads["bias"] = self.memory.empty(shape)
            self._run(backward_bias.launch(given, grads["bias"], **how))
        return grads
