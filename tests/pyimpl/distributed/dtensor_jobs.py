"""Attention of DTensors: cases that every process makes alike from a seed, run by the processes of
a mesh on their parts, and by one process on the whole."""

from __future__ import annotations

import contextlib
import io
import runpy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from shard_cases import TENSORS, Draw, argument, gradients, leaf, mesh_of
from torch import Tensor
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Placement,
    Replicate,
    Shard,
    distribute_tensor,
)
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from pyimpl import attention, attention_varlen
from pyimpl.distributed import Shards, dtensor, ring_attention
from pyimpl.modules import MultiHeadAttention

PLACEMENTS: dict[str, Placement] = {
    "batch": Shard(0), "heads": Shard(1), "rows": Shard(2), "all": Replicate(), "sum": Partial(),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """mesh: its shape, of all processes. placed: how query lies along each dimension of the mesh;
    whole_keys: key and value are whole in every process. tensors, numbers: as in `shard_cases`;
    plain: tensors among the options that are no DTensors."""

    mesh: tuple[int, ...]
    placed: tuple[str, ...]
    batch: int = 2
    heads: tuple[int, int] = (4, 2)
    lengths: tuple[int, int] = (6, 7)
    whole_keys: bool = False
    tensors: tuple[str, ...] = ()
    plain: bool = False
    bnhd: bool = False
    numbers: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    def make(self) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor, Tensor]:
        """query, key and value; the options; the gradients of the outputs."""
        draw = Draw(self.seed)
        (heads, kv_heads), (m, n) = self.heads, self.lengths
        given = {"query": draw.normal(self.batch, heads, m, 4)}
        given |= {name: draw.normal(self.batch, kv_heads, n, 4) for name in ("key", "value")}
        options = {argument(t): TENSORS[t](draw, self.batch, heads, m, n) for t in self.tensors}
        return (
            given,
            options,
            draw.normal(self.batch, heads, m, 4),
            draw.normal(self.batch, heads, m),
        )


def by_one(case: Case) -> dict[str, Tensor]:
    """One process's results."""
    given, options, *grads = case.make()
    given, options = ({n: leaf(x) for n, x in some.items()} for some in (given, options))
    outputs = attention(
        *given.values(), enable_gqa=True, return_lse=True, **options, **case.numbers
    )
    leaves = given | {n: x for n, x in options.items() if x.requires_grad}
    return gradients(outputs, leaves, *grads)


def distribute(tensor: Tensor, case: Case, name: str) -> DTensor:
    """A tensor of `case` as a DTensor."""
    mesh = mesh_of(*case.mesh)
    placements = [PLACEMENTS[p] for p in case.placed]
    if name != "query":
        held = [p if not case.whole_keys and p != Shard(2) else Replicate() for p in placements]
        placements = held if name in ("key", "value") else [Replicate()] * mesh.ndim
    whole = DTensor.from_local(tensor, mesh, [Replicate()] * mesh.ndim, run_check=False)
    shared = [Replicate() if p == Partial() else p for p in placements]
    if shared == placements:
        return whole.redistribute(placements=placements)
    # Each process has its share of a sum.
    count = torch.Size([mesh.size(i) for i, p in enumerate(placements) if p == Partial()]).numel()
    part = whole.redistribute(placements=shared).to_local() / count
    return DTensor.from_local(
        part, mesh, placements, run_check=False, shape=whole.shape, stride=whole.stride()
    )


@contextlib.contextmanager
def plant(fault: tuple[str, str] | None) -> Iterator[None]:
    """Rules from the text of `pyimpl.distributed.dtensor`, in which this is replaced by that."""
    if fault is None:
        yield
        return
    text = Path(dtensor.__file__).read_text("utf-8")
    old, new = fault
    assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
    assert text.endswith("\n_register()\n")
    module = ModuleType(dtensor.__name__)
    with mock.patch.dict("sys.modules", {dtensor.__name__: module}):
        exec(text.replace(old, new).removesuffix("_register()\n"), module.__dict__)
    with mock.patch.dict(dtensor.RULES, module.RULES):
        yield


def by_mesh(
    rank: int, group: dist.ProcessGroup, case: Case, fault: tuple[str, str] | None = None
) -> dict[str, Tensor]:
    """A job: the processes' results together, as whole tensors."""
    given, options, *grads = case.make()
    leaves = {name: distribute(x, case, name).requires_grad_() for name, x in given.items()}
    for name, x in options.items():
        x = x if case.plain else distribute(x, case, name)
        options[name] = x.detach().requires_grad_(x.is_floating_point())
    called = leaves
    if case.bnhd:
        called = {name: x.transpose(1, 2) for name, x in leaves.items()}
    with plant(fault):
        out, lse = attention(
            *called.values(), enable_gqa=True, return_lse=True, **options, **case.numbers,
            layout="bnhd" if case.bnhd else "bhnd",
        )  # fmt: skip
        if case.bnhd:
            out = out.transpose(1, 2)
        by = [distribute(x, replace(case, placed=("all",) * len(case.mesh)), "") for x in grads]
        leaves = leaves | {n: x for n, x in options.items() if x.requires_grad}
        found = gradients((out, lse), leaves, *by)
    for name, tensor in leaves.items():
        grad = found[f"the gradient of {name}"]
        if isinstance(tensor, DTensor):
            wanted = tuple(Replicate() if p == Partial() else p for p in tensor.placements)
            assert grad.placements == wanted, f"{name}: {grad.placements}"
    return {n: x.full_tensor() if isinstance(x, DTensor) else x for n, x in found.items()}


def refusal(rank: int, group: dist.ProcessGroup, name: str) -> str:
    """A job: the error of a call of DTensors that is not computed."""
    mesh = mesh_of(4)
    whole = torch.zeros(2, 4, 8, 4)

    def place(by: str) -> DTensor:
        return distribute_tensor(whole, mesh, [PLACEMENTS[by]])

    x, shards = place("all"), Shards.contiguous(8, 4)
    packed, sums = x[0].transpose(0, 1), torch.tensor([0, 8])
    calls: dict[str, Callable[[], Any]] = {
        "rows of keys": lambda: attention(place("rows"), place("rows"), place("rows")),
        "two ways": lambda: attention(place("heads"), place("batch"), place("batch")),
        "last dimension": lambda: attention(*[distribute_tensor(whole, mesh, [Shard(3)])] * 3),
        "no DTensor": lambda: attention(x, whole, x),
        "another mesh": lambda: attention(
            x, x, distribute_tensor(whole, mesh_of(2, 2), [Replicate()] * 2)
        ),
        "no seed": lambda: attention(x, x, x, dropout_p=0.5),
        "varlen": lambda: attention_varlen(packed, packed, packed, sums, sums),
        "ring": lambda: ring_attention(x, x, x, shards=shards),
    }
    try:
        calls[name]()
    except (TypeError, ValueError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def parallel_module(rank: int, group: dist.ProcessGroup, way: str) -> float:
    """A job: by how much outputs and gradients of a parallel module differ from one process's."""
    mesh = mesh_of(4)

    def make() -> MultiHeadAttention:
        torch.manual_seed(0)
        return MultiHeadAttention(16, 4, num_kv_heads=4 if way == "tensors" else 2).double()

    x = Draw(1).normal(4, 6, 16)
    slopes = Draw(2).chance(4).double()
    one, module = make(), make()
    called: Any = module
    mine = x[rank : rank + 1]
    if way == "tensors":
        columns = ColwiseParallel(use_local_output=False)
        plan = {f"{name}_proj": columns for name in "qkv"}
        parallelize_module(module, mesh, plan | {"out_proj": RowwiseParallel()})
        mine = x
    elif way == "data":
        called = DistributedDataParallel(module, process_group=group)
    elif way == "shards of parameters":
        fully_shard(module, mesh=mesh)
    else:
        mine = x
        called = partial(checkpoint, module, use_reentrant=False)
    expected = one(x, is_causal=True, alibi_slopes=slopes)
    out = called(mine, is_causal=True, alibi_slopes=slopes)
    # As many numbers in all processes: the mean of means is the mean.
    expected.square().mean().backward()
    out.square().mean().backward()
    expected = expected if mine is x else expected[rank : rank + 1]
    errors = [(out - expected).abs().max()]
    for found, other in zip(module.parameters(), one.parameters(), strict=True):
        grad = found.grad
        assert grad is not None
        assert other.grad is not None
        whole = grad.full_tensor() if isinstance(grad, DTensor) else grad
        errors.append((whole - other.grad).abs().max())
    return max(float(error) for error in errors)


def run_compiled(rank: int, group: dist.ProcessGroup, case: Case) -> bool:
    """A job: whether a compiled call of DTensors, one graph, gives the same bits, and gradients."""
    given, options, *_ = case.make()
    leaves = [distribute(x, case, name).requires_grad_() for name, x in given.items()]

    def call(*tensors: Tensor) -> Tensor:
        out = attention(*tensors, enable_gqa=True, **options, **case.numbers)
        assert isinstance(out, Tensor)
        return out * 2

    found = []
    for way in (call, torch.compile(call, backend="aot_eager", fullgraph=True)):
        out = way(*leaves)
        grads = torch.autograd.grad(out.full_tensor().square().sum(), leaves)
        found.append([x.full_tensor() for x in (out, *grads)])
    return all(map(torch.equal, *found))


def example(rank: int, group: dist.ProcessGroup, fault: tuple[str, str] | None) -> str:
    """A job: the output of the example of training on four processes, or how it ends."""
    path = Path(__file__).parents[3] / "examples" / "train_parallel.py"
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), plant(fault):
            runpy.run_path(str(path), run_name="__main__")
    except AssertionError:
        return "it asserted something else"
    return printed.getvalue()
