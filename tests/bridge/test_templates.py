"""How templates are read."""

from __future__ import annotations

import jinja2
import pytest

from bridge import templates

TEXT = "{% if True %}\n{{ said }}\n{% endif %}\n"


def read(monkeypatch: pytest.MonkeyPatch, name: str) -> jinja2.Template:
    loader = jinja2.DictLoader({name: TEXT})
    monkeypatch.setattr(jinja2, "PackageLoader", lambda package: loader)
    # A package that no other test asks for: environments are kept.
    return templates.template(f"package of {name}", name)


@pytest.mark.parametrize("name", ["page.html.jinja", "map.svg.jinja"])
def test_markup_escapes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, name).render(said="a < b") == "a &lt; b\n"


@pytest.mark.parametrize("name", ["page.md.jinja", "module.py.jinja", "style.jinja"])
def test_other_text_stands_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, name).render(said="a < b") == "a < b\n"


def test_what_is_not_given_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(jinja2.UndefinedError, match="'said' is undefined"):
        read(monkeypatch, "lacking.md.jinja").render()
