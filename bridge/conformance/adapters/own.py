"""Adapters of this project's implementations."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from bridge.conformance.adapters import interpreter, layouts, packed
from bridge.conformance.adapters.adapter import About, Builtin
from bridge.conformance.adapters.differentiate import Backward, Found, OwnBackward
from bridge.conformance.adapters.forward_mode import Tangents, by_jvp
from bridge.conformance.tensors.batch import DTYPES, Batch, Outputs, array
from bridge.conformance.tensors.own_options import keywords, score_options
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.vectors.model.attention import AttentionVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import ComesToAttention, MergeVector, Tree
from bridge.vectors.model.sampled import SampledGradientVector
from bridge.vectors.model.shards import ShardsVector
from bridge.vectors.model.tangents import TangentVector
from pyimpl import attention
from pyimpl.backends import reference_backward, tiled_backward
from pyimpl.backends.dispatch import Backend
from pyimpl.internal.gradients import Gradients
from pyimpl.internal.scores import CHANGES, ScoreOptions


class _Public:
    """The operations of the public functions of `pyimpl`, with one backend."""

    backend: Backend
    operations = layouts.TAKEN
    rests_on: tuple[str, ...] = ("pyimpl.__init__",)

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        return layouts.Layouts(self.backend, DTYPES[dtype], torch.device(device)).run(vector)


_EVERY_OPTION = frozenset(change.feature for change in CHANGES)


class _Differentiable(OwnBackward):
    """An implementation of `pyimpl` that has a backward pass; packed sequences are given to the
    public function."""

    backend: Backend

    def run(self, batch: Batch) -> Outputs:
        return self.forward(*batch.qkv, score_options(batch))

    def gradients(self, vector: GradientVector, dtype: str, device: str) -> list[Found]:
        if isinstance(vector, SampledGradientVector) and vector.packed is not None:
            return [packed.gradients(vector, vector.packed, dtype, device, self.backend)]
        return super().gradients(vector, dtype, device)


def own_tangents(vector: TangentVector, dtype: str, device: str, backend: Backend) -> Tangents:
    """The tangents of `pyimpl.attention`, by `torch.func.jvp`."""

    def function(batch: Batch, others: Mapping[str, Tensor]) -> Outputs:
        options = keywords(score_options(batch)) | dict(others)
        return Outputs(*attention(*batch.qkv, **options, return_lse=True, backend=backend))

    return by_jvp(vector, dtype, device, function)


class _Forwards:
    """An implementation of `pyimpl` under `torch.func.jvp`: by the public function."""

    backend: Backend

    def tangents(self, vector: TangentVector, dtype: str, device: str) -> Tangents:
        return own_tangents(vector, dtype, device, self.backend)


class PyimplReference(_Forwards, _Differentiable, Builtin):
    """`reference.attention`: float64 inside for every dtype; the output is rounded here."""

    name = "pyimpl-reference"
    backend: Backend = "reference"
    operations = Builtin.operations | {ShardsVector.operation}
    takes = _EVERY_OPTION
    source = "pyimpl.backends.reference"
    rests_on = (
        "pyimpl.backends.reference", "pyimpl.backends.reference_backward", "pyimpl.__init__",
    )  # fmt: skip
    without = (
        "pyimpl.backends.kernels", "pyimpl.backends.tiled", "pyimpl.backends.tiled_backward",
    )  # fmt: skip

    def __init__(self, module: ModuleType | None = None) -> None:
        self.module = module or importlib.import_module(self.source)

    def backward(self, *args: Any) -> Gradients:
        return reference_backward.attention_backward(*args)

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        return RoundingModel.widened(dtype, accumulator="float64")

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        """Shards in float64 too, which the public functions are for inputs of that dtype alone."""
        if not isinstance(vector, ShardsVector):
            return super().run_vector(vector, dtype, device)
        found = layouts.Layouts(self.backend, torch.float64, torch.device(device)).run(vector)
        return [Outputs(x.out.to(DTYPES[dtype]), x.lse) for x in found]

    def forward(self, query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions) -> Outputs:
        out, lse = self.module.attention(query, key, value, options)
        return Outputs(out.to(query.dtype), lse)


class PyimplState(Builtin):
    """`pyimpl.state`: the first half of the keys online in blocks of 3, from the sink if there is
    one, after one single step; the second half as states of single blocks, merged; then both
    merged. Float32 inside (float64 for float64)."""

    name = "pyimpl-state"
    source = "pyimpl.state"
    takes = frozenset({"sink"})

    def __init__(self, module: ModuleType | None = None) -> None:
        self.module = module or importlib.import_module(self.source)

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        return RoundingModel.widened(
            dtype, accumulator="float64" if dtype == "float64" else "float32"
        )

    def run(self, batch: Batch) -> Outputs:
        state = self.module
        wide = torch.float64 if batch.query.dtype == torch.float64 else torch.float32
        q, k, v = (x.to(wide) for x in batch.qkv)
        scores = batch.scale * (q @ k.transpose(-1, -2))
        visible = batch.boolean
        if visible is not None:
            scores = scores.masked_fill(~visible, -math.inf)
        kv_len, half = k.shape[-2], (k.shape[-2] + 1) // 2

        def block(start: int, stop: int) -> tuple[Tensor, Tensor]:
            return scores[..., start:stop], v[..., start:stop, :]

        left = state.empty(tuple(q.shape[:-1]), v.shape[-1], dtype=wide, device=q.device)
        right = left
        if batch.sink is not None:
            left = state.sink_state(torch.full_like(left.m, batch.sink), v.shape[-1])
        left = state.step(left, scores[..., 0], v[..., 0, :])
        left = state.online(left, [block(n, min(n + 3, half)) for n in range(1, half, 3)])
        for n in range(half, kv_len, 3):
            right = state.merge(right, state.of_block(*block(n, min(n + 3, kv_len))))
        return self._finish(state.merge(left, right), batch.query.dtype)

    def _finish(self, state: Any, dtype: torch.dtype) -> Outputs:
        return Outputs(self.module.finish(state).to(dtype), self.module.log_sum_exp(state))

    operations = frozenset({MergeVector.operation})

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        """The states of the blocks, merged as the tree of a `MergeVector` says."""
        if not isinstance(vector, MergeVector):
            raise TypeError(f"pyimpl.state has nothing for {vector.operation}")
        wide = torch.float64 if dtype == "float64" else torch.float32

        def states(tree: Tree) -> Any:
            """The tree with the state of its block at each leaf."""
            if not isinstance(tree, int):
                return states(tree[0]), states(tree[1])
            block = vector.blocks[tree]
            if not block:
                nothing = {"dtype": wide, "device": torch.device(device)}
                return self.module.empty((1, 1, 1), vector.value_dim, **nothing)
            scores = [-math.inf if key.score is None else float(key.score) for key in block]
            values = array(tuple(key.value for key in block))
            return self.module.of_block(
                math.log(2.0) * torch.tensor(scores, dtype=wide, device=device)[None, None, None],
                torch.from_numpy(values).to(wide).to(device)[None, None],
            )

        return [self._finish(self.module.merge_tree(states(vector.tree)), DTYPES[dtype])]


class PyimplTiled(_Forwards, _Public, _Differentiable, Builtin):
    """`pyimpl.backends.tiled.flash` with small tiles, so that short vectors have several."""

    name = "pyimpl-tiled"
    about = About(
        "pyimpl",
        "this project's tile loop, for comparison; `make verify` runs all of its implementations",
        "`backends.tiled.flash` with tiles of 4 queries and 8 keys, and the public functions with "
        'backend="tiled".',
    )
    backend: Backend = "tiled"
    takes = _EVERY_OPTION
    source = "pyimpl.backends.tiled"
    without = ("pyimpl.backends.kernels",)

    def __init__(
        self,
        module: ModuleType | None = None,
        block_m: int = 4,
        block_n: int = 8,
        backward: Backward | None = None,
    ) -> None:
        self.module = module or importlib.import_module(self.source)
        self.block_m, self.block_n = block_m, block_n
        self._backward = backward or tiled_backward.flash_backward

    def backward(self, *args: Any) -> Gradients:
        # Shorter tiles than forwards: few vectors of gradients have as many queries and keys.
        return self._backward(*args, block_m=2, block_n=3)

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        wide = "float64" if dtype == "float64" else "float32"
        return RoundingModel.widened(dtype, accumulator=wide, block_n=self.block_n)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions) -> Outputs:
        sizes = {"block_m": self.block_m, "block_n": self.block_n}
        return Outputs(*self.module.flash(query, key, value, options, **sizes))


class PyimplTriton(_Public, _Differentiable, Builtin):
    """`pyimpl.backends.kernels.forward.forward`, on a GPU or in Triton's interpreter on a CPU.

    Where Triton is not installed, or does not interpret and there is no GPU, no vector is
    supported. `bridge.interpreting.settle` says which it is, where a process begins.
    """

    name = "pyimpl-triton"
    backend: Backend = "triton"
    takes = _EVERY_OPTION
    source = "pyimpl.backends.kernels.forward"
    dtypes: tuple[str, ...] = ("float32", "float16", "bfloat16")

    def __init__(
        self,
        module: ModuleType | None = None,
        block_m: int = 16,
        block_n: int = 16,
        backward: Backward | None = None,
    ) -> None:
        interpreter.install()
        self._module = module
        self.block_m, self.block_n = block_m, block_n
        self._backward = backward

    def backward(self, *args: Any) -> Gradients:
        backward = (
            self._backward or importlib.import_module("pyimpl.backends.kernels.backward").backward
        )
        found: Gradients = backward(*args, blocks={"block_m": 16, "block_n": 16})
        return found

    @property
    def module(self) -> ModuleType:
        if self._module is None:
            self._module = importlib.import_module(self.source)
        return self._module

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        try:
            module = self.module
        except ImportError as error:
            return f"Triton cannot be imported here: {error}"
        query = torch.empty(1, 1, 1, vector.head_dim, dtype=getattr(torch, dtype), device=device)
        value = torch.empty(1, 1, 1, vector.value_dim, dtype=query.dtype, device=device)
        reason: str | None = module.why_not(query, value)
        return reason

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        return RoundingModel.flash(
            dtype,
            block_n=self.block_n,
            denominator="unrounded",
            truncating=not device.startswith("cpu"),
        )

    def forward(self, query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions) -> Outputs:
        # Long rows have tiles enough if those are larger; the interpreter is slow by the tile.
        long = key.shape[-2] > 8 * self.block_n
        sizes = {"block_m": self.block_m, "block_n": (4 if long else 1) * self.block_n}
        return Outputs(*self.module.forward(query, key, value, options, **sizes))
