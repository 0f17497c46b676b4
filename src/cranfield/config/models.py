"""cranfield.yaml as pydantic models: what may be said, its type and its bounds.

The string under each field is its description in the published JSON Schema. What one field alone cannot tell (names
that refer to each other, patterns that must compile) is in `check`; reading the file is in `load`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    WithJsonSchema,
)

from cranfield.formats.located import PlainScalar, Text, source_text
from cranfield.formats.testset_fields import CLOSED, ParamName, without_nul
from cranfield.model import DEFAULT_CONVENTION, Order

MAX_CONCURRENCY = 64
NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""The name of a system, or of one of several test sets: a file's or folder's name, and a heading."""


Secret = Annotated[
    SecretStr,
    BeforeValidator(source_text),
    WithJsonSchema({"type": ["string", "number", "boolean"], "writeOnly": True}),
]
Share = Annotated[float, Field(ge=0, le=1)]


class Strict(BaseModel):
    """Base of every part: unknown keys are problems, values are not coerced, nothing changes after loading."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def _exactly_one_of(*names: str) -> dict[str, Any]:
    return {"oneOf": [{"required": [name]} for name in names]}


class Extract(Strict):
    """How results are read from a system's output: by regex, from one JSON document, or from JSON lines."""

    model_config = ConfigDict(json_schema_extra=_exactly_one_of("regex", "json", "jsonl"))

    regex: str | None = None
    """Regular expression over the output, in document order. The id is the group named `id`, else group 1, else the
    whole match; groups named `score`, `title` and `span` are kept where they are."""
    json_: str | None = Field(default=None, alias="json")
    """JMESPath of the list of results in one JSON document: `results`, `hits.hits[]`."""
    jsonl: Literal[True] | str | None = None
    """`true`: each line is a result. Or a JMESPath that gives the result, or the list of results, of a line; a line
    where it gives null holds none."""
    id: str | None = None
    """JMESPath of the id in a result; without it the result itself is the id."""
    score: str | None = None
    """JMESPath of the score in a result."""
    title: str | None = None
    """JMESPath of the title in a result."""
    span: str | None = None
    """JMESPath of the place inside the document (`12-40`) in a result."""
    fields: dict[str, str] = Field(default_factory=dict)
    """Name to JMESPath: what is kept of the document as a whole, per query (confidence, answer, tokens). For JSON
    lines the document is the list of all lines."""


class JsonValue(Strict):
    """A value that a JSON file must hold."""

    path: str
    """JMESPath in the file."""
    value: Any
    """What must be found there: same type, same value."""


class Check(Strict):
    """One thing that must hold before the first query is run."""

    model_config = ConfigDict(json_schema_extra=_exactly_one_of("binary", "file", "probe"))

    binary: Text | None = None
    """A program that must be there and executable: a path relative to `cwd`, or a name on PATH."""
    file: Text | None = None
    """A file that must be there, relative to `cwd`; with `contains`, `equals` or `equals_json`, what it must hold."""
    contains: Text | None = None
    """Text that `file` must hold somewhere."""
    equals: Text | None = None
    """All the text of `file`, but for blanks at both ends."""
    equals_json: JsonValue | None = None
    """A value that `file`, a JSON document, must hold."""
    probe: Text | None = None
    """A query that must return at least one result."""


class SystemConfig(Strict):
    """A system under test: a command, and how its output is read."""

    command: Annotated[list[Text], Field(min_length=1)]
    """Program and arguments; no shell reads them. `{query}`, `{k}`, `{params.NAME}` and `{python}` are filled in. An
    argument whose parameter is absent is dropped, with the flag before it. Put `--` before `{query}` where the program
    takes options, so that a query that starts with `-` is still a query."""
    cwd: str = "."
    """Working directory, relative to the config file."""
    env: dict[str, Secret] = Field(default_factory=dict)
    """Environment variables set on top of Cranfield's own. Values are secrets: reports name the variables only."""
    timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """Seconds a call may take before it is killed and counted as a timeout."""
    concurrency: Annotated[int, Field(ge=1, le=MAX_CONCURRENCY)] = 1
    """Calls at a time. Latency is only worth reading at 1."""
    order: Order = "given"
    """The list stands in the order given, or is sorted by score: descending (higher is better) or ascending."""
    extract: Extract
    """How results are read from the output."""
    empty: str | None = None
    """Regular expression that tells an honest empty list from output that could not be read."""
    preflight: list[Check] = Field(default_factory=list)
    """What must hold before the first query is run, besides that the program exists."""


class Limits(Strict):
    """Beyond these a comparison is invalid, whatever its numbers say."""

    max_failed_share: Share | None = 0.1
    """Largest share of queries on which a system may fail; null sets no limit."""
    min_judged_share: Share | None = None
    """Smallest share of the shown results that somebody must have judged; null sets no limit."""


Name = Annotated[str, Field(pattern=f"^{NAME_PATTERN}$")]


class SetConfig(Strict):
    """One of several test sets, and what is different with it."""

    path: str
    """Test-set file, relative to the config file."""
    params: dict[ParamName, Annotated[PlainScalar, AfterValidator(without_nul)]] = Field(
        default_factory=dict, json_schema_extra=CLOSED
    )
    """Given with every query of the set, as `{params.NAME}` in a command; what a query says itself goes first."""
    k: Annotated[int, Field(ge=1)] | None = None
    """Results asked of each system, and kept; without it, as at the top."""
    measures: Annotated[list[str], Field(min_length=1)] | None = None
    """Measures to report; without it, as at the top."""
    primary: str | None = None
    """The measure that decides; without it, the first of this set's own `measures`, or as at the top."""
    systems: Annotated[list[Name], Field(min_length=1, max_length=2)] | None = None
    """Only these systems: one alone, or baseline and candidate; without it, as at the top."""
    repo: str | None = None
    """Folder of the repository that the set has to be true of; without it, as at the top."""


class Config(Strict):
    """One comparison: a test set or several, two or more systems, and the rule that decides."""

    model_config = ConfigDict(json_schema_extra=_exactly_one_of("testset", "testsets"))

    testset: str | None = None
    """Test-set file, relative to the config file."""
    testsets: (
        Annotated[dict[Name, SetConfig], Field(min_length=1, json_schema_extra={"additionalProperties": False})] | None
    ) = None
    """Several test sets by name, in place of `testset`: each is run in turn, in a folder of its name."""
    repo: str | None = None
    """Folder of the repository that the test set has to be true of, relative to the config file; a set that is not is
    refused, unless the call allows it."""
    k: Annotated[int, Field(ge=1)] = 10
    """Results asked of each system, and kept."""
    measures: Annotated[list[str], Field(min_length=1)] | None = None
    """Measures to report; without it, the default ones."""
    primary: str | None = None
    """The measure that decides, declared before anything is run; without it, the first of `measures`."""
    convention: str = DEFAULT_CONVENTION
    """Named set of choices that scores the runs."""
    test: str = "permutation"
    """Test that decides on the primary measure."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Significance level."""
    margin: Annotated[float, Field(gt=0)] | None = None
    """Difference too small to matter; without it no verdict says equivalent."""
    limits: Limits = Field(default_factory=Limits)
    """Failures and coverage beyond which the comparison is invalid."""
    baseline: str | None = None
    """Name of system A; with exactly two systems, the first by default."""
    candidate: str | None = None
    """Name of system B; with exactly two systems, the second by default."""
    systems: Annotated[dict[Name, SystemConfig], Field(min_length=1, json_schema_extra={"additionalProperties": False})]
    """Systems under test by name."""

    _folder: Path = PrivateAttr(default_factory=Path)

    @property
    def folder(self) -> Path:
        """Folder that the paths in the config are relative to."""
        return self._folder

    @property
    def sets(self) -> Mapping[str, SetConfig]:
        """Every test set by name, with what the top says where the set says nothing; one alone has no name."""
        if self.testsets is None:
            return {"": self._filled(SetConfig(path=self.testset or ""))}
        return {name: self._filled(one) for name, one in self.testsets.items()}

    def _filled(self, one: SetConfig) -> SetConfig:
        inherited = {"k": self.k, "measures": self.measures, "primary": self.primary, "repo": self.repo}
        if one.measures is not None:
            inherited["primary"] = None  # it need not be among this set's own
        said = {name: value for name, value in inherited.items() if getattr(one, name) is None}
        return one.model_copy(update=said)

    @property
    def pair(self) -> tuple[str, str] | None:
        """Names of baseline and candidate; None when there is one system only."""
        names = list(self.systems)
        if self.baseline is not None and self.candidate is not None:
            return self.baseline, self.candidate
        if len(names) != 2:
            return None
        if self.baseline is not None:
            return self.baseline, next(name for name in names if name != self.baseline)
        if self.candidate is not None:
            return next(name for name in names if name != self.candidate), self.candidate
        return names[0], names[1]
