"""The public function: checks its arguments and picks an implementation.

Names follow `torch.nn.functional.scaled_dot_product_attention` (SDPA) where it has one. The
differences: `attn_mask`, `is_causal` and `window` may be given together and then all apply; a
query that may attend to no key gives 0 (and log-sum-exp −∞), on every backend; the weights that
dropout drops follow from a seed (`pyimpl.dropout`).
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor

from pyimpl.autograd import definition
from pyimpl.autograd.attention import attention_gradients, setup_context
from pyimpl.backends.dispatch import Backend, forward
from pyimpl.internal import arguments
from pyimpl.internal.arguments import Alignment, Layout, Window, compute_dtype, empty_output
from pyimpl.internal.dropout import Dropout, checked_dropout
from pyimpl.internal.operators import operator
from pyimpl.internal.part import Part
from pyimpl.internal.scores import (
    SCHEMA,
    ScoreOptions,
    alignment_shift,
    checked_numbers,
    checked_options,
)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    attn_mask: Tensor | None = None,
    bias: Tensor | None = None,
    is_causal: bool = False,
    causal_alignment: Alignment = "top-left",
    window: Window = (None, None),
    temperature: Tensor | None = None,
    softcap: float | None = None,
    alibi_slopes: Tensor | None = None,
    sinks: Tensor | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    dropout_p: float = 0.0,
    dropout_seed: int | Tensor | None = None,
    part: Part | None = None,
    layout: Layout = "bhnd",
    check: bool | None = None,
    backend: Backend = "auto",
) -> Tensor | tuple[Tensor, Tensor]:
    """softmax(scale · query keyᵀ) value, over the keys that each query may attend to
    (`Attention.Spec.attention`).

    The scores are changed in this order: scale, temperature, softcap, ALiBi, bias, masks.

    Args:
        query: `[batch, heads, q_len, head_dim]`, float64, float32, float16 or bfloat16.
        key: `[batch, kv_heads, kv_len, head_dim]`, of the dtype and device of `query`.
        value: `[batch, kv_heads, kv_len, value_dim]`, likewise. batch, heads, q_len and kv_len may
            be 0.
        attn_mask: broadcastable to `[batch, heads, q_len, kv_len]`; boolean, True = may attend, or
            floating, added to the scores as `bias` is.
        bias: floating, broadcastable likewise, added to the scores, below 2¹²⁷ (2¹⁰²³ for float64
            inputs); −∞ masks the pair, and so does a number from the negative of that bound down,
            such as torch.finfo(torch.float32).min.
        is_causal: key j is visible to query i if and only if j ≤ i + shift.
        causal_alignment: shift, where query 0 stands on the axis of the keys, for `is_causal`,
            `window` and `alibi_slopes`: 0 for "top-left" (as in SDPA), kv_len − q_len for
            "bottom-right" (as in flash-attention from 2.1 on). The same where q_len = kv_len.
        window: (left, right): key j is visible to query i if and only if i + shift − left ≤ j ≤
            i + shift + right; None for no bound.
        temperature: `[heads]`, floating, finite: the scores of a head are multiplied by it, after
            the scale and before all else. The queries are, rounded once to their dtype, in which
            they must stay finite.
        softcap: a score s becomes softcap · tanh(s / softcap); softcap and scale / softcap finite
            in float32 (float64 for float64 inputs).
        alibi_slopes: `[heads]` or `[batch, heads]`, floating, between the bounds of `bias`; slope ·
            |i + shift − j| is subtracted.
        sinks: `[heads]`, floating: one more score in every softmax of the head, without a value; it
            counts in the log-sum-exp. −∞ is no sink; bounds as for `bias`.
        scale: factor on the scores, finite in float32 (float64 for float64 inputs); 1/√head_dim if
            None.
        enable_gqa: key and value may have fewer heads than query, a number that divides its:
            query head h uses head h // (heads / kv_heads) of them.
        return_lse: also return the natural log-sum-exp of each query's scores.
        dropout_p: the probability, from 0 to 1, with which a weight is dropped after the softmax;
            those kept are divided by 1 − dropout_p. The log-sum-exp is that without dropout.
        dropout_seed: which weights are dropped follows from it, their place (batch, head, query,
            key) and dropout_p alone (`pyimpl.dropout`), on every backend. A number from 0 to
            2⁶³ − 1, or an int64 tensor of no dimension on the device of query, of which all 64 bits
            count. None: drawn from PyTorch's default generator of that device, so that
            `torch.manual_seed` reproduces it; not drawn where dropout_p is 0.
        part: where this call stands in a larger one, of which it then computes a part as the whole
            would: `causal_alignment` means the lengths of the whole, causality, windows and ALiBi
            go by the places of queries and keys there, and so does dropout, for which a seed must
            be given. All tensors are those of the part, key and value those of its heads. Outputs
            over parts of the keys are put together by `pyimpl.merge_states`; give sinks with one of
            them, since each counts them. None: the call is a whole.
        layout: "bhnd" as above, or "bnhd": query, key, value and the output are `[batch, length,
            heads, dim]`; masks, biases and the log-sum-exp stay as above.
        check: whether the numbers in `attn_mask`, `bias`, `alibi_slopes`, `sinks` and `temperature`
            are looked at, which waits for a GPU; None: on a CPU. Where nobody looks, NaN, +∞ and
            numbers that are too large make NaN of every result that depends on them.
        backend: "triton" (float32, float16, bfloat16; head sizes up to 256), "gluon" (Hopper GPUs;
            below), "tiled" (PyTorch, memory linear in the lengths), "reference" (float64 inside,
            materialises the scores), or "auto": on CUDA gluon where it was seen right and faster,
            else triton where it can, otherwise tiled.

    Returns:
        `[batch, heads, q_len, value_dim]` in the dtype of `query`; with `return_lse` also `[batch,
        heads, q_len]`, float64 for float64 inputs and otherwise float32. A query with no key to
        attend to gives 0 and −∞ (the sink, if there is one).

    A key that no query may attend to has no influence, whatever it holds, NaN included. The value
    row of a key that some query may attend to must be finite, even where another query may not: on
    a tile they share, its product with the weight 0 is NaN if it is not. So must the sum of the
    values be, in float32 (float64 for float64 inputs): it is divided at the end. The scores, times
    log₂e, must be finite likewise, and so must their parts: ⟨q, k⟩, and queries times scale.
    Scores of 10⁷ and more are off by 1 or more in float32 before their exponential is taken; beyond
    10⁸ such a row may come out as 0 or NaN on a GPU. Under `torch.autocast` query, key and value
    are first rounded to its dtype, unless they are float64, as SDPA does. `torch.compile` takes the
    whole as one operator, `torch.ops.pyimpl.attention`.

    The backend "gluon" has kernels for GPUs of compute capability 9.0, with Triton 3.6 or 3.7:
    float16 and bfloat16, head sizes 64, 128 and 256, causality and windows alone, strides and
    addresses that 16 divides, no heads that are broadcast. No theorem is about them; that of the
    Triton kernel is about "triton". They copy whole tiles, so that all rows of a tile that a
    program visits must be finite, those of hidden keys too; "auto" takes them only where that makes
    no difference. They compute the output, dK and dV; dQ is the Triton kernel's.

    Both outputs are differentiable by query, key, value, bias, floating attn_mask, alibi_slopes,
    sinks and temperature, on every backend, from the tensors and the two outputs alone
    (`pyimpl.autograd.attention`). Under the transforms of `torch.func`, with forward-mode tangents
    and with `create_graph=True` attention is computed by its definition in float64, with the matrix
    of scores in memory, and PyTorch differentiates that as often as it is asked to
    (`pyimpl.autograd.definition`); where Triton's kernels would run, a warning says so. A query and
    a key that may not attend to each other add nothing to each other's gradients; the numbers of
    those that may must be finite, as above. In float16 and bfloat16 the kernels round dS to
    the dtype of `query` before it is multiplied: in float16 it must stay below 65504.

    Raises:
        TypeError: an argument of the wrong type or dtype.
        ValueError: shapes, devices or options that do not fit together, NaN or +∞ in a mask, or
            arguments that the backend does not take.
        NotImplementedError: a compiled function asks for a forward-mode derivative.
        ImportError: backend "triton" or "gluon" where Triton is not installed.
    """
    arguments.check_one_of("layout", layout, Layout)
    lengths = ("heads", "length") if layout == "bhnd" else ("length", "heads")
    named = arguments.under_autocast({"query": query, "key": key, "value": value})
    arguments.check_floating(named, ("batch", *lengths, "head_dim"))
    if layout == "bnhd":
        named = {name: tensor.transpose(1, 2) for name, tensor in named.items()}
    query, key, value = arguments.check_attended(named, enable_gqa)
    arguments.check_bool("return_lse", return_lse)
    arguments.check_one_of("causal_alignment", causal_alignment, Alignment)
    dropout = checked_dropout(dropout_p, dropout_seed, query)
    if arguments.is_dtensor(query):
        _learn_of_dtensors(seed_is_drawn=dropout is not None and dropout_seed is None)
    arguments.check_one_of("backend", backend, Backend)
    batch, heads, q_len, _ = query.shape
    kv_len = key.shape[2]
    sizes = (batch, heads, q_len, kv_len)
    whole = sizes if part is None else _checked_part(part, sizes, dropout, dropout_seed)
    options = checked_options(
        query, batch, heads,
        is_causal=is_causal, window=window, temperature=temperature, softcap=softcap,
        alibi_slopes=alibi_slopes, sinks=sinks, scale=scale, check=check,
        mask=attn_mask, bias=bias, dropout=dropout,
        shift=alignment_shift(causal_alignment, *whole[2:]),
    )  # fmt: skip
    if part is not None:
        options = options.at(part)
    if attn_mask is not None:
        arguments.check_scores_like("attn_mask", attn_mask, query, sizes, boolean=True)
    if bias is not None:
        arguments.check_scores_like("bias", bias, query, sizes, boolean=False)
        if attn_mask is not None and attn_mask.dtype != torch.bool:
            raise ValueError("a floating attn_mask is a bias: give it or bias, not both")
    transformed = False
    if torch.compiler.is_compiling() or not arguments.is_plain_mode():
        tensors = {"query": query, "key": key, "value": value, "attn_mask": attn_mask}
        tensors |= options.tensors()
        if torch.compiler.is_compiling():
            arguments.check_reverse_mode(tensors)
        else:
            transformed = definition.is_transformed(tensors.values())
    if transformed:
        definition.warn_of_kernels(backend, query, value)
        options = definition.checked_transformed(options, query.dtype)
        out, lse = definition.attention(query, key, value, options)
    else:
        out, lse = _attention.call(query, key, value, backend, *options.flat())
    if layout == "bnhd":
        out = out.transpose(1, 2)
    return (out, lse) if return_lse else out


def _checked_part(
    part: object, sizes: tuple[int, int, int, int], dropout: Dropout | None, seed: object
) -> tuple[int, int, int, int]:
    """The sizes of the whole of which a call of these sizes is a part."""
    if not isinstance(part, Part):
        raise TypeError(f"part must be a pyimpl.Part or None, not {arguments.describe(part)}")
    part.check_sizes(sizes)
    if dropout is not None and seed is None:
        raise ValueError(
            "dropout_seed must be given with part, the same for all parts: drawn for each alone it "
            "would not drop the weights that the whole drops"
        )
    return part.whole


def _learn_of_dtensors(seed_is_drawn: bool) -> None:
    """Import the operators' rules for DTensors, on which not every program has to wait."""
    if seed_is_drawn:
        raise ValueError(
            "dropout_seed must be given for DTensors, the same in every process: drawn by each "
            "alone it would not drop the weights that one process drops"
        )
    if not torch.compiler.is_compiling():
        importlib.import_module("pyimpl.distributed.dtensor")


@operator(
    "attention",
    f"(Tensor query, Tensor key, Tensor value, str backend, {SCHEMA}) -> (Tensor, Tensor)",
)
def _attention(
    query: Tensor, key: Tensor, value: Tensor, backend: Backend, *options: Any
) -> tuple[Tensor, Tensor]:
    """`forward` of checked arguments, `options` being those of `ScoreOptions.flat`."""
    checked = checked_numbers(ScoreOptions.of_flat(*options), query.dtype)
    return forward(query, key, value, checked, backend)


@_attention.register_fake
def _(
    query: Tensor, key: Tensor, value: Tensor, backend: Backend, *options: Any
) -> tuple[Tensor, Tensor]:
    lse = query.new_empty(query.shape[:-1], dtype=compute_dtype(query.dtype))
    return empty_output(query, value.shape[-1]), lse


_attention.register_autograd(attention_gradients, setup_context=setup_context)
