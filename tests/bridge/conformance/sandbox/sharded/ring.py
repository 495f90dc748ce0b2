"""Attention by a ring of processes, as a stranger writes it, and the same with mistakes that others
made: each process has its shards of queries, keys and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def places(length: int, rank: int, count: int, layout: str, fault: str = "") -> Tensor:
    """Which places of a sequence a process holds."""
    every = torch.arange(length)
    if fault == "causal as if every shard were the first":
        return torch.arange(len(places(length, rank, count, layout)))
    if layout == "striped":
        return every[rank::count]
    if layout == "contiguous":
        return every.tensor_split(count)[rank]
    parts = every.tensor_split(2 * count)
    first, second = parts[rank], parts[2 * count - 1 - rank]
    if fault == "the second half of zigzag as if it followed the first":
        return torch.arange(first[0], first[0] + len(first) + len(second)) if len(first) else second
    return torch.cat((first, second))


class Ring(torch.autograd.Function):
    """The keys and values go around, forward and backward; backward with their gradients."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, about: Ring.About) -> Tensor:
        wide = torch.float64 if query.dtype == torch.float64 else torch.float32
        out = query.new_zeros((*query.shape[:-1], value.shape[-1]), dtype=wide)
        lse = query.new_full(query.shape[:-1], -torch.inf, dtype=wide)
        for source, k, v in about.rounds(key, value):
            scores = about.scores(query.to(wide), k.to(wide), source)
            part = scores.logsumexp(-1)
            partial = about.weights(scores, part) @ v.to(wide)
            if about.fault == "partial outputs rounded to 16 bits":
                partial = partial.bfloat16().to(wide)
            both = torch.logaddexp(lse, part)
            out = about.share(lse, both) * out + about.share(part, both) * partial
            lse = both
        ctx.about = about
        ctx.save_for_backward(query, key, value, out, lse)
        return out.to(query.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        about: Ring.About = ctx.about
        about.backward = True
        query, key, value, out, lse = ctx.saved_tensors
        wide = out.dtype
        grad, q = grads[0].to(wide), query.to(wide)
        mean = (grad * out).sum(-1, keepdim=True)
        by_query = torch.zeros_like(q)
        by_key, by_value = (torch.zeros_like(x, dtype=wide) for x in (key, value))
        for source, k, v in about.rounds(key, value):
            if about.fault == "stale keys in the backward pass" and k.shape == key.shape:
                k, v = key, value
            k, v = k.to(wide), v.to(wide)
            weights = about.weights(about.scores(q, k, source), lse)
            by_scores = about.scale * weights * (grad @ v.mT - mean)
            by_query += by_scores @ k
            if source != about.rank:
                by_key = about.pass_on(by_key, source, k.shape)
                by_value = about.pass_on(by_value, source, v.shape)
            by_key = by_key + by_scores.mT @ q
            by_value = by_value + weights.mT @ grad
        if about.fault != "gradients of keys that do not come home" or key.shape != by_key.shape:
            by_key = about.pass_on(by_key, about.rank, key.shape)
            by_value = about.pass_on(by_value, about.rank, value.shape)
        return by_query.to(query.dtype), by_key.to(key.dtype), by_value.to(value.dtype), None

    class About:
        """The knowledge of one call of one process."""

        def __init__(
            self, group: Any, lengths: tuple[int, int], layout: str, causal: bool, scale: float,
            fault: str, ends: Tensor | None = None,
        ) -> None:  # fmt: skip
            self.group, self.causal, self.scale, self.fault = group, causal, scale, fault
            self.rank, self.count = dist.get_rank(group), dist.get_world_size(group)
            of = [
                [places(n, r, self.count, layout, fault) for r in range(self.count)]
                for n in lengths
            ]
            self.queries, self.keys = of[0][self.rank], of[1]
            self.ends, self.backward = ends, False

        def rounds(self, key: Tensor, value: Tensor) -> Any:
            k, v = key, value
            for t in range(self.count):
                source = (self.rank - t) % self.count
                if t:
                    shape = [*key.shape[:2], len(self.keys[source])]
                    k = self.pass_on(k, source, (*shape, key.shape[-1]))
                    v = self.pass_on(v, source, (*shape, value.shape[-1]))
                yield source, k, v

        def scores(self, query: Tensor, key: Tensor, source: int) -> Tensor:
            scores = self.scale * query @ key.mT
            if self.fault == "one token dropped at odd lengths" and key.shape[2] % 2:
                scores[..., -1] = -torch.inf
            if self.causal:
                later = self.queries[:, None] < self.keys[source]
                scores = scores.masked_fill(later, -torch.inf)
            ignored = self.fault == "documents ignored" or (
                self.backward and self.fault == "documents ignored in the backward pass"
            )
            if self.ends is None or ignored:
                return scores
            numbers = (torch.bucketize(x, self.ends, right=True) for x in self.of(source))
            ours, theirs = numbers
            return scores.masked_fill(ours[:, None] != theirs, -torch.inf)

        def of(self, source: int) -> tuple[Tensor, Tensor]:
            """The places of the own queries and of the keys of a process."""
            if self.fault == "documents counted from the shard":
                return torch.arange(len(self.queries)), torch.arange(len(self.keys[source]))
            return self.queries, self.keys[source]

        @staticmethod
        def share(some: Tensor, both: Tensor) -> Tensor:
            return torch.exp(some - both.nan_to_num(neginf=0.0))[..., None]

        @staticmethod
        def weights(scores: Tensor, lse: Tensor) -> Tensor:
            return torch.exp(scores - lse.nan_to_num(neginf=0.0)[..., None])

        def pass_on(self, held: Tensor, source: int, shape: tuple[int, ...]) -> Tensor:
            """To the next process, and from the one before, where there are numbers."""
            came = held.new_empty(shape)
            to, of = (self.rank + 1) % self.count, (self.rank - 1) % self.count
            posted = [dist.P2POp(dist.isend, held.contiguous(), to, self.group)]
            posted += [dist.P2POp(dist.irecv, came, of, self.group)]
            posted = [one for one in posted if one.tensor.numel()]
            for work in dist.batch_isend_irecv(posted) if posted else ():
                work.wait()
            return came


def ring(layout: str, fault: str = "") -> Callable[..., Tensor]:
    """A function of shards in this layout, with this mistake."""

    def attention(
        query: Tensor, key: Tensor, value: Tensor, *, group: dist.ProcessGroup, q_len: int,
        kv_len: int, is_causal: bool = False, scale: float | None = None,
        cu_seqlens: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        ends = None if cu_seqlens is None else cu_seqlens[1:].contiguous()
        about = Ring.About(group, (q_len, kv_len), layout, is_causal, scale, fault, ends)
        found: Tensor = Ring.apply(query, key, value, about)
        return found

    return attention


contiguous, zigzag, striped = (ring(layout) for layout in ("contiguous", "zigzag", "striped"))
stale_keys = ring("contiguous", "stale keys in the backward pass")
rounded = ring("contiguous", "partial outputs rounded to 16 bits")
odd_lengths = ring("contiguous", "one token dropped at odd lengths")
without_offset = ring("contiguous", "causal as if every shard were the first")
wrong_shift = ring("zigzag", "the second half of zigzag as if it followed the first")
documents_ignored = ring("contiguous", "documents ignored")
documents_backward = ring("contiguous", "documents ignored in the backward pass")
documents_of_shards = ring("zigzag", "documents counted from the shard")
not_home = ring("contiguous", "gradients of keys that do not come home")


def even_alone(
    query: Tensor, key: Tensor, value: Tensor, *, group: dist.ProcessGroup, is_causal: bool = False
) -> Tensor:
    """It knows its shards alone, and takes all to be as long."""
    lengths = tuple(x.shape[2] * dist.get_world_size(group) for x in (query, key))
    about = Ring.About(group, lengths, "contiguous", is_causal, query.shape[-1] ** -0.5, "")
    found: Tensor = Ring.apply(query, key, value, about)
    return found
