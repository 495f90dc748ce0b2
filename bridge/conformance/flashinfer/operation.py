"""Which attention a definition of FlashInfer-Bench states, by its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bridge.conformance.adapters.adapter import ALL_DTYPES
from bridge.conformance.flashinfer.files import BenchError

if TYPE_CHECKING:
    from flashinfer_bench.data import Definition

Kind = Literal["paged decode", "paged prefill", "ragged prefill"]
_PAGED = ("k_cache", "v_cache", "kv_indptr", "kv_indices")
# The inputs of each kind; kv_last_page_len comes besides where pages have several rows.
_INPUTS: dict[Kind, frozenset[str]] = {
    "paged decode": frozenset({"q", *_PAGED, "sm_scale"}),
    "paged prefill": frozenset({"q", *_PAGED, "qo_indptr", "sm_scale"}),
    "ragged prefill": frozenset({"q", "k", "v", "qo_indptr", "kv_indptr", "sm_scale"}),
}
# Pages that are nobody's.
SPARE = 2
# The most numbers in a row of queries, and in a page of keys: the judge draws pages of numbers.
_MOST_NUMBERS = 1 << 20
_OUTPUTS = ("output", "lse")
_KNOWN = (
    "grouped-query attention with the inputs of gqa_paged (decode, or causal prefill) and "
    "gqa_ragged (causal prefill) is"
)


@dataclass(frozen=True)
class BenchOperation:
    """Attention of a batch of sequences. inputs, outputs: their names in order; outputs are
    `output` alone or with `lse`, the log-sum-exp in base 2; page_size: 0 for ragged tensors;
    last_page: the function is told how many rows of the last page are filled, otherwise all are;
    axes: those that vary. Queries are the last tokens of their sequence: causal attention, aligned
    bottom-right."""

    name: str
    kind: Kind
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    heads: int
    kv_heads: int
    head_dim: int
    page_size: int
    dtype: str
    axes: tuple[str, ...]

    @property
    def last_page(self) -> bool:
        return "kv_last_page_len" in self.inputs

    def why_not(self, kv_len: int) -> str | None:
        """Why it has no sequence of so many keys; None if it has."""
        if self.page_size > 1 and not self.last_page and kv_len % self.page_size:
            return f"its sequences fill pages of {self.page_size} rows"
        return None

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.kind} attention, {self.heads} heads over {self.kv_heads}, "
            f"head_dim {self.head_dim}, {self.dtype}"
        )

    def values_of_axes(self, lengths: Sequence[tuple[int, int]]) -> dict[str, int]:
        """The values of the axes that vary, for sequences of so many queries and keys."""
        queries, keys = (sum(x) for x in zip(*lengths, strict=True))
        pages = sum(-(-kv_len // self.page_size) for _, kv_len in lengths) if self.page_size else 0
        known = {
            "batch_size": len(lengths), "len_indptr": len(lengths) + 1, "total_q": queries,
            "total_kv": keys, "num_kv_indices": pages, "num_pages": pages + SPARE,
        }  # fmt: skip
        return {name: known[name] for name in self.axes if name in known}


def operation_of(definition: Definition) -> BenchOperation:
    """Raises BenchError for a definition that is none of the kinds, by its inputs and outputs;
    whether its reference computes that, is judged."""
    names = frozenset(definition.inputs) - {"kv_last_page_len"}
    kind = next((kind for kind, inputs in _INPUTS.items() if inputs == names), None)
    outputs = tuple(definition.outputs)
    if kind is None or outputs not in (_OUTPUTS, _OUTPUTS[:1]):
        raise BenchError(
            f"{definition.name} is no attention that is known here; {_KNOWN}. It has the inputs "
            f"{', '.join(definition.inputs)}, and the outputs {', '.join(outputs)}"
        )
    if kind == "ragged prefill" and "kv_last_page_len" in definition.inputs:
        raise BenchError(f"{definition.name} has kv_last_page_len and no pages")
    axes = definition.const_axes
    wanted = ["num_qo_heads", "num_kv_heads", "head_dim"]
    wanted += [] if kind == "ragged prefill" else ["page_size"]
    absent = [name for name in wanted if not axes.get(name)]
    if absent:
        raise BenchError(f"{definition.name} has no constant axis {absent[0]} above 0")
    if axes["num_qo_heads"] % axes["num_kv_heads"]:
        raise BenchError(f"{definition.name} has heads that are no multiple of num_kv_heads")
    rows = {"num_qo_heads": 1, "num_kv_heads": axes.get("page_size", 1)}
    for heads, length in rows.items():
        if (size := axes[heads] * axes["head_dim"] * length) > _MOST_NUMBERS:
            of = "a page of keys" if length > 1 else f"{heads} × head_dim"
            raise BenchError(
                f"{definition.name} has {size} numbers in {of}; up to {_MOST_NUMBERS} are accepted"
            )
    floats = {name: definition.inputs[name].dtype.value for name in definition.inputs
              if name in {"q", "k", "v", "k_cache", "v_cache"}}  # fmt: skip
    dtypes = {*floats.values(), definition.outputs["output"].dtype.value}
    if len(dtypes) != 1 or not dtypes <= set(ALL_DTYPES):
        raise BenchError(
            f"{definition.name} has tensors of {', '.join(sorted(dtypes))}; one of "
            f"{', '.join(ALL_DTYPES)} is accepted"
        )
    return BenchOperation(
        definition.name,
        kind,
        tuple(definition.inputs),
        outputs,
        axes["num_qo_heads"],
        axes["num_kv_heads"],
        axes["head_dim"],
        axes["page_size"] if kind != "ragged prefill" else 0,
        dtypes.pop(),
        tuple(definition.var_axes),
    )
