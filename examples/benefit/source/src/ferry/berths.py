"""Berths of the harbour."""


def assign(lengths: dict[str, float], berths: list[str]) -> dict[str, str]:
    """Give each ship its berth. The longest ship is placed first."""
    by_length = sorted(lengths, key=lambda ship: -lengths[ship])
    return dict(zip(by_length, berths, strict=False))


def release(now: float) -> float:
    """When a berth can be used again. It stays blocked for ten minutes of cleaning."""
    return now + 600
