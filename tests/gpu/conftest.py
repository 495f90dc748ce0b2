"""Without a GPU a part of these tests is run."""

from __future__ import annotations

import pytest
from gpu_device import ON_GPU


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one in eleven cases of each test: eleven divides the length of no list of parameters, so
    that every value of each comes up where there are cases enough."""
    if ON_GPU:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = [item for some in cases.values() for item in some[len(some) // 2 % 11 :: 11]]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
