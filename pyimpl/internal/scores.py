"""The changes of the scores between the product q·k and the softmax, and of the weights after it,
in one value that every implementation takes.

`CHANGES` is the table of the changes. A new one is a row of it and a field of `ScoreOptions`; from
the table come
the operators' schemas, the checks of arguments, the parts that a tile loop or a sequence takes,
the arguments of the kernels, which gradients there are, the cases that are compiled, and the
entries of the vectors' adapters and of the pages. Its formula is computed in the backends.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, Literal, TypedDict, TypeVar, cast

import torch
from torch import Tensor

from pyimpl.internal import arguments
from pyimpl.internal.arguments import Alignment, Window
from pyimpl.internal.dropout import Dropout
from pyimpl.internal.implements import implements
from pyimpl.internal.part import Part

NO_BOUND = 1 << 40
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Change:
    """A row of the table: a change of the scores, apart from scale, masks and dropout.

    name: of the argument of the public functions, and of the field of `ScoreOptions`.
    lean: the definition in Lean. feature: its name in the vectors, and in adapters and cases;
    title: in tables of the pages.
    kind: a number; a tensor per head, `[heads]`; or one per pair of query and key.
    argument: of the kernels, "": the change is folded into the query before an implementation
        begins (`folds_into_query`); letter: of a tensor's strides.
    check: of a number, with scale and dtype of query; raises TypeError or ValueError.
    by_batch: a tensor per head is `[batch|1, heads]`. finite: a tensor holds no −∞.
    gradient: the field of `pyimpl.internal.gradients.Gradients`; None: there is no gradient by it.
    """

    name: str
    lean: str
    feature: str
    title: str
    kind: Literal["number", "head", "pair"]
    argument: str = ""
    letter: str = ""
    check: Callable[[object, float, torch.dtype], None] | None = None
    by_batch: bool = False
    finite: bool = False
    gradient: str | None = None

    def part(self, tensor: Tensor | None, batches: slice, heads: slice) -> Tensor | None:
        """That of some batches and heads; dimensions of 1, which are broadcast, stay."""
        if tensor is None or self.kind == "number":
            return tensor
        if self.kind == "head" and not self.by_batch:
            return cut(tensor, heads)
        return cut(tensor, batches, heads)


def cut(tensor: Tensor | None, *dims: slice | Tensor) -> Tensor | None:
    """These places of the first dimensions, of those of size 1 the whole; None of None. At most one
    is a tensor of numbers, for which the result is a copy."""
    if tensor is None:
        return None
    picked = (slice(None) if n == 1 else d for n, d in zip(tensor.shape, dims, strict=False))
    return tensor[tuple(picked)]


CHANGES = (
    Change(
        "softcap", "Attention.Spec.ScoreMod.softcap", feature="softcap", title="softcap",
        kind="number", argument="cap", check=arguments.check_softcap,
    ),
    Change(
        "alibi_slopes", "Attention.Spec.ScoreMod.alibi", feature="alibi", title="ALiBi",
        kind="head", argument="slopes_ptr", letter="s", by_batch=True, finite=True,
        gradient="slopes",
    ),
    Change(
        "bias", "Attention.Spec.ScoreMod.bias", feature="bias", title="bias",
        kind="pair", argument="bias_ptr", letter="b", gradient="bias",
    ),
    Change(
        "sinks", "Attention.Spec.attentionSink", feature="sink", title="sinks",
        kind="head", argument="sinks_ptr", letter="i", gradient="sinks",
    ),
    Change(
        "temperature", "Attention.Spec.ScoreMod.temperature", feature="temperature",
        title="temperature", kind="head", finite=True, gradient="temperature",
    ),
)  # fmt: skip


class Changes(TypedDict, total=False):
    """Arguments that change the scores, as a public function takes and passes them on: the scale,
    and of `CHANGES` those that are no pairs' own. `pyimpl.attention` explains each.

    A function takes them as `**changes: Unpack[Changes]`, where type checkers know each by name and
    type, under `takes_changes`."""

    temperature: Tensor | None
    softcap: float | None
    alibi_slopes: Tensor | None
    sinks: Tensor | None
    scale: float | None


def takes_changes(function: Function) -> Function:
    """A function whose `**changes` are `Changes`: where Python shows its signature (`help`,
    `inspect`, the pages) each of them stands by name, with its type, and None if it is left out."""
    signature = inspect.signature(function)
    own = list(signature.parameters.values())
    rest = own.pop()
    if rest.kind is not rest.VAR_KEYWORD:
        raise TypeError(f"{function.__qualname__} has no **changes as its last argument")
    hints = {name: hint.__forward_arg__ for name, hint in Changes.__annotations__.items()}
    given = [
        inspect.Parameter(name, rest.KEYWORD_ONLY, default=None, annotation=hint)
        for name, hint in hints.items()
    ]
    shown: Any = function
    shown.__signature__ = signature.replace(parameters=own + given)
    return function


# Those that the kernels compute; the others are folded into the query.
KERNEL_CHANGES = tuple(change for change in CHANGES if change.argument)
_TENSORS = tuple(change.name for change in CHANGES if change.kind != "number")
# By which changes there are gradients: the field of `Gradients`, and the change.
DIFFERENTIABLE = {change.gradient: change for change in CHANGES if change.gradient is not None}


@dataclass(frozen=True)
class ScoreOptions:
    """The score of query i and key j is scale·⟨qᵢ, kⱼ⟩, then in this order:

    temperature `[heads]`, floating: the score is multiplied by that of its head
        (`Attention.Spec.ScoreMod.temperature`);
    softcap: cap·tanh(score / cap), cap > 0 (`Attention.Spec.ScoreMod.softcap`);
    alibi_slopes `[batch|1, heads]`, floating: − slope·|i + shift − j| is added
        (`Attention.Spec.ScoreMod.alibi`);
    bias, floating, broadcastable to `[batch, heads, q_len, kv_len]`: added; −∞ masks the pair
        (`Attention.Spec.ScoreMod.bias`);
    mask, boolean, broadcastable likewise: False masks the pair (`Attention.Spec.Mask`);
    left, right: the pair is masked unless i + shift − left ≤ j ≤ i + shift + right, None: no bound
        on that side (`Attention.Spec.Mask.window`); causal is right = 0.

    shift is where query 0 stands on the axis of the keys: 0 when aligned top-left, kv_len − q_len
    when bottom-right (`Attention.Spec.Alignment`).

    sinks `[heads]`, floating: one more score in every softmax of the head, without a value
    (`Attention.Spec.attentionSink`).

    check: whether the numbers in tensors are looked at, which waits for a GPU.

    dropout: of the weights, which are normalised before: the log-sum-exp is that without it.
    """

    scale: float
    softcap: float | None = None
    alibi_slopes: Tensor | None = None
    bias: Tensor | None = None
    mask: Tensor | None = None
    left: int | None = None
    right: int | None = None
    shift: int = 0
    sinks: Tensor | None = None
    temperature: Tensor | None = None
    check: bool = True
    dropout: Dropout | None = None

    def flat(self) -> tuple[Tensor | int | float | list[int] | None, ...]:
        """The fields in order, as the operators take them (`SCHEMA`)."""
        *own, dropout = [getattr(self, name) for name in _FIELDS]
        if dropout is None:
            return (*own, 0.0, None, None)
        return (*own, dropout.p, dropout.seed, dropout.place)

    @classmethod
    def of_flat(cls, *flat: Any) -> ScoreOptions:
        """The options of which `flat` gives this."""
        *own, p, seed, place = flat
        own.append(Dropout.at_place(p, seed, place) if p else None)
        options = object.__new__(cls)
        # As `cls(*own)`, which sets each field of a frozen class by a call of its own.
        vars(options).update(zip(_FIELDS, own, strict=True))
        return options

    def part(self, batches: slice, heads: slice, sizes: tuple[int, int, int, int]) -> ScoreOptions:
        """The options of these batches and heads, out of sizes = (batch, heads, q_len, kv_len):
        tensors as views, masks and biases as `[batch|1, heads|1, q_len, kv_len]`."""

        whole = (batches, heads) == (slice(0, sizes[0]), slice(0, sizes[1]))
        if whole and self.mask is None and self.bias is None and self.dropout is None:
            return self

        def of_pairs(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else arguments.mask_as_4d(tensor, *sizes[2:])

        changed: dict[str, Any] = {
            change.name: change.part(
                of_pairs(given) if change.kind == "pair" else given, batches, heads
            )
            for change in CHANGES
            for given in [getattr(self, change.name)]
        }
        dropout = self.dropout
        if dropout is not None:
            dropout = dropout.from_head(sizes[1], batches.start, heads.start)
        mask = cut(of_pairs(self.mask), batches, heads)
        return replace(self, mask=mask, dropout=dropout, **changed)

    def at(self, part: Part) -> ScoreOptions:
        """The options where this part of a call stands, if these are where the whole does; their
        tensors stay."""
        dropout = self.dropout
        if dropout is not None:
            dropout = dropout.from_head(part.whole[1], part.first_batch, part.first_head)
            dropout = dropout.from_row(part.first_query, part.first_key)
        shift = self.shift + part.first_query - part.first_key
        return replace(self, shift=shift, dropout=dropout)

    def of_batches(self, some: slice, **others: Any) -> ScoreOptions:
        """The options of some batches or packed sequences, that have no mask and no bias; `others`:
        fields that become this."""
        per_batch: dict[str, Any] = {
            change.name: cut(getattr(self, change.name), some)
            for change in CHANGES
            if change.by_batch
        }
        return replace(self, **per_batch, **others)

    def tensors(self) -> dict[str, Tensor]:
        """The changes that are tensors and given, by name."""
        return {name: x for name in _TENSORS if (x := getattr(self, name)) is not None}


_FIELDS = tuple(field.name for field in fields(ScoreOptions))
_TYPES = {
    "float": "float", "float | None": "float?", "Tensor | None": "Tensor?", "int": "SymInt",
    "int | None": "SymInt?", "bool": "bool",
}  # fmt: skip
# The values of `ScoreOptions.flat`, as PyTorch's operator schemas write it.
_FLAT = {one.name: _TYPES[str(one.type)] for one in fields(ScoreOptions) if one.name != "dropout"}
_FLAT |= {"dropout_p": "float", "dropout_seed": "Tensor?", "dropout_place": "SymInt[]?"}
SCHEMA = ", ".join(f"{kind} {name}" for name, kind in _FLAT.items())
NAMES = tuple(_FLAT)


@implements("Attention.Spec.ScoreMod.temperature")
@implements("Attention.Spec.scaleRows")
def scale_by_head(rows: Tensor, temperature: Tensor) -> Tensor:
    """The rows of each head times its temperature, rounded once to their dtype. The scores of
    queries are multiplied by it then (`Attention.Proof.attention_temperature`).

    `rows` `[batch, heads, length, dim]`, or packed `[length, heads, dim]`; `temperature` `[heads]`.
    """
    wide = arguments.compute_dtype(rows.dtype)
    by_head = temperature.to(wide).view(-1, *(1,) * (2 if rows.dim() == 4 else 1))
    return (rows.to(wide) * by_head).to(rows.dtype)


def folds_into_query(function: Function) -> Function:
    """An implementation, called with `query` first, that need not know of the changes of the scores
    which multiply the query: the temperature. The `Gradients` that it returns are its gradients
    then, and become those by the query and the temperature that were given."""
    parameters = list(inspect.signature(function).parameters)
    place, wants = parameters.index("options"), "wanted" in parameters

    @wraps(function)
    def fold(query: Tensor, *args: Any, **named: Any) -> Any:
        options = named["options"] if "options" in named else args[place - 1]
        if options.temperature is None:
            return function(query, *args, **named)
        given = dict(zip(parameters[1:], args, strict=False)) | named
        given["options"] = replace(options, temperature=None)
        found = function(scale_by_head(query, options.temperature), **given)
        return found.unfold(query, options.temperature, given["wanted"]) if wants else found

    return cast(Function, fold)


@implements("Attention.Spec.Alignment.shift")
def alignment_shift(alignment: Alignment, q_len: int, kv_len: int) -> int:
    """By how much a query's place on the axis of the keys differs from its own number."""
    return kv_len - q_len if alignment == "bottom-right" else 0


def checked_options(
    query: Tensor,
    batch: int,
    heads: int,
    *,
    is_causal: bool,
    window: Window,
    scale: float | None = None,
    check: bool | None = None,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    shift: int = 0,
    dropout: Dropout | None = None,
    **given: float | Tensor | None,
) -> ScoreOptions:
    """The options that all public functions have, checked but for the numbers in their tensors
    (`checked_numbers`), beside mask, bias, shift and dropout as they are given.

    `query` `[..., head_dim]` gives dtype and device; given: changes of the scores by name, of which
    a tensor may be given for each of `batch` sequences where it is by batch. check: None for a CPU
    alone. Raises TypeError, ValueError or NotImplementedError, as `pyimpl.attention` does.
    """
    arguments.check_bool("is_causal", is_causal)
    if check is not None:
        arguments.check_bool("check", check)
    arguments.check_window(window)
    arguments.check_scale(scale, query.dtype)
    factor = arguments.resolve_scale(scale, query.shape[-1])
    changes: dict[str, Any] = {}
    for change in CHANGES:
        one = given.pop(change.name, None)
        if one is not None:
            changes[change.name] = _check_change(change, one, query, batch, heads, factor)
    if given:
        raise TypeError(
            f"there is no argument {' or '.join(given)}; those that change the scores are "
            f"{', '.join(Changes.__annotations__)}"
        )
    # A bound beyond any length hides nothing.
    left, right = [None if n is None or n >= NO_BOUND else arguments.whole(n) for n in window]
    right = 0 if is_causal else right
    looks = query.is_cpu if check is None else check
    changes["bias"] = bias
    return ScoreOptions(
        factor, left=left, right=right, mask=mask, shift=shift, check=looks, dropout=dropout,
        **changes,
    )  # fmt: skip


def _check_change(
    change: Change, given: Any, query: Tensor, batch: int, heads: int, scale: float
) -> Any:
    """The value given for a change, as `ScoreOptions` has it."""
    if change.check is not None:
        change.check(given, scale, query.dtype)
    if change.kind == "number":
        return float(given)
    shapes = [[heads], [batch, heads]] if change.by_batch else [[heads]]
    tensor = arguments.check_per_head(change.name, given, query, shapes)
    if not change.by_batch:
        return tensor
    return tensor.reshape(-1, heads) if heads else None


def checked_numbers(options: ScoreOptions, dtype: torch.dtype) -> ScoreOptions:
    """The options with the numbers in their tensors checked, if they are to be, for inputs of this
    dtype, and those that count as −∞ so written; a `mask` that is floating, which the user gave as
    `attn_mask`, becomes the bias.

    A device may be waited for, so this runs inside of the operators, which `torch.compile` does not
    look into. Raises ValueError for NaN, +∞ and numbers that are too large.
    """
    tensors, mask = options.tensors(), options.mask
    if not tensors and mask is None:
        return options
    in_range = arguments.checked_range if options.check else arguments.unchecked_range
    found: dict[str, Any] = {
        change.name: in_range(change.name, tensors[change.name], dtype, finite=change.finite)
        for change in CHANGES
        if change.name in tensors
    }
    if mask is not None and mask.dtype != torch.bool:
        found |= {"mask": None}
        found |= {"bias": in_range("attn_mask", mask, dtype, finite=False)}
    return replace(options, **found) if found else options
