"""Vectors of one shape as tensors, and their exact results to twice the precision of float64."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bridge.conformance.inside.frames import FLOATS
from bridge.vectors.model.attention import Alibi, AttentionVector, Exact, Matrix, Window
from bridge.vectors.model.kept import keep
from bridge.vectors.model.sampled import FloatMatrix, visible_pairs

DTYPES = FLOATS
# Of vectors that one batch can have.
_ALIKE = attrgetter(
    "q_len", "kv_len", "head_dim", "value_dim", "model", "scale", "softcap", "alibi", "sink"
)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Batch:
    """The inputs of one call of an adapter.

    query [batch, 1, q_len, head_dim], key [batch, 1, kv_len, head_dim], value [batch, 1, kv_len,
    value_dim], of one dtype and device; scale in natural units; default_scale: whether that is
    1/√head_dim because the vectors give none. window: which keys a query sees, if that goes by
    position; otherwise mask [batch, 1, q_len, kv_len], booleans, True = may attend; both None: all.

    Given to adapters that take them (`Adapter.takes`), as in `AttentionVector`: softcap; alibi;
    bias [batch, 1, q_len, kv_len], −∞ where the pair is masked; sink.

    In one call of several heads (`whole_batches`) these take the place of 1, and slopes and the
    numbers of `PER_HEAD`, by name, are of each head: head_slopes, per_head; alibi is then that of
    the first.
    """

    vectors: tuple[AttentionVector, ...]
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    scale: float
    default_scale: bool = False
    window: Window | None = None
    softcap: float | None = None
    alibi: Alibi | None = None
    bias: Tensor | None = None
    sink: float | None = None
    head_slopes: tuple[float, ...] = ()
    per_head: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def qkv(self) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value."""
        return self.query, self.key, self.value

    def inputs(self) -> dict[str, Tensor]:
        """The tensors that a function is given, by name."""
        named = {name: getattr(self, name) for name in ("query", "key", "value", "mask", "bias")}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    @property
    def given_scale(self) -> float | None:
        """The scale as an argument: None where the function's own default is meant."""
        return None if self.default_scale else self.scale

    def slopes(self) -> Tensor | None:
        """The slope of each head, [heads], in float32 at least; None: there are none."""
        if self.alibi is None:
            return None
        return self._wide(self.head_slopes or (float(self.alibi.slope),) * self.query.shape[1])

    def of_heads(self) -> dict[str, Any]:
        """The given numbers of `PER_HEAD`, by name, as tensors such as `slopes`."""
        one = {} if self.sink is None else {"sinks": (self.sink,) * self.query.shape[1]}
        return {name: self._wide(each) for name, each in {**one, **self.per_head}.items()}

    def _wide(self, numbers: tuple[float, ...]) -> Tensor:
        wide = torch.float64 if self.query.dtype == torch.float64 else torch.float32
        return torch.tensor(numbers, dtype=wide, device=self.query.device)

    @property
    def is_causal(self) -> bool:
        """Key j is visible to query i if and only if j ≤ i."""
        return self.window == Window(None, 0, 0)

    @property
    def boolean(self) -> Tensor | None:
        """Mask and window as booleans, [batch, 1, q_len, kv_len]; None: all."""
        if self.window is None:
            return self.mask
        left, right, shift = self.window
        device = self.query.device
        places = torch.arange(self.query.shape[-2], device=device)[:, None] + shift
        keys = torch.arange(self.key.shape[-2], device=device)[None]
        seen = torch.ones(places.shape[0], keys.shape[1], dtype=torch.bool, device=device)
        if left is not None:
            seen = seen & (keys >= places - left)
        if right is not None:
            seen = seen & (keys <= places + right)
        return seen.expand(*self.query.shape[:2], -1, -1)

    @property
    def added(self) -> Tensor | None:
        """The numbers to add to the scores, in the dtype of query: bias, and −∞ where a pair is
        masked; None: nothing."""
        mask = self.boolean
        if mask is None:
            return self.bias
        zeros = torch.zeros(mask.shape, dtype=self.query.dtype, device=mask.device)
        return (zeros if self.bias is None else self.bias).masked_fill(~mask, -torch.inf)

    def split(self) -> Iterator[Batch]:
        """The vectors one by one."""
        for n, vector in enumerate(self.vectors):
            part = slice(n, n + 1)
            yield replace(
                self,
                vectors=(vector,),
                query=self.query[part],
                key=self.key[part],
                value=self.value[part],
                mask=None if self.mask is None else self.mask[part],
                bias=None if self.bias is None else self.bias[part],
            )


class Misbehaviour(Exception):
    """A function's error: a sentence without its subject, such as "changed its input attn_mask".
    for_all: vectors that were given at once are not tried one by one."""

    for_all = False


def error_text(error: BaseException) -> str:
    """The text of an exception; "" for one of whom even that raises."""
    try:
        return str(error)
    except Exception:
        return ""


def describe_error(error: BaseException) -> str:
    """The error, in a sentence without its subject: the type, and the text's first line."""
    text = error_text(error).strip().splitlines()
    return f"raised {type(error).__name__}: {text[0][:200] if text else ''}".rstrip(": ")


def is_unchanged(tensor: Tensor, before: Tensor) -> bool:
    """Whether a tensor equals this copy of it, its dtype included."""
    return tensor.dtype == before.dtype and torch.equal(tensor, before)


@dataclass(frozen=True)
class Unread:
    """The properties of a tensor that a function elsewhere returned, and whose numbers are not
    judged."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    layout: str

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point


def kind_of(value: object) -> str:
    """A value that is no tensor, in words."""
    return "None" if value is None else f"a value of type {type(value).__name__}"


def tensor_error(
    found: Any,
    shape: tuple[int, ...],
    dtype: torch.dtype | None,
    device: torch.device | None = None,
    named: str = "an output",
) -> str | None:
    """The fault of a result that should be a tensor, in a sentence without its subject; None if
    there is none. dtype: None: any of floating numbers; device: None: any."""
    if not isinstance(found, (Tensor, Unread)):
        return f"returned {kind_of(found)} instead of a tensor, {named}"
    if tuple(found.shape) != shape:
        return f"returned {named} of shape {tuple(found.shape)} instead of {shape}"
    if dtype is None and not found.is_floating_point():
        return f"returned {named} of {found.dtype}"
    if dtype is not None and found.dtype != dtype:
        return f"returned {named} of {found.dtype} instead of {dtype}"
    if device is not None and found.device != device:
        return f"returned {named} on {found.device} instead of {device}"
    if isinstance(found, Unread) or found.layout != torch.strided:
        return f"returned {named} of layout {found.layout} on {found.device}"
    return None


@dataclass(frozen=True)
class Outputs:
    """out: [batch, 1, q_len, value_dim] in the inputs' dtype; lse: [batch, 1, q_len], base e, or
    None where the function does not return it."""

    out: Tensor
    lse: Tensor | None = None


@dataclass(frozen=True)
class Exactly:
    """The exact results of one vector.

    out + out_low: the output as sums of two float64, [q_len, value_dim] each; lse + lse_low: the
    log-sum-exp, [q_len] each, −∞ + 0 for a row with every key masked; uncertainty: [q_len], by how
    much each may be off where the results are known by bounds.
    """

    out: Array
    out_low: Array
    lse: Array
    lse_low: Array
    uncertainty: Array


def array(matrix: Matrix, columns: int | None = None) -> Array:
    """A matrix of exact numbers in float64: exact for numbers that are exact in bfloat16. columns:
    how many it has, which a matrix without rows does not tell."""
    if isinstance(matrix, FloatMatrix):
        numbers = matrix.floats.copy()
    else:
        numbers = np.array([[float(x) for x in row] for row in matrix], dtype=np.float64)
    return numbers if columns is None else numbers.reshape(len(matrix), columns)


def read_only(numbers: NDArray[Any]) -> NDArray[Any]:
    """The array, which nobody can write to any more."""
    numbers.flags.writeable = False
    return numbers


@keep
def inputs_of(vector: AttentionVector) -> tuple[Array, Array, Array]:
    """q, k and v of a vector in float64, which nobody can write to."""
    q, k = array(vector.q, vector.head_dim), array(vector.k, vector.head_dim)
    return read_only(q), read_only(k), read_only(array(vector.v, vector.value_dim))


@keep
def bias_of(vector: AttentionVector) -> Array:
    """The bias of a vector that has one, −∞ where it masks: [q_len, kv_len]."""
    rows = [[-np.inf if x is None else float(x) for x in row] for row in vector.bias or ()]
    return read_only(np.array(rows))


@keep
def visible(vector: AttentionVector) -> NDArray[np.bool_]:
    """Which key each query may attend to: [q_len, kv_len]."""
    seen = _visible(vector)
    if vector.bias is not None:
        known = np.array([[x is not None for x in row] for row in vector.bias], dtype=bool)
        seen = seen & known.reshape(seen.shape)
    return read_only(seen)


def _masks(vectors: tuple[AttentionVector, ...], device: torch.device) -> Tensor:
    """The pairs that the masks alone allow: [batch, 1, q_len, kv_len]."""
    return torch.from_numpy(np.stack([_visible(v) for v in vectors])[:, None]).to(device)


def _visible(vector: AttentionVector) -> NDArray[np.bool_]:
    """The pairs that the mask alone allows: [q_len, kv_len], also without rows."""
    seen = visible_pairs(vector.mask, tuple(range(vector.q_len)), vector.kv_len)
    return seen.reshape(vector.q_len, vector.kv_len)


@keep
def score_additions(vector: AttentionVector) -> Array | None:
    """The numbers that bias and ALiBi add to the scores, 0 where the pair is masked:
    [q_len, kv_len]; None: nothing."""
    if vector.bias is None and vector.alibi is None:
        return None
    numbers = np.zeros((vector.q_len, vector.kv_len))
    if vector.bias is not None:
        numbers += np.where(np.isinf(bias_of(vector)), 0.0, bias_of(vector))
    if vector.alibi is not None:
        rows = np.arange(vector.q_len)[:, None] + vector.alibi.shift
        distances = np.abs(rows - np.arange(vector.kv_len)[None])
        numbers -= float(vector.alibi.slope) * distances
    return read_only(numbers)


def factors(vector: AttentionVector) -> Array | None:
    """Dropout's factors of the weights: [q_len, kv_len]; None: nothing."""
    if vector.dropout is None:
        return None
    rows, columns = range(vector.q_len), range(vector.kv_len)
    numbers = [[float(vector.dropout.factor(i, j)) for j in columns] for i in rows]
    return np.array(numbers, dtype=np.float64)


@keep
def exactly(vector: AttentionVector) -> Exactly:
    """The exact results of a vector."""
    rows = vector.expected
    high = array(tuple(row.output for row in rows), vector.value_dim)
    low = array(
        tuple(
            tuple(x - Fraction(h) for x, h in zip(row.output, line, strict=True))
            for row, line in zip(rows, high.tolist(), strict=True)
        ),
        vector.value_dim,
    )
    logs = [row.log_sum_exp for row in rows]
    lse = np.array([float(x) for x in logs], dtype=np.float64)
    rest = [float(x - Decimal(float(x))) if x.is_finite() else 0.0 for x in logs]
    uncertainty = np.array([float(row.uncertainty) for row in rows], dtype=np.float64)
    return Exactly(*map(read_only, (high, low, lse, np.array(rest, dtype=np.float64), uncertainty)))


def batches(
    vectors: Iterable[AttentionVector], dtype: str, device: str, largest: int = 64
) -> Iterator[Batch]:
    """The vectors in batches of those that `groups` puts together."""
    for group in groups(vectors, largest):
        yield stack(group, dtype, device)


def groups(
    vectors: Iterable[AttentionVector], largest: int = 64
) -> Iterator[tuple[AttentionVector, ...]]:
    """The vectors in groups of one shape, kind of mask, model and options, of at most
    `largest`."""
    found: dict[tuple[object, ...], list[AttentionVector]] = {}
    for vector in vectors:
        key = (*_ALIKE(vector), vector.mask.window or vector.mask.kind, vector.bias is None)
        found.setdefault(key, []).append(vector)
    for group in found.values():
        for start in range(0, len(group), largest):
            yield tuple(group[start : start + largest])


def stack(vectors: tuple[AttentionVector, ...], dtype: str, device: str) -> Batch:
    """One batch of vectors that are alike in all that `batches` goes by."""

    def tensor(arrays: list[Array]) -> Tensor:
        return torch.from_numpy(np.stack(arrays)[:, None]).to(DTYPES[dtype]).to(device)

    def number(x: Exact | None) -> float | None:
        return None if x is None else float(x)

    first = vectors[0]
    mask = bias = None
    # Kinds of masks that not every function has a name for are given as booleans.
    if first.mask.kind != "none" and first.mask.window is None:
        mask = _masks(vectors, torch.device(device))
    if first.bias is not None:
        bias = tensor([*map(bias_of, vectors)])
    query, key, value = zip(*map(inputs_of, vectors), strict=True)
    return Batch(
        vectors,
        tensor([*query]),
        tensor([*key]),
        tensor([*value]),
        mask,
        first.natural_scale,
        first.scale is None,
        first.mask.window,
        number(first.softcap),
        first.alibi,
        bias,
        number(first.sink),
    )
