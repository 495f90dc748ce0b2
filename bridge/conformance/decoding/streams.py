"""Sequences that are decoded together, call by call, with a function that keeps their cache."""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence as Several
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bridge.conformance.decoding.form import Form
from bridge.conformance.sandbox.remote import Cache, Remote
from bridge.conformance.tensors.batch import Misbehaviour, tensor_error

# Numbers of rows that are not filled: none of a vector comes near them, and every dtype holds them.
KEY_BEYOND, VALUE_BEYOND = 8.0, 256.0
# Rows beyond the longest sequence.
SPARE = 3
# One call in so many is made before with other numbers, which the right call has to undo.
_TAKEN_BACK = 4
_BITS = {8: torch.int64, 4: torch.int32, 2: torch.int16}
# Output [sequences, heads, tokens, value_dim], and the log-sum-exp [sequences, heads, tokens].
Found = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class Numbers:
    """One sequence as tensors: q [heads, tokens, head_dim], k [kv_heads, kv_len, head_dim], v."""

    q: Tensor
    k: Tensor
    v: Tensor

    @property
    def prefix(self) -> int:
        """Tokens before the first step."""
        return self.k.shape[1] - self.q.shape[1]


@dataclass(frozen=True)
class Way:
    """How a function is called. options: arguments that every call has; several: whether it takes
    several tokens in a call; appends: whether it is given the new keys and values; pages: whether
    the cache lies in pages; lse: whether the log-sum-exp is asked for; beyond_nan: whether every
    other row that is not filled holds NaN; device: as PyTorch names it."""

    form: Form
    device: str
    options: dict[str, Any]
    several: bool = False
    appends: bool = False
    pages: bool = False
    lse: bool = False
    beyond_nan: bool = False


@dataclass
class Stream(ABC):
    """Sequences with as many tokens each, decoded together. name: of its cache."""

    function: Remote
    way: Way
    name: str
    numbers: Several[Numbers]
    chance: random.Random

    @abstractmethod
    def begin(self) -> None:
        """Prepare the first step."""

    @abstractmethod
    def step(self, start: int, stop: int) -> Found:
        """Give the function these tokens. Raises the function's errors, and Misbehaviour."""

    def arrange(self, x: Tensor) -> Tensor:
        """[sequences, heads, length, dim] in the function's layout, on its device."""
        if self.way.form.layout == "batch, length, heads, dim":
            x = x.transpose(1, 2)
        return x.contiguous().to(self.way.device)

    def check_result(self, result: Any, wanted: tuple[int, ...], dtype: torch.dtype) -> Found:
        """The results, of the shape [sequences, heads, tokens, value_dim]. Raises Misbehaviour for
        another form."""
        lse = None
        if self.way.lse:
            if not isinstance(result, tuple) or len(result) < 2:
                raise Misbehaviour("returned no log-sum-exp beside the output")
            result, lse = result[:2]
            if not isinstance(lse, Tensor) or tuple(lse.shape) != wanted[:3]:
                raise Misbehaviour(f"returned a log-sum-exp that is no tensor of {wanted[:3]}")
        if isinstance(result, tuple):
            raise Misbehaviour("returned a tuple where an output was to come")
        swapped = self.way.form.layout == "batch, length, heads, dim"
        shape = (wanted[0], wanted[2], wanted[1], wanted[3]) if swapped else wanted
        if (error := tensor_error(result, shape, dtype)) is not None:
            raise Misbehaviour(error)
        return (result.transpose(1, 2) if swapped else result), lse


class OwnCache(Stream):
    """A function of query, key, value and a cache of its own, which it returns beside the output.
    Sequences of different lengths have caches of their own."""

    def begin(self) -> None:
        self.groups: list[list[int]] = []
        by_prefix: dict[int, list[int]] = {}
        for n, one in enumerate(self.numbers):
            by_prefix.setdefault(one.prefix, []).append(n)
        self.groups = list(by_prefix.values())
        self.begun: set[int] = set()
        for g, group in enumerate(self.groups):
            prefix = self.numbers[group[0]].prefix
            size = prefix if self.way.several else 1
            for start in range(0, prefix, max(size, 1)):
                queries = [self.numbers[n].q[:, :1].expand(-1, size, -1) for n in group]
                self.call(g, torch.stack(queries), start, start + size)

    def step(self, start: int, stop: int) -> Found:
        outs: dict[int, Tensor] = {}
        for g, group in enumerate(self.groups):
            prefix = self.numbers[group[0]].prefix
            queries = torch.stack([self.numbers[n].q[:, start:stop] for n in group])
            out = self.call(g, queries, prefix + start, prefix + stop)
            outs |= dict(zip(group, out, strict=True))
        return torch.stack([outs[n] for n in range(len(self.numbers))]), None

    def call(self, g: int, query: Tensor, start: int, stop: int) -> Tensor:
        """The tokens start … stop − 1 of the sequences of a group."""
        group, name = self.groups[g], f"{self.name}.{g}"
        k, v = (
            torch.stack([x[:, start:stop] for x in each])
            for each in ([self.numbers[n].k for n in group], [self.numbers[n].v for n in group])
        )
        before = Cache(name) if g in self.begun else None
        arguments = (*map(self.arrange, (query, k, v)), before)
        result, _ = self.function.step(arguments, self.way.options, cache=name)
        self.begun.add(g)
        wanted = (*query.shape[:3], v.shape[3])
        return self.check_result(result, wanted, query.dtype)[0]


class Buffers(Stream):
    """A function of query and two buffers, which it reads and, where it is given new keys and
    values, writes to. After each call the buffers are compared with their right contents."""

    def begin(self) -> None:
        first = self.numbers[0]
        most = max(one.k.shape[1] for one in self.numbers) + SPARE
        size = self.way.form.page_size if self.way.pages else most
        each = -(-most // size)
        count = len(self.numbers) * each
        numbers = list(range(count + 1 if self.way.pages else count))
        if self.way.pages:
            # One page is nobody's.
            self.chance.shuffle(numbers)
        self.size = size
        self.table = [numbers[n * each : (n + 1) * each] for n in range(len(self.numbers))]
        self.rows = [_beyond(len(numbers) * size, x, self.way, key) for x, key in
                     ((first.k, True), (first.v, False))]  # fmt: skip
        self.lengths = [one.prefix for one in self.numbers]
        for n, one in enumerate(self.numbers):
            self.write(n, 0, one.prefix)
        if self.way.appends:
            self.keep()

    def place(self, sequence: int, row: int) -> int:
        """The place of a row of a sequence among all rows."""
        return self.table[sequence][row // self.size] * self.size + row % self.size

    def write(self, sequence: int, start: int, stop: int, *, other: bool = False) -> list[int]:
        """The keys and values start … stop − 1 of a sequence, or other numbers, into the rows;
        where these lie."""
        one = self.numbers[sequence]
        places = [self.place(sequence, row) for row in range(start, stop)]
        for rows, x in zip(self.rows, (one.k, one.v), strict=True):
            given = x[:, start:stop].transpose(0, 1)
            rows[places] = given.roll(1, 0).neg() if other else given
        return places

    def buffers(self) -> dict[str, Tensor]:
        """Both buffers as the function is given them."""
        return {
            f"{self.name}.{what}": self.arrange(
                rows.view(-1, self.size, *rows.shape[1:]).transpose(1, 2)
            )
            for what, rows in zip(("keys", "values"), self.rows, strict=True)
        }

    def keep(self) -> None:
        self.function.keep(self.buffers())

    def step(self, start: int, stop: int) -> Found:
        # A call whose tokens are taken back: the next call overwrites its rows.
        if self.way.appends and self.chance.randrange(_TAKEN_BACK) == 0:
            self.call(start, stop, other=True)
        found = self.call(start, stop)
        self.lengths = [n + stop - start for n in self.lengths]
        return found

    def call(self, start: int, stop: int, *, other: bool = False) -> Found:
        """other: with other keys and values."""
        form, options = self.way.form, dict(self.way.options)
        before = [rows.clone() for rows in self.rows]
        spans = [(one.prefix + start, one.prefix + stop) for one in self.numbers]
        new = [self.write(n, *span, other=other) for n, span in enumerate(spans)]
        if self.way.appends:
            assert form.new is not None
            for name, rows in zip(form.new, self.rows, strict=True):
                options[name] = self.arrange(torch.stack([rows[x] for x in new]).transpose(1, 2))
        else:
            self.keep()
        filled = self.lengths if self.way.appends else [span[1] for span in spans]
        whole: dict[str, Any] = {"dtype": torch.int32, "device": self.way.device}
        assert form.lengths is not None
        options[form.lengths] = torch.tensor(filled, **whole)
        if self.way.pages:
            options[str(form.pages)] = torch.tensor(self.table, **whole)
        if form.causal is not None and stop - start > 1:
            options[form.causal] = True
        query = torch.stack([one.q[:, start:stop] for one in self.numbers])
        kept = self.buffers()
        arguments = (self.arrange(query), *map(Cache, kept))
        result, shown = self.function.step(arguments, options, show=kept)
        for name, x, old, right in zip(
            form.caches or (), shown.values(), before, self.rows, strict=True
        ):
            self.compare(name, self.flat(x), old, right, [] if not self.way.appends else new)
        wanted = (*query.shape[:3], self.numbers[0].v.shape[2])
        return self.check_result(result, wanted, query.dtype)

    def flat(self, x: Tensor) -> Tensor:
        """A buffer as rows."""
        swapped = self.way.form.layout == "batch, length, heads, dim"
        return (x if swapped else x.transpose(1, 2)).flatten(0, 1)

    def compare(
        self, name: str, found: Tensor, before: Tensor, right: Tensor, new: list[list[int]]
    ) -> None:
        """Raises Misbehaviour where a buffer has other contents than it should, bit by bit."""
        for n, places in enumerate(new):
            for place in places:
                if _same(found[place], right[place]):
                    continue
                row = f"row {self.row(n, place)} of sequence {n} of {name}"
                if not _same(found[place], before[place]):
                    raise Misbehaviour(f"wrote other numbers than those given to {row}")
                raise Misbehaviour(f"did not write the new numbers to {row}")
        different = (_bits(found) != _bits(right)).flatten(1).any(1).nonzero().flatten().tolist()
        for place in different:
            each = ((n, self.row(n, place)) for n in range(len(self.table)))
            owner = next((pair for pair in each if pair[1] is not None), None)
            where = f"{place} of no sequence"
            if owner is not None:
                where = f"{owner[1]} of sequence {owner[0]}"
            raise Misbehaviour(f"changed row {where} of {name}, which is no new one")

    def row(self, sequence: int, place: int) -> int | None:
        """The row of a sequence that lies there; None if it is none of its."""
        page, slot = divmod(place, self.size)
        pages = self.table[sequence]
        return pages.index(page) * self.size + slot if page in pages else None


def _beyond(count: int, like: Tensor, way: Way, key: bool) -> Tensor:
    """Rows that are not filled, [count, kv_heads, dim]."""
    number = KEY_BEYOND if key else VALUE_BEYOND
    rows = torch.full((count, like.shape[0], like.shape[2]), number, dtype=like.dtype)
    if not way.beyond_nan:
        rows[1::2] *= -1
        return rows
    # Numbers between them: a function that leaves NaN out, and not the row, is caught by these.
    rows[::2] = math.nan
    rows[3::4] *= -1
    return rows


def _same(one: Tensor, other: Tensor) -> bool:
    return torch.equal(_bits(one), _bits(other))


def _bits(x: Tensor) -> Tensor:
    return x.contiguous().view(_BITS[x.dtype.itemsize])
