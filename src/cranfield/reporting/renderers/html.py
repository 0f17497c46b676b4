"""A Document as one HTML file that needs nothing else: no script, no font, no request, and a policy that forbids them.

Pictures are drawn by vl-convert (the `report` extra) while the page is made. Without it the tables are there, and the page
says what would draw.
"""

from __future__ import annotations

import base64
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from cranfield.reporting.document import Column, Document, Figure
from cranfield.words import printable, printable_lines

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

HOW_TO_DRAW = "pip install 'cranfield[report]'"


def render_html(document: Document) -> str:
    """The whole page."""
    from markupsafe import Markup

    style = _read("page.css")
    page = _template().render(
        document=document,
        style=Markup(style),  # noqa: S704 - our own file
        policy=content_policy(style),
        how_to_draw=HOW_TO_DRAW,
    )
    return page.strip() + "\n"


@cache
def _read(name: str) -> str:
    return (files("cranfield.reporting.renderers") / name).read_text(encoding="utf-8")


def content_policy(style: str) -> str:
    """The Content-Security-Policy: nothing but this very style sheet, and the empty icon."""
    digest = base64.b64encode(sha256(style.encode()).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    def safe(value: object) -> object:
        """Every text of the page passes here before it is escaped."""
        return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=safe
    )
    environment.filters["cell"] = _cell
    environment.filters["tone"] = lambda cell: getattr(cell, "tone", "")
    environment.filters["href"] = lambda cell: getattr(cell, "href", "")
    environment.filters["lines"] = lambda text: Markup("{}").format(escape(printable_lines(text)))
    environment.filters["pictures"] = _pictures
    return environment.from_string(_read("page.html"))


def _cell(cell: object, column: Column) -> str:
    return column.text(cell)  # type: ignore[arg-type]  # templates are not typed


def _pictures(figure: Figure) -> tuple[Markup, ...]:
    """The chart for the page and for the phone; nothing where nothing can draw."""
    from markupsafe import Markup

    from cranfield.reporting.renderers.picture import can_draw, draw

    if not can_draw():
        return ()
    return tuple(Markup(draw(spec, printable(figure.alt))) for spec in (figure.spec, figure.narrow_spec))  # noqa: S704 - cleaned by `draw`
