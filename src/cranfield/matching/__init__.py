"""When a result is the expected thing: exact ids and patterns. Rests on the model alone."""

from cranfield.matching.expectation import Expectation, expect

__all__ = ["Expectation", "expect"]
