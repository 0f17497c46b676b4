"""Reliability diagram and risk-coverage curve as Vega-Lite specifications."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.base.numbers import format_interval, format_value
from cranfield.base.words import count_noun
from cranfield.reporting.charts.spec import BETTER, SAME, WORSE, Rule, Screen, Spec, frame_of, spec_of, tip_of
from cranfield.stats.calibration import Bin, CoveragePoint

HEIGHT, WIDEST = 300, 520
LEFT, RIGHT, TOP = 60, 24, 12
SMALLEST, LARGEST = 40, 260
"""Area of a dot, by the share of the answers in its bin."""


def reliability_diagram(bins: Sequence[Bin], screen: Screen) -> Spec:
    """Share of correct answers against mean score; a calibrated score lies on the diagonal. Dots grow with their answers."""
    most = max(each.n for each in bins)
    values = [
        {
            "score": each.mean_score,
            "share": each.share,
            "low": each.interval[0],
            "high": each.interval[1],
            "size": SMALLEST + (LARGEST - SMALLEST) * each.n / most,
            "tip": tip_of(
                f"mean score {format_value(each.mean_score)}: {each.right} of {count_noun(each.n, 'answers')} correct, "
                f"{format_value(each.share)} ({format_interval(each.interval)})"
            ),
        }
        for each in bins
    ]
    x, y = _axis("score", "mean score", screen), _axis("share", "share correct", screen)
    diagonal: Rule = {
        "data": {"values": [{"score": 0, "share": 0}, {"score": 1, "share": 1}]},
        "mark": {"type": "line", "strokeDash": [4, 4], "color": SAME, "strokeWidth": 1.5},
        "encoding": {"x": x, "y": y},
    }
    interval: Rule = {
        "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.45, "color": BETTER},
        "encoding": {"x": x, "y": _axis("low", "share correct", screen), "y2": {"field": "high"}},
    }
    point: Rule = {
        "mark": {"type": "point", "filled": True, "opacity": 1, "color": BETTER},
        "encoding": {"x": x, "y": y, "size": {"field": "size", "type": "quantitative", "scale": None, "legend": None}},
    }
    return spec_of(values, [diagonal, interval, point], _frame(screen))


def risk_coverage_curve(points: Sequence[CoveragePoint], screen: Screen) -> Spec:
    """Share of wrong answers against the share of answers that are given, from the highest score on."""
    values = [
        {
            "coverage": point.coverage,
            "risk": point.risk,
            "tip": tip_of(f"score from {format_value(point.threshold)}: {point.n - point.right} of {point.n} wrong"),
        }
        for point in points
    ]
    x, y = _axis("coverage", "coverage", screen), _axis("risk", "share wrong", screen)
    line: Rule = {"mark": {"type": "line", "color": WORSE, "strokeWidth": 2}, "encoding": {"x": x, "y": y}}
    dots: Rule = {
        "mark": {"type": "point", "filled": True, "size": 24, "opacity": 1, "color": WORSE},
        "encoding": {"x": x, "y": y},
    }
    return spec_of(values, [line, dots], _frame(screen))


def _axis(field: str, title: str, screen: Screen) -> Rule:
    axis = {"title": title, "tickCount": min(screen.ticks, 5)}
    return {"field": field, "type": "quantitative", "axis": axis, "scale": {"domain": [0, 1], "nice": False}}


def _frame(screen: Screen) -> Spec:
    return frame_of(min(screen.width, WIDEST), HEIGHT, LEFT, right=RIGHT, top=TOP)
