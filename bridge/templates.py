"""How the templates of all packages are read.

A value that is not given is an error, a line that holds a statement alone leaves nothing, and the
newline at the end stays. HTML and SVG, told by the template's name, escape values that are put into
them; in other text, Markdown or Python, they stand as they are.
"""

from __future__ import annotations

from functools import cache

import jinja2

_MARKUP = (".html.jinja", ".svg.jinja")


@cache
def template(package: str, name: str) -> jinja2.Template:
    """The template of that name in the folder `templates` of a package."""
    return _environment(package).get_template(name)


@cache
def _environment(package: str) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=lambda name: name is not None and name.endswith(_MARKUP),
    )
