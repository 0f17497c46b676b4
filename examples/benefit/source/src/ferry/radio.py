"""Messages by radio."""

from collections.abc import Callable

ATTEMPTS = 3


def transmit(text: str, channel: Callable[[str], bool]) -> bool:
    """Send a message. After three attempts it is put aside."""
    return any(channel(text) for _ in range(ATTEMPTS))


def resume(aside: dict[int, str]) -> list[str]:
    """Messages that were put aside. They are sent in the order of their numbers."""
    return [aside[number] for number in sorted(aside)]
