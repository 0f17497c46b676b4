"""What agents read of the gold lines, turn by turn, as a Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from cranfield.base.numbers import format_percent
from cranfield.reporting.charts.spec import BETTER, SAME, Rule, Screen, Spec, as_is, frame_of, spec_of, tip_of

HEIGHT, WIDEST = 260, 620
LEFT, RIGHT, TOP = 60, 24, 12
COLOURS = (BETTER, SAME)
"""Colours of the treatment and of the control."""


def recall_by_turn(arms: Mapping[str, Sequence[float]], screen: Screen) -> Spec:
    """Recall of gold lines after each turn, a line an arm to the last turn of both; the first arm is the treatment."""
    most = max(map(len, arms.values()))
    values = [
        {
            "turn": turn,
            "recall": recall,
            "arm": arm,
            "colour": colour,
            "tip": tip_of(f"{arm}, after turn {turn}: {format_percent(recall)}"),
        }
        for (arm, recalls), colour in zip(arms.items(), COLOURS, strict=False)
        for turn, recall in enumerate((*recalls, *[recalls[-1]] * (most - len(recalls))) if recalls else (), start=1)
    ]
    across = {"title": "turn", "values": list(range(1, most + 1, ceil(most / screen.ticks))), "format": "d"}
    x: Rule = {"field": "turn", "type": "quantitative", "axis": across, "scale": {"domain": [1, max(2, most)]}}
    up = {"title": "gold lines read", "tickCount": min(screen.ticks, 5), "format": ".0%"}
    y: Rule = {"field": "recall", "type": "quantitative", "axis": up, "scale": {"domain": [0, 1], "nice": False}}
    by_arm = {"x": x, "y": y, "color": as_is("colour")}
    line: Rule = {"mark": {"type": "line", "strokeWidth": 2}, "encoding": by_arm | {"detail": {"field": "arm"}}}
    dots: Rule = {"mark": {"type": "point", "filled": True, "size": 36, "opacity": 1}, "encoding": by_arm}
    return spec_of(values, [line, dots], frame_of(min(screen.width, WIDEST), HEIGHT, LEFT, right=RIGHT, top=TOP))
