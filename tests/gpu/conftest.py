"""Without a GPU a part of these tests is run."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpu_device import ON_GPU

# Parameters on which no compiled kernel depends.
ALIKE = ("lengths", "q_len", "kv_len", "num_splits")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one in eleven cases of each test: eleven divides the length of no list of parameters, so
    that every value of each comes up where there are cases enough. All but the first of those
    are thorough tests.

    With one, cases that compile the same kernel are for one process, with `-n N --dist loadgroup`.
    """
    if ON_GPU:
        here = Path(__file__).parent
        for item in (item for item in items if item.path.parent == here):
            callspec = getattr(item, "callspec", None)
            given = {} if callspec is None else callspec.params
            kinds = [f"{name}={value}" for name, value in given.items() if name not in ALIKE]
            item.add_marker(pytest.mark.xdist_group(" ".join([item.path.stem, *kinds])))
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    parts = [some[len(some) // 2 % 11 :: 11] for some in cases.values()]
    kept = [item for part in parts for item in part]
    for part in parts:
        for item in part[1:]:
            item.add_marker(pytest.mark.thorough)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
