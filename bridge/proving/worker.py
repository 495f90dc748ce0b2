"""The program in the process of somebody else's Triton kernel: it calls the kernel's launcher on
fake tensors, and sends the launches back as data (`bridge.conformance.sandbox.wire`), the kernels'
TTIR among them.

    python -m bridge.proving.worker REQUESTS ANSWERS FILE.py:KERNEL

REQUESTS, ANSWERS: file descriptors. A request is a line of JSON, the fields of `Request`; the
answer to one is a frame `step` for each step, then `recorded`, or `refused` with a sentence.
The first frame of all is `ready` or `refused`.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bridge import interpreting

if TYPE_CHECKING:
    from bridge.proving.recording import Recording

_CAUSAL = ("is_causal", "causal")
_SCALE = ("scale", "sm_scale", "softmax_scale")


@dataclass(frozen=True)
class Request:
    """The launcher's arguments: query `[batch, heads, q_len, head_dim]`, key and value
    `[batch, kv_heads, kv_len, …]`, or heads after lengths if `layout` is "bnhd".

    scale: None: not given, so that the launcher's own is 1/√head_dim. backward: whether to ask
    PyTorch for gradients of the launcher's result.
    """

    batch: int
    heads: int
    kv_heads: int
    q_len: int
    kv_len: int
    head_dim: int
    value_dim: int
    causal: bool
    scale: float
    dtype: str
    layout: str
    arch: int
    configuration: int
    backward: bool = False


@dataclass(frozen=True)
class _Called:
    """The output and, if it was returned, the log-sum-exp; how many steps there were by then; the
    gradients by query, key and value, if they were asked for."""

    outputs: tuple[Any, ...]
    forward_steps: int
    gradients: tuple[Any, ...]


def main(requests: int, answers: int, name: str) -> None:
    # The code's own prints must stay apart from the text for the user.
    os.dup2(2, 1)
    # Triton reads its environment when it is imported.
    interpreting.settle(False)
    from bridge.conformance.sandbox import wire
    from bridge.proving.recorded import Recorded, encode
    from bridge.proving.recording import Recording, gpu

    def send(kind: str, **fields: Any) -> None:
        wire.write(answers, kind, fields)

    import contextlib

    with contextlib.ExitStack() as stack:
        for patch in gpu(90):
            # A file may ask for its GPU when it is imported.
            stack.enter_context(patch)
        try:
            launcher = _launcher(name)
        except Exception as error:
            send("refused", sentence=wire.cut(str(error)))
            return
    send("ready", takes=_takes(launcher))
    with os.fdopen(requests) as lines:
        for line in lines:
            request = Request(**json.loads(line))
            recording = Recording(request.arch, request.configuration)
            try:
                with recording:
                    called = _call(launcher, request, recording)
                    found = encode(
                        Recorded(
                            tuple(recording.steps),
                            tuple(recording.storages_to_send()),
                            tuple(map(recording.view, called.outputs)),
                            called.forward_steps,
                            tuple(map(recording.view, called.gradients)),
                        )
                    )
            except Exception as error:
                send("refused", sentence=wire.cut(_describe(error, name)))
                continue
            for step in found.pop("steps"):
                send("step", **step)
            send("recorded", **found)


def _launcher(name: str) -> Callable[..., Any]:
    """The function that is called: the one that is named, or of a kernel `launch_` and its name.
    Raises NotFound."""
    from triton.runtime.jit import KernelInterface

    from bridge.conformance.inside.found import NotFound, look_up

    found = look_up(name)
    if isinstance(found, KernelInterface):
        place, _, attribute = name.rpartition(":")
        try:
            found = look_up(f"{place}:launch_{attribute}")
        except NotFound:
            raise NotFound(
                f"{attribute} is a kernel, and {place} has no function launch_{attribute}, which "
                "is called with query, key and value and launches it"
            ) from None
    if inspect.isclass(found) and hasattr(found, "apply"):
        found = found.apply
    if not callable(found):
        raise NotFound(f"{name} is of type {type(found).__name__}, which cannot be called")
    launcher: Callable[..., Any] = found
    return launcher


def _parameters(launcher: Callable[..., Any]) -> list[str]:
    """The names of the parameters; those of `torch.autograd.Function.apply` are those of
    `forward`."""
    owner = getattr(launcher, "__self__", None)
    if inspect.isclass(owner) and hasattr(owner, "forward"):
        return list(inspect.signature(owner.forward).parameters)[1:]
    return list(inspect.signature(launcher).parameters)


def _takes(launcher: Callable[..., Any]) -> dict[str, bool]:
    names = _parameters(launcher)
    return {
        "causal": any(name in names for name in _CAUSAL),
        "scale": any(name in names for name in _SCALE),
    }


def _call(launcher: Callable[..., Any], request: Request, recording: Recording) -> _Called:
    import torch

    from bridge.conformance.tensors.batch import DTYPES

    dtype = DTYPES[request.dtype]

    def tensor(name: str, heads: int, length: int, dim: int) -> Any:
        sizes = [request.batch, heads, length, dim]
        if request.layout == "bnhd":
            sizes = [request.batch, length, heads, dim]
        return recording.make_argument(name, sizes, _dense(sizes), dtype).requires_grad_(
            request.backward
        )

    q = tensor("query", request.heads, request.q_len, request.head_dim)
    k = tensor("key", request.kv_heads, request.kv_len, request.head_dim)
    v = tensor("value", request.kv_heads, request.kv_len, request.value_dim)
    named: dict[str, Any] = {}
    names = _parameters(launcher)
    for choices, given in ((_CAUSAL, request.causal), (_SCALE, request.scale)):
        named |= {name: given for name in choices if name in names}
    if getattr(launcher, "__name__", "") == "apply":
        # `apply` takes no names.
        in_order = [named.pop(name) for name in names[3:] if name in named]
        found = launcher(q, k, v, *in_order)
    else:
        found = launcher(q, k, v, **named)
    outputs = found if isinstance(found, tuple) else (found,)
    if not outputs or not isinstance(outputs[0], torch.Tensor):
        raise TypeError(f"returned {type(found).__name__}, and a tensor is accepted")
    outputs = tuple(x for x in outputs[:2] if isinstance(x, torch.Tensor))
    steps = len(recording.steps)
    if not request.backward:
        return _Called(outputs, steps, ())
    out = outputs[0]
    if not out.requires_grad:
        raise TypeError(
            "returned an output that has no gradient, and one that a torch.autograd.Function "
            "computes is accepted"
        )
    grad_out = recording.make_argument("grad_output", out.shape, _dense(out.shape), out.dtype)
    # `torch.autograd.grad` would call the code's backward pass where `Recording`'s modes are not.
    engine = torch.autograd.Variable._execution_engine
    gradients = engine.run_backward(
        (out,), (grad_out,), False, False, (q, k, v), False, accumulate_grad=False
    )
    return _Called(outputs, steps, gradients)


def _dense(sizes: Sequence[int]) -> list[int]:
    """The strides of a contiguous tensor."""
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size)
    return strides


def _describe(error: Exception, name: str) -> str:
    """An exception in a sentence, with the line of the file that it comes from."""
    file = name.rpartition(":")[0].rpartition("/")[2]
    lines = [
        f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(file)
    ]
    where = f" at {file}:{lines[-1]}" if lines else ""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}{where}: {text[0] if text else ''}".rstrip(": ")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
