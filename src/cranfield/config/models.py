"""cranfield.yaml as pydantic models: what may be said, its type and its bounds.

The string under each field is its description in the published JSON Schema. What one field alone cannot tell (names
that refer to each other, patterns that must compile) is in `check`; reading the file is in `load`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    WithJsonSchema,
)

from cranfield.config.gate import GateConfig
from cranfield.config.grid import GridConfig
from cranfield.config.strict import Strict
from cranfield.formats.io.located import PlainScalar, Text, source_text
from cranfield.formats.testsets.native_fields import CLOSED, ParamName, without_nul
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


Name = Annotated[str, Field(pattern=f"^{NAME_PATTERN}$")]
ComponentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
FusionMethod = Literal["rrf", "sum"]
Normalisation = Literal["min-max", "z", "none"]
KINDS = ("command", "http", "python", "mcp", "lines", "run", "fusion", "preset", "plugin")
"""What a system can be: a system has exactly one of these keys."""


def _at_most_one_of(*names: str) -> dict[str, Any]:
    return {"not": {"anyOf": [{"required": list(pair)} for pair in combinations(names, 2)]}}


def _exactly_one_of(*names: str) -> dict[str, Any]:
    return {"oneOf": [{"required": [name]} for name in names]}


class Extract(Strict):
    """How results are read from a system's output: by regex, from one JSON document, or from JSON lines."""

    model_config = ConfigDict(json_schema_extra=_exactly_one_of("regex", "json", "jsonl"))

    regex: str | None = None
    """Regular expression over the output, in document order. The id is the group named `id`, else group 1, else the
    whole match; groups named `score`, `title`, `span` and `tokens` are kept where they are."""
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
    tokens: str | None = None
    """JMESPath of what reading a result costs, in tokens, in a result."""
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


class Http(Strict):
    """A request to an HTTP service."""

    model_config = ConfigDict(json_schema_extra=_at_most_one_of("json", "form", "text"))

    url: Text
    """Address. Placeholders in it are percent-encoded."""
    method: Literal["GET", "POST", "PUT"] | None = None
    """POST where there is a body, GET where there is none."""
    headers: dict[str, Text] = Field(default_factory=dict)
    """Headers of the request. What opens a door comes from the environment: `Authorization: Bearer {env.TOKEN}`."""
    basic: Text | None = None
    """User and password, from the environment: `{env.USER}:{env.PASSWORD}`."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Of the URL's query string; a list gives a parameter several times."""
    json_: Any = Field(default=None, alias="json")
    """Body as JSON. A string that is nothing but a placeholder takes its value with its type: `size: "{k}"` is a number.
    A member whose parameter is absent is left out."""
    form: dict[str, Any] | None = None
    """Body as a form."""
    text: str | None = None
    """Body as text, as it stands."""
    http2: bool = True
    """Speak HTTP/2 where the service offers it."""
    ca: Text | None = None
    """File of the certificates to trust in place of the usual ones, relative to the config file."""


class Mcp(Strict):
    """A tool of an MCP server, over stdio or HTTP."""

    model_config = ConfigDict(json_schema_extra=_exactly_one_of("command", "url"))

    command: Annotated[list[Text], Field(min_length=1)] | None = None
    """Program that serves on stdin and stdout; it is started once."""
    url: Text | None = None
    """Address of a server over HTTP."""
    headers: dict[str, Text] = Field(default_factory=dict)
    """Of every request to `url`; what opens a door comes from the environment."""
    tool: Text
    """Name of the tool. A server without it fails the preflight."""
    arguments: dict[str, Any] = Field(default_factory=lambda: {"query": "{query}"})
    """What the tool is called with, filled in like the body of an HTTP request."""


class Fusion(Strict):
    """The results of several systems made one list."""

    of: Annotated[list[Name], Field(min_length=2)]
    """Names of the systems, of this file."""
    method: FusionMethod = "rrf"
    """`rrf`: reciprocal ranks; `sum`: weighted sum of normalised scores."""
    rrf_k: Annotated[float, Field(ge=0)] = 60
    """The constant of reciprocal-rank fusion: a result at rank r gets 1 / (rrf_k + r)."""
    weights: dict[Name, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, json_schema_extra={"additionalProperties": False}
    )
    """Weight of a system; 1 where it is not named."""
    normalise: Normalisation = "min-max"
    """Of the scores of `sum`, per query: `min-max` to 0 to 1, `z` to mean 0 and spread 1, or as they are."""
    depth: Annotated[int, Field(ge=1)] | None = None
    """Results asked of each system; without it, 100 or k, whichever is more."""


class SystemConfig(Strict):
    """A system under test: what it is, how it is asked, and how its answers are read."""

    model_config = ConfigDict(json_schema_extra=_exactly_one_of(*KINDS))

    command: Annotated[list[Text], Field(min_length=1)] | None = None
    """Program and arguments; no shell reads them. `{query}`, `{k}`, `{params.NAME}` and `{python}` are filled in. An
    argument whose parameter is absent is dropped, with the flag before it. Put `--` before `{query}` where the program
    takes options, so that a query that starts with `-` is still a query."""
    http: Http | None = None
    """A request to an HTTP service."""
    python: Text | None = None
    """A function, `module:name`, called as `name(query, k)`, plain or async; with `with`, what makes that function."""
    mcp: Mcp | None = None
    """A tool of an MCP server."""
    lines: Annotated[list[Text], Field(min_length=1)] | None = None
    """A program that stays: started once, it reads a JSON object a line and answers each with a line."""
    run: Text | None = None
    """A run file, in any format that is read: its answers are taken as they are. Relative to the config file."""
    fusion: Fusion | None = None
    """Other systems of this file, fused."""
    preset: Text | None = None
    """A form filled in for a search engine: `elasticsearch`, `sqlite` ...; what it needs is in `with`."""
    plugin: Text | None = None
    """A kind of system that an installed package brings; what it needs is in `with`."""
    with_: dict[str, Any] | None = Field(default=None, alias="with")
    """Settings of a `preset` or `plugin`, and of what makes a `python` function."""

    cwd: str = "."
    """Working directory, relative to the config file; modules of `python` are looked for here first."""
    env: dict[str, Secret] = Field(default_factory=dict)
    """Environment variables set on top of Cranfield's own. Values are secrets: reports name the variables only."""
    params: dict[ParamName, Annotated[PlainScalar, AfterValidator(without_nul)]] = Field(
        default_factory=dict, json_schema_extra=CLOSED
    )
    """Given with every query, as `{params.NAME}`; what a test set or a query says itself goes first."""
    components: Annotated[list[ComponentName], Field(min_length=2)] | None = None
    """Parts that can be switched on and off: `{params.components}` is a comma-separated list of those that are on,
    `{params.NAME}` is `true` or `false` of each. All are on, but in `cranfield components`."""
    timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """Seconds a call may take before it is ended and counted as a timeout."""
    concurrency: Annotated[int, Field(ge=1, le=MAX_CONCURRENCY)] = 1
    """Calls at a time. Latency is only worth reading at 1."""
    rate_per_s: Annotated[float, Field(gt=0)] | None = None
    """Most calls begun in a second; without it, as many as there is room for."""
    retries: Annotated[int, Field(ge=0, le=20)] | None = None
    """Times a call is tried again after 429, 5xx or a broken connection, waiting longer each time; without it 3 for
    `http` and for `mcp` over HTTP, none for the rest. Only what ends well or for good is an answer; retries are counted."""
    backoff_s: Annotated[float, Field(gt=0)] = 0.5
    """Seconds before the first retry, doubled each time, unless the service says how long to wait."""
    order: Order = "given"
    """The list stands in the order given, or is sorted by score: descending (higher is better) or ascending."""
    extract: Extract | None = None
    """How results are read from the output. `lines`, `python` and presets know without; a run and a fusion have none."""
    empty: str | None = None
    """Regular expression that tells an honest empty list from output that could not be read."""
    depends: list[Text] = Field(default_factory=list)
    """Files and folders, relative to `cwd`, whose change makes it another system: answers kept of it before are no longer
    used. Files named in a command, and the module of a function, count without being named."""
    preflight: list[Check] = Field(default_factory=list)
    """What must hold before the first query is run, besides what its kind needs."""

    @property
    def kind(self) -> str:
        """Which of `KINDS` it is; with several or none, the first that is not refused by `check`."""
        return next((kind for kind in KINDS if getattr(self, kind) is not None), KINDS[0])


class Collect(Strict):
    """How systems are asked."""

    warm_up: Annotated[int, Field(ge=0)] = 0
    """Queries asked of each system beforehand, whose answers are thrown away."""
    repeats: Annotated[int, Field(ge=1, le=100)] = 1
    """Times each query is asked. The first answer is scored; what differs later is reported."""
    cache_h: Annotated[float, Field(ge=0)] | None = None
    """Hours for which answers are kept, and used again when nothing has changed; 0 keeps none. Without it 24, but none of
    a system that is reached over a network and names nothing in `depends`: it can change without any file here changing."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of the order in which systems take turns."""


class Limits(Strict):
    """Beyond these a comparison is invalid, whatever its numbers say."""

    max_failed_share: Share | None = 0.1
    """Largest share of queries on which a system may fail; null sets no limit."""
    min_judged_share: Share | None = None
    """Smallest share of the shown results that somebody must have judged; null sets no limit."""


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
    systems: Annotated[list[Name], Field(min_length=1)] | None = None
    """Only these systems: one alone, baseline and candidate, or more; without it, as at the top."""
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
    collect: Collect = Field(default_factory=Collect)
    """How systems are asked: warm-up, repeats, how long answers are kept."""
    limits: Limits = Field(default_factory=Limits)
    """Failures and coverage beyond which the comparison is invalid."""
    gate: GateConfig | None = None
    """Rules that `cranfield gate` holds a system to."""
    grid: GridConfig | None = None
    """Settings of a system that `cranfield grid` tries."""
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
