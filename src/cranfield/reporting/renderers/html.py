"""A Document as one HTML file that needs nothing else: no script, no font, no request, and a policy that forbids them.

Pictures are drawn by vl-convert (the `report` extra) while the page is made, without a network and without a browser. What
it returns is taken apart and put together again from a list of allowed elements and attributes: no script, no style, no
link, no id that another picture could have too. Without it the tables are there, and the page says what would draw.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from cranfield.reporting.document import Column, Document, Figure
from cranfield.words import printable, printable_lines

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

    from jinja2 import Template
    from markupsafe import Markup

HOW_TO_DRAW = "pip install 'cranfield[report]'"
VEGA_LITE = "5.20"
SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "g", "path", "line", "rect", "circle", "text", "tspan"}
ATTRIBUTES = {
    *("d", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "r", "cx", "cy", "width", "height", "viewBox"),
    *("transform", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-linecap"),
    *("stroke-miterlimit", "stroke-dasharray", "opacity", "text-anchor", "font-size", "font-weight"),
}
_LONG_NUMBER = re.compile(r"\d+\.\d{3,}")


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

    from cranfield.reporting.renderers.html import can_draw, draw

    if not can_draw():
        return ()
    return tuple(Markup(draw(spec, printable(figure.alt))) for spec in (figure.spec, figure.narrow_spec))  # noqa: S704 - cleaned by `draw`


def can_draw() -> bool:
    """Whether the library that draws is installed."""
    from importlib.util import find_spec

    return find_spec("vl_convert") is not None


def draw(spec: Mapping[str, Any], label: str) -> str:
    """The picture as an `<svg>` element.

    Args:
        spec: Vega-Lite, with its data inside.
        label: what it shows, for readers who do not see it.
    """
    from xml.etree import ElementTree as ET

    import vl_convert

    drawn = vl_convert.vegalite_to_svg(dict(spec), vl_version=VEGA_LITE, allowed_base_urls=[])
    root = ET.fromstring(drawn)  # noqa: S314 - what our own renderer wrote, not what a user sent
    view_box = root.get("viewBox", "0 0 1 1")
    _clean(root)
    root.attrib = {"viewBox": view_box, "role": "img", "aria-label": label, "width": root.get("width", "")}
    return ET.tostring(root, encoding="unicode")


def _clean(root: ET.Element) -> None:
    """Remove, in place, everything but the allowed elements and attributes, and what shows nothing."""
    from cranfield.reporting.charts.spec import ZERO_WIDTH

    for element in reversed(list(root.iter())):  # children before their parents
        element[:] = [child for child in element if _is_visible(child)]
        element.tag = element.tag.removeprefix(SVG)
        element.attrib = {
            name: _LONG_NUMBER.sub(lambda found: f"{float(found.group()):.2f}", value)
            for name, value in element.attrib.items()
            if name in ATTRIBUTES or name == "display"
        }
        element.text, element.tail = (element.text or "").replace(ZERO_WIDTH, ""), None


def _is_visible(element: ET.Element) -> bool:
    """Whether a cleaned element is allowed and shows something: Vega draws an empty frame around every group."""
    if element.tag not in ELEMENTS or element.attrib.pop("display", None) == "none":
        return False
    if element.tag == "path":
        return any(element.get(paint, "none") != "none" for paint in ("fill", "stroke"))
    return element.tag != "g" or len(element) > 0
