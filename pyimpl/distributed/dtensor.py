"""`pyimpl.attention` of DTensors: a process computes the batches, heads and queries that it holds,
as a model that is parallel in its tensors has them, and is told where they stand.

The operators have a rule of their own for DTensors. PyTorch's way, a strategy that says which
placements fit, would pass every process the same numbers: the first query of each would stand at
place 0 for causality, windows and ALiBi, and dropout would drop the weights of the first heads in
all. Where keys are divided along their length each query needs those of other processes; that is
refused, for `pyimpl.distributed.ring_attention` to be called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard

from pyimpl.attention import _attention
from pyimpl.autograd.attention import _attention_backward
from pyimpl.backends.dispatch import Backend
from pyimpl.internal.arguments import compute_dtype, empty_output
from pyimpl.internal.gradients import Gradients, Wanted
from pyimpl.internal.part import Part
from pyimpl.internal.scores import CHANGES, DIFFERENTIABLE, ScoreOptions

# Dimensions of query; those of a tensor that they are, None for one that it has not or broadcasts.
BATCH, HEADS, ROWS = range(3)
Axes = tuple[int | None, int | None, int | None]
QUERY: Axes = (0, 1, 2)


@dataclass(frozen=True)
class Share:
    """Which part of a call this process computes.

    roles: along which dimension of query each dimension of the mesh divides the work, None: its
    processes do the same. place: where its part begins; sizes: how many batches, heads and queries
    it has. kv_heads: the number of a head of key and value for each that is computed with, where
    these are not divided as the heads of query are; None: they are.
    """

    mesh: DeviceMesh
    roles: tuple[int | None, ...]
    place: Part
    sizes: list[int]
    kv_heads: list[int] | None

    @property
    def keys(self) -> Axes:
        """The axes of key and value."""
        return (0, 1 if self.kv_heads is None else None, None)

    def placements(self, axes: Axes) -> list[Placement]:
        """How a tensor with these axes lies where this part is computed."""
        dims = (None if role is None else axes[role] for role in self.roles)
        return [Replicate() if dim is None else Shard(dim) for dim in dims]

    def local(self, tensor: Tensor, axes: Axes) -> Tensor:
        """The piece that this part needs of a tensor, of which each process has the whole if it is
        no DTensor."""
        if not isinstance(tensor, DTensor):
            everywhere = [Replicate()] * self.mesh.ndim
            tensor = DTensor.from_local(tensor, self.mesh, everywhere, run_check=False)
        return tensor.redistribute(placements=self.placements(axes)).to_local()

    def local_keys(self, tensor: Tensor) -> Tensor:
        """The same of key or value."""
        found = self.local(tensor, self.keys)
        if self.kv_heads is None:
            return found
        return found.index_select(1, self._numbers(found))

    def _numbers(self, like: Tensor) -> Tensor:
        """`kv_heads` on the device of a tensor; whole even where there are none."""
        return torch.tensor(self.kv_heads, dtype=torch.int64, device=like.device)

    def local_options(self, options: ScoreOptions) -> ScoreOptions:
        """The options of this part: its first query stands where it does in the whole."""
        found: dict[str, Any] = {
            name: None if given is None else self.local(given, axes_of(name, given))
            for name in ("mask", *(change.name for change in CHANGES if change.kind != "number"))
            for given in [getattr(options, name)]
        }
        return replace(options.at(self.place), **found)

    def gradient(self, local: Tensor, axes: Axes, of: Tensor) -> Tensor:
        """The gradient of a tensor with these axes from this part's addend, summed over the
        processes where it has to be."""
        placed = [
            Partial() if role is not None and axes[role] is None else placement
            for role, placement in zip(self.roles, self.placements(axes), strict=True)
        ]
        whole = DTensor.from_local(
            local, self.mesh, placed, run_check=False, shape=of.shape, stride=of.stride()
        )
        if not isinstance(of, DTensor):
            return whole.full_tensor()
        # All summands of a sum have its gradient.
        wanted = [Replicate() if isinstance(p, Partial) else p for p in of.placements]
        return whole.redistribute(placements=wanted)

    def key_gradient(self, local: Tensor, of: Tensor) -> Tensor:
        """The same of key or value."""
        if self.kv_heads is not None:
            batch, _, *others = local.shape
            whole = local.new_zeros(batch, of.shape[1], *others)
            places = self._numbers(local)
            local = whole.index_add_(1, places, local)
        return self.gradient(local, self.keys, of)

    def output(self, local: Tensor, like: Tensor) -> DTensor:
        """An output of the queries of this part, of the shape and strides of `like`, the whole."""
        return DTensor.from_local(
            local, self.mesh, self.placements(QUERY), run_check=False,
            shape=like.shape, stride=like.stride(),
        )  # fmt: skip


def axes_of(name: str, tensor: Tensor) -> Axes:
    """The axes of an option: pairs, broadcast to `[batch, heads, q_len, kv_len]`, or one for each
    head, `[heads]` or `[batch|1, heads]`."""
    if name != "mask" and next(c for c in CHANGES if c.name == name).kind == "head":
        batch = 0 if tensor.dim() == 2 and tensor.shape[0] > 1 else None
        return batch, tensor.dim() - 1, None
    dims = (role - 4 + tensor.dim() for role in QUERY if role is not None)
    batch, heads, rows = (d if d >= 0 and tensor.shape[d] > 1 else None for d in dims)
    return batch, heads, rows


def share_of(query: Tensor, key: Tensor, value: Tensor) -> Share:
    """The share of this process. Raises TypeError or ValueError for placements that are ambiguous
    or need the keys of other processes."""
    named: dict[str, DTensor] = {}
    for name, tensor in {"query": query, "key": key, "value": value}.items():
        if not isinstance(tensor, DTensor):
            raise TypeError(f"query, key and value must all be DTensors, which {name} is not")
        named[name] = tensor
    mesh = named["query"].device_mesh
    for name, tensor in named.items():
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"{name} must be on the mesh of query, {mesh}, not on {tensor.device_mesh}"
            )
    roles = tuple(_role(named, number) for number in range(mesh.ndim))
    divided = [[n for n, role in enumerate(roles) if role == which] for which in QUERY]
    batch, heads, q_len, _ = query.shape
    batches, own, rows = (
        _local_range(size, mesh, numbers)
        for size, numbers in zip((batch, heads, q_len), divided, strict=True)
    )
    processes = torch.Size([mesh.size(n) for n in divided[HEADS]]).numel()
    kv_heads = None
    if heads % processes or key.shape[1] % processes:
        group = heads // key.shape[1] if key.shape[1] else 1
        kv_heads = [head // group for head in own]
    whole = (batch, heads, q_len, key.shape[2])
    place = Part(whole, *(held.start for held in (batches, own, rows)))
    return Share(mesh, roles, place, [len(batches), len(own), len(rows)], kv_heads)


def _role(named: dict[str, DTensor], number: int) -> int | None:
    """Along which dimension of query this dimension of the mesh divides the work."""
    dims: dict[int, str] = {}
    for name, tensor in named.items():
        placement = tensor.placements[number]
        if type(placement) not in (Shard, Replicate, Partial):
            raise ValueError(f"{name} must be sharded, replicated or partial, not {placement}")
        if isinstance(placement, Shard):
            dims.setdefault(placement.dim, name)
            if placement.dim == ROWS and name != "query":
                raise ValueError(
                    f"{name} must not be sharded along its length, for its queries are on other "
                    "processes too: call pyimpl.distributed.ring_attention with local tensors"
                )
            if placement.dim > ROWS:
                raise ValueError(f"{name} must not be sharded along its last dimension")
    if len(dims) > 1:
        said = " and ".join(f"{name} along dimension {dim}" for dim, name in dims.items())
        raise ValueError(
            f"query, key and value must be sharded alike by each dimension of the mesh, not {said}"
        )
    return next(iter(dims), None)


def _local_range(size: int, mesh: DeviceMesh, numbers: list[int]) -> range:
    """Which of `size` this process holds, where these dimensions of the mesh divide them, one after
    another, as `torch.chunk` does."""
    held, here = range(size), mesh.get_coordinate()
    if here is None:
        raise ValueError("query, key and value must be on a mesh that this process is in")
    for number in numbers:
        each = -(-len(held) // mesh.size(number))
        held = held[here[number] * each : (here[number] + 1) * each]
    return held


def forward_of_share(
    query: Tensor, key: Tensor, value: Tensor, backend: Backend, *flat: Any
) -> tuple[Tensor, Tensor]:
    """`pyimpl::attention` of DTensors."""
    share = share_of(query, key, value)
    q, k, v = share.local(query, QUERY), share.local_keys(key), share.local_keys(value)
    assert list(q.shape[:3]) == share.sizes
    options = share.local_options(ScoreOptions.of_flat(*flat))
    out, lse = _attention.call(q, k, v, backend, *options.flat())
    whole = torch.empty_strided(query.shape, query.stride(), dtype=query.dtype, device="meta")
    like = empty_output(whole, value.shape[-1])
    sums = whole.new_empty(whole.shape[:-1], dtype=compute_dtype(query.dtype))
    return share.output(out, like), share.output(lse, sums)


def backward_of_share(
    grad_out: Tensor, grad_lse: Tensor | None, query: Tensor, key: Tensor, value: Tensor,
    out: Tensor, lse: Tensor, wanted: list[bool], backend: Backend, *flat: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """`pyimpl::attention_backward` of DTensors."""
    share = share_of(query, key, value)
    of_rows = (grad_out, query, out, lse)
    g, q, o, sums = (share.local(x, QUERY) for x in of_rows)
    g_lse = None if grad_lse is None else share.local(grad_lse, QUERY)
    k, v = share.local_keys(key), share.local_keys(value)
    given = ScoreOptions.of_flat(*flat)
    locals_ = _attention_backward.call(
        g, g_lse, q, k, v, o, sums, wanted, backend, *share.local_options(given).flat()
    )
    by_name = dict(zip(Gradients._fields, locals_, strict=True))
    by_name["query"] = share.gradient(by_name["query"], QUERY, query)
    by_name["key"] = share.key_gradient(by_name["key"], key)
    by_name["value"] = share.key_gradient(by_name["value"], value)
    for name, needed in Wanted(*wanted)._asdict().items():
        change = DIFFERENTIABLE[name].name
        tensor = getattr(given, change)
        if name == "bias" and tensor is None:
            tensor = given.mask
        if needed and tensor is not None:
            by_name[name] = share.gradient(by_name[name], axes_of(change, tensor), tensor)
    return tuple(by_name.values())


# By the operator's name, looked up at each call.
RULES: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "attention": forward_of_share,
    "attention_backward": backward_of_share,
}
REFUSED = ("attention_varlen", "attention_varlen_backward", "attention_decode")


def _register() -> None:
    """Tell PyTorch of the rules."""

    def rule(name: str) -> Callable[..., Any]:
        def of_dtensors(
            mode: Any, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> Any:
            if name not in RULES:
                raise NotImplementedError(
                    f"{name} takes no DTensors: call it with local tensors, x.to_local()"
                )
            with torch.no_grad():
                return RULES[name](*args, **kwargs)

        return of_dtensors

    for name in (*RULES, *REFUSED):
        if hasattr(torch.ops.pyimpl, name):
            torch.library.register_torch_dispatch(f"pyimpl::{name}", DTensor, rule(name))


_register()
