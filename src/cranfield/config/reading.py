"""How results are read from the output of a system, and the checks before the first query.

Regular expressions and JMESPath expressions are compiled before a query is sent. Each `compile_` function returns the
compiled expression or raises `ExpressionError`, whose message stands after the name of the field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import AfterValidator, Field, Tag

from cranfield.base.errors import Problem, UsageError, unknown_name
from cranfield.base.patterns import Expression, PatternError, compile_pattern, limited
from cranfield.config.owners import OfChange
from cranfield.config.strict import Finding, Strict, by_key, checked
from cranfield.model.answer_rule import parse_answer_rule
from cranfield.model.kinds import Text

_PROJECTIONS = frozenset({"projection", "filter_projection", "value_projection"})
_NEVER_NULL = frozenset({"identity", "multi_select_dict", "multi_select_list"})
_UNLIKELY = "\u2042 7f3a91 \u2042"
"""Text that no system prints: a pattern that matches it matches anything."""


class ExpressionError(ValueError):
    """An expression that does not compile, or would mislead; `hint` is the next step."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Path(Protocol):
    """A compiled JMESPath."""

    def search(self, value: Any) -> Any:
        """Evaluate over a JSON value."""
        ...


def compile_regex(text: str) -> re.Pattern[str]:
    """Compile a regular expression."""
    try:
        return compile_pattern(text)
    except PatternError as error:
        raise ExpressionError(f"is not a regular expression: {error}") from None


def compile_result_regex(text: str) -> re.Pattern[str]:
    """Compile `extract.regex`; refuse one that finds results where there are none."""
    pattern = compile_regex(text)
    if pattern.groupindex and "id" not in pattern.groupindex:
        named = ", ".join(pattern.groupindex)
        raise ExpressionError(f"names the groups {named} but none is `id`", "call the id's group (?P<id>...).")
    if pattern.search(""):
        raise ExpressionError("matches the empty text, so it would find results that have no id")
    return pattern


def compile_empty_regex(text: str) -> re.Pattern[str]:
    """Compile `empty`; refuse a pattern that would report every unreadable output as an empty list of results."""
    pattern = compile_regex(text)
    with limited(1.0, lambda: ExpressionError("takes over 1 s on a text of 10 characters")):
        matches_anything = Expression(text).found_in(_UNLIKELY)
    if matches_anything:
        raise ExpressionError("matches any output, which would hide every parse failure", "use ^$ for blank output.")
    return pattern


def compile_path(text: str) -> Path:
    """Compile a JMESPath; unknown functions are found here, not at the first query."""
    import jmespath
    from jmespath.exceptions import JMESPathError
    from jmespath.functions import Functions

    try:
        compiled = jmespath.compile(text)
    except (JMESPathError, RecursionError) as error:
        position = getattr(error, "lex_position", None)
        at = "" if position is None else f" (character {position + 1})"
        raise ExpressionError(f"is not a JMESPath expression{at}") from None
    for node in _nodes(compiled.parsed):
        if node["type"] == "function_expression" and node["value"] not in Functions.FUNCTION_TABLE:
            problem = unknown_name("JMESPath function", node["value"], Functions.FUNCTION_TABLE)
            raise ExpressionError(f"calls an {problem.message}", problem.hint)
    return compiled


def compile_list_path(text: str) -> Path:
    """Compile the path of a list of results; refuse a path that would silently drop results.

    A JMESPath projection leaves nulls out: `results[].uri` loses the results that have no `uri`, and all that follow
    move up a rank.
    """
    compiled = compile_path(text)
    node: Mapping[str, Any] = compiled.parsed  # type: ignore[attr-defined]  # not in the protocol, on purpose
    while node["type"] in {"subexpression", "pipe"}:
        node = node["children"][-1]
    if node["type"] in _PROJECTIONS and node["children"][1]["type"] not in _NEVER_NULL:
        raise ExpressionError(
            "silently drops results that lack the selected field",
            "let it end at the list (results[]) and pick inside a result with id, score, title and span.",
        )
    return compiled


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node["children"]:
        if isinstance(child, Mapping):
            yield from _nodes(child)


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

    regex: OfChange[Annotated[str, compiles(compile_result_regex)]]
    """Regular expression over the output, in document order. The id is the group named `id`, else group 1, else the
    whole match; groups named `score`, `title`, `span` and `tokens` are kept if present."""
    fields: OfChange[dict[str, Annotated[str, compiles(compile_regex)]]] = Field(default_factory=dict)
    """Name to regular expression: values kept per query from the output as a whole (mode, confidence): group 1 of the first
    match, or the whole match. A number, `true` and `false` are kept as such; without a match the answer has no such field."""

    @property
    def has_score(self) -> bool:
        """Whether a result has a score."""
        return "score" in compile_result_regex(self.regex).groupindex


PARTIAL = (
    "{timed_out: timed_out, failed_shards: _shards.failed, skipped_clusters: _clusters.skipped, "
    "failed_clusters: _clusters.failed, partial_clusters: _clusters.partial, "
    "partialResults: responseHeader.partialResults, details: responseHeader.partialResultsDetails, "
    "errors: root.errors[].message || root.errors, timeout: root.coverage.degraded.timeout, "
    'adaptive_timeout: root.coverage.degraded."adaptive-timeout", '
    'non_ideal_state: root.coverage.degraded."non-ideal-state"}'
)
"""Where Elasticsearch and OpenSearch, Solr and Vespa say that a part of the results is missing; null in other documents."""


class ResultPaths(Strict):
    """What is read from each result of a JSON document."""

    id: OfChange[ResultPath | None] = None
    """JMESPath of the id in a result; without it the result itself is the id."""
    score: OfChange[ResultPath | None] = None
    """JMESPath of the score in a result."""
    title: OfChange[ResultPath | None] = None
    """JMESPath of the title in a result."""
    span: OfChange[ResultPath | None] = None
    """JMESPath of the place inside the document (`12-40`) in a result."""
    tokens: OfChange[ResultPath | None] = None
    """JMESPath of the number of tokens in a result."""
    result_fields: OfChange[dict[str, ResultPath]] = Field(default_factory=dict)
    """Name to JMESPath in a result: what raters see of its document (`text`, `url`, `image`)."""
    explanation: OfChange[ResultPath | None] = None
    """JMESPath in a result of how its score came about: a tree of Lucene or tantivy (`_explanation`), or an object of name to
    number, such as the features of a learned ranker. It is kept where the system has `explain: true`."""
    explanations: OfChange[ResultPath | None] = None
    """JMESPath over the document of an object of id to explanation, where these are not in the results: `debug.explain`."""
    failed: OfChange[ResultPath | None] = PARTIAL
    """JMESPath over the document that detects an incomplete answer: unless its value is null, false, 0 or empty, the answer is
    a failure with that value as the reason. Each member of an object is checked: `{timed_out: timed_out, shards: _shards.failed}`.
    Default: the fields of Elasticsearch, OpenSearch, Solr and Vespa; null: no check."""
    fields: OfChange[dict[str, ResultPath]] = Field(default_factory=dict)
    """Name to JMESPath: values kept per query from the document as a whole (confidence, answer, tokens). For JSON
    lines the document is the list of all lines."""

    @property
    def has_score(self) -> bool:
        """Whether a result has a score."""
        return self.score is not None


class JsonExtract(ResultPaths):
    """Results are read from one JSON document."""

    json_: OfChange[ListPath] = Field(alias="json")
    """JMESPath of the list of results in one JSON document: `results`, `hits.hits[]`."""


class JsonLinesExtract(ResultPaths):
    """Results are read from lines of JSON."""

    jsonl: OfChange[Literal[True] | ListPath]
    """`true`: each line is a result. Or a JMESPath that gives the result, or the list of results, of a line; a line
    for which it is null has no result."""


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


def check_answer_rule(text: str) -> Iterator[Finding]:
    """Problems of a rule on a field of an answer."""
    try:
        parse_answer_rule(text)
    except UsageError as error:
        yield from (((), problem) for problem in error.problems)


class EveryAnswerCheck(Strict):
    """A rule that a field of every answer must satisfy."""

    every_answer: Annotated[Text, checked(check_answer_rule)]
    """Rule on a field of every answer: `mode = semantic`, `confidence >= 0.5`. It is checked on the answer of each `probe`,
    or of the first query of the test set where there is none, and on all answers of the run: a run that breaks it is void."""


Check = Annotated[
    Annotated[BinaryCheck, Tag("binary")]
    | Annotated[FileCheck, Tag("file")]
    | Annotated[ProbeCheck, Tag("probe")]
    | Annotated[EveryAnswerCheck, Tag("every_answer")],
    by_key("binary", "file", "probe", "every_answer"),
]
