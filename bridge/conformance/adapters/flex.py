"""The adapter of PyTorch's flex_attention."""

from __future__ import annotations

from dataclasses import replace

from bridge.conformance.adapters.adapter import About, Builtin
from bridge.conformance.adapters.differentiate import ByAutograd
from bridge.conformance.adapters.grouped_heads import GroupedHeads
from bridge.conformance.tensors.batch import Batch, Outputs
from bridge.conformance.tolerances.rounding_model import FLOAT32, FORMATS, WHOLE_ROW, RoundingModel
from bridge.vectors.model.gradients import GradientVector


class Flex(GroupedHeads, ByAutograd, Builtin):
    """`torch.nn.attention.flex_attention`, not compiled: the reference of its kernels. Softcap,
    ALiBi and bias are its score_mod, masks its block mask."""

    name = "flex"
    foreign = "flex"
    about = About(
        "Flex",
        "`torch.nn.attention.flex_attention`, not compiled",
        "Softcap, slopes and bias as `score_mod`, masks as a block mask.",
        "sinks; gradients on a CPU. `flex_attention` is not compiled: it computes the results that "
        "its kernels should compute",
    )
    takes = frozenset({"softcap", "alibi", "bias"})

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        base = RoundingModel.widened(
            dtype, accumulator="float64" if dtype == "float64" else "float32", block_n=WHOLE_ROW
        )
        # The normalised weights are rounded to the format of the inputs.
        rounded = FORMATS[dtype] if base.accumulator == FLOAT32 else None
        return replace(base, name=f"flex-{dtype}", weights=rounded, weights_normalized=True)

    def no_gradients(self, vector: GradientVector, device: str) -> str | None:
        if device.startswith("cpu"):
            return "has no backward pass on a CPU"
        return super().no_gradients(vector, device)

    def run(self, batch: Batch) -> Outputs:
        out, lse = self.call(
            *batch.qkv,
            attn_mask=batch.boolean,
            bias=batch.bias,
            softcap=batch.softcap,
            alibi=None if batch.alibi is None else (float(batch.alibi.slope), batch.alibi.shift),
            scale=batch.given_scale,
        )
        return Outputs(out, lse)
