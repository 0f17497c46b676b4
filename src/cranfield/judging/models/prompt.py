"""The prompt of a model rater: filled with a guideline, a query and untrusted documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WrapValidator, create_model

from cranfield.agents.loop import Prompt, clean, nonce
from cranfield.agents.protocol import ModelAnswer
from cranfield.base.errors import ConfigError
from cranfield.base.words import printable_lines
from cranfield.books.settings import GradeScale
from cranfield.formats.io.validation import load_model

DEFAULT = "relevance-1"


def load_prompt(path: Path | None = None) -> Prompt:
    """The prompt of a YAML file; without one, that of the package.

    Raises:
        ConfigError: the file is missing or invalid, or a template of it cannot be filled.
    """
    if path is None:
        with as_file(files(__package__) / "prompts" / f"{DEFAULT}.yaml") as own:
            return load_model(own, Prompt, ConfigError)
    prompt = load_model(path, Prompt, ConfigError)
    from jinja2 import TemplateError

    from cranfield.books.settings import SCALES

    try:
        fill(prompt, Question("query", "need", "notes"), ["text"], scale=SCALES["graded"], guideline="guideline")
    except TemplateError as error:
        raise ConfigError(f"a template of the prompt cannot be filled: {error}", path=str(path)) from None
    return prompt


@dataclass(frozen=True, slots=True)
class Question:
    """A query as a rater sees it."""

    query: str
    need: str = ""
    notes: str = ""


def fill(
    prompt: Prompt,
    question: Question,
    documents: Sequence[str],
    *,
    scale: GradeScale,
    guideline: str,
    is_batch: bool = False,
) -> tuple[str, str]:
    """System prompt and user's message. Nothing in a document is a template, or can end the delimiters around it."""
    texts = [clean(document) for document in documents]
    values = {
        "guideline": guideline.strip(),
        "levels": scale.levels,
        "query": " ".join(clean(question.query).split()),
        "need": clean(question.need).strip(),
        "notes": clean(question.notes).strip(),
        "documents": texts,
        "nonce": nonce(prompt, [question.query, question.need, *texts]),
        "is_batch": is_batch,
    }
    return prompt.fill(values)


REASON_CHARS = 1_000
"""Most characters of a reason that is stored."""


@dataclass(frozen=True, slots=True)
class Graded:
    """A grade by a model."""

    grade: int | None
    """None: the model says that it cannot grade the document."""
    reason: str


@dataclass(frozen=True, slots=True)
class BadAnswer:
    """No grade, and why."""

    message: str


@cache
def answer_schema(grades: tuple[int, ...], *, is_batch: bool) -> type[BaseModel]:
    """The schema of an answer: a grade of the scale with a reason, or a list of them by the documents' numbers."""
    strict = ConfigDict(extra="forbid", strict=True)
    fields: dict[str, Any] = {
        "grade": (Annotated[Literal[grades], BeforeValidator(_only_integer)] | None, ...),
        "reason": (str, ...),
    }
    if not is_batch:
        return create_model("Grade", __config__=strict, **fields)
    entry = create_model(
        "DocumentGrade",
        __config__=strict,
        number=(Annotated[int, Field(ge=1), BeforeValidator(_only_integer)], ...),
        **fields,
    )
    # An entry that does not fit is None, and does not reject the others. The schema that is sent is that of the entry.
    lenient: Any = Annotated[entry, WrapValidator(_none_if_invalid)]
    return create_model("Grades", __config__=ConfigDict(extra="forbid"), grades=(list[lenient], ...))


def _only_integer(value: Any) -> Any:
    """Refuse `true` and `2.0`, which are equal to a grade."""
    if type(value) is not int:
        raise ValueError("not an integer")
    return value


def _none_if_invalid(value: Any, validate: Any) -> Any:
    try:
        return validate(value)
    except ValidationError:
        return None


def read_grades(answer: ModelAnswer, n: int) -> Mapping[int, Graded | BadAnswer]:
    """The grade of each of `n` documents, by its place (0, 1, ...); a bad answer where there is none."""
    if answer.failure is not None or answer.output is None:
        message = answer.failure.message if answer.failure else "the model called a tool instead of answering"
        return dict.fromkeys(range(n), BadAnswer(message))
    output: Any = answer.output
    if not hasattr(output, "grades"):
        return {0: Graded(output.grade, _shown(output.reason))}
    found: dict[int, list[Graded]] = {}
    for entry in output.grades:
        if entry is not None:
            found.setdefault(entry.number - 1, []).append(Graded(entry.grade, _shown(entry.reason)))
    return {place: _only(found.get(place, [])) for place in range(n)}


def _shown(reason: str) -> str:
    return printable_lines(reason[:REASON_CHARS])


def _only(grades: list[Graded]) -> Graded | BadAnswer:
    if len(grades) == 1:
        return grades[0]
    if grades:
        return BadAnswer(f"the answer has {len(grades)} entries for this document")
    return BadAnswer("the answer has no valid entry for this document")
