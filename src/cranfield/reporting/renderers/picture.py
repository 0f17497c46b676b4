"""A Vega-Lite specification as static SVG that may stand inside a page with a strict policy.

vl-convert draws without a network and without a browser. What it returns is taken apart and put together again from a
list of allowed elements and attributes: no script, no style, no link, no id that another picture could have too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

from cranfield.reporting.charts.spec import ZERO_WIDTH

VEGA_LITE = "5.20"
SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "g", "path", "line", "rect", "circle", "text", "tspan"}
ATTRIBUTES = {
    *("d", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "r", "cx", "cy", "width", "height", "viewBox"),
    *("transform", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-linecap"),
    *("stroke-miterlimit", "stroke-dasharray", "opacity", "text-anchor", "font-size", "font-weight"),
}
_LONG_NUMBER = re.compile(r"\d+\.\d{3,}")


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
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(dict(spec), vl_version=VEGA_LITE, allowed_base_urls=[])
    root = ET.fromstring(drawn)  # noqa: S314 - what our own renderer wrote, not what a user sent
    view_box = root.get("viewBox", "0 0 1 1")
    _clean(root)
    root.attrib = {"viewBox": view_box, "role": "img", "aria-label": label, "width": root.get("width", "")}
    return ET.tostring(root, encoding="unicode")


def _clean(root: ET.Element) -> None:
    """Remove, in place, everything but the allowed elements and attributes, and what shows nothing."""
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
