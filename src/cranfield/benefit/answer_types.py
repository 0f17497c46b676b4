"""What the reference agent is asked, and the typed answer that it gives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import as_file, files
from typing import Annotated

from pydantic import Field

from cranfield.agents.prompt import Prompt
from cranfield.base.errors import ConfigError
from cranfield.benefit.records import LineRange, NamedPlaces
from cranfield.formats.io.validation import ClosedModel, load_model

QUESTION, CODE = "question-1", "code-1"
_Line = Annotated[int, Field(ge=1, le=999_999_999)]


class NamedLines(ClosedModel):
    """Lines of a file."""

    file: str
    start: _Line
    end: _Line


class QuestionAnswer(ClosedModel):
    """The answer to a question."""

    text: str
    entities: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    lines: tuple[NamedLines, ...] = ()

    @property
    def named(self) -> NamedPlaces | None:
        """Its places; a name that is blank is none. None: it has none, and places are read from its text."""
        named = NamedPlaces(
            entities=tuple(each for each in self.entities if each.strip()),
            files=tuple(each for each in self.files if each.strip()),
            lines=tuple(
                LineRange(path=each.file, start=each.start, end=each.end) for each in self.lines if each.file.strip()
            ),
        )
        return named if named.entities or named.files or named.lines else None


class CodeFile(ClosedModel):
    """A file."""

    path: Annotated[str, Field(min_length=1)]
    content: str


class CodeAnswer(ClosedModel):
    """Code."""

    text: str = ""
    files: Annotated[list[CodeFile], Field(min_length=1)]

    @property
    def by_path(self) -> Mapping[str, str]:
        """Content by path; of a path that stands twice, the last."""
        return {file.path: file.content for file in self.files}


@cache
def shipped_prompt(name: str) -> Prompt:
    """A prompt of this package, by its name and version."""
    with as_file(files(__package__) / "prompts" / f"{name}.yaml") as path:
        return load_model(path, Prompt, ConfigError)
