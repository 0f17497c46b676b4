"""Sentences about an evaluation that have a kind, by which those of many systems are counted once."""

from __future__ import annotations

from enum import Enum, auto
from typing import Self


class CaveatKind(Enum):
    """What a sentence is about."""

    OTHER_JUDGMENTS = auto()
    ABSENT = auto()
    """Queries without a judgment, a relevant document or an answer."""
    SILENT = auto()
    NEGATIVE = auto()
    SURPLUS = auto()
    NO_LINES = auto()
    DUPLICATES = auto()
    IDENTICAL_IDS = auto()
    TIES = auto()
    NO_VALUE = auto()
    NO_BOUND = auto()
    OTHER_NAMES = auto()
    OTHER_VERSION = auto()
    EXTRA_QUERIES = auto()
    RANK_COLUMN = auto()
    FAILED = auto()
    UNSTEADY = auto()
    NARROW_SCORES = auto()
    FINDING = auto()
    """Of a verdict: a result, and nothing to doubt."""


class Caveat(str):
    """A sentence with its kind: two of one kind differ in numbers, and in the queries or measures that they name."""

    __slots__ = ("kind",)
    kind: tuple[object, ...]

    def __new__(cls, sentence: str, *kind: object) -> Self:
        """Join a sentence with a `CaveatKind`, and with what makes two of that kind different ones."""
        caveat = super().__new__(cls, sentence)
        caveat.kind = kind
        return caveat
