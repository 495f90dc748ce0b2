"""A function that runs elsewhere, called as if it were here."""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
from msgspec import Meta
from torch import Tensor

from bridge.conformance.inside.frames import GIVEN
from bridge.conformance.sandbox import wire
from bridge.conformance.sandbox.session import Session
from bridge.conformance.sandbox.wire import Frame, Text, WireError
from bridge.conformance.tensors.batch import Misbehaviour, Unread

# The exceptions of a function that mean something to its caller; the first that it is.
_KINDS: Mapping[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        TypeError, ValueError, NotImplementedError, AssertionError, RuntimeError, Exception,
    )
}  # fmt: skip
_OTHER_DTYPES = {
    name: dtype for name in dir(torch) if isinstance(dtype := getattr(torch, name), torch.dtype)
}
_NAMES = Annotated[list[Text], Meta(max_length=20)]
_Size = Annotated[int, Meta(ge=0, le=1 << 62)]
_SHAPE = Annotated[tuple[_Size, ...], Meta(max_length=16)]
# One call in so many is made twice in the same memory, with other numbers first.
_SHARE = 8


class Remote:
    """The function of a session. It takes tensors, numbers, text, None and tuples of these, and
    returns tensors on the device of its first argument, tuples of them, and for any other result an
    object whose type has that name. Tensors that ask for gradients get them
    from its process.

    Raises the function's own errors, under their names and as kinds of their base classes;
    Misbehaviour for misuse of memory, and `Lost`.

    twice: draws calls that are made twice, the first time on other numbers in the same memory: a
    function that goes by the addresses of its inputs, not by their values, then gives wrong
    results."""

    def __init__(self, session: Session, *, twice: random.Random | None = None) -> None:
        self.session = session
        self._chance = twice
        # A value that is no signature says to `inspect` that there is none.
        known = session.parameters
        self.__signature__ = object() if known is None else _signature(known)

    @property
    def has_signature(self) -> bool:
        """Whether the function has one, which those written in C need not."""
        return self.session.parameters is not None

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        ask, tensors = self._encode_call(arguments, options, self._chance)
        device = next((x.device for x in tensors.values()), torch.device("cpu"))
        by = [name for name, x in tensors.items() if x.requires_grad and torch.is_grad_enabled()]
        ask.by = by
        if not by:
            return ask.fill_result(ask.call(tensors), device)
        # PyTorch writes no types for it: hence `no-untyped-call`.
        found = _Differentiable.apply(ask, list(tensors), *tensors.values())  # type: ignore[no-untyped-call]
        return ask.fill_result(found, device)

    def find_borrowed(self, *arguments: Any, **options: Any) -> tuple[str, ...]:
        """Whose attention a call of it uses, as its own process says: names of operators and
        packages. Raises as a call does."""
        ask, tensors = self._encode_call(arguments, options)
        return ask.find_borrowed(tensors)

    def keep(self, tensors: Mapping[str, Tensor]) -> None:
        """Give tensors to its process that stay there from call to call, as `Cache` of their
        names."""
        frame = self.session.ask("keep", {"device": self.session.device}, tensors)
        if frame.kind != "kept":
            raise self.session.spoil(f"{wire.show(frame.kind)} where tensors were to be kept")

    def step(
        self,
        arguments: Sequence[Any],
        options: Mapping[str, Any],
        *,
        cache: str | None = None,
        show: Mapping[str, Tensor] | None = None,
    ) -> tuple[Any, dict[str, Tensor]]:
        """A call that reads or changes a cache. cache: the name under which the second thing that
        it returns stays in its process, and is not returned; show: kept tensors whose numbers after
        the call are returned too, by name, each of the dtype and shape of the one given. Raises as
        a call does, and Misbehaviour where no cache is returned."""
        ask, tensors = self._encode_call(arguments, options)
        ask.cache, ask.show = cache, dict(show or {})
        device = next((x.device for x in tensors.values()), torch.device("cpu"))
        return ask.fill_result(ask.call(tensors), device), ask.shown

    def _encode_call(
        self,
        arguments: Sequence[Any],
        options: Mapping[str, Any],
        chance: random.Random | None = None,
    ) -> tuple[_Call, dict[str, Tensor]]:
        """A call, and the tensors that go with it."""
        tensors: dict[str, Tensor] = {}
        fields = {
            "arguments": [_encode(x, str(n), tensors) for n, x in enumerate(arguments)],
            "options": {name: _encode(x, name, tensors) for name, x in options.items()},
        }
        names = inspect.signature(self).parameters if self.has_signature else ()
        known = dict(zip(map(str, range(len(arguments))), names, strict=False))
        # A tensor that lies in a larger buffer here is to lie in one there.
        fields["padded"] = [name for name, x in tensors.items() if not x.is_contiguous()]
        return _Call(self.session, fields, known, chance), tensors


@dataclass(frozen=True)
class Cache:
    """As an argument: the tensors kept under this name in the function's process."""

    name: str


@dataclass
class _Call:
    """One call of the function of a session. by: the tensors that gradients are asked for by;
    cache, show: as of `Remote.step`; shown: the tensors of `show`; graphs: by place, which outputs
    have a graph."""

    session: Session
    fields: Mapping[str, Any]
    known: Mapping[str, str]
    chance: random.Random | None
    by: list[str] = field(default_factory=list)
    cache: str | None = None
    show: dict[str, Tensor] = field(default_factory=dict)
    shown: dict[str, Tensor] = field(default_factory=dict)
    graphs: dict[str, bool] = field(default_factory=dict)
    _described: Any = None

    def call(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors that came back, on the CPU."""
        again = self.chance is not None and self.chance.randrange(_SHARE) == 0
        if again:
            # Its result is dropped; an error that it raises, the right numbers show too.
            self._ask({name: _other(x) for name, x in tensors.items()})
        frame = self._ask(tensors, same_memory=again)
        self._raise_if_raised(frame)
        try:
            self._look_at_memory(frame, not_new=True)
            places: list[tuple[str, bool]] = []
            self._described = _read(frame.field("result", Any), places)
            self.graphs = dict(places)
            caches = {f"cache {name}" for name in self.show}
            if {*self.graphs, *caches} != set(frame.tensors) or caches & set(self.graphs):
                raise WireError("tensors that are not those described")
            self._look_at_caches(frame)
            return {place: frame.tensors[place] for place in self.graphs}
        except WireError as error:
            raise self.session.spoil(str(error)) from error

    def _look_at_caches(self, frame: Frame) -> None:
        if self.cache is not None and not frame.field("cached", bool):
            raise Misbehaviour("returned no pair of an output and a cache")
        for name, given in self.show.items():
            found = frame.tensors[f"cache {name}"]
            if (found.shape, found.dtype) != (given.shape, given.dtype):
                raise WireError(f"a cache {name} of another shape or dtype")
            self.shown[name] = found

    def find_borrowed(self, tensors: Mapping[str, Tensor]) -> tuple[str, ...]:
        frame = self._ask(tensors, record=True)
        self._raise_if_raised(frame)
        try:
            return tuple(map(wire.show, frame.field("borrowed", _NAMES)))
        except WireError as error:
            raise self.session.spoil(str(error)) from error

    def gradients(self, grads: Mapping[str, Tensor], shapes: Mapping[str, Tensor]) -> list[Any]:
        """The gradients by each of `by`, from these by the outputs; None where there is none."""
        frame = self.session.ask("differentiate", {"by": self.by}, grads)
        self._raise_if_raised(frame)
        try:
            self._look_at_memory(frame)
            for name, tensor in frame.tensors.items():
                given = shapes.get(name)
                if given is None or (tensor.shape, tensor.dtype) != (given.shape, given.dtype):
                    raise WireError(f"a gradient {wire.show(name)} of another shape or dtype")
            return [frame.tensors.get(name) for name in self.by]
        except WireError as error:
            raise self.session.spoil(str(error)) from error

    def fill_result(self, found: Mapping[str, Tensor] | Sequence[Tensor], device: Any) -> Any:
        """The function's result, with these tensors in it."""
        if not isinstance(found, Mapping):
            found = dict(zip(self.graphs, found, strict=True))

        def fill(value: Any) -> Any:
            if isinstance(value, _Place):
                return found[value.name].to(device)
            return tuple(map(fill, value)) if isinstance(value, tuple) else value

        return fill(self._described)

    def _ask(
        self, tensors: Mapping[str, Tensor], *, same_memory: bool = False, record: bool = False
    ) -> Frame:
        how: dict[str, Any] = {"device": self.session.device, "same_memory": same_memory}
        how |= {"record": record, "cache": self.cache, "show": list(self.show)}
        return self.session.ask("call", {**self.fields, **how, "differentiate": self.by}, tensors)

    def _raise_if_raised(self, frame: Frame) -> None:
        try:
            if frame.kind in ("lost", "wrong") and self.session.shards is not None:
                sentence = frame.field("sentence", Text)
                if frame.kind == "lost":
                    raise self.session.lose(sentence)
                raise Misbehaviour(sentence)
            if frame.kind != "raised":
                wire.read(frame.kind, Literal["returned", "differentiated"], "an answer")
                return
            name, kind, text = (frame.field(part, Text) for part in ("type", "kind", "text"))
            spoiled = frame.field("spoiled", bool)
        except WireError as error:
            raise self.session.spoil(str(error)) from error
        if spoiled:
            self.session.end()
        if kind not in _KINDS:
            raise Misbehaviour(f"raised {wire.show(name)}: {text[:300]}".rstrip(": "))
        raise _error_type(wire.show(name), _KINDS[kind])(text)

    def _look_at_memory(self, frame: Frame, *, not_new: bool = False) -> None:
        names = frame.field("changed", list[Text])
        if len({*names} & {*self._inputs}) < len(names):
            raise WireError("changed inputs that were not given, or twice")
        if names:
            raise Misbehaviour(f"changed its input {self.known.get(names[0], names[0])}")
        if not not_new:
            return
        where = frame.field("not_new", Text | None)
        if where is not None:
            for place, name in self.known.items():
                where = where.replace(f"input {place}", f"input {name}")
            raise Misbehaviour(f"returned memory that is not new: {wire.show(where)}")

    @property
    def _inputs(self) -> tuple[str, ...]:
        return tuple(_names(self.fields["arguments"]) + _names([*self.fields["options"].values()]))


class _Differentiable(torch.autograd.Function):
    """A call whose backward pass is that of the function, in its process."""

    @staticmethod
    def forward(ctx: Any, call: _Call, names: list[str], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.call, ctx.names = call, names
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        found = call.call(dict(zip(names, tensors, strict=True)))
        ctx.mark_non_differentiable(*(x for place, x in found.items() if not call.graphs[place]))
        return tuple(found.values())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        call: _Call = ctx.call
        places = zip(call.graphs, grads, strict=True)
        given = {place: grad for place, grad in places if grad is not None and call.graphs[place]}
        shapes = dict(zip(ctx.names, ctx.saved_tensors, strict=True))
        found = dict(zip(call.by, call.gradients(given, shapes), strict=True))
        return None, None, *(found.get(name) for name in ctx.names)


@dataclass(frozen=True)
class _Place:
    name: str


def _encode(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """A value as `inside.served` reads it. Raises TypeError for a type that it does not read."""
    if isinstance(value, Tensor):
        if value.dtype not in GIVEN.values():
            raise TypeError(f"a function here is given no tensor of {value.dtype}")
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, Cache):
        return {"cache": value.name}
    if isinstance(value, tuple):
        return {"tuple": [_encode(x, f"{name} {n}", tensors) for n, x in enumerate(value)]}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a function here is given nothing of type {type(value).__name__}")


def _names(encoded: list[Any]) -> list[str]:
    found: list[str] = []
    for one in encoded:
        if isinstance(one, dict):
            found += [one["tensor"]] if "tensor" in one else _names(one.get("tuple", []))
    return found


def _read(data: Any, places: list[tuple[str, bool]]) -> Any:
    """The result of a call, as the process describes it. Raises WireError."""
    if not isinstance(data, dict) or not data:
        raise WireError("a result that is not described")
    if "tuple" in data:
        each = data["tuple"]
        if not isinstance(each, list) or len(each) > 8 or len(places) > 8:
            raise WireError("a tuple that is no list of a few")
        return tuple(_read(one, places) for one in each)
    if "type" in data:
        name = wire.read(data["type"], Text | None, "a type")
        return None if name is None else _error_type(wire.show(name), object)()
    if data.keys() != {"tensor", "dtype", "shape", "device", "layout", "graph"}:
        raise WireError("a result that is neither a tensor, a tuple nor a type")
    place = wire.read(data["tensor"], Text | None, "a place")
    if place is not None:
        places.append((place, wire.read(data["graph"], bool, "a graph")))
        return _Place(place)
    return Unread(
        wire.read(data["shape"], _SHAPE, "a shape"),
        _OTHER_DTYPES[wire.read(data["dtype"], Literal[*_OTHER_DTYPES], "a dtype")],
        _device(data["device"]),
        wire.show(wire.read(data["layout"], Text, "a layout")),
    )


def _device(name: Any) -> torch.device:
    try:
        return torch.device(wire.read(name, Text, "a device"))
    except RuntimeError:
        raise WireError(f"a device {wire.show(name)}") from None


def _error_type(name: str, base: type[Any]) -> Callable[..., Any]:
    """A type of that name. It is only its name that is the function's."""
    return type(name if name.isidentifier() else "Nameless", (base,), {})


def _other(tensor: Tensor) -> Tensor:
    """Other numbers of the same kind: columns moved on by one, where there are several."""
    return tensor.detach().roll(1, -1) if tensor.is_floating_point() else tensor


def _signature(parameters: Sequence[tuple[str, str, bool]]) -> inspect.Signature:
    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                getattr(inspect.Parameter, kind),
                default=None if default else inspect.Parameter.empty,
            )
            for name, kind, default in parameters
        ],
        __validate_parameters__=False,
    )
