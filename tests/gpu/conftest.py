"""Without a GPU a part of these tests is run."""

from __future__ import annotations

import pytest
from gpu_device import ON_GPU


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one in eleven cases of each test: eleven divides the length of no list of parameters, so
    that every value of each comes up where there are cases enough. All but the first of those
    are thorough tests."""
    if ON_GPU:
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
