"""How the public functions become PyTorch operators.

As `torch.library.custom_op` does it, without the steps that each call would pay for: an autograd of
its own where an operator has no gradient, a comparison of outputs with inputs, and where it has one
a reading of the schema's defaults, of which there are none here. Such calls take half of the time,
and `torch.compile`, `torch.export` and autograd see no difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._compile import _disable_dynamo

from pyimpl.internal.arguments import is_plain_mode

# PyTorch does not annotate it.
_Library: Any = torch.library.Library
# Operators are there as long as these.
_LIBRARIES: list[Any] = []


class Operator:
    """An operator of PyTorch's: `torch.ops.<package>.<name>`."""

    def __init__(self, name: str, schema: str, function: Callable[..., Any]) -> None:
        package = function.__module__.partition(".")[0]
        self._name, self._library = f"{package}::{name}", _Library(package, "FRAGMENT")
        _LIBRARIES.append(self._library)
        self._library.define(name + schema, tags=(torch.Tag.pt2_compliant_tag,))
        # Dynamo does not look into an operator's code. `torch.compiler.disable` would import it at
        # once.
        self._library.impl(name, _disable_dynamo(function), "CompositeExplicitAutograd")
        self._overload = getattr(getattr(torch.ops, package), name).default
        self._differentiable = False

    def call(self, *args: Any) -> Any:
        """The operator's result for these arguments.

        Where no gradient is asked for, PyTorch's way to find that out takes as long as the rest of
        its way to the function, and ends below autograd; so such a call begins there.
        """
        if (
            not self._differentiable
            or torch.compiler.is_compiling()
            or not is_plain_mode()
            or (torch.is_grad_enabled() and torch._C._any_requires_grad(*args))
        ):
            return self._overload(*args)
        with torch._C._AutoDispatchBelowAutograd():
            return self._overload(*args)

    def register_fake(self, function: Callable[..., Any]) -> None:
        """Register the function of its results for tensors without numbers: shapes and strides."""
        torch.library.register_fake(self._name, function, lib=self._library)

    def register_autograd(
        self, backward: Callable[..., Any], setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Its gradients, and the tensors that are kept for them.

        Raises ValueError for a schema with defaults.
        """
        overload = self._overload
        # The dispatcher leaves out arguments at the end that are as by default.
        if any(argument.has_default_value() for argument in overload._schema.arguments):
            raise ValueError(f"the schema of {self._name} must have no defaults")

        def below(keys: Any, args: tuple[Any, ...]) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                return overload.redispatch(keys & torch._C._after_autograd_keyset, *args)

        def forward(ctx: Any, *given: Any) -> Any:
            args, keys = given[:-1], given[-1]
            result = below(keys, args)
            if setup_context is not None:
                setup_context(ctx, args, result)
            return result

        def gradients(ctx: Any, *grads: Any) -> Any:
            needs = ctx.needs_input_grad
            ctx.needs_input_grad = needs[:-1]
            try:
                return (*backward(ctx, *grads), None)
            finally:
                ctx.needs_input_grad = needs

        methods = {"forward": staticmethod(forward), "backward": staticmethod(gradients)}
        function: Any = type(self._name.replace("::", "_"), (torch.autograd.Function,), methods)

        def implementation(keys: Any, *args: Any) -> Any:
            if torch.is_grad_enabled() and torch._C._any_requires_grad(*args):
                return function.apply(*args, keys)
            return below(keys, args)

        name = self._name.partition("::")[2]
        self._library.impl(name, implementation, "Autograd", with_keyset=True)
        self._differentiable = True


def operator(name: str, schema: str) -> Callable[[Callable[..., Any]], Operator]:
    """The function, which returns newly allocated tensors and changes none, as an operator of its
    package."""
    return lambda function: Operator(name, schema, function)
