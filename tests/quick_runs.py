"""The plugin of pytest for `make quick`: tests begin within a time, and none starts Lean."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from bridge.toolchain.process import LeanProcess

REASON = "no time; left to make test"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("make quick")
    group.addoption("--within", type=float, metavar="SECONDS", help="begin no test later")
    group.addoption("--left", type=Path, metavar="FILE", help="write the files of tests not begun")


def pytest_configure(config: pytest.Config) -> None:
    within, left = config.getoption("--within"), config.getoption("--left")
    config.pluginmanager.register(Quick(within, left), "make quick")


class Quick:
    """A run of tests. seconds: after these none begins; record: the file for those."""

    def __init__(self, seconds: float, record: Path) -> None:
        self.end, self.record = time.monotonic() + seconds, record

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if time.monotonic() > self.end:
            pytest.skip(REASON)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Iterator[None]:
        def fail(*_: Any, **__: Any) -> None:
            pytest.fail("it starts Lean and has no marker `lean`")

        with mock.patch.object(LeanProcess, "__init__", fail):
            return (yield)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        left = [
            report.nodeid.split("::")[0]
            for report in terminalreporter.stats.get("skipped", ())
            if report.longrepr[2].endswith(REASON)
        ]
        self.record.write_text(json.dumps(sorted({*left})), "utf-8")
        if left:
            terminalreporter.write_line(
                f"No time for {len(left)} tests, of these files: {', '.join(sorted({*left}))}; "
                "left to make test"
            )
