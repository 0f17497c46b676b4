"""Sentences about an evaluation that have a kind, by which those of many systems are counted once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


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

    @classmethod
    def of(cls, sentence: str) -> Caveat:
        """The sentence, with its kind where it has one."""
        return sentence if isinstance(sentence, Caveat) else cls(sentence)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """In records it is an object: the sentence, and the names of its kind."""
        from pydantic_core import core_schema

        def read(value: object) -> Caveat:
            if not isinstance(value, Mapping):
                return cls.of(str(value))
            known = CaveatKind.__members__
            return cls(value["sentence"], *(known.get(str(name).upper(), name) for name in value["kind"]))

        def write(caveat: Caveat) -> CaveatRecord:
            names = (part.name.lower() if isinstance(part, CaveatKind) else str(part) for part in caveat.kind)
            return CaveatRecord(str(caveat), tuple(names))

        written = handler.generate_schema(CaveatRecord)
        return core_schema.no_info_plain_validator_function(
            read,
            json_schema_input_schema=written,
            serialization=core_schema.plain_serializer_function_ser_schema(write, return_schema=written),
        )


@dataclass(frozen=True, slots=True)
class CaveatRecord:
    """A caveat as JSON has it."""

    sentence: str
    kind: tuple[str, ...]
    """What it is about: `absent`, `finding`, and what makes two of that kind different ones; empty where it has none."""
