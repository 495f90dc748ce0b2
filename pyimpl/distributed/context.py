"""Modules whose sequences the processes of a group hold in shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from pyimpl.distributed.attention import ring_attention
from pyimpl.distributed.internal.agreement import agree, digest, is_checked
from pyimpl.distributed.internal.passing import Grid, grid_of, outside_of_graphs, processes_of
from pyimpl.distributed.internal.shards import Shards
from pyimpl.distributed.ulysses import ulysses_attention
from pyimpl.internal import arguments as check_arguments

Method = Literal["ring", "ulysses"]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ContextParallel:
    """How a module of `pyimpl.modules` is called with its part of a sequence: the same in every
    process of a group.

    Args:
        shards: which places of the sequence each process holds: of the queries, and of a model's
            targets.
        key_shards: those of the keys, and of a model's sources, where they are another sequence.
        group: as for `ring_attention`, or, for "ulysses", as for `ulysses_attention`: a process
            group, a device mesh, or None for the default group.
        method: which of the two attends: "ring" or "ulysses".
        check: whether the processes first exchange a description of their arguments, as for
            `ring_attention`.

    Raises:
        TypeError, ValueError: an argument that is none of these.
    """

    shards: Shards
    key_shards: Shards | None = None
    group: dist.ProcessGroup | DeviceMesh | None = None
    method: Method = "ring"
    check: bool | None = None

    def __post_init__(self) -> None:
        for name in ("shards", "key_shards"):
            given = getattr(self, name)
            if not isinstance(given, Shards) and (name == "shards" or given is not None):
                raise TypeError(
                    f"{name} must be Shards, such as Shards.zigzag, not "
                    f"{check_arguments.describe(given)}"
                )
        check_arguments.check_one_of("method", self.method, Method)
        if self.check is not None:
            check_arguments.check_bool("check", self.check)

    @property
    def keys(self) -> Shards:
        """Those of the keys."""
        return self.shards if self.key_shards is None else self.key_shards

    def of_queries(self) -> ContextParallel:
        """The same for attention of the queries' sequence to itself."""
        return replace(self, key_shards=None)

    def of_keys(self) -> ContextParallel:
        """The same for attention of the keys' sequence to itself."""
        return replace(self, shards=self.keys, key_shards=None)

    def places(self, device: torch.device) -> Tensor:
        """Where the queries of this process stand in the sequence, `[length]`, int64."""
        return self.shards.places[self._checked_grid().rank].to(device)

    def check_length(self, name: str, length: int) -> None:
        """Raises ValueError unless this process holds so many queries."""
        rank = self._checked_grid().rank
        if length != self.shards.lengths[rank]:
            raise ValueError(
                f"{name} must have the length that its shards give process {rank}, "
                f"{self.shards.lengths[rank]}, not {length}"
            )

    def _grid(self) -> Grid:
        """The processes of the group. Raises TypeError or ValueError if it is none."""
        if self.method == "ring":
            processes_of(self.group)
        return grid_of(self.group)

    def _checked_grid(self) -> Grid:
        """The same; raises ValueError where there are shards for other numbers of them."""
        grid = self._grid()
        for name, shards in (("shards", self.shards), ("key_shards", self.keys)):
            if shards.processes != grid.count:
                raise ValueError(
                    f"{name} must be of the {grid.count} processes of the group, not of "
                    f"{shards.processes}"
                )
        return grid

    def pairs(self, q_len: int) -> tuple[int, int]:
        """The numbers of queries and of keys that a mask is of, for so many queries here."""
        return (q_len if self.method == "ring" else self.shards.length), self.keys.length

    @outside_of_graphs
    def together(
        self,
        function: str,
        given: object,
        prepare: Callable[[], T],
        same: Callable[[T], Mapping[str, Tensor | None]],
    ) -> T:
        """The result of `prepare`, of which the tensors `same`, by name, have to be the same in
        every process, all of which call `function` with a tensor `given`. Raises as
        `agreement.agree` does."""

        def check_and_prepare() -> T:
            self._checked_grid()
            return prepare()

        return agree(
            function, self._grid(), is_checked(self.check, given), check_and_prepare,
            lambda found: {f"the digest of {name}": digest(x) for name, x in same(found).items()},
        )  # fmt: skip

    def attend(self, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
        """Attention, `[batch, length, heads, dim]` as query, key and value are; options as for the
        function of the method."""
        function = ring_attention if self.method == "ring" else ulysses_attention
        heads = function(
            *(x.transpose(1, 2) for x in (query, key, value)),
            shards=self.shards, key_shards=self.key_shards, group=self.group, check=self.check,
            **options,
        )  # fmt: skip
        assert isinstance(heads, Tensor)
        return heads.transpose(1, 2)
