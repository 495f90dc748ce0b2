"""A temperature for each head: every function and backend against attention of scaled queries."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import pyimpl
from pyimpl.backends.dispatch import Backend
from pyimpl.modules import MultiHeadAttention

# A power of two, a negative one, 0, and one that is rounded.
TEMPERATURE = torch.tensor([2.0, -1.0, 0.0, 1.3])
BACKENDS: tuple[Backend, ...] = ("tiled", "reference")


def inputs(q_len: int = 5, kv_len: int = 7) -> tuple[Tensor, Tensor, Tensor]:
    """Query `[2, 4, q_len, 8]`, key and value `[2, 2, kv_len, …]`, float64, that ask for
    gradients."""
    torch.manual_seed(0)
    sizes = (4, q_len, 8), (2, kv_len, 8), (2, kv_len, 6)
    q, k, v = (torch.randn(2, *size, dtype=torch.float64, requires_grad=True) for size in sizes)
    return q, k, v


@pytest.mark.parametrize("backend", BACKENDS)
def test_outputs_and_gradients_are_those_of_autograd(backend: Backend) -> None:
    q, k, v = inputs()
    temperature = TEMPERATURE.double().requires_grad_()
    options = {"is_causal": True, "softcap": 3.0, "enable_gqa": True, "return_lse": True}
    found = pyimpl.attention(q, k, v, temperature=temperature, backend=backend, **options)
    scaled = q * temperature[:, None, None]
    wanted = pyimpl.attention(scaled, k, v, backend=backend, **options)
    by = [torch.randn_like(x) for x in wanted]
    for got, right in zip(found, wanted, strict=True):
        assert torch.equal(got, right)
    everything = (q, k, v, temperature)
    gradients = torch.autograd.grad(found, everything, by)
    for got, right in zip(gradients, torch.autograd.grad(wanted, everything, by), strict=True):
        torch.testing.assert_close(got, right)


def test_scores_are_multiplied_before_softcap_bias_and_sinks() -> None:
    q, k, v = (x.detach() for x in inputs())
    bias, sinks = torch.randn(5, 7, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    scores = TEMPERATURE.double()[:, None, None] * (q @ k.repeat_interleave(2, 1).mT) / 8**0.5
    scores = 3 * torch.tanh(scores / 3) + bias
    column = sinks[None, :, None, None].expand(2, 4, 5, 1)
    weights = torch.cat((scores, column), -1).softmax(-1)[..., :-1]
    found = pyimpl.attention(
        q, k, v, temperature=TEMPERATURE, softcap=3.0, bias=bias, sinks=sinks, enable_gqa=True
    )
    torch.testing.assert_close(found, weights @ v.repeat_interleave(2, 1))


@pytest.mark.parametrize("backend", BACKENDS)
def test_packed_sequences(backend: Backend) -> None:
    lens = (2, 3, 0)
    cu = torch.tensor([0, 2, 5, 5])
    packed = [x[0].transpose(0, 1).detach() for x in inputs(5, 5)]
    q, k, v = (x.requires_grad_() for x in packed)
    temperature = TEMPERATURE.double().requires_grad_()
    found = pyimpl.attention_varlen(
        q, k, v, cu, cu, temperature=temperature, enable_gqa=True, backend=backend
    )
    assert isinstance(found, Tensor)
    wanted = torch.cat(
        [
            pyimpl.attention(
                *(x[None].transpose(1, 2) for x in parts), temperature=temperature,
                enable_gqa=True, backend=backend,
            )[0].transpose(0, 1)
            for parts in zip(q.split(lens), k.split(lens), v.split(lens), strict=True)
        ]
    )  # fmt: skip
    torch.testing.assert_close(found, wanted)
    by, everything = torch.randn_like(found), (q, k, v, temperature)
    gradients = torch.autograd.grad(found, everything, by)
    for got, right in zip(gradients, torch.autograd.grad(wanted, everything, by), strict=True):
        torch.testing.assert_close(got, right)


def test_decoding_and_modules() -> None:
    q, k, v = (x.detach() for x in inputs(1))
    scaled = q * TEMPERATURE.double()[:, None, None]
    for splits in (1, 3):
        found, wanted = (
            pyimpl.attention_decode(x, k, v, enable_gqa=True, num_splits=splits, **more)
            for x, more in ((q, {"temperature": TEMPERATURE}), (scaled, {}))
        )
        assert torch.equal(found, wanted)
    module = MultiHeadAttention(8, 4).double()
    x, temperature = torch.randn(2, 5, 8, dtype=torch.float64), TEMPERATURE.double()
    found = module(x, temperature=temperature)
    with torch.no_grad():
        by_row = temperature.repeat_interleave(2)
        module.q_proj.weight.mul_(by_row[:, None])
        if module.q_proj.bias is not None:
            module.q_proj.bias.mul_(by_row)
    torch.testing.assert_close(found, module(x))


def test_a_query_that_sees_no_key_may_hold_anything() -> None:
    q, k, v = inputs(3, 3)
    mask = torch.tensor([True, False, True])[:, None].expand(3, 3)
    temperature = TEMPERATURE.double().requires_grad_()
    with torch.no_grad():
        q[..., 1, :] = torch.nan
    out = pyimpl.attention(q, k, v, temperature=temperature, attn_mask=mask, enable_gqa=True)
    assert isinstance(out, Tensor)
    (gradient,) = torch.autograd.grad(out.sum(), temperature)
    assert gradient.isfinite().all()


def test_queries_are_rounded_once() -> None:
    q, k, v = (x.detach().bfloat16() for x in inputs())
    scaled = (q.float() * TEMPERATURE[:, None, None]).bfloat16()
    found = pyimpl.attention(q, k, v, temperature=TEMPERATURE, enable_gqa=True)
    assert torch.equal(found, pyimpl.attention(scaled, k, v, enable_gqa=True))


@pytest.mark.parametrize(
    ("temperature", "error", "sentence"),
    [
        (1.5, TypeError, "temperature must be a torch.Tensor or None"),
        (torch.ones(3), ValueError, "temperature must be"),
        (torch.tensor([1.0, 2.0, torch.nan, 1.0]), ValueError, "temperature must"),
        (torch.tensor([1.0, 2.0, -torch.inf, 1.0]), ValueError, "temperature must"),
    ],
)
def test_bad_temperatures(temperature: object, error: type[Exception], sentence: str) -> None:
    q, k, v = inputs()
    with pytest.raises(error, match=sentence):
        pyimpl.attention(q, k, v, temperature=temperature, enable_gqa=True)  # type: ignore[arg-type]
