"""Settings."""

from typing import Any


def checked(given: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """Read settings. A key that is unknown is an error."""
    if unknown := given.keys() - known:
        raise KeyError(", ".join(sorted(unknown)))
    return given


def merged(defaults: dict[str, Any], office: dict[str, Any]) -> dict[str, Any]:
    """Combine two sources. The value of the harbour office wins."""
    return defaults | office
