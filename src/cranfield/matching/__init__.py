"""When a result is the expected thing: exact ids, patterns, lines, entities, files and rows of a database."""

from cranfield.matching.expectation import Expectation, expect, is_plain, needs_every_result

__all__ = ["Expectation", "expect", "is_plain", "needs_every_result"]
