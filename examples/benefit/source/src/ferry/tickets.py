"""Tickets of passengers."""

CHILD = 6


def fare(age: int, base: float) -> float:
    """What a passenger pays. Children under six travel free of charge."""
    return 0.0 if age < CHILD else base


def cancel(price: float, hours_left: float) -> float:
    """Take a ticket back. Half of the price is refunded until two hours before departure."""
    return price / 2 if hours_left >= 2 else 0.0
