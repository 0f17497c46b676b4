"""External agents: command-line programs that run in both arms, each run in a place of its own."""

from cranfield.benefit.external.opening import open_external

__all__ = ["open_external"]
