"""Crates on deck."""


def accept(weights: list[float], limit: float) -> list[float]:
    """Which crates come aboard. Those that exceed the limit of the deck are refused."""
    aboard: list[float] = []
    for weight in weights:
        if sum(aboard) + weight <= limit:
            aboard.append(weight)
    return aboard


def is_balanced(port: float, starboard: float) -> bool:
    """Whether the load is even. Port and starboard differ by at most two tonnes."""
    return abs(port - starboard) <= 2
