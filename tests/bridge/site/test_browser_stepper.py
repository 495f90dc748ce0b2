"""The stepper in a browser, by mouse and by keyboard, and its chart."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from in_browser import MARKS, PHONE, WIDE, button, console_of, open_stepper, screen, states

pytestmark = MARKS


def fill(browser: Any, name: str, text: str) -> None:
    from selenium.webdriver.common.keys import Keys

    field = browser.find_element("css selector", f"#stepper input[name={name}]")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.DELETE)
    field.send_keys(text)


def result(browser: Any) -> str:
    text: str = browser.find_element("css selector", "#stepper .result").text
    return text


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_stepper(browser: Any, site: Path, size: tuple[int, int]) -> None:
    screen(browser, size)
    open_stepper(browser, site)
    assert states(browser) == [["before", "−∞", "", "0", "0"]]
    button(browser, "next").click()
    assert states(browser)[1] == ["1", "2", "0", "5/4", "9"]
    button(browser, "next").click()
    assert states(browser)[2] == ["2", "2", "1", "7/4", "8"]
    button(browser, "back").click()
    assert len(states(browser)) == 2
    button(browser, "last").click()
    assert states(browser)[3] == ["3", "3", "1/2", "2", "161/16"]
    same = "o / l = 161/32; over the whole row at once Σ p v = 161/32: the same."
    assert result(browser) == same
    assert not button(browser, "next").is_enabled()
    fill(browser, "size", "5")
    button(browser, "last").click()
    assert len(states(browser)) == 3
    assert result(browser) == same
    fill(browser, "scores", "x x")
    wrong = browser.find_element("css selector", "#stepper .wrong")
    assert wrong.text == "Values: there are 6 for 2 scores; give one for each."
    fill(browser, "values", "1 2")
    assert wrong.text == ""
    button(browser, "last").click()
    assert states(browser)[-1] == ["1", "−∞", "0", "0", "0"]
    for text, expected in (
        ("1 2.5", "Scores: “2.5” is neither x nor a whole number from −64 to 64."),
        ("1 99", "Scores: “99” is neither x nor a whole number from −64 to 64."),
        ("", "Scores: there is none; give at least one."),
        ("0 " * 33, "Scores: there are 33; at most 32 are taken."),
    ):
        fill(browser, "scores", text)
        assert wrong.text == expected
    assert console_of(browser) == []


def marks_of(browser: Any, selector: str, *names: str) -> list[tuple[Fraction, list[float]]]:
    """Of each mark the exact number, and these attributes."""
    marks = browser.find_elements("css selector", f"#stepper svg {selector}")
    return [
        (
            Fraction(mark.get_attribute("data-exact").replace("−", "-")),
            [float(mark.get_attribute(name)) for name in names],
        )
        for mark in marks
    ]


def test_the_chart_is_drawn_from_the_exact_numbers(browser: Any, site: Path) -> None:
    screen(browser, PHONE)
    open_stepper(browser, site)
    assert marks_of(browser, ".bar") == []
    expected = [
        ["1/4", "1"],
        ["1/4", "1", "0", "1/2"],
        ["1/8", "1/2", "0", "1/4", "1", "1/8"],
    ]
    for step, weights in enumerate(expected, 1):
        button(browser, "next").click()
        bars = marks_of(browser, ".bar", "height")
        assert [exact for exact, _ in bars] == list(map(Fraction, weights))
        whole = max(height for _, [height] in bars)
        assert [height / whole for _, [height] in bars] == [float(exact) for exact, _ in bars]
        # The numbers of the table, and the higher the larger.
        rows = states(browser)
        for name, column in (("m", 1), ("l", 3), ("o", 4)):
            dots = marks_of(browser, f".dot[data-of={name}]", "cy", "cx")
            shown = [Fraction(row[column]) for row in rows if row[column] != "−∞"]
            assert [exact for exact, _ in dots] == shown
            assert len(shown) == step + (name != "m")
            for (low, (down, left)), (high, (up, right)) in pairwise(dots):
                assert (low < high, low == high) == (down > up, down == up)
                assert left < right
    inside = """return [...document.querySelectorAll("#stepper svg")].every((svg) => {
        const box = svg.getBoundingClientRect();
        return box.right <= innerWidth && [...svg.querySelectorAll("text")].every((text) => {
            const of = text.getBoundingClientRect();
            return of.left >= box.left && of.right <= box.right && of.top >= box.top;
        });
    })"""
    assert browser.execute_script(inside)
    fill(browser, "scores", "64 −64 " + "x " * 29 + "64")
    fill(browser, "values", "−1/999999999 " * 32)
    fill(browser, "size", "1")
    button(browser, "last").click()
    assert len(marks_of(browser, ".bar")) == 32
    assert len(marks_of(browser, ".dot[data-of=l]")) == 33
    assert browser.execute_script(inside)
    assert console_of(browser) == []


def test_the_stepper_by_keyboard(browser: Any, site: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    screen(browser, WIDE)
    open_stepper(browser, site)
    browser.find_element("css selector", "#stepper input[name=size]").send_keys(Keys.TAB)
    focused = browser.switch_to.active_element
    assert focused.get_attribute("name") == "next"
    focused.send_keys(Keys.ENTER)
    assert len(states(browser)) == 2
    # The element with the focus is seen to have it.
    assert (
        browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
        == "solid"
    )
