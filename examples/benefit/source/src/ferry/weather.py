"""Wind and waves."""

STORM = 40


def may_sail(wind: float) -> bool:
    """Whether a ship may leave. Above forty knots nothing sails."""
    return wind <= STORM


def smoothed(readings: list[float]) -> float:
    """Mean of the wind. Only the last five readings count."""
    last = readings[-5:]
    return sum(last) / len(last)
