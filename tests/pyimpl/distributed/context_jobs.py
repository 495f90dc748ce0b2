"""Modules with their sequences in shards: cases that every process makes alike from a seed, run in
a process on its part, and by one process on the whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from shard_cases import SHARDS, Draw, leaf, mesh_of, plant
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import pyimpl.modules
from pyimpl.distributed import ContextParallel, Shards

Results = dict[str, Tensor]
WIDTH, HEADS, TOKENS = 8, 4, 11


@dataclass(frozen=True)
class Case:
    """module: "self" or "cross" (`MultiHeadAttention`), "encoder" or "decoder" (of two layers), or
    "transformer". lengths: of queries (targets) and keys (sources); shards: of both. rows: as in
    `shard_cases`. padded: keys, sources and targets end in padding. masked: there is an
    `attn_mask`, floating. made: arguments that the module is made with; numbers: those of the call.
    """

    module: str
    lengths: tuple[int, int] = (7, 7)
    shards: tuple[str, str] = ("contiguous", "contiguous")
    method: str = "ring"
    rows: int = 0
    batch: int = 2
    padded: bool = False
    masked: bool = False
    made: dict[str, Any] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def crosses(self) -> bool:
        """Whether there are two sequences."""
        return self.module in ("cross", "decoder", "transformer")

    def shards_of(self, processes: int) -> tuple[Shards, Shards]:
        """The shards of queries and of keys."""
        draw = Draw(self.seed)
        queries, keys = (
            SHARDS[name](n, processes, draw)
            for name, n in zip(self.shards, self.lengths, strict=True)
        )
        return queries, keys if self.crosses else queries

    def model(self, package: ModuleType) -> nn.Module:
        """The module, in training mode."""
        torch.manual_seed(self.seed)
        if self.module in ("self", "cross"):
            made: nn.Module = package.MultiHeadAttention(WIDTH, HEADS, **self.made)
        elif self.module == "transformer":
            made = package.Transformer(TOKENS, TOKENS, WIDTH, HEADS, 1, 1, 16, **self.made)
        else:
            kind = package.EncoderLayer if self.module == "encoder" else package.DecoderLayer
            layers = [kind(WIDTH, HEADS, 16, **self.made) for _ in range(2)]
            stack = package.Encoder if self.module == "encoder" else package.Decoder
            made = stack(layers)
        return made.double()

    def inputs(self) -> list[Tensor]:
        """Of the whole: queries and perhaps keys, or tokens."""
        draw, (m, n) = Draw(self.seed + 1), self.lengths
        if self.module == "transformer":
            sizes = ((self.batch, n), (self.batch, m))
            return [torch.randint(0, TOKENS, s, generator=draw.generator) for s in sizes]
        queries = draw.normal(self.batch, m, WIDTH)
        return [queries, draw.normal(self.batch, n, WIDTH)] if self.crosses else [queries]

    def masks(self) -> dict[str, Tensor]:
        """The masks and lengths of the whole."""
        draw, (m, n) = Draw(self.seed + 2), self.lengths
        n = n if self.crosses else m

        def lens(length: int) -> Tensor:
            return torch.randint(0, length + 1, (self.batch,), generator=draw.generator)

        found: dict[str, Tensor] = {}
        if self.padded and self.module == "transformer":
            found |= {"src_lens": lens(n), "tgt_lens": lens(m)}
        elif self.padded:
            name = "memory_key_mask" if self.module == "decoder" else "key_mask"
            found[name] = torch.arange(n) < lens(n)[:, None]
        if self.masked:
            found["attn_mask"] = draw.normal(self.batch, 1, m, n)
        return found

    def call(
        self,
        module: Callable[..., Tensor],
        part: Callable[[Tensor, int], Tensor],
        masks: dict[str, Tensor],
        parameters: dict[str, nn.Parameter],
        **more: Any,
    ) -> Results:
        """Output and gradients of a part of the inputs; part: that of a tensor over sequence 0, the
        queries, or 1, the keys, along dimension 1."""
        given = self.inputs()
        order = (1, 0) if self.module == "transformer" else (0, 1)
        own = [leaf(part(x, i)) for x, i in zip(given, order, strict=False)]
        # [batch, length, width], which is turned for a module that has the length first.
        turned = not self.made.get("batch_first", True)
        called = [x.transpose(0, 1) for x in own] if turned else own
        out = module(*called, **masks, **self.numbers, **more)
        out = out.transpose(0, 1) if turned else out
        whole = Draw(self.seed + 3).normal(self.batch, self.lengths[0], out.shape[-1])
        leaves = {f"input {i}": x for i, x in enumerate(own) if x.requires_grad} | parameters
        grads = torch.autograd.grad(out, list(leaves.values()), part(whole, 0))
        by_name = zip(leaves, grads, strict=True)
        return {"out": out.detach()} | {f"the gradient of {name}": x for name, x in by_name}


def by_one(case: Case) -> Results:
    """One process's results of the whole."""
    model = case.model(pyimpl.modules)
    parameters = dict(model.named_parameters())
    return case.call(model, lambda x, _: x, case.masks(), parameters)


def context_of(case: Case, group: dist.ProcessGroup) -> ContextParallel:
    """How the processes of a group hold the sequences of a case."""
    processes = dist.get_world_size(group)
    queries, keys = case.shards_of(processes)
    over = mesh_of(case.rows, processes // case.rows) if case.rows else group
    method: Any = case.method
    return ContextParallel(queries, keys if case.crosses else None, over, method)


def part_of(case: Case, group: dist.ProcessGroup, rank: int) -> Callable[[Tensor, int], Tensor]:
    """A process's part of a tensor over the queries, 0, or the keys, 1, along dimension 1."""
    held = case.shards_of(dist.get_world_size(group))
    return lambda x, i: held[i].take(x, rank, 1)


def by_part(
    rank: int, group: dist.ProcessGroup, case: Case, fault: tuple[str, str, str] | None = None
) -> Results:
    """A job: a process's results of its part."""
    masks = case.masks()
    if "attn_mask" in masks and case.method == "ring":
        queries, _ = case.shards_of(dist.get_world_size(group))
        masks["attn_mask"] = queries.take(masks["attn_mask"], rank, 2)
    with plant(pyimpl.modules, fault) as package:
        model = case.model(package)
        parameters = dict(model.named_parameters())
        return case.call(
            model, part_of(case, group, rank), masks, parameters,
            context_parallel=context_of(case, group),
        )  # fmt: skip


def join(case: Case, parts: list[Results]) -> Results:
    """The results of the processes as those of the whole: gradients of parameters are summed."""
    held = case.shards_of(len(parts))
    whole = {}
    for name in parts[0]:
        some = [part[name] for part in parts]
        if name in ("out", "the gradient of input 0", "the gradient of input 1"):
            whole[name] = held[int(name.endswith("1"))].join(some, 1)
        else:
            whole[name] = torch.stack(some).sum(0)
    return whole


def run_wrapped(rank: int, group: dist.ProcessGroup, case: Case, way: str) -> Results:
    """A job: the outputs of this process's part, and the gradients of the whole, by a module that
    PyTorch wraps, which takes the mean of the gradients over the processes."""
    count = dist.get_world_size(group)
    model = case.model(pyimpl.modules)
    called: Any = model
    if way == "data":
        called = DistributedDataParallel(model, process_group=group)
    elif way == "shards of parameters":
        fully_shard(model, mesh=mesh_of(count))
    elif way == "compiled":
        called = torch.compile(model, backend="aot_eager")
    else:
        called = partial(checkpoint, model, use_reentrant=False)
    part = part_of(case, group, rank)
    source, target = (part(x, i) for x, i in zip(case.inputs(), (1, 0), strict=True))
    out = called(
        source, target, **case.masks(), **case.numbers, context_parallel=context_of(case, group)
    )
    whole = Draw(case.seed + 3).normal(case.batch, case.lengths[0], out.shape[-1])
    (count * out * part(whole, 0)).sum().backward()
    found = {"out": out.detach()}
    for name, parameter in model.named_parameters():
        grad = parameter.grad
        assert grad is not None
        if isinstance(grad, DTensor):
            grad = grad.full_tensor()
        elif way != "data":
            dist.all_reduce(grad, group=group)
            grad /= count
        found[f"the gradient of {name}"] = grad
    return found


def refusal(rank: int, group: dist.ProcessGroup, name: str) -> str:
    """A job: the error of a call in which process 1 alone, or all, give something else."""
    count, first = dist.get_world_size(group), rank == 0
    torch.manual_seed(0)
    model, attend = (
        pyimpl.modules.Transformer(TOKENS, TOKENS, WIDTH, HEADS, 1, 1, 16).eval(),
        pyimpl.modules.MultiHeadAttention(WIDTH, HEADS),
    )
    shards = Shards.contiguous(6, count)
    context = ContextParallel(shards, group=group)
    own = shards.lengths[rank]
    tokens, x = torch.zeros(2, own, dtype=torch.int64), torch.zeros(2, own, WIDTH)
    length = 0 if first else 1
    short = Shards.contiguous(6, count + 1)

    def of_model(src: Tensor = tokens, **options: Any) -> Tensor:
        out: Tensor = model(src, tokens, **{"context_parallel": context, **options})
        return out

    def with_cache() -> Any:
        memory = model.encode(tokens)
        _, cache = model.extend(tokens, model.start_decoding(memory))
        return model.extend(tokens, cache, context_parallel=context)

    calls: dict[str, Callable[[], Any]] = {
        "no context": lambda: attend(x, context_parallel=shards),
        "no shards": lambda: ContextParallel([3, 3]),  # type: ignore[arg-type]  # refused
        "no method": lambda: ContextParallel(shards, method="rings"),  # type: ignore[arg-type]  # likewise
        "shards of others": lambda: attend(x, context_parallel=ContextParallel(short, None, group)),
        "an added key": lambda: pyimpl.modules.MultiHeadAttention(WIDTH, HEADS, add_bias_kv=True)(
            x, context_parallel=context
        ),
        "keys of another sequence": lambda: attend(
            x, context_parallel=ContextParallel(shards, shards, group)
        ),
        "heads": lambda: pyimpl.modules.MultiHeadAttention(WIDTH, 1)(
            x, context_parallel=ContextParallel(shards, None, group, "ulysses")
        ),
        "a mask of own keys": lambda: attend(
            x, key_mask=torch.ones(2, own, dtype=torch.bool), context_parallel=context
        ),
        "a width in one": lambda: attend(x if first else x[..., 1:], context_parallel=context),
        "a token in one": lambda: of_model(tokens if first else tokens + TOKENS),
        "a length in one": lambda: of_model(tokens if first else tokens[:, 1:]),
        "lengths in one": lambda: of_model(src_lens=torch.full((2,), 5 + length)),
        "no seed": lambda: model.train()(tokens, tokens, context_parallel=context),
        "no seed for weights": lambda: pyimpl.modules.MultiHeadAttention(WIDTH, HEADS, dropout=0.5)(
            x, context_parallel=context
        ),
        "seeds": lambda: model.train()(
            tokens, tokens, dropout_seed=length, context_parallel=context
        ),
        "a cache": with_cache,
        "a table": lambda: pyimpl.modules.Transformer(
            TOKENS, TOKENS, WIDTH, HEADS, 1, 1, 16, positions=torch.zeros(5, WIDTH)
        )(tokens, tokens, dropout_seed=1, context_parallel=context),
    }
    try:
        calls[name]()
    except (TypeError, ValueError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def example(rank: int, group: dist.ProcessGroup) -> list[float]:
    """A job: by how much the losses of the page's example, summed, and their gradients differ from
    one process's."""
    page = (Path(__file__).parents[3] / "docs" / "modules.md").read_text("utf-8")
    (text,) = (x for x in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "loss_of" in x)
    names: dict[str, Any] = {}
    exec(compile(text, "modules.md", "exec"), names)
    torch.manual_seed(0)
    model = pyimpl.modules.Transformer(TOKENS, TOKENS, WIDTH, HEADS, 1, 1, 16).double().eval()
    src, tgt, labels = (torch.randint(0, TOKENS, (2, n)) for n in (9, 6, 6))
    weight = model.src_embedding.weight
    loss = names["loss_of"](model, src, tgt, labels)
    found = torch.stack([loss.detach(), *torch.autograd.grad(loss, weight)[0].flatten()])
    dist.all_reduce(found, group=group)
    one = nn.functional.cross_entropy(model(src, tgt).mT, labels)
    expected = torch.stack([one.detach(), *torch.autograd.grad(one, weight)[0].flatten()])
    errors = (found - expected).abs()
    return [float(errors[0]), float(errors[1:].max())]
