"""Helpers of the site's tests in a browser: Debian's packages chromium and chromium-driver."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge import limits
from bridge.limits import Limit, Watch

PROGRAMS = [shutil.which(name) for name in ("chromium", "chromedriver")]
MARKS = [
    # It builds the site, which another file looks at, too.
    pytest.mark.long,
    pytest.mark.skipif(
        None in PROGRAMS,
        reason="needs chromium and chromedriver (apt install chromium chromium-driver)",
    ),
]
# Of the browser's own limits, which go by the clock.
_HOUR = 3600
WIDE, LAPTOP, PHONE = (1400, 900), (1280, 800), (360, 740)
STEPPER = "stepper.html"
WITHOUT_SEARCH = {"urls": ["*/search.js*"]}


@contextmanager
def start(folder: Path) -> Iterator[Any]:
    """A browser that keeps its files in this folder."""
    from selenium import webdriver

    chromium, driver = map(str, PROGRAMS)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={folder}",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    found = webdriver.Chrome(options=options, service=service)
    found.set_page_load_timeout(_HOUR)
    found.set_script_timeout(_HOUR)
    found.execute_cdp_cmd("Network.enable", {})
    found.execute_cdp_cmd("Network.setBlockedURLs", WITHOUT_SEARCH)
    try:
        yield found
    finally:
        found.quit()


def wait_for(there: Callable[[], Any], what: str) -> None:
    """Until it is there; the browser is a child of this process."""
    limits.until(there, Watch(os.getpid(), Limit(300, 60)), what)


def screen(browser: Any, size: tuple[int, int], scheme: str = "light") -> None:
    width, height = size
    # A window has a least width of its own; the page's view has not.
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def open_page(browser: Any, page: Path, size: tuple[int, int], scheme: str = "light") -> None:
    screen(browser, size, scheme)
    browser.get(page.as_uri())


def console_of(browser: Any) -> list[str]:
    """The messages of the page in the console, errors of loading included."""
    return [entry["message"] for entry in browser.get_log("browser")]


def button(browser: Any, name: str) -> Any:
    return browser.find_element("css selector", f"#stepper [name={name}]")


def open_stepper(browser: Any, site: Path) -> None:
    browser.get((site / STEPPER).as_uri())
    wait_for(lambda: states(browser), "the states of the stepper")


def states(browser: Any) -> list[list[str]]:
    rows = browser.find_elements("css selector", "#stepper .states tbody tr")
    return [[c.text for c in row.find_elements("tag name", "td")] for row in rows]
