"""A Document as one HTML file that needs nothing else: no script, no font, no request, and a policy that forbids them.

Pictures are drawn by vl-convert (the `report` extra) while the page is made. Without it the tables are there, and the page
says what would draw.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from cranfield.reporting.document import Column, Document, Figure
from cranfield.words import printable, printable_lines

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

HOW_TO_DRAW = "pip install 'cranfield[report]'"


def render_html(document: Document) -> str:
    """The whole page."""
    from markupsafe import Markup

    style = (files("cranfield.reporting.renderers") / "page.css").read_text(encoding="utf-8")
    template = (files("cranfield.reporting.renderers") / "page.html").read_text(encoding="utf-8")
    page = (
        _environment()
        .from_string(template)
        .render(
            document=document,
            style=Markup(style),  # noqa: S704 - our own file
            policy=content_policy(style),
            how_to_draw=HOW_TO_DRAW,
        )
    )
    return page.strip() + "\n"


def content_policy(style: str) -> str:
    """The Content-Security-Policy: nothing but this very style sheet, and the empty icon."""
    digest = base64.b64encode(sha256(style.encode()).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def _environment() -> Environment:
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
    environment.filters["pictures"] = _drawer()
    return environment


def _cell(cell: object, column: Column) -> str:
    return column.text(cell)  # type: ignore[arg-type]  # templates are not typed


def _drawer() -> Callable[[Figure], tuple[Markup, ...]]:
    """A function from a figure to its pictures, for the page and for the phone; to none where nothing can draw."""
    from markupsafe import Markup

    from cranfield.reporting.renderers.picture import can_draw, draw

    if not can_draw():
        return lambda _: ()

    def pictures(figure: Figure) -> tuple[Markup, ...]:
        return tuple(Markup(draw(spec, printable(figure.alt))) for spec in (figure.spec, figure.narrow_spec))  # noqa: S704 - cleaned by `draw`

    return pictures
