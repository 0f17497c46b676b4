"""Shifts of the crew."""


def rota(hours: dict[str, float]) -> list[str]:
    """Who can work today. Nobody works more than twelve hours."""
    return [name for name, worked in hours.items() if worked < 12]


def substitute(shifts: dict[str, int]) -> str:
    """Who steps in. The colleague with the fewest shifts is asked first."""
    return min(shifts, key=lambda name: shifts[name])
