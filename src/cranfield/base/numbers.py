"""Numbers as text.

Renderers call `format_cell` with the kind of a column, sentences the function of the kind. An unknown value is a dash, a
minus is a minus sign (U+2212), and values are rounded only here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar

Kind = Literal[
    "text",
    "code",
    "query id",
    "count",
    "value",
    "delta",
    "effect",
    "p",
    "percent",
    "average",
    "ms",
    "statistic",
    "interval",
    "delta interval",
]
"""What a column holds. `code` is literal text (an id, a text, an error line), `query id` too; the rest are numbers."""

Interval = tuple[float | None, float | None]
Number = int | float | None

UNKNOWN = "\u2013"
"""An en dash, for an unknown value."""
MINUS = "\u2212"
SMALLEST_P = 0.0001
SECONDS_FROM_MS = 10_000


def format_value(value: Number) -> str:
    """A measure's value: four decimals, `0.4120`."""
    return UNKNOWN if value is None else _minus(f"{value + 0.0:.4f}")


def format_delta(value: Number) -> str:
    """A difference: four decimals and its sign, `+0.0590`; exactly none is `0.0000`."""
    return _signed(value, 4)


def format_effect(value: Number) -> str:
    """An effect size: two decimals and its sign, `+0.43`."""
    return _signed(value, 2)


def format_p(value: Number) -> str:
    """A p-value: `.0011`, `< .0001`, `1`."""
    if value is None:
        return UNKNOWN
    if value < SMALLEST_P:
        return "< .0001"
    text = f"{value:.4f}"
    return "1" if text.startswith("1") else text.lstrip("0")


def format_percent(share: Number) -> str:
    """A share of one: `12.3 %`."""
    if share is None:
        return UNKNOWN
    return _minus(f"{share * 100:.1f} %")


def format_points(share: Number) -> str:
    """A difference of shares in percentage points: `+12.3`."""
    return UNKNOWN if share is None else _minus(f"{share * 100:+.1f}")


def format_change(number: Number) -> str:
    """A difference of counts: whole, with its sign, `+1,204`."""
    return UNKNOWN if number is None else _minus(f"{number:+,.0f}")


def format_average(number: Number) -> str:
    """A mean of counts: one decimal, `19.5`."""
    return UNKNOWN if number is None else _minus(f"{number:.1f}")


def format_ms(milliseconds: Number) -> str:
    """A duration: `3.2 ms`, `124 ms`, `12.3 s`."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds >= SECONDS_FROM_MS:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds:.0f} ms" if milliseconds >= 99.95 else f"{milliseconds:.1f} ms"


def format_duration(seconds: float) -> str:
    """A duration in its largest unit: `40 s`, `12 min`, `5 h`, `3 days`.

    Example:
        >>> [format_duration(seconds) for seconds in (40, 59.7, 754, 7199, 86_399, 172_800)]
        ['40 s', '1 min', '13 min', '2 h', '24 h', '2 days']
    """
    for unit, most, size in (("s", 60, 1), ("min", 60, 60), ("h", 48, 3600)):
        if round(seconds / size) < most:
            return f"{round(seconds / size)} {unit}"
    return f"{round(seconds / 86_400)} days"


def format_count(number: Number) -> str:
    """A whole number; thousands are set apart from 10,000 on."""
    if number is None:
        return UNKNOWN
    return _minus(f"{number:,}" if abs(number) >= 10_000 else str(number))


def format_statistic(value: Number) -> str:
    """A test statistic: at most four decimals, without trailing zeros."""
    return UNKNOWN if value is None else _minus(_bare(f"{value:.4f}"))


def format_interval(interval: Interval | None) -> str:
    """Both ends of an interval: `0.3812 to 0.4420`; an unknown end is `unbounded`."""
    return _interval(interval, format_value)


def format_delta_interval(interval: Interval | None) -> str:
    """Both ends of an interval of differences: `+0.0210 to +0.0970`."""
    return _interval(interval, format_delta)


def format_plain(value: Number) -> str:
    """A setting in its shortest form: `0.05`, `42`."""
    return UNKNOWN if value is None else _minus(f"{value:g}")


def format_level(alpha: float) -> str:
    """Confidence of an interval at this alpha: `95 %`."""
    return f"{(1 - alpha) * 100:.4g} %"


_NUMERIC: Mapping[Kind, Callable[[Number], str]] = {
    "count": format_count,
    "value": format_value,
    "delta": format_delta,
    "effect": format_effect,
    "p": format_p,
    "percent": format_percent,
    "average": format_average,
    "ms": format_ms,
    "statistic": format_statistic,
}
_INTERVALS: Mapping[Kind, Callable[[Interval | None], str]] = {
    "interval": format_interval,
    "delta interval": format_delta_interval,
}


def is_numeric(kind: Kind) -> bool:
    """True for kinds that are aligned to the right."""
    return kind in _NUMERIC or kind in _INTERVALS


def format_cell(value: object, kind: Kind) -> str:
    """The text of one cell. Text in a column of numbers (`too few pairs`) is not changed."""
    if value is None:
        return UNKNOWN
    if isinstance(value, tuple):
        return _INTERVALS[kind](value)
    if isinstance(value, int | float) and not isinstance(value, bool) and kind in _NUMERIC:
        return _NUMERIC[kind](value)
    return str(value)


def _interval(interval: Interval | None, end: Callable[[Number], str]) -> str:
    if interval is None or interval == (None, None):
        return UNKNOWN
    low, high = ("unbounded" if bound is None else end(bound) for bound in interval)
    return f"{low} to {high}"


def _signed(value: Number, decimals: int) -> str:
    if value is None:
        return UNKNOWN
    return f"{0:.{decimals}f}" if value == 0 else _minus(f"{value:+.{decimals}f}")


def _bare(text: str) -> str:
    bare = text.rstrip("0").rstrip(".")
    return "0" if bare in {"", "-0"} else bare


def _minus(text: str) -> str:
    return text.replace("-", MINUS)


def subtract(a: float | None, b: float | None) -> float | None:
    """The difference a - b; None where either is None."""
    return None if a is None or b is None else a - b


_Summand = TypeVar("_Summand", int, float)


def total(values: Sequence[_Summand | None]) -> _Summand | None:
    """The sum; None where one of them is None."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
