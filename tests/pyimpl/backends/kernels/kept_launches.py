"""Record Triton's launches, in a process that does not interpret: `python kept_launches.py`.

Triton's own way from a call to its compiled kernel runs in full; the compiler at its end is
replaced by a note of the kernel that would be compiled, and the start of the kernel by a note of
its arguments. Each call is made three times: as Triton alone launches it, for the first time, and
with other tensors of the same kind, whose launches are those that were kept.

Printed, as JSON: the calls whose launches differ, by the part of a launch's key that is left out;
the calls that read a number of a tensor, with `check` and without; and ways to read one
that would not be noticed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import torch
import triton
from torch import Tensor
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor
from triton.runtime import driver

from pyimpl import attention, attention_decode, attention_varlen
from pyimpl.backends.kernels.backward import backward
from pyimpl.backends.kernels.forward import forward
from pyimpl.backends.kernels.hopper import choice
from pyimpl.backends.kernels.hopper import forward as hopper
from pyimpl.backends.kernels.parts import kept, launch
from pyimpl.backends.kernels.parts.sequences import Sequences
from pyimpl.internal.gradients import Wanted
from pyimpl.internal.scores import CHANGES, ScoreOptions

Call = Callable[[], object]
PER_HEAD = [change.name for change in CHANGES if change.kind == "head"]
STARTED: list[tuple[object, ...]] = []
# The arguments for Triton's hooks at each start: the metadata that they are told, and the two.
HOOKS: list[tuple[object, ...]] = []
# The arguments of `backward` that are no options.
HOW = {"hopper", "hopper_queries", "delta", "wide", "blocks", "sequences"}


class Compiled:
    """A kernel that would have been compiled: its text, the types of its arguments and the known
    facts about them."""

    packed_metadata = function = None

    def __init__(self, source: Any) -> None:
        attributes = sorted((str(path), str(known)) for path, known in source.attrs.items())
        constants = sorted((str(path), str(value)) for path, value in source.constants.items())
        self.what = (source.fn.__name__, tuple(source.signature.items()), attributes, constants)

    def launch_metadata(self, grid: object, *_: object) -> object:
        return grid

    def run(self, *given: Any) -> None:
        HOOKS.append(given[6:9])
        STARTED.append((self.what, given[:3], tuple(plain(x) for x in given[9:])))

    def __getitem__(self, grid: tuple[int, int, int]) -> Callable[..., None]:
        return lambda *given: self.run(*grid, *[None] * 6, *given)


def plain(given: Any) -> Any:
    """An argument; of a tensor its address; of the description of a tensor that and the rest."""
    if isinstance(given, TensorDescriptor):
        sizes = (given.shape, given.strides, given.block_shape)
        return given.base.data_ptr(), [list(size) for size in sizes]
    return given.data_ptr() if isinstance(given, Tensor) else given


class Driver:
    """A GPU of Hopper's kind, to Triton."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _: int) -> int:
        return 0


def compile_stand_in(source: Any, **_: object) -> Compiled:
    """Stands for `triton.compile`."""
    return Compiled(source)


@contextmanager
def on_a_gpu() -> Iterator[None]:
    """CPU tensors are taken for those of the GPU."""
    driver.set_active(Driver())
    there = launch.StandIn(capability=90, processors=132)
    seen = replace(
        choice.SEEN[0], kernel=choice.text_of_the_kernel(), tritons=choice.TRITONS, head_dim=128
    )
    by_backward, by_queries = (
        (replace(seen, kernel=choice.text_of_the_kernel(name), head_dim=64),)
        for name in ("backward", "queries")
    )
    with (
        mock.patch.object(triton.compiler, "compile", compile_stand_in),
        mock.patch.object(launch, "stand_in", there),
        mock.patch.object(choice, "SEEN", (seen,)),
        mock.patch.object(choice, "SEEN_BACKWARD", by_backward),
        mock.patch.object(choice, "SEEN_QUERIES", by_queries),
    ):
        yield


def launches_of(call: Call) -> list[tuple[object, ...]]:
    """The launches of the call, with the addresses that it allocates by their order."""
    STARTED.clear()
    call()
    return list(STARTED)


def rows(*size: int, dtype: torch.dtype = torch.bfloat16, at: int = 0, seed: int = 0) -> Tensor:
    """Random rows that begin `at` elements after an address that 16 divides."""
    made = torch.Generator().manual_seed(seed)
    count = torch.Size(size).numel()
    whole = torch.empty(count + 64 + at, dtype=dtype)
    assert whole.data_ptr() % 64 == 0
    place = whole[at : at + count].view(size)
    return place.copy_(torch.randn(size, generator=made))


def calls(seed: int) -> dict[str, Call]:
    """One call of each kind, with tensors of their own."""
    q, k, v = (rows(2, 4, 40, 64, seed=seed + n) for n in range(3))
    few = [rows(2, 2, 40, 64, seed=seed + n) for n in range(2)]
    q5, k5, v5 = (rows(2, 4, 40, 64, at=5, seed=seed + n) for n in range(3))
    q8, k8, v8 = (rows(2, 4, 40, 64, at=8, seed=seed + n) for n in range(3))
    wide = [rows(2, 4, 40, 64, dtype=torch.float32, seed=seed + n) for n in range(3)]
    across = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
    mask = torch.ones(40, 40, dtype=torch.bool).tril()
    bias, slopes, sinks = torch.randn(4, 40, 40), torch.rand(4), torch.rand(4)
    one = rows(2, 4, 1, 64, seed=seed)
    cache = [rows(2, 2, 4096, 64, seed=seed + n) for n in range(2)]
    pool = [rows(9, 2, 512, 64, seed=seed + n) for n in range(2)]
    lens = torch.tensor([3000, 4096], dtype=torch.int32)
    table = torch.arange(8, dtype=torch.int32).expand(2, 8).contiguous()
    packed = [rows(40, 4, 64, seed=seed + n) for n in range(3)]
    sums = torch.tensor([0, 12, 40], dtype=torch.int32)

    def of(*given: Tensor, **options: Any) -> Call:
        return lambda: attention(*given, backend="triton", **options)

    def kernel(*given: Tensor) -> Call:
        # PyTorch carries out a negation that is due before an operator begins.
        return lambda: forward(*given, ScoreOptions(0.125))

    def gluon(*given: Tensor, **options: Any) -> Call:
        return lambda: attention(*given, backend="gluon", **options)

    def gluon_kernel(*given: Tensor, scale: float = 0.125) -> Call:
        return lambda: hopper.forward(*given, ScoreOptions(scale))

    def step(*given: Tensor, **options: Any) -> Call:
        named = {"enable_gqa": True, "check": False, "backend": "triton"} | options
        return lambda: attention_decode(*given, **named)

    def together(**options: Any) -> Call:
        named = {"check": False, "backend": "triton"} | options
        return lambda: attention_varlen(*packed, sums, sums, **named)

    def back(*given: Tensor, grad_lse: Tensor | None = None, **changes: Any) -> Call:
        how = {name: changes.pop(name) for name in HOW & set(changes)}
        wanted, options = changes.pop("wanted", Wanted()), ScoreOptions(0.125, **changes)
        size = (*given[0].shape[:-1], given[2].shape[-1])
        out, grad_out = (torch.randn(size).to(given[0].dtype) for _ in range(2))
        lse = torch.rand(out.shape[:-1])
        return lambda: backward(*given, out, lse, grad_out, grad_lse, options, wanted, **how)

    numbers = torch.rand(2, 4, 40)
    narrow = [rows(2, 4, 40, 40, seed=seed + n) for n in range(3)]
    one_batch = [x.transpose(0, 1)[None] for x in packed]
    together_back = {"sequences": Sequences(sums, sums, 28, 40, False)}
    return {
        "plain": of(q, k, v),
        "causal": of(q, k, v, is_causal=True),
        "bottom-right": of(q[:, :, :8], k, v, is_causal=True, causal_alignment="bottom-right"),
        "window": of(q, k, v, window=(7, 3)),
        "window-of-8": of(q, k, v, window=(8, 3)),
        "scale": of(q, k, v, scale=0.3),
        "softcap": of(q, k, v, softcap=9.0),
        "mask": of(q, k, v, attn_mask=mask),
        "bias": of(q, k, v, bias=bias),
        "slopes": of(q, k, v, alibi_slopes=slopes),
        "sinks": of(q, k, v, sinks=sinks),
        "dropout": of(q, k, v, dropout_p=0.3, dropout_seed=torch.tensor(seed)),
        "other-dropout": of(q, k, v, dropout_p=0.4, dropout_seed=torch.tensor(seed)),
        "grouped": of(q, *few, enable_gqa=True),
        "address-of-10": of(q5, k5, v5),
        "address-of-16": of(q8, k8, v8),
        "one-address-of-10": of(q, k5, v),
        "float32": of(*wide),
        "strides": of(*across),
        "same-tensor": of(q, q, q),
        "kernel": kernel(q, k, v),
        "negated": kernel(torch._neg_view(q), k, v),
        "fewer-keys": of(q, k[:, :, :33], v[:, :, :33]),
        "gluon": gluon(q, k, v),
        "gluon-causal": gluon(q, k, v, is_causal=True),
        "gluon-window": gluon(q, k, v, window=(7, 3)),
        "gluon-scale": gluon(q, k, v, scale=0.3),
        "gluon-grouped": gluon(q, *few, enable_gqa=True),
        "gluon-float16": gluon(*(x.half() for x in (q, k, v))),
        "gluon-strides": gluon(*across),
        "gluon-address-of-16": gluon(q8, k8, v8),
        "gluon-fewer-keys": gluon(q, k[:, :, :33], v[:, :, :33]),
        "gluon-same-tensor": gluon(q, q, q),
        "gluon-kernel": gluon_kernel(q, k, v),
        "gluon-negated": gluon_kernel(torch._neg_view(q), k, v),
        "gluon-negative-scale": gluon_kernel(q, k, v, scale=-0.125),
        "decode": step(one, *cache),
        "decode-in-one": step(one, *cache, num_splits=1),
        "decode-in-3": step(one, *cache, num_splits=3),
        "decode-lens": step(one, *cache, kv_lens=lens),
        "decode-causal": step(one, *cache, kv_lens=lens, is_causal=True),
        "paged": step(one, *pool, kv_lens=lens, page_table=table),
        "backward": back(q, k, v),
        "backward-causal": back(q, k, v, right=0),
        "backward-scale": back(q, k, v, softcap=9.0),
        "backward-mask": back(q, k, v, mask=mask),
        "backward-bias": back(q, k, v, bias=bias),
        "backward-slopes": back(q, k, v, alibi_slopes=slopes[None], wanted=Wanted(slopes=True)),
        "backward-grouped": back(q, *few),
        "backward-lse": back(q, k, v, grad_lse=numbers),
        "backward-delta": back(q, k, v, delta=numbers),
        "backward-wide": back(q, k, v, wide=True),
        "backward-blocks": back(q, k, v, blocks={"block_m": 32}),
        "backward-of-40": back(*narrow),
        "backward-strides": back(*across),
        "backward-address-of-10": back(q5, k5, v5),
        "backward-packed": back(*one_batch, **together_back),
        "backward-gluon": back(q, k, v, hopper=True),
        "backward-gluon-causal": back(q, k, v, hopper=True, right=0),
        "backward-gluon-grouped": back(q, *few, hopper=True),
        "backward-gluon-strides": back(*across, hopper=True),
        "backward-not-gluon": back(q, k, v, hopper=True, softcap=9.0),
        "backward-gluon-queries": back(q, k, v, hopper_queries=True),
        "backward-gluon-queries-window": back(q, k, v, hopper_queries=True, left=9, right=0),
        "backward-gluon-both": back(q, *few, hopper=True, hopper_queries=True),
        "backward-gluon-queries-strides": back(*across, hopper_queries=True),
        "backward-not-gluon-queries": back(q, k, v, hopper_queries=True, wide=True),
        "backward-auto": back(q, k, v, hopper=None, hopper_queries=None),
        "backward-auto-of-60": back(
            q[..., :60].clone(), k[..., :60].clone(), v, hopper=None, hopper_queries=None
        ),
        "backward-auto-unseen-keys": back(
            q, k, v, hopper=None, hopper_queries=None, right=0, shift=-1
        ),
        "varlen": together(),
        "varlen-bounded": together(max_q_len=28, max_kv_len=28),
        "varlen-causal": together(is_causal=True, causal_alignment="bottom-right"),
    }


def by_order(events: list[tuple[object, ...]], call: Call) -> object:
    """Events in which each address that is no tensor of the call is its number in their order."""
    cells = call.__closure__ or ()
    known: dict[int, str] = {}
    for cell in cells:
        inside = cell.cell_contents
        values = inside.values() if isinstance(inside, dict) else inside
        for n, x in enumerate(values if isinstance(inside, (dict, tuple, list)) else [inside]):
            if isinstance(x, Tensor):
                known.setdefault(x.data_ptr(), f"given {len(known)} {n}")
    found = []
    for what, grid, given in events:
        names = []
        for (name, kind), value in zip(what[1], given, strict=True):
            if str(kind).startswith("*"):
                value = known.setdefault(value, f"new {len(known)}")
            if str(kind).startswith("tensordesc"):
                value = (known.setdefault(value[0], f"new {len(known)}"), value[1])
            names.append((name, value))
        found.append((what, grid, names))
    return found


def choices() -> dict[str, Callable[[], bool]]:
    """Whether "auto" takes the Gluon kernel, by the calls that decide it, in their order: the
    answer changes with each, by another part of its inputs."""
    q, k = rows(1, 2, 256, 128), rows(1, 2, 256, 128)
    causal = ScoreOptions(0.125, right=0)

    def ask(query: Tensor, key: Tensor, options: ScoreOptions) -> Callable[[], bool]:
        return lambda: choice.is_chosen(query, key, key, options)

    return {
        "choice": ask(q, k, causal),
        "choice-window": ask(q, k, replace(causal, left=3)),
        "choice-causal": ask(q[:, :, :128], k, causal),
        "choice-fewer-queries": ask(q[:, :, :100], k, causal),
        "choice-mask": ask(q, k, replace(causal, mask=torch.ones(256, 256).bool())),
        "choice-strides": ask(rows(1, 2, 128, 256).transpose(2, 3), k, causal),
        "choice-address-of-10": ask(rows(1, 2, 256, 128, at=5), k, causal),
        "choice-float32": ask(q.float(), k.float(), causal),
    }


def compare() -> list[str]:
    """The names of calls whose launches differ: of Triton's own and those that are kept."""
    kept._KEPT.clear()
    kept._DECIDED.clear()
    wrong = []
    for name, chosen in choices().items():
        with mock.patch.object(kept, "_COMPILES", False):
            own = chosen()
        if chosen() != own or chosen() != own or own != (name in ("choice", "choice-causal")):
            wrong.append(name)
    first, second = calls(0), calls(10)
    for name, call in first.items():
        with mock.patch.object(kept, "_COMPILES", False):
            own = by_order(launches_of(call), call)
        if by_order(launches_of(call), call) != own or not own:
            wrong.append(f"{name}, the first time")
    count = len(kept._KEPT)
    for name, call in second.items():
        with mock.patch.object(kept, "_COMPILES", False):
            own = by_order(launches_of(call), call)
        if by_order(launches_of(call), call) != own:
            wrong.append(f"{name}, kept")
    if len(kept._KEPT) != count:
        wrong.append(f"{len(kept._KEPT) - count} launches were not kept")
    return wrong


# Parts of a launch's key, each left out by a change of the key.
FORGOTTEN: dict[str, Callable[[list[Any]], list[Any]]] = {
    "nothing": lambda key: key,
    "numbers": lambda key: key[1:],
    "shapes": lambda key: [x for x in key if not isinstance(x, torch.Size)],
    "dtypes": lambda key: [x for x in key if not isinstance(x, torch.dtype)],
    "strides": lambda key: [x for n, x in enumerate(key) if not n or type(x) is not tuple],
    "alignment": lambda key: [x for x in key if type(x) is not int],
    "negation": lambda key: [x for x in key if type(x) is not bool],
}


def differences(mutant: str) -> list[str]:
    """`compare` where a part of the key is left out."""
    forget, true = FORGOTTEN[mutant], kept._kind

    def kind(*given: Any) -> Any:
        key = true(*given)
        return None if key is None else tuple(forget(list(key)))

    with mock.patch.object(kept, "_kind", kind), torch.no_grad():
        return compare()


def differences_of_old_descriptors() -> list[str]:
    """`compare` where a launch that is kept describes the tensors that it was made for."""

    def old(descriptor: Any, _: object) -> Any:
        return descriptor

    with mock.patch.object(kept, "_of_another", old), torch.no_grad():
        return compare()


def hooks() -> list[object]:
    """The data that Triton's hooks get of a launch that is kept: without any, with one in Triton's
    chain, and with a function in its place."""
    q = rows(2, 4, 40, 64)

    def last_hooks() -> object:
        attention(q, q, q, backend="triton")
        told, enter, leave = HOOKS[-1]
        return [told, enter is not None, leave is not None]

    last_hooks()
    found = [last_hooks()]
    chain: Any = knobs.runtime.launch_enter_hook
    chain.add(print)
    found.append(last_hooks())
    chain.remove(print)
    with mock.patch.object(knobs.runtime, "launch_exit_hook", print):
        found.append(last_hooks())
    return found


class ReadError(Exception):
    """A number of a tensor was asked for."""


# PyTorch's inner names of these readings, and operations whose results' sizes are such numbers.
READINGS = {
    f"aten::{name}"
    for name in (
        "_local_scalar_dense",
        "is_nonzero",
        "equal",
        "nonzero",
        "masked_select",
        "_unique2",
    )
}


@contextmanager
def unreadable() -> Iterator[None]:
    """A block in which no number of a tensor can be had: on a GPU that would wait for it. Raises
    ReadError, at the end where only PyTorch itself read one."""

    def read(*_: object) -> None:
        raise ReadError

    names = ("tolist", "item", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__")
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch.object(Tensor, name, read))
        with torch.autograd.profiler.profile() as profile:
            yield
    if READINGS & {event.name for event in profile.function_events}:
        raise ReadError


def is_read(call: Callable[[], object]) -> bool:
    """Whether the call reads a number of a tensor."""
    try:
        with unreadable():
            call()
    except ReadError:
        return True
    return False


def blind_spots() -> list[str]:
    """Ways to read a number that `is_read` does not see."""
    x = torch.ones(3)
    ways: dict[str, Callable[[], object]] = {
        "method": lambda: x.tolist(), "test": lambda: bool(x[0]), "size": x.nonzero,
        "mask": lambda: x[x > 0.0], "inside": lambda: torch.equal(x, x),
        "below": lambda: torch.ops.aten._local_scalar_dense(x[0]),
    }  # fmt: skip
    return [name for name, way in ways.items() if not is_read(way)]


def reading_calls(check: bool) -> list[str]:
    """The calls that read a number, forward or backward."""
    q, k, v = (rows(2, 4, 40, 64, seed=n).requires_grad_() for n in range(3))
    packed = [rows(40, 4, 64, seed=n).requires_grad_() for n in range(3)]
    sums = torch.tensor([0, 12, 40], dtype=torch.int32)
    slopes = torch.rand(2, 4, requires_grad=True)
    heads = torch.rand(4, requires_grad=True)
    low = torch.full((40, 40), torch.finfo(torch.float32).min)
    one, cache = rows(2, 4, 1, 64), rows(2, 4, 512, 64)
    lens, table = torch.tensor([300, 512]), torch.zeros(2, 4, dtype=torch.int64)
    named: dict[str, Any] = {"check": check, "backend": "triton"}
    gluon: dict[str, Any] = {"check": check, "backend": "gluon"}
    found = {
        "attention": lambda: attention(q, k, v, is_causal=True, **named),
        "gluon": lambda: attention(q, k, v, is_causal=True, **gluon),
        "auto": lambda: attention(q, k, v, is_causal=True, check=check),
        "mask": lambda: attention(q, k, v, attn_mask=low.triu(1), **named),
        "bias": lambda: attention(q, k, v, bias=low.triu(1).expand(2, 4, 40, 40), **named),
        **{name: partial(attention, q, k, v, **{name: heads}, **named) for name in PER_HEAD},
        "dropout": lambda: attention(q, k, v, dropout_p=0.5, **named),
        "varlen": lambda: attention_varlen(*packed, sums, sums, **named),
        "varlen-slopes": lambda: attention_varlen(
            *packed, sums, sums, alibi_slopes=slopes, max_q_len=28, max_kv_len=28, **named
        ),
        "decode": lambda: attention_decode(one, cache, cache, **named),
        "lens": lambda: attention_decode(one, cache, cache, kv_lens=lens, **named),
        "paged": lambda: attention_decode(
            one, cache, cache, kv_lens=lens, page_table=table, sinks=heads.detach(), **named
        ),
    }

    def both_ways(call: Callable[[], Tensor]) -> None:
        out = call()
        if out.requires_grad:
            out.sum().backward()

    return [name for name, call in found.items() if is_read(partial(both_ways, call))]


def main() -> None:
    with on_a_gpu():
        differ = {mutant: differences(mutant) for mutant in FORGOTTEN}
        differ["descriptors"] = differences_of_old_descriptors()
        read = [reading_calls(check=True), reading_calls(check=False)]
        print(json.dumps([differ, PER_HEAD, *read, hooks(), blind_spots()]))


if __name__ == "__main__":
    main()
