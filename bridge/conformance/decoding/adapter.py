"""A decoding function as an adapter: it is called step by step, and the outputs of all steps are
judged as attention of the last tokens to all before."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bridge.conformance.adapters.adapter import Given
from bridge.conformance.decoding.form import Form
from bridge.conformance.decoding.streams import Buffers, Numbers, OwnCache, Way
from bridge.conformance.functions.features import Features
from bridge.conformance.sandbox.remote import Remote
from bridge.conformance.tensors.batch import DTYPES, Batch, Outputs, array
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.vectors.model.attention import AttentionVector, Matrix
from bridge.vectors.model.decode import DecodeVector
from bridge.vectors.model.decode import Sequence as Decoded
from bridge.vectors.model.operations import ComesToAttention

# A function that takes a token at a time gets a prefix so: longer ones would take seconds.
_LONGEST_ONE_BY_ONE = 70


class DecodeAdapter(Given):
    """A function of one of the forms, with the features that were found or declared.

    seed: for the further draws: where pages lie, and which calls are taken back.
    """

    operations = frozenset({DecodeVector.operation})

    def __init__(
        self,
        name: str,
        function: Remote,
        form: Form,
        features: Features,
        rounding: Callable[[str], RoundingModel],
        seed: int = 0,
    ) -> None:
        self.name, self.function, self.form, self.features = name, function, form, features
        self.dtypes = features.dtypes
        self._rounding, self.seed = rounding, seed

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        if "scale" in self.features.supported:
            return None
        if vector.scale is not None:
            return f"takes no scale: {self._why('scale')}"
        if self.features.columns(vector.head_dim, vector.value_dim)[0] != vector.head_dim:
            return "takes no scale, and its head size is padded, for which the default is another"
        return None

    def why_not(self, vector: ComesToAttention) -> str | None:
        """Why the vector as a whole is unsupported; None if it is not."""
        assert isinstance(vector, DecodeVector)
        has = self.features.supported
        if vector.heads != vector.kv_heads and "gqa" not in has:
            return f"takes no grouped heads: {self._why('gqa')}"
        several = "several-tokens" in has
        if vector.chunk > 1 and not several:
            return f"takes one token in a call: {self._why('several-tokens')}"
        longest = max(one.prefix for one in vector.sequences)
        if self.form.caches is None and not several and longest > _LONGEST_ONE_BY_ONE:
            return f"takes one token in a call, and {longest} come before the first step"
        return None

    def _why(self, feature: str) -> str:
        return self.features.unsupported.get(feature, "its signature does not have it")

    def run(self, batch: Batch) -> Outputs:
        raise TypeError("a decoding function is called step by step")

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        """All calls; one output for each sequence and head. Raises the function's errors, and
        Misbehaviour for wrong changes of its cache."""
        assert isinstance(vector, DecodeVector)
        has = self.features.supported
        chance = random.Random(f"{self.seed} {vector.id}")
        way = Way(
            self.form,
            device,
            self._options(vector),
            several="several-tokens" in has,
            appends="append" in has,
            pages="pages" in has and vector.pages,
            lse="lse" in has,
            beyond_nan="unwritten-nan" in has,
        )
        kind = OwnCache if self.form.caches is None else Buffers
        numbers = [self._numbers(one, vector, dtype) for one in vector.sequences]
        streams = [
            kind(self.function, way, f"cache {n}", [numbers[s] for s in stream], chance)
            for n, stream in enumerate(vector.streams)
        ]
        for stream in streams:
            stream.begin()
        found: list[list[tuple[Tensor, Tensor | None]]] = [[] for _ in vector.sequences]
        for n, start, stop in vector.calls():
            out, lse = streams[n].step(start, stop)
            for b, s in enumerate(vector.streams[n]):
                rows = out[b, :, :, : vector.value_dim]
                found[s].append((rows, None if lse is None else lse[b]))
        return [
            Outputs(out[None, h : h + 1], None if lse is None else lse[None, h : h + 1])
            for out, lse in map(_join, found)
            for h in range(vector.heads)
        ]

    def _options(self, vector: DecodeVector) -> dict[str, Any]:
        options: dict[str, Any] = {}
        padded = self.features.columns(vector.head_dim, vector.value_dim)[0] != vector.head_dim
        if self.form.scale is not None and (vector.scale is not None or padded):
            options[self.form.scale] = vector.attentions()[0].natural_scale
        if self.form.gqa is not None and vector.heads != vector.kv_heads:
            options[self.form.gqa] = True
        if self.form.lse is not None and "lse" in self.features.supported:
            options[self.form.lse] = True
        return options

    def _numbers(self, one: Decoded, vector: DecodeVector, dtype: str) -> Numbers:
        head_dim, value_dim = self.features.columns(vector.head_dim, vector.value_dim)

        def tensor(heads: tuple[Matrix, ...], columns: int, width: int) -> Tensor:
            found = torch.stack([torch.from_numpy(array(x, columns)) for x in heads])
            padded = torch.nn.functional.pad(found, (0, width - columns))
            return padded.to(DTYPES[dtype])

        return Numbers(
            tensor(one.q, vector.head_dim, head_dim),
            tensor(one.k, vector.head_dim, head_dim),
            tensor(one.v, vector.value_dim, value_dim),
        )


def _join(steps: list[tuple[Tensor, Tensor | None]]) -> tuple[Tensor, Tensor | None]:
    """The rows of all steps, [heads, tokens, …]."""
    lses = [lse for _, lse in steps if lse is not None]
    return torch.cat([out for out, _ in steps], 1), torch.cat(lses, 1) if lses else None
