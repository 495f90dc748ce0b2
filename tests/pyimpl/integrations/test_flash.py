"""This attention as PyTorch's flash-attention implementation: the operators that it replaces,
called through PyTorch's dispatcher; on a CPU, where SDPA itself calls others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from integration_checks import examples, imported_anew
from torch import Tensor

import pyimpl
from pyimpl.integrations import flash

torch_attention = pytest.importorskip("torch.nn.attention")
if not hasattr(torch_attention, "register_flash_attention_impl"):
    pytest.skip("needs torch 2.11", allow_module_level=True)

OPERATOR = torch.ops.aten._scaled_dot_product_flash_attention
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_backward
OPERATORS = [f"aten::{op.__name__}" for op in (OPERATOR, BACKWARD)]


def has_kernel(device: str) -> list[bool]:
    found = torch._C._dispatch_has_kernel_for_dispatch_key
    return [found(name, device.upper()) for name in OPERATORS]


@pytest.fixture
def active() -> Iterator[str]:
    name = flash.register("pyimpl-cpu", device="cpu")
    torch_attention.activate_flash_attention_impl(name)
    yield name
    torch_attention.restore_flash_attention_impl(_raise_warn=False)


def draw(kv_heads: int = 4, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 4, 9, 16), (2, kv_heads, 9, 16), (2, kv_heads, 9, 16))
    return [torch.randn(s, generator=generator).to(dtype).requires_grad_() for s in shapes]


def gradients(out: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    weights = torch.linspace(-1, 1, out.numel()).reshape(out.shape).to(out.dtype)
    return torch.autograd.grad(out, inputs, weights)


CASES: list[dict[str, Any]] = [
    {},
    {"is_causal": True},
    {"scale": -0.3},
    {"dropout_p": 0.4},
    {"dropout_p": 0.4, "is_causal": True, "scale": 0.2},
]


@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_operators_are_this_attention(
    options: dict[str, Any], kv_heads: int, dtype: torch.dtype, active: str
) -> None:
    """Bit by bit, with the gradients that autograd has for PyTorch's operator."""
    inputs = draw(kv_heads, dtype)
    torch.manual_seed(3)
    out, lse, *_, q_len, kv_len, state, _, _ = OPERATOR(*inputs, **options)
    found = gradients(out, inputs)
    torch.manual_seed(3)
    wanted, wanted_lse = pyimpl.attention(*inputs, **options, enable_gqa=True, return_lse=True)
    assert torch.equal(out, wanted)
    assert torch.equal(lse, wanted_lse)
    for one, other in zip(found, gradients(wanted, inputs), strict=True):
        assert torch.equal(one, other)
    assert (q_len, kv_len, state.shape, state.dtype) == (9, 9, (2,), torch.uint64)
    assert torch_attention.current_flash_attention_impl() == active


@pytest.mark.parametrize("lost", ["is_causal", "scale", "dropout_p"])
def test_gradients_of_another_attention_differ(
    lost: str, active: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison above sees an option that the backward pass leaves out."""
    options: dict[str, Any] = CASES[-1]
    inputs = draw()
    torch.manual_seed(3)
    out = OPERATOR(*inputs, **options)[0]
    right = gradients(out, inputs)
    torch.manual_seed(3)
    out = OPERATOR(*inputs, **options)[0]
    checked_options, checked_dropout = flash.checked_options, flash.checked_dropout
    if lost == "dropout_p":
        monkeypatch.setattr(flash, "checked_dropout", lambda p, s, q: checked_dropout(0.0, s, q))
    else:
        without: dict[str, Any] = {"is_causal": False, "scale": None}
        monkeypatch.setattr(
            flash,
            "checked_options",
            lambda *a, **given: checked_options(*a, **{**given, lost: without[lost]}),
        )
    assert not torch.equal(gradients(out, inputs)[0], right[0])


def test_restore_undoes_it(active: str) -> None:
    q, k, v = (x.detach() for x in draw())
    assert has_kernel("cpu") == [True, True]
    OPERATOR(q, k, v)
    torch_attention.restore_flash_attention_impl()
    assert has_kernel("cpu") == [False, False]
    assert torch_attention.current_flash_attention_impl() is None
    with pytest.raises(NotImplementedError):
        OPERATOR(q, k, v)
    # And it can be activated again.
    torch_attention.activate_flash_attention_impl(active)
    assert has_kernel("cpu") == [True, True]


def test_other_calls_of_sdpa_are_pytorchs(active: str) -> None:
    """On a CPU all are."""
    q, k, v = (x.detach() for x in draw())
    sdpa = torch.nn.functional.scaled_dot_product_attention
    found = sdpa(q, k, v)
    torch_attention.restore_flash_attention_impl()
    assert torch.equal(found, sdpa(q, k, v))


@pytest.mark.skipif(torch.backends.cuda.is_built(), reason="PyTorch has a kernel of its own there")
def test_on_a_gpu_the_kernels_are_replaced() -> None:
    assert has_kernel("cuda") == [False, False]
    torch_attention.activate_flash_attention_impl(flash.register())
    try:
        assert has_kernel("cuda") == [True, True]
        assert has_kernel("cpu") == [False, False]
    finally:
        torch_attention.restore_flash_attention_impl()
    assert has_kernel("cuda") == [False, False]


def test_registering_alone_changes_nothing() -> None:
    assert flash.register("pyimpl-other", device="cpu", backend="reference") == "pyimpl-other"
    assert flash.register("pyimpl-other", device="cpu") == "pyimpl-other"
    assert "pyimpl-other" in torch_attention.list_flash_attention_impls()
    assert has_kernel("cpu") == [False, False]


def test_a_name_from_an_earlier_import_of_the_module_is_entered_anew() -> None:
    assert imported_anew(flash).register("pyimpl-anew", device="cpu") == "pyimpl-anew"
    assert flash.register("pyimpl-anew", device="cpu") == "pyimpl-anew"


def test_a_name_that_another_has_taken_since_is_refused() -> None:
    flash.register("pyimpl-taken", device="cpu")
    torch_attention.register_flash_attention_impl("pyimpl-taken", register_fn=lambda: None)
    with pytest.raises(ValueError, match="name must be none that PyTorch has already"):
        flash.register("pyimpl-taken", device="cpu")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"name": "FA4"}, "name must be none that PyTorch has already, not 'FA4'"),
        ({"name": ""}, "name must be a string that is not empty, not ''"),
        ({"backend": "cuda"}, "backend must be"),
        ({"device": "mps"}, "device must be"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        flash.register(**options)


def test_weights_are_refused(active: str) -> None:
    q, k, v = (x.detach() for x in draw())
    with pytest.raises(NotImplementedError, match="return_debug_mask must be False"):
        OPERATOR(q, k, v, return_debug_mask=True)


def test_the_example_of_the_docs_runs() -> None:
    exec(compile(examples()[3], "docs/integrations.md", "exec"), {})
    assert torch_attention.current_flash_attention_impl() is None
