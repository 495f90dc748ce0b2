"""Anybody's attention function as an adapter: `module:function` or `path/to/file.py:function`.

The function is called as SDPA is: query, key and value [batch, heads, length, dim] by position, the
rest by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from bridge.conformance.adapters import documents
from bridge.conformance.adapters.adapter import Given
from bridge.conformance.adapters.differentiate import ByAutograd
from bridge.conformance.adapters.grouped_heads import run_grouped
from bridge.conformance.adapters.sdpa import SdpaFlash
from bridge.conformance.adapters.whole_batches import WholeBatches
from bridge.conformance.functions.features import Aligned, Features, Function
from bridge.conformance.inside import buffers
from bridge.conformance.tensors.batch import Batch, Misbehaviour, Outputs
from bridge.conformance.tensors.form import form_error
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.vectors.model.attention import AttentionVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import ComesToAttention, GroupedQueryVector

_SDPA_FLASH = SdpaFlash()
_SDPA = "torch.nn.functional:scaled_dot_product_attention"


def is_callable_name(name: str) -> bool:
    """Whether a name means a function, not a built-in adapter."""
    return ":" in name


@dataclass(frozen=True)
class _Way:
    """The way in which a vector's mask and changes of scores are given to the function. causal,
    window: by the argument of that name; alignment: the argument causal_alignment; mask: the kind
    of attn_mask."""

    causal: bool = False
    window: bool = False
    alignment: str | None = None
    mask: Literal["boolean", "floating"] | None = None


class CallableAdapter(Given, ByAutograd, WholeBatches):
    """A function with the features that were found or declared.

    alignment: how `is_causal` and `window` have to be aligned where there is no argument
    causal_alignment; by default as SDPA's, whatever small calls showed.
    """

    def __init__(
        self,
        name: str,
        function: Function,
        features: Features,
        rounding: Callable[[str], RoundingModel],
        alignment: Aligned = "top-left",
    ) -> None:
        self.name, self.function, self.features = name, function, features
        self.alignment = alignment
        # Declared, as the built-in adapters.
        self.declared = True
        self.dtypes = features.dtypes
        self._rounding = rounding
        has = features.supported
        options = {"softcap": "softcap", "alibi": "alibi", "sinks": "sink"}
        takes = {option for feature, option in options.items() if feature in has}
        if "bias" in has or "floating-mask" in has:
            takes.add("bias")
        self.takes = frozenset(takes)
        grouped_too = {GroupedQueryVector.operation} if "gqa" in has else set()
        self.operations = WholeBatches.operations | grouped_too
        # Whether query, key and value lie in larger buffers, or are one of several documents.
        self.padded = self.among = False
        self.by_lse, self.by_bias = "lse-gradients" in has, "bias-gradients" in has

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        if self.declared and self.name == _SDPA:
            # On a CPU it comes to the flash backend, whose one deviation is declared there.
            known = _SDPA_FLASH.why_unsupported(vector, dtype, device)
            if known is not None and device.startswith("cpu"):
                return known
        has, unsupported = self.features.supported, self.features.unsupported
        multiple = self.features.multiple
        if vector.q_len % multiple or vector.kv_len % multiple:
            return (
                f"has lengths that {multiple} does not divide, and no arguments q_len and kv_len "
                "are there to tell them"
            )
        if vector.scale is not None and "scale" not in has:
            return f"takes no scale: {unsupported['scale']}"
        padded = self.features.columns(vector.head_dim, vector.value_dim)[0] != vector.head_dim
        if vector.scale is None and padded and "scale" not in has:
            return "takes no scale, and its head size is padded, for which the default is another"
        way = self._way(vector)
        return way if isinstance(way, str) else None

    def _way(self, vector: AttentionVector) -> _Way | str:
        """How to give the function this vector's masks, or why there is no way."""
        has, unsupported = self.features.supported, self.features.unsupported
        window, alibi = vector.mask.window, vector.alibi
        folded = vector.bias is not None and "bias" not in has
        way = _Way()
        if alibi is not None:
            aligned = self._alignment_argument(alibi.shift, vector)
            if aligned is None:
                return f"takes slopes with its own alignment alone: {unsupported['alignment']}"
            way = replace(way, alignment=aligned)
        if window is None and vector.mask.kind == "none" and not folded:
            return way
        if window is not None and not folded and (alibi is None or alibi.shift == window.shift):
            aligned = self._alignment_argument(window.shift, vector)
            if aligned is not None and window[:2] == (None, 0) and "is-causal" in has:
                return replace(way, causal=True, alignment=aligned)
            if aligned is not None and "window" in has:
                return replace(way, window=True, alignment=aligned)
        if not folded and "boolean-mask" in has:
            return replace(way, mask="boolean")
        if "floating-mask" in has:
            return replace(way, mask="floating")
        return f"supports no mask for these pairs: {unsupported['boolean-mask']}"

    def _alignment_argument(self, shift: int, vector: AttentionVector) -> str | None:
        """The argument causal_alignment for query 0 at that key; "" for none; None if the function
        has another alignment."""
        last = vector.kv_len - vector.q_len
        if "alignment" in self.features.supported:
            return "top-left" if shift == 0 else "bottom-right" if shift == last else None
        own = 0 if self.alignment == "top-left" else last
        takes_it = shift == own and self.features.alignment != "square"
        return "" if takes_it or last == shift == 0 else None

    def arguments(self, batch: Batch) -> tuple[tuple[Tensor, Tensor, Tensor], dict[str, Any]]:
        """Query, key and value, and the rest by name."""
        way = self._way(batch.vectors[0])
        if isinstance(way, str):
            raise ValueError(way)
        width, value_width = self._widths(batch)
        query, key, value = (
            torch.nn.functional.pad(x, (0, size - x.shape[-1])).contiguous()
            for x, size in zip(batch.qkv, (width, width, value_width), strict=True)
        )
        options = self._options(batch, way)
        if self.among and documents.is_among(batch):
            (query, key, value), sums = documents.wrap((query, key, value), self.features.multiple)
            options["cu_seqlens"] = sums
        if self.padded:
            query, key, value = map(buffers.pad, (query, key, value))
        widened = width != batch.query.shape[-1]
        if "scale" in self.features.supported and (widened or not batch.default_scale):
            options["scale"] = batch.scale
        if query.shape[1] != key.shape[1] and self.features.gqa_flag:
            options["enable_gqa"] = True
        return (query, key, value), options

    def run(self, batch: Batch) -> Outputs:
        inputs, options = self.arguments(batch)
        return self.outputs(batch, self.function(*inputs, **options))

    def outputs(self, batch: Batch, result: Any) -> Outputs:
        """The outputs in the function's result for `arguments`."""
        out, lse = self._parts(result)
        if self.among and documents.is_among(batch):
            length, multiple = batch.query.shape[2], self.features.multiple
            out, lse = (documents.own(x, length, multiple) for x in (out, lse))
        width, value_dim = self._widths(batch)[1], batch.value.shape[-1]
        widened = width != value_dim
        if widened and isinstance(out, Tensor) and out.shape == (*batch.query.shape[:-1], width):
            out = out[..., :value_dim]
        return Outputs(out, lse)

    def _widths(self, batch: Batch) -> tuple[int, int]:
        return self.features.columns(batch.query.shape[-1], batch.value.shape[-1])

    def _options(self, batch: Batch, way: _Way) -> dict[str, Any]:
        """The arguments beside query, key, value, scale and enable_gqa."""
        options: dict[str, Any] = {}
        if way.causal:
            options["is_causal"] = True
        if way.window and batch.window is not None:
            options["window"] = batch.window[:2]
        if way.alignment:
            options["causal_alignment"] = way.alignment
        if way.mask == "boolean" and batch.boolean is not None:
            options["attn_mask"] = batch.boolean.contiguous()
        folded = "bias" not in self.features.supported
        if way.mask == "floating":
            added = batch.added if folded else replace(batch, bias=None).added
            options["attn_mask"] = None if added is None else added.contiguous()
        if batch.bias is not None and not folded:
            options["bias"] = batch.bias
        if batch.softcap is not None:
            options["softcap"] = batch.softcap
        if batch.alibi is not None:
            options["alibi_slopes"] = batch.slopes()
        if batch.sink is not None:
            options["sinks"] = batch.of_heads()["sinks"]
        if self.features.lse_by == "return_lse":
            options["return_lse"] = True
        return options

    def _parts(self, result: Any) -> tuple[Any, Any]:
        """Output and log-sum-exp of a result."""
        several = isinstance(result, (tuple, list)) and len(result) > 0
        if self.features.lse_by is None:
            return (result[0] if several else result), None
        if not several or len(result) < 2:
            raise Misbehaviour("returned no log-sum-exp beside the output")
        return result[0], result[1]

    def no_gradients(self, vector: GradientVector, device: str) -> str | None:
        unsupported = self.features.unsupported
        if "gradients" in unsupported:
            return f"has no gradients: {unsupported['gradients']}"
        if vector.by_log_sum_exp and "lse-gradients" in unsupported:
            return f"has no gradient by the log-sum-exp: {unsupported['lse-gradients']}"
        return super().no_gradients(vector, device)

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        """Grouped heads, or several heads of a batch, in one call."""
        if not isinstance(vector, GroupedQueryVector):
            return super().run_vector(vector, dtype, device)

        def run(batch: Batch) -> Outputs:
            found = self.run(batch)
            wrong = form_error(batch, found)
            if wrong is not None:
                raise Misbehaviour(wrong)
            return found

        return run_grouped(vector, dtype, device, run)
