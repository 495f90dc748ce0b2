"""The backward pass of `pyimpl.attention` as a PyTorch operator of its own, and its formula for
autograd.

Source: Dao 2023, "FlashAttention-2", algorithm 2. The log-sum-exp is an output like the other, with
a gradient. The operator itself has none: where a gradient of these gradients may be asked for, they
are those of `pyimpl.autograd.definition`.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from torch import Tensor

from pyimpl.autograd import definition
from pyimpl.backends.dispatch import Backend, backward
from pyimpl.internal.arguments import empty_output
from pyimpl.internal.gradients import Gradients, Wanted
from pyimpl.internal.operators import operator
from pyimpl.internal.scores import DIFFERENTIABLE, NAMES, SCHEMA, ScoreOptions, checked_numbers

# The results of the operators of the backward pass: `Gradients`, with empty tensors for None.
GRADIENTS = f"({', '.join(['Tensor'] * len(Gradients._fields))})"
Flat = tuple[Tensor, ...]


@operator(
    "attention_backward",
    "(Tensor grad_out, Tensor? grad_lse, Tensor query, Tensor key, Tensor value, "
    f"Tensor out, Tensor lse, bool[] wanted, str backend, {SCHEMA}) -> {GRADIENTS}",
)
def _attention_backward(
    grad_out: Tensor,
    grad_lse: Tensor | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    wanted: list[bool],
    backend: Backend,
    *flat: Any,
) -> Flat:
    """`backward` for the arguments and results of `pyimpl::attention`, named as there."""
    options = checked_numbers(ScoreOptions.of_flat(*flat), query.dtype)
    found = backward(
        query, key, value, out, lse, grad_out, grad_lse, options, Wanted(*wanted), backend
    )
    return as_flat(found.round_to_inputs(query, key, value, options), query)


@_attention_backward.register_fake
def _(
    grad_out: Tensor,
    grad_lse: Tensor | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    wanted: list[bool],
    backend: Backend,
    *flat: Any,
) -> Flat:
    return fake_gradients(query, key, value, ScoreOptions.of_flat(*flat), Wanted(*wanted))


def as_flat(gradients: Gradients, query: Tensor) -> Flat:
    """The gradients as an operator returns them."""
    return tuple(query.new_empty(0) if x is None else x for x in gradients)


def fake_gradients(
    query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions, wanted: Wanted
) -> Flat:
    """Tensors of the kind that an operator of the backward pass returns."""
    tensors = options.tensors()
    if options.mask is not None:
        # It may be a floating one, which becomes the bias.
        tensors.setdefault("bias", options.mask)
    others = (
        torch.empty_like(tensors[change.name], memory_format=torch.contiguous_format)
        if getattr(wanted, name) and change.name in tensors
        else query.new_empty(0)
        for name, change in DIFFERENTIABLE.items()
    )
    return (*(empty_output(x, x.shape[-1]) for x in (query, key, value)), *others)


def no_second_derivative(ctx: Any, *grads: Any) -> NoReturn:
    """Autograd calls this where a gradient of a gradient is asked for."""
    raise NotImplementedError(
        "the gradients of attention have no gradient: call backward without create_graph"
    )


_attention_backward.register_autograd(no_second_derivative)


def save(ctx: Any, flat: tuple[Any, ...], *tensors: Tensor | None) -> None:
    """Keep `tensors` and the options, as `ScoreOptions.flat` gives them, for the backward pass of
    an operator; gradients of outputs that nothing was computed from are to come as None."""
    ctx.save_for_backward(*tensors, *(x if isinstance(x, Tensor) else None for x in flat))
    ctx.numbers = tuple(None if isinstance(x, Tensor) else x for x in flat)
    ctx.set_materialize_grads(False)


def restore(ctx: Any) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
    """Return the values that `save` kept: the tensors, and the options."""
    tensors = ctx.saved_tensors
    given, kept = tensors[: -len(NAMES)], tensors[-len(NAMES) :]
    return given, tuple([n if x is None else x for x, n in zip(kept, ctx.numbers, strict=True)])


def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    """Keep the inputs and results of `pyimpl::attention` for its backward pass."""
    query, key, value, ctx.backend, *flat = inputs
    save(ctx, tuple(flat), query, key, value, *output)


def attention_gradients(
    ctx: Any, grad_out: Tensor | None, grad_lse: Tensor | None
) -> tuple[Tensor | None, ...]:
    """The gradients of all arguments of `pyimpl::attention`."""
    (query, key, value, out, lse), flat = restore(ctx)
    if grad_out is None:
        grad_out = torch.zeros_like(out)
    given = ctx.needs_input_grad[4:]
    if torch.is_grad_enabled():
        # A gradient of these gradients may be asked for.
        definition.warn_of_kernels(ctx.backend, query, value)
        needed = (*ctx.needs_input_grad[:3], *given)
        inputs = (query, key, value, *flat)
        found = definition.differentiable_gradients((grad_out, grad_lse), inputs, needed)
        return (*found[:3], None, *found[3:])
    q, k, v, *others = _attention_backward.call(
        grad_out,
        grad_lse,
        query,
        key,
        value,
        out,
        lse,
        list(wanted_gradients(given)),
        ctx.backend,
        *flat,
    )
    return (q, k, v, None, *by_option(given, *others))


def wanted_gradients(needs: tuple[bool, ...]) -> Wanted:
    """Which gradients are computed, from whether each of the options needs one."""
    if True not in needs:
        return Wanted()
    by_name = dict(zip(NAMES, needs, strict=True))
    # A floating mask is a bias.
    by_name["bias"] |= by_name["mask"]
    return Wanted(**{name: by_name[change.name] for name, change in DIFFERENTIABLE.items()})


def by_option(needs: tuple[bool, ...], *gradients: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients by the changes of the scores (`DIFFERENTIABLE`) in the order of `NAMES`, None
    where none is needed. A floating mask has that of the bias which it is."""
    if True not in needs:
        return (None,) * len(needs)
    changes = (change.name for change in DIFFERENTIABLE.values())
    found = dict(zip(changes, gradients, strict=True))
    found["mask"] = found["bias"]
    return tuple(found[n] if need else None for n, need in zip(NAMES, needs, strict=True))
