"""Attention of a sequence in shards: cases that every process makes alike from a seed, run in a
process on its part, and by one process on the whole."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

import pyimpl.distributed
from bridge.conformance.mutants.planted_package import copied_modules
from pyimpl import attention
from pyimpl.distributed import Shards
from pyimpl.internal.scores import CHANGES

Results = dict[str, Tensor]


class Draw:
    """Random numbers that follow from a seed."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *size: int) -> Tensor:
        return torch.randn(size, generator=self.generator, dtype=torch.float64)

    def chance(self, *size: int) -> Tensor:
        return torch.rand(size, generator=self.generator)

    def cuts(self, length: int, count: int) -> list[int]:
        """Lengths of `count` pieces of `length`, some perhaps 0."""
        ends = torch.randint(0, length + 1, (count - 1,), generator=self.generator).sort().values
        ends = torch.cat((torch.tensor([0]), ends, torch.tensor([length])))
        return ends.diff().tolist()

    def owners(self, length: int, count: int) -> list[Tensor]:
        places = torch.randperm(length, generator=self.generator)
        owners = torch.randint(0, count, (length,), generator=self.generator)
        return [places[owners == r] for r in range(count)]


SHARDS: dict[str, Callable[[int, int, Draw], Shards]] = {
    "contiguous": lambda n, count, d: Shards.contiguous(n, count),
    "zigzag": lambda n, count, d: Shards.zigzag(n, count),
    "striped": lambda n, count, d: Shards.striped(n, count),
    "uneven": lambda n, count, d: Shards.of_lengths(d.cuts(n, count)),
    "any places": lambda n, count, d: Shards.of_places(d.owners(n, count)),
}
# Those that multiply the queries.
FOLDED = [change.name for change in CHANGES if not change.argument]
# Options that are tensors, from (batch, heads, q_len, kv_len): of the whole.
TENSORS: dict[str, Callable[[Draw, int, int, int, int], Tensor]] = {
    "slopes": lambda d, b, h, m, n: d.chance(h).double(),
    "slopes of each batch": lambda d, b, h, m, n: d.chance(b, h).double(),
    "sinks": lambda d, b, h, m, n: d.normal(h),
    **{name: lambda d, b, h, m, n: 1 + d.chance(h).double() for name in FOLDED},
    "bias": lambda d, b, h, m, n: d.normal(b, h, m, n),
    "bias of queries": lambda d, b, h, m, n: d.normal(1, h, m, 1),
    "bias of keys": lambda d, b, h, m, n: d.normal(n),
    "masking bias": lambda d, b, h, m, n: d.normal(m, n).where(d.chance(m, n) < 0.7, -torch.inf),
    "mask": lambda d, b, h, m, n: d.chance(b, 1, m, n) < 0.7,
    "mask of keys": lambda d, b, h, m, n: d.chance(1, h, 1, n) < 0.8,
    "floating mask": lambda d, b, h, m, n: d.normal(h, m, n),
}
ARGUMENT = {"slopes": "alibi_slopes", "mask": "attn_mask", "floating mask": "attn_mask"}


def argument(name: str) -> str:
    """The argument of the public functions that the named tensor is given for."""
    short = name.split(" of ")[0].removeprefix("masking ")
    return ARGUMENT.get(short, short)


@dataclass(frozen=True)
class Case:
    """lengths: of queries and keys. tensors: names of `TENSORS`. numbers: arguments as they are
    given. documents: the lengths of documents are drawn, for as many queries as keys. rounded: the
    dtype to which numbers are rounded before they are of `dtype`. unseen: the keys at places that
    no query has hold NaN. rows: of a mesh of the processes, which is given for the group; 0: none.
    """

    lengths: tuple[int, int]
    shards: str = "contiguous"
    key_shards: str | None = None
    batch: int = 1
    kv_heads: int = 2
    group: int = 1
    dims: tuple[int, int] = (4, 3)
    tensors: tuple[str, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)
    documents: bool = False
    unseen: bool = False
    dtype: torch.dtype = torch.float64
    rounded: torch.dtype = torch.float64
    seed: int = 0
    function: str = "ring_attention"
    rows: int = 0

    def make(self, processes: int) -> Made:
        """The tensors of the whole, and each process's part of them."""
        draw = Draw(self.seed)
        m, n = self.lengths
        heads = self.kv_heads * self.group
        query = draw.normal(self.batch, heads, m, self.dims[0])
        key = draw.normal(self.batch, self.kv_heads, n, self.dims[0])
        value = draw.normal(self.batch, self.kv_heads, n, self.dims[1])
        if self.unseen:
            for tensor in (key, value):
                tensor[:, :, m:] = torch.nan
        grad_out = draw.normal(self.batch, heads, m, self.dims[1])
        grad_lse = draw.normal(self.batch, heads, m)
        shards = SHARDS[self.shards](m, processes, draw)
        key_shards = shards
        if self.key_shards is not None or m != n:
            key_shards = SHARDS[self.key_shards or self.shards](n, processes, draw)
        lengths = draw.cuts(m, 4) if self.documents else None
        options = {
            argument(name): TENSORS[name](draw, self.batch, heads, m, n) for name in self.tensors
        }
        low = {
            name: x.to(self.rounded).to(self.dtype) for name, x in
            {"query": query, "key": key, "value": value, "grad_out": grad_out}.items()
        }  # fmt: skip
        grad_lse = grad_lse.to(torch.float64 if self.dtype == torch.float64 else torch.float32)
        return Made(**low, grad_lse=grad_lse, options=options, lengths=lengths,
                    shards=shards, key_shards=key_shards)  # fmt: skip


@cache
def mesh_of(*shape: int) -> DeviceMesh:
    """A mesh of all processes, made once in each."""
    return init_device_mesh("cpu", shape)


@dataclass(frozen=True)
class Made:
    query: Tensor
    key: Tensor
    value: Tensor
    grad_out: Tensor
    grad_lse: Tensor
    options: dict[str, Tensor]
    lengths: list[int] | None
    shards: Shards
    key_shards: Shards

    @property
    def cu_seqlens(self) -> list[int] | None:
        if self.lengths is None:
            return None
        return [0, *torch.tensor(self.lengths).cumsum(0).tolist()]

    def document_mask(self) -> Tensor | None:
        """Which keys are of the document of each query."""
        if self.lengths is None:
            return None
        numbers = torch.arange(len(self.lengths)).repeat_interleave(torch.tensor(self.lengths))
        return numbers[:, None] == numbers


def gradients(outputs: tuple[Tensor, Tensor], leaves: dict[str, Tensor], *grads: Tensor) -> Results:
    """The outputs, and the gradients of the leaves by name."""
    found = torch.autograd.grad(outputs, list(leaves.values()), grads, allow_unused=True)
    out, lse = outputs
    by_name = {
        f"the gradient of {name}": torch.zeros_like(x) if g is None else g
        for (name, x), g in zip(leaves.items(), found, strict=True)
    }
    return {"out": out.detach(), "lse": lse.detach(), **by_name}


def leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_(tensor.is_floating_point())


def by_one(case: Case, processes: int) -> Results:
    """One process's results of the whole."""
    made = case.make(processes)
    given = {name: leaf(getattr(made, name)) for name in ("query", "key", "value")}
    options = {name: leaf(x) for name, x in made.options.items()}
    leaves = given | {name: x for name, x in options.items() if x.requires_grad}
    documents = made.document_mask()
    called: dict[str, Any] = dict(options)
    if documents is not None:
        mask = called.get("attn_mask")
        if mask is not None and mask.dtype != torch.bool:
            called["bias"] = called.pop("attn_mask")
            mask = None
        called["attn_mask"] = documents if mask is None else mask & documents
    outputs = attention(*given.values(), enable_gqa=True, return_lse=True, **called, **case.numbers)
    return gradients(outputs, leaves, made.grad_out, made.grad_lse)


@contextlib.contextmanager
def plant(package: ModuleType, fault: tuple[str, str, str] | None) -> Iterator[ModuleType]:
    """The package, `pyimpl.distributed` or `pyimpl.modules`, or a copy with an edit: of a file,
    this text, which occurs once, by that."""
    if fault is None:
        yield package
        return
    file, old, new = fault

    def edit(text: str) -> str:
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times in {file}"
        return text.replace(old, new)

    with copied_modules(f"{package.__name__.partition('.')[2]}/{file}", edit) as copy:
        yield copy


def by_part(
    rank: int, group: dist.ProcessGroup, case: Case, fault: tuple[str, str, str] | None = None
) -> Results:
    """A process's results of its part: a job of the pool."""
    processes = dist.get_world_size(group)
    made = case.make(processes)
    over = mesh_of(case.rows, processes // case.rows) if case.rows else group
    with plant(pyimpl.distributed, fault) as package:
        # A copy of the package has a class Shards of its own.
        shards, key_shards = (package.Shards(x.places) for x in (made.shards, made.key_shards))
        own = {"query": shards.take(made.query, rank)}
        own |= {n: key_shards.take(getattr(made, n), rank) for n in ("key", "value")}
        own = {name: leaf(x) for name, x in own.items()}
        options = dict(made.options)
        for name in ("bias", "attn_mask"):
            pairs = options.get(name)
            by_query = pairs is not None and pairs.dim() > 1 and pairs.shape[-2] > 1
            if by_query and case.function == "ring_attention":
                options[name] = shards.take(pairs, rank, -2)
        options = {name: leaf(x) for name, x in options.items()}
        leaves = own | {name: x for name, x in options.items() if x.requires_grad}
        outputs = getattr(package, case.function)(
            *own.values(), shards=shards, key_shards=key_shards, group=over, enable_gqa=True,
            return_lse=True, cu_seqlens=made.cu_seqlens, **options, **case.numbers,
        )  # fmt: skip
        grads = (made.shards.take(x, rank) for x in (made.grad_out, made.grad_lse))
        return gradients(outputs, leaves, *grads)


def join(case: Case, parts: list[Results]) -> Results:
    """The results of the processes as those of the whole."""
    made = case.make(len(parts))
    whole = {}
    for name in parts[0]:
        some = [part[name] for part in parts]
        short = name.removeprefix("the gradient of ")
        if short in ("out", "lse", "query"):
            whole[name] = made.shards.join(some)
        elif short in ("key", "value"):
            whole[name] = made.key_shards.join(some)
        else:
            # Of rows that a process has, or of all.
            given = made.options[short]
            by_query = short in ("bias", "attn_mask") and given.dim() > 1 and given.shape[-2] > 1
            if by_query and case.function == "ring_attention":
                whole[name] = made.shards.join(some, -2)
            else:
                whole[name] = sum(some[1:], some[0])
    return whole


def check_case(pool: Any, processes: int, case: Case, fault: Any = None) -> None:
    """Fail unless the processes together find the same as one: by torch's own tolerance for
    float64."""
    expected = by_one(case, processes)
    found = join(case, pool.run(processes, by_part, case, fault))
    assert set(found) <= set(expected) | {"the gradient of attn_mask"}
    for name, tensor in found.items():
        other = name
        if name not in expected:  # One process was given documents for a mask.
            other = "the gradient of bias"
        torch.testing.assert_close(tensor, expected[other], msg=lambda text, n=name: f"{n}: {text}")


__all__ = ["Case", "Results", "by_one", "by_part", "check_case", "join", "replace"]
