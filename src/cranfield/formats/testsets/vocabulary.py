"""What records of a golden set, and files like it, may say: task types, and versions of the schema."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cranfield.base.errors import Problem, did_you_mean, shorten
from cranfield.formats.io.located import Located
from cranfield.formats.io.records import RECORDS, indexed_objects
from cranfield.formats.io.tree import Loc
from cranfield.model.kinds import source_text
from cranfield.model.vocabulary import TASK_TYPE, TASK_TYPES

VERSION = "schema_version"
CLASSIFIER_EXPECTATION = "classifier_expectation"
KNOWN_VERSION = "1.0.0"


def version_problems(located: Located) -> Iterator[Problem]:
    """Unknown versions of the schema, of the file and of its records."""
    yield from _version_problem(located, located.sourced.get(VERSION), (VERSION,))
    for index, record in indexed_objects(located.sourced.get(RECORDS)):
        yield from _version_problem(located, record.get(VERSION), (RECORDS, index, VERSION))


def _version_problem(located: Located, value: object, loc: Loc) -> Iterator[Problem]:
    if not is_known_version(value):
        text = source_text(value)
        got = shorten(text) if isinstance(text, str) else "no text"
        yield located.problem("unknown schema version", loc, expected=KNOWN_VERSION, got=got)


def is_known_version(value: object) -> bool:
    """Whether a version of the schema is the one that is read; it may be left out."""
    return value is None or source_text(value) == KNOWN_VERSION


def task_type_problems(located: Located, declared: Collection[str] = ()) -> Iterator[Problem]:
    """Records with a task type, their own or the one expected of a classifier, that is none of the declared ones.

    These are by default the types of the format.
    """
    known = [*(declared or TASK_TYPES)]
    folded = {name.casefold() for name in known}
    for index, record in indexed_objects(located.sourced.get(RECORDS)):
        for key in (TASK_TYPE, CLASSIFIER_EXPECTATION):
            text = source_text(record.get(key))
            if isinstance(text, str) and text.casefold() not in folded:
                yield located.problem(
                    f"unknown task type {shorten(text)}",
                    (RECORDS, index, key),
                    expected=", ".join(known),
                    hint=did_you_mean(text.casefold(), known) or "`task_types` of the metadata declares others",
                )
