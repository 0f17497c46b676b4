"""How results are read from the output of a system, and the checks before the first query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, Tag

from cranfield.config.expression import ExpressionError, compile_list_path, compile_path, compile_result_regex
from cranfield.config.strict import Finding, Strict, by_key, checked
from cranfield.errors import Problem
from cranfield.formats.io.located import Text


def compiles(compile_: Callable[[str], object]) -> AfterValidator:
    """Validator of a text that has to compile."""

    def check(text: str) -> Iterator[Finding]:
        try:
            compile_(text)
        except ExpressionError as error:
            yield (), Problem(str(error), hint=error.hint)

    return checked(check)


ListPath = Annotated[str, compiles(compile_list_path)]
ResultPath = Annotated[str, compiles(compile_path)]


class RegexExtract(Strict):
    """Results are read by a regular expression."""

    hints: ClassVar[Mapping[str, str]] = {
        key: f"a regular expression has a group for it: (?P<{key}>...)."
        for key in ("id", "score", "title", "span", "tokens")
    }

    regex: Annotated[str, compiles(compile_result_regex)]
    """Regular expression over the output, in document order. The id is the group named `id`, else group 1, else the
    whole match; groups named `score`, `title`, `span` and `tokens` are kept where they are."""

    @property
    def has_score(self) -> bool:
        """Whether a result has a score."""
        return "score" in compile_result_regex(self.regex).groupindex


class ResultPaths(Strict):
    """What is read from each result of a JSON document."""

    id: ResultPath | None = None
    """JMESPath of the id in a result; without it the result itself is the id."""
    score: ResultPath | None = None
    """JMESPath of the score in a result."""
    title: ResultPath | None = None
    """JMESPath of the title in a result."""
    span: ResultPath | None = None
    """JMESPath of the place inside the document (`12-40`) in a result."""
    tokens: ResultPath | None = None
    """JMESPath of what reading a result costs, in tokens, in a result."""
    fields: dict[str, ResultPath] = Field(default_factory=dict)
    """Name to JMESPath: what is kept of the document as a whole, per query (confidence, answer, tokens). For JSON
    lines the document is the list of all lines."""

    @property
    def has_score(self) -> bool:
        """Whether a result has a score."""
        return self.score is not None


class JsonExtract(ResultPaths):
    """Results are read from one JSON document."""

    json_: ListPath = Field(alias="json")
    """JMESPath of the list of results in one JSON document: `results`, `hits.hits[]`."""


class JsonLinesExtract(ResultPaths):
    """Results are read from lines of JSON."""

    jsonl: Literal[True] | ListPath
    """`true`: each line is a result. Or a JMESPath that gives the result, or the list of results, of a line; a line
    where it gives null holds none."""


Extract = Annotated[
    Annotated[RegexExtract, Tag("regex")]
    | Annotated[JsonExtract, Tag("json")]
    | Annotated[JsonLinesExtract, Tag("jsonl")],
    by_key("regex", "json", "jsonl"),
]


class JsonValue(Strict):
    """A value that a JSON file must contain."""

    path: ResultPath
    """JMESPath in the file."""
    value: Any
    """The expected value: same type, same value."""


class BinaryCheck(Strict):
    """A program that must exist."""

    binary: Text
    """A program that must exist and be executable: a path relative to `cwd`, or a name on PATH."""


class FileCheck(Strict):
    """A file that must exist, and its content."""

    file: Text
    """A file that must exist, relative to `cwd`; `contains`, `equals` or `equals_json` check its content."""
    contains: Text | None = None
    """Text that `file` must contain."""
    equals: Text | None = None
    """The whole text of `file`, without blanks at both ends."""
    equals_json: JsonValue | None = None
    """A value that `file`, a JSON document, must contain."""


class ProbeCheck(Strict):
    """A query that must return results."""

    probe: Text
    """A query that must return at least one result."""


Check = Annotated[
    Annotated[BinaryCheck, Tag("binary")] | Annotated[FileCheck, Tag("file")] | Annotated[ProbeCheck, Tag("probe")],
    by_key("binary", "file", "probe"),
]
