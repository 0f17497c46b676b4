"""What all charts share: sizes, colours, labels, and the frame of a Vega-Lite specification.

Colours are Okabe and Ito's, distinct for readers with any colour vision: blue is better, vermilion worse, grey neither.
Every chart is drawn for a page and for a phone, because text that shrinks with a chart cannot be read. Room for labels is
computed from their length and not measured, so that a chart does not depend on the fonts of the machine that drew it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from cranfield.base.words import printable, shorten_to
from cranfield.base.words import width as width_of

TIP = "\u2063"
"""Between the words of a mark, the id of its query and the address it leads to, in a description."""
BETTER, WORSE, SAME, BAND = "#0072B2", "#D55E00", "#767676", "#E69F00"

Spec = dict[str, Any]
Rule = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Screen:
    """The screen a chart is drawn for, in pixels."""

    width: int
    label_chars: int
    """Longer labels are cut."""
    skyline_height: int
    slope_width: int
    ticks: int


PAGE = Screen(width=920, label_chars=44, skyline_height=280, slope_width=920, ticks=8)
PHONE = Screen(width=342, label_chars=18, skyline_height=210, slope_width=342, ticks=3)
SCREENS = (PAGE, PHONE)

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
ZERO_WIDTH = "\u200b"
"""A character without width that makes equal labels different; the renderer removes it."""
_COUNTED = re.compile(r" \([\d,]+\)$")
CHARACTER = 7.5
"""Width of a character at 12 pixels in a wide font."""
BOUNDED = {"filter": "isValid(datum.low) && isValid(datum.high)"}
"""An interval with an unknown end is not drawn: its table says so."""
AXIS_ROOM = 44
"""Height of an axis with its title."""


def make_labels_unique(labels: Sequence[str], chars: int) -> list[str]:
    """Labels cut to `chars`; equal ones get invisible characters, so that each keeps its row."""
    seen: Counter[str] = Counter()
    unique = []
    for label in labels:
        short = _shortened(printable(label).replace(ZERO_WIDTH, ""), chars)
        unique.append(short + ZERO_WIDTH * seen[short])
        seen[short] += 1
    return unique


def _shortened(label: str, chars: int) -> str:
    """Cut to so many characters; how many queries there are, `(14)` at the end, stays."""
    counted = _COUNTED.search(label)
    count = counted.group() if counted else ""
    return shorten_to(label.removesuffix(count), chars - len(count)) + count


def room_for(labels: Sequence[str]) -> float:
    """Pixels that the longest label takes next to an axis."""
    longest = max((width_of(label.rstrip(ZERO_WIDTH)) for label in labels), default=0)
    return longest * CHARACTER + 18


def frame_of(
    width: float, height: float, left: float, *, right: float = 20, top: float = 6, axis: float = AXIS_ROOM
) -> Spec:
    """A drawing area of exactly this size, whatever the fonts: nothing is fitted by measuring words."""
    return {
        "width": round(width - left - right),
        "height": round(height),
        "padding": {"left": round(left), "right": round(right), "top": round(top), "bottom": round(axis)},
        "autosize": "none",
    }


def tip_of(words: str, query_id: str = "", href: str = "") -> str:
    """What a mark says when it is pointed at, and where it leads: `tip` of its data.

    Args:
        words: what it says.
        query_id: the query that it opens.
        href: a relative address that it links to, quoted.
    """
    query = quote(query_id.encode("utf-8", "replace"), safe="")
    return printable(words).replace(TIP, "") + TIP + query + (TIP + href.replace(TIP, "") if href else "")


def _described(layer: Rule, values: Sequence[Mapping[str, Any]]) -> Rule:
    """A layer whose marks say their `tip`, where all of its data have one."""
    own: Sequence[Mapping[str, Any]] = layer.get("data", {}).get("values", values)
    if not own or "encoding" not in layer or not all("tip" in value for value in own):
        return layer
    return layer | {"encoding": layer["encoding"] | {"description": {"field": "tip", "type": "nominal"}}}


def spec_of(values: Sequence[Mapping[str, Any]], layers: Sequence[Rule], frame: Spec) -> Spec:
    """The whole specification: data, layers, frame, and what all pictures have in common."""
    axis = {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelLimit": 0,
        "gridColor": "#dddddd",
        "domain": False,
        "ticks": False,
        "labelPadding": 8,
    }
    return {
        "$schema": SCHEMA,
        **frame,
        "background": None,
        "data": {"values": list(values)},
        "layer": [_described(layer, values) for layer in layers],
        "config": {"view": {"stroke": None}, "axis": axis, "text": {"fontSize": 12}},
    }


def bounds(values: Iterable[float | None]) -> tuple[float, float]:
    """Ends of an axis: the values that are known, with some room."""
    found = [value for value in values if value is not None]
    least, most = min(found), max(found)
    room = 0.05 * (most - least) or 0.05 * abs(most) or 0.05
    return least - room, most + room


def scale_without_zero(values: Iterable[float | None]) -> Rule:
    """Scale of an axis that need not reach 0. An axis of one value alone would have no true tick: it gets some room."""
    found = {value for value in values if value is not None}
    return {"zero": False} | ({"domain": list(bounds(found))} if len(found) == 1 else {})


def as_is(field: str) -> Rule:
    """A channel without a scale: the data are colours or widths."""
    return {"field": field, "type": "quantitative" if field == "thick" else "nominal", "scale": None, "legend": None}


def gain_colour(gain: float) -> str:
    """The colour of a gain, a loss, or neither."""
    return BETTER if gain > 0 else WORSE if gain < 0 else SAME
