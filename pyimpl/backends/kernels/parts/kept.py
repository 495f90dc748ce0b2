"""Launches that are kept: a call like an earlier one starts the compiled kernel at once.

To check the arguments of a launch, to lay them out and to have Triton find the compiled kernel
takes more time than a short kernel runs. All of that depends on the tensors only by their shapes,
strides, dtypes and devices, by whether 16 divides their addresses, which Triton looks at, and by
whether a negation is due; and on numbers. So it is done once for each of these.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor
from triton import knobs
from triton.runtime import driver

from pyimpl.backends.kernels.parts import launch as launches
from pyimpl.backends.kernels.parts.launch import Launch
from pyimpl.backends.kernels.parts.numerics import INTERPRETED
from pyimpl.internal.scores import ScoreOptions

# So many are kept; then they are made anew, lest lengths that never come again fill the memory.
MOST = 4096
# The tensors among the options, by the kernels' parameters for them.
OPTIONS = ("mask_ptr", "bias_ptr", "slopes_ptr", "sinks_ptr", "seed_ptr")
Given = tuple[Tensor | None, ...]
# The parameters of a kernel for the tensors of a call, None for a tensor that it does not get.
Names = tuple[str | None, ...]
# A launch, and these of its kernel.
Named = tuple[Launch, Names]
# What is known to have memory that Triton is given; a subclass may be anything.
_PLAIN = (Tensor, torch.nn.Parameter)
# Triton's compiler for AMD looks at more than `_kind` has.
_COMPILES = not INTERPRETED.value and torch.version.hip is None


class _Kept:
    """A launch without its tensors: the compiled kernel, the number of programs, the values of all
    parameters, and for those that are tensors, or descriptors of tensors, their place in the values
    and among the tensors of a call."""

    def __init__(
        self,
        compiled: Any,
        programs: int,
        values: list[Any],
        places: list[tuple[int, int]],
        described: list[tuple[int, int, Any]],
    ) -> None:
        self.compiled, self.programs = compiled, programs
        # To ask for it loads the binary, and raises where it does not fit the device.
        self.start = compiled.run
        self.values, self.places, self.described = values, places, described

    def run(
        self, stream: int, tensors: Given, addresses: list[int | None], hooks: tuple[Any, Any]
    ) -> None:
        """Start it as Triton does, for which an address will do where it asks for a tensor; hooks:
        what Triton is to call before and after, or twice None."""
        values = self.values.copy()
        for place, number in self.places:
            values[place] = addresses[number]
        for place, number, descriptor in self.described:
            values[place] = _of_another(descriptor, tensors[number])
        compiled, grid, told = self.compiled, (self.programs, 1, 1), None
        if hooks != (None, None):
            told = compiled.launch_metadata(grid, stream, *values)
        self.start(
            *grid, stream, compiled.function, compiled.packed_metadata, told, *hooks, *values
        )


def _hooks() -> tuple[Any, Any]:
    """What Triton is to call before and after each launch; twice None if that is nothing."""
    hooks = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
    return hooks if any(map(_has_calls, hooks)) else (None, None)


def _has_calls(hook: Any) -> bool:
    """Whether something is to be called at each launch: Triton's chain of hooks may be empty."""
    return hook is not None and bool(getattr(hook, "calls", True))


def _of_another(descriptor: Any, tensor: Tensor | None) -> Any:
    """The descriptor with another tensor for its own: of the same kind, so that nothing is to be
    checked again. Triton makes the device's own descriptor of it at each launch."""
    found = object.__new__(type(descriptor))
    found.__dict__ = own = descriptor.__dict__.copy()
    own["base"] = tensor
    return found


_KEPT: dict[Hashable, tuple[_Kept, ...]] = {}
_DECIDED: dict[Hashable, bool] = {}


def tensors_of(options: ScoreOptions) -> Given:
    """The tensors among the options, in the order of `OPTIONS`."""
    dropout = options.dropout
    return (
        options.mask,
        options.bias,
        options.alibi_slopes,
        options.sinks,
        None if dropout is None else dropout.seed,
    )


def numbers_of(options: ScoreOptions) -> tuple[Hashable, ...]:
    """All else that a launch depends on among the options that kernels take."""
    drop = options.dropout
    dropped = None if drop is None else (drop.p, *(drop.place or ()))
    return options.scale, options.softcap, options.left, options.right, options.shift, dropped


def start(
    make: Callable[[], tuple[Named, ...]], device: torch.device, tensors: Given, fresh: Given,
    numbers: tuple[Hashable, ...],
) -> None:  # fmt: skip
    """Run the launches that `make` gives, on `device`, or those kept of an earlier call with equal
    `numbers` and tensors of the same kind.

    fresh: tensors that the call has just made, in a way that follows from the others and `numbers`.
    numbers: which launches they are, and all that `make` depends on beside the tensors. The names
    of each launch are those of `tensors` and then of `fresh`. Nothing is kept if `make` raises, if
    a kernel is given a copy of a tensor, or if Triton interprets.
    """
    addresses: list[int | None] = []
    key = _kind(tensors, fresh, numbers, addresses)
    kept = None if key is None else _KEPT.get(key)
    everything = (*tensors, *fresh)
    if kept is None:
        made = make()
        with launches.launching_on(device):
            kept = () if key is None else _keep(made, everything)
        if len(kept) < len(made):
            for launch, _ in made:
                launch.run(device)
            return
        if len(_KEPT) >= MOST:
            _KEPT.clear()
        _KEPT[key] = kept
    if launches.is_current(device):
        _run(kept, device, everything, addresses)
    else:
        with launches.launching_on(device):
            _run(kept, device, everything, addresses)


def _run(
    kept: tuple[_Kept, ...], device: torch.device, tensors: Given, addresses: list[int | None]
) -> None:
    """Start the kept launches, on the current stream of the current device."""
    stream, hooks = driver.active.get_current_stream(device.index), _hooks()
    for one in kept:
        one.run(stream, tensors, addresses, hooks)


def decide_once(decide: Callable[[], bool], tensors: Given, numbers: tuple[Hashable, ...]) -> bool:
    """What `decide` says, which depends on `numbers` and on the tensors as a launch does; of calls
    like an earlier one it is not asked again."""
    key = _kind(tensors, (), numbers, [])
    if key is None:
        return decide()
    if key not in _DECIDED:
        if len(_DECIDED) >= MOST:
            _DECIDED.clear()
        _DECIDED[key] = decide()
    return _DECIDED[key]


def _kind(
    tensors: Given, fresh: Given, numbers: tuple[Hashable, ...], addresses: list[int | None]
) -> Hashable:
    """What a launch depends on; None where that is not known: where Triton interprets or compiles
    for AMD, and of tensors of other types. The tensors' addresses are put into `addresses`."""
    if not _COMPILES:
        return None
    kinds: list[Hashable] = [numbers]
    for tensor in tensors:
        if tensor is None:
            kinds.append(None)
            addresses.append(None)
            continue
        if type(tensor) not in _PLAIN:
            return None
        address = tensor.data_ptr()
        addresses.append(address)
        kinds += (
            tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.is_neg(),
            address % 16,
        )  # fmt: skip
    for tensor in fresh:
        place = None if tensor is None else tensor.data_ptr()
        addresses.append(place)
        kinds.append(None if place is None else place % 16)
    return tuple(kinds)


def _keep(made: tuple[Named, ...], tensors: Given) -> tuple[_Kept, ...]:
    """The launches to be kept: those with programs; none where one is given tensors that are not
    the call's own."""
    kept = []
    for launch, own in made:
        compiled = launch.compile()
        numbers = {name: number for number, name in enumerate(own) if name is not None}
        given = {**launch.arguments, **launch.constants}
        values = [given[name] for name in launch.kernel.arg_names]
        places, described = [], []
        for place, name in enumerate(launch.kernel.arg_names):
            value = given[name]
            # A descriptor of Triton's has the tensor that it describes.
            tensor = value if isinstance(value, Tensor) else getattr(value, "base", None)
            if tensor is None:
                continue
            known = tensors[numbers[name]] if name in numbers else None
            if known is None or known.data_ptr() != tensor.data_ptr():
                return ()
            values[place] = None
            if tensor is value:
                places.append((place, numbers[name]))
            else:
                described.append((place, numbers[name], _of_another(value, None)))
        # One of Triton's hooks may ask for no kernel.
        if compiled is None or launch.programs == 0:
            return ()
        kept.append(_Kept(compiled, launch.programs, values, places, described))
    return tuple(kept)
