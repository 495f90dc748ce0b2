"""Without a GPU a part of these tests is run."""

from __future__ import annotations

import pytest
from gpu_device import ON_GPU


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one in seven cases of each test: of its lists of parameters none is as long."""
    if ON_GPU:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = [item for some in cases.values() for item in some[len(some) // 2 % 7 :: 7]]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
