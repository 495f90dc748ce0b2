"""A solution of FlashInfer-Bench as an adapter: the vectors in the layout of its definition."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from bridge.conformance.adapters.adapter import Given
from bridge.conformance.decoding.streams import KEY_BEYOND, VALUE_BEYOND
from bridge.conformance.flashinfer.operation import SPARE, BenchOperation
from bridge.conformance.sandbox.remote import Cache, Remote
from bridge.conformance.tensors.batch import (
    DTYPES,
    Batch,
    Misbehaviour,
    Outputs,
    array,
    tensor_error,
)
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.vectors.model.attention import AttentionVector, Matrix
from bridge.vectors.model.decode import SequencesVector
from bridge.vectors.model.operations import ComesToAttention


class BenchAdapter(Given):
    """A function of the definition's inputs. destination: whether it writes to outputs that it is
    given, as the last arguments; seed: for the further draws: where pages lie, and which head is
    judged where a vector has one and the definition several."""

    operations = frozenset({SequencesVector.operation})

    def __init__(
        self,
        name: str,
        function: Remote,
        own: BenchOperation,
        rounding: Callable[[str], RoundingModel],
        *,
        destination: bool,
        seed: int = 0,
    ) -> None:
        self.name, self.function, self.own = name, function, own
        self.dtypes: tuple[str, ...] = (own.dtype,)
        self._rounding, self.destination, self.seed = rounding, destination, seed

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        if max(vector.head_dim, vector.value_dim) > self.own.head_dim:
            return f"the definition's head_dim is {self.own.head_dim}"
        return self.own.why_not(vector.kv_len)

    def no_log_sum_exp(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        if dtype in ("float32", "float64"):
            # In 16 bits the tolerance is far above that rounding.
            return "it is in base 2, by one more rounding than its tolerance is derived from"
        return None

    def why_not(self, vector: ComesToAttention) -> str | None:
        """Why the vector as a whole is unsupported; None if it is not."""
        assert isinstance(vector, SequencesVector)
        heads = vector.heads, vector.kv_heads
        if heads not in ((1, 1), (self.own.heads, self.own.kv_heads)):
            return f"the definition has {self.own.heads} heads over {self.own.kv_heads}"
        return None

    def run(self, batch: Batch) -> Outputs:
        raise TypeError("a definition's inputs are a batch of sequences")

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        """The outputs of one call. Raises the function's errors, and Misbehaviour."""
        assert isinstance(vector, SequencesVector)
        chance = random.Random(f"{self.seed} {vector.id}")
        inputs = self.inputs(vector, dtype, device, chance)
        rows = sum(one.tokens for one in vector.sequences)
        shapes = {
            "output": (rows, self.own.heads, self.own.head_dim),
            "lse": (rows, self.own.heads),
        }
        kinds = {"output": DTYPES[dtype], "lse": torch.float32}
        found = self.call([inputs[name] for name in self.own.inputs], shapes, kinds)
        out = found["output"].transpose(0, 1)[None]
        lse = None
        if "lse" in found:
            lse = found["lse"].double().transpose(0, 1)[None] * math.log(2.0)
        first = chance.randrange(self.own.heads) if vector.heads == 1 else 0
        ends = [0, *itertools.accumulate(one.tokens for one in vector.sequences)]
        return [
            Outputs(
                out[:, first + h : first + h + 1, a:b, : vector.value_dim],
                None if lse is None else lse[:, first + h : first + h + 1, a:b],
            )
            for a, b in itertools.pairwise(ends)
            for h in range(vector.heads)
        ]

    def call(
        self,
        given: Sequence[Any],
        shapes: dict[str, tuple[int, ...]],
        kinds: dict[str, torch.dtype],
    ) -> dict[str, Tensor]:
        """The outputs by name."""
        names = self.own.outputs
        if self.destination:
            # Elements that the function does not write stay NaN.
            kept = {name: torch.full(shapes[name], math.nan, dtype=kinds[name]) for name in names}
            self.function.keep(kept)
            _, shown = self.function.step([*given, *map(Cache, names)], {}, show=kept)
            return dict(zip(names, (shown[name] for name in names), strict=True))
        result = self.function(*given)
        parts = result if isinstance(result, tuple) else (result,)
        if len(parts) != len(names):
            raise Misbehaviour(f"returned {len(parts)} outputs instead of {len(names)}")
        found = {}
        for name, part in zip(names, parts, strict=True):
            error = tensor_error(part, shapes[name], kinds[name])
            if error is not None:
                raise Misbehaviour(f"{error}, as {name}")
            found[name] = part
        return found

    def inputs(
        self, vector: SequencesVector, dtype: str, device: str, chance: random.Random
    ) -> dict[str, Any]:
        """The inputs by name, whether the definition has them or not."""
        own = self.own
        heads = {"q": own.heads, "k": own.kv_heads, "v": own.kv_heads}
        sizes = {"q": vector.head_dim, "k": vector.head_dim, "v": vector.value_dim}

        def tensor(matrices: tuple[Matrix, ...], name: str) -> Tensor:
            """[length, heads, head_dim]."""
            found = torch.stack([torch.from_numpy(array(x, sizes[name])) for x in matrices], 1)
            found = torch.nn.functional.pad(found, (0, own.head_dim - sizes[name]))
            return found.expand(-1, heads[name], -1).to(DTYPES[dtype])

        each = [(tensor(x.q, "q"), tensor(x.k, "k"), tensor(x.v, "v")) for x in vector.sequences]
        q, k, v = ([one[n] for one in each] for n in range(3))
        lengths = [len(x) for x in k]
        found: dict[str, Any] = {
            "q": torch.cat(q).contiguous(),
            "k": torch.cat(k).contiguous(),
            "v": torch.cat(v).contiguous(),
            "qo_indptr": _sums([len(x) for x in q]),
            "kv_indptr": _sums(lengths),
        }
        if own.page_size:
            pages = [-(-n // own.page_size) for n in lengths]
            order = list(range(sum(pages) + SPARE))
            chance.shuffle(order)
            ends = [0, *itertools.accumulate(pages)]
            tables = [order[a:b] for a, b in itertools.pairwise(ends)]
            found["kv_indptr"] = _sums(pages)
            found["kv_indices"] = torch.tensor(order[: ends[-1]], dtype=torch.int32)
            last = [
                n - (p - 1) * own.page_size if p else 0 for n, p in zip(lengths, pages, strict=True)
            ]
            found["kv_last_page_len"] = torch.tensor(last, dtype=torch.int32)
            for name, rows, beyond in (("k_cache", k, KEY_BEYOND), ("v_cache", v, VALUE_BEYOND)):
                shape = (len(order), own.page_size, own.kv_heads, own.head_dim)
                pool = torch.full(shape, beyond, dtype=DTYPES[dtype])
                pool[:, 1::2] *= -1
                for table, x in zip(tables, rows, strict=True):
                    for n, page in enumerate(table):
                        some = x[n * own.page_size : (n + 1) * own.page_size]
                        pool[page, : len(some)] = some
                found[name] = pool
        named = {name: x.to(device) for name, x in found.items()}
        return {**named, "sm_scale": vector.attentions()[0].natural_scale}


def _sums(lengths: Sequence[int]) -> Tensor:
    return torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32)
