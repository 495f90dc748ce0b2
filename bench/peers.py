"""The measured implementations: this package's attention and its peers, by name.

A peer makes a `Runner` of a case's inputs, or raises: that it does not take them is found by trying
(`bench.measure`), and its error is kept as the reason. Each is written down as a function that
computes the output; `_with_gradients` makes of it one that computes the gradients.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from bench.cases import Inputs
from bench.timing import Runner
from pyimpl import attention, attention_decode
from pyimpl.backends.dispatch import Backend

Peer = Callable[[Inputs], Runner]

OURS = "pyimpl"


class Refused(Exception):
    """A peer does not take a case, or is not there; the message says why."""


def _with_gradients(
    peer: Peer, while_compiled: Callable[[], AbstractContextManager[object]] = nullcontext
) -> Peer:
    """The peer for any operation. Where gradients are wanted, autograd differentiates its forward
    result: after it in the same call, or alone and again and again, in `while_compiled`."""

    def prepare(inputs: Inputs) -> Runner:
        case = inputs.case
        if not case.gradients:
            return peer(inputs)
        leaves = tuple(
            x.detach().requires_grad_() for x in (inputs.query, inputs.key, inputs.value)
        )
        query, key, value = leaves
        forward = peer(
            replace(
                inputs, case=replace(case, operation="forward"), query=query, key=key, value=value
            )
        )

        def gradients(out: Any, keep: bool) -> tuple[Tensor, ...]:
            return torch.autograd.grad(out, leaves, inputs.grad_out, retain_graph=keep)

        if case.operation == "forward+backward":
            return Runner(lambda: gradients(forward.call(), False), forward.context)
        with while_compiled():
            out = forward.run()
        return Runner(lambda: gradients(out, True), while_compiled)

    return prepare


def _keeping_graphs() -> AbstractContextManager[object]:
    """Let compiled graphs be differentiated twice: their buffers are not given away."""
    import torch._functorch.config as config

    patch: Any = config.patch
    found: AbstractContextManager[object] = patch(donated_buffer=False)
    return found


def ours(backend: Backend) -> Peer:
    """`pyimpl.attention` or `pyimpl.attention_decode`."""
    return _with_gradients(_ours(backend))


def _ours(backend: Backend) -> Peer:

    def prepare(inputs: Inputs) -> Runner:
        case, mask, pages = inputs.case, inputs.case.mask, inputs.pages
        query, key, value = inputs.query, inputs.key, inputs.value
        # The options are of several types, which one dictionary does not tell apart.
        options: dict[str, Any] = {"backend": backend, "enable_gqa": case.grouped}
        if case.operation == "decode":
            if pages is not None:
                key, value = pages.key, pages.value
                options |= {"page_table": pages.table, "kv_lens": pages.lens}
            return Runner(lambda: _first(attention_decode(query, key, value, **options)))
        if mask.name == "causal":
            options["is_causal"] = True
        elif mask.name == "boolean":
            options["attn_mask"] = inputs.dense_mask()
        else:
            options["window"] = (mask.left, mask.right)
        return Runner(lambda: _first(attention(query, key, value, **options)))

    return prepare


def _sdpa(backend: SDPBackend) -> Peer:
    """One backend of PyTorch's SDPA. A window is given as the mask that it means, made beforehand,
    since SDPA has no other name for it."""

    def prepare(inputs: Inputs) -> Runner:
        _check_contiguous_keys(inputs)
        mask = inputs.case.mask.name
        causal = mask == "causal"
        dense = None if mask in ("full", "causal") else inputs.dense_mask()
        return Runner(
            lambda: F.scaled_dot_product_attention(
                inputs.query,
                inputs.key,
                inputs.value,
                attn_mask=dense,
                is_causal=causal,
                enable_gqa=inputs.case.grouped,
            ),
            lambda: sdpa_kernel(backend),
        )

    return prepare


def _flex(inputs: Inputs) -> Runner:
    """PyTorch's FlexAttention, compiled for these very shapes; with a block mask, made beforehand,
    where there is a mask."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    _check_contiguous_keys(inputs)
    case = inputs.case
    block_mask: Any = None
    if case.mask.name != "full":
        block_mask = create_block_mask(
            _mask_mod(inputs), None, None, case.q_len, case.kv_len, device=str(inputs.device)
        )
    # Without this, functions compiled for earlier cases are asked first at every call; and from
    # some number of cases on nothing is compiled any more. fullgraph: never run uncompiled instead.
    torch._dynamo.reset()
    compiled: Any = torch.compile(flex_attention, dynamic=False, fullgraph=True)
    return Runner(
        lambda: compiled(
            inputs.query,
            inputs.key,
            inputs.value,
            block_mask=block_mask,
            enable_gqa=case.grouped,
        )
    )


def _mask_mod(inputs: Inputs) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """The case's mask as FlexAttention asks for it."""
    mask = inputs.case.mask
    if mask.name == "boolean":
        dense = inputs.dense_mask()
        return lambda _b, _h, i, j: dense[i, j]
    if mask.name == "causal":
        return lambda _b, _h, i, j: i >= j
    left, right = mask.left or 0, mask.right or 0
    return lambda _b, _h, i, j: (i - j <= left) & (j - i <= right)


def _flash_attn(module: str, table: str) -> Peer:
    """The package flash-attn under the name of its module, if it is installed; `table`: the name
    that its function for a cache has for the table of pages. It takes
    `[batch, length, heads, head_dim]`: views of the same tensors."""

    def transpose(found: Any) -> Tensor:
        return _first(found).transpose(1, 2)

    def prepare(inputs: Inputs) -> Runner:
        try:
            package = importlib.import_module(module)
        except ImportError as error:
            raise Refused(f"the module {module} cannot be imported: {error}") from None
        case, mask, pages = inputs.case, inputs.case.mask, inputs.pages
        if mask.name == "boolean":
            raise Refused("takes no boolean mask")
        query, key, value = (x.transpose(1, 2) for x in (inputs.query, inputs.key, inputs.value))
        if case.operation == "forward":
            window = tuple(-1 if bound is None else bound for bound in (mask.left, mask.right))
            options: dict[str, Any] = (
                {"causal": True} if mask.name == "causal" else {"window_size": window}
            )
            return Runner(lambda: transpose(package.flash_attn_func(query, key, value, **options)))
        options = {}
        if pages is not None:
            key, value = pages.key.transpose(1, 2), pages.value.transpose(1, 2)
            options[table] = pages.table
        lens = torch.full((case.batch,), case.kv_len, dtype=torch.int32, device=inputs.device)
        options["cache_seqlens"] = lens
        decode = package.flash_attn_with_kvcache
        return Runner(lambda: transpose(decode(query, key, value, **options)))

    return prepare


def _first(found: Any) -> Tensor:
    """The output, of a function that may return the log-sum-exp beside it."""
    out: Tensor = found[0] if isinstance(found, tuple) else found
    return out


def _check_contiguous_keys(inputs: Inputs) -> None:
    if inputs.pages is not None:
        raise Refused("takes no keys in pages")


PEERS: dict[str, Peer] = {
    "sdpa-flash": _with_gradients(_sdpa(SDPBackend.FLASH_ATTENTION)),
    "sdpa-efficient": _with_gradients(_sdpa(SDPBackend.EFFICIENT_ATTENTION)),
    "sdpa-cudnn": _with_gradients(_sdpa(SDPBackend.CUDNN_ATTENTION)),
    "sdpa-math": _with_gradients(_sdpa(SDPBackend.MATH)),
    "flex": _with_gradients(_flex, _keeping_graphs),
    "flash-attn": _with_gradients(_flash_attn("flash_attn", "block_table")),
    "flash-attn-3": _with_gradients(_flash_attn("flash_attn_interface", "page_table")),
}
