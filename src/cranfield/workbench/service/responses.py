"""What the REST API answers, as models, and what it takes of books: the server makes them, the client reads them. Times are milliseconds since 1970 (UTC)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, computed_field, field_validator
from pydantic_core import CoreSchema

T = TypeVar("T")
Number = Annotated[float | None, Field(allow_inf_nan=False)]
"""Null: there is no value."""


class ResponseBody(BaseModel):
    """An answer; a later server may add keys."""

    model_config = ConfigDict(from_attributes=True, extra="ignore")


class ErrorEntry(ResponseBody):
    """A problem."""

    message: str
    where: str
    """File and line, option, or part of the request; empty where it has no place."""
    expected: str
    got: str
    hint: str
    """The next step."""
    code: str
    """What programs compare."""


class ErrorResponse(ResponseBody):
    """Every failure of every route."""

    ok: Literal[False]
    error: str
    """The first problem."""
    errors: list[ErrorEntry]
    status: int


class Page(ResponseBody, Generic[T]):
    """A part of a list."""

    items: list[T]
    next: str | None
    """Address of the next page, also in the header `Link`; null at the end."""


class JobKind(StrEnum):
    """What a job does."""

    EVALUATE = "evaluate"
    """Collect from systems, or take stored runs; score; store an evaluation of each."""
    COMPARE = "compare"
    """Compare two stored evaluations."""
    BENEFIT = "benefit"
    """Run the experiment of a schedule: whether a tool helps an agent."""


class JobState(StrEnum):
    """State of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """It cannot be done: `problems` says why."""
    CANCELLED = "cancelled"


ENDED = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})


class Trigger(StrEnum):
    """Trigger of a job."""

    API = "api"
    PAGE = "page"
    WATCH = "watch"
    AGENT = "agent"
    """The MCP server."""


class EvaluationState(StrEnum):
    """State of an evaluation."""

    VOID = "void"
    """They do not: `void` says why."""
    WAITING = "waiting_for_grades"
    """Results are in a book and have no grade yet; it ends when they have one, or when the book is closed."""
    GRADED = "graded"
    """Each result has its grade in the book, whose grades the page of the evaluation goes by; the stored figures are older."""
    NO_VALUE = "no_value"
    """No query has a value of the primary measure."""
    VALID = "valid"


class StoredSource(StrEnum):
    """Where a stored test set or run is from."""

    UPLOAD = "upload"
    CONFIG = "config"
    """A file of the operator's config."""
    BOOK = "book"
    COLLECTED = "collected"
    """Answers of a system."""


class SetResponse(ResponseBody):
    """A version of a test set, without its queries."""

    id: int | None
    """Null: a test set of the config that was not used yet; its counts and digest are not known then."""
    name: str
    digest: str
    version: str
    """Its own, where the file declares one."""
    source: StoredSource
    format: str
    """Name of the format that it was read from."""
    n_queries: int | None
    n_judgments: int | None
    created_at: int | None
    account: str
    """Who uploaded it; empty where no account did."""

    @computed_field  # type: ignore[prop-decorator]  # mypy has no decorated properties
    @property
    def ref(self) -> str:
        """`NAME@ID`, for a request."""
        return self.name if self.id is None else f"{self.name}@{self.id}"


class Judgment(ResponseBody):
    """What is expected for a query."""

    doc: str
    """Document, or the label of a pattern, span, symbol or file."""
    kind: Literal["document", "pattern", "span", "entity", "file", "predicate", "criteria", "passage"]
    grade: Number
    """Below 0: in the pool, and not judged."""


class QueryResponse(ResponseBody):
    """A query of a test set."""

    id: str
    text: str
    query_class: str
    strata: dict[str, str]
    params: dict[str, str | int | float | bool]
    weight: Number
    negative: bool
    need: str
    notes: str
    exhaustive: bool
    """Whether every other result is not relevant."""
    floors: dict[str, Number]
    """Measure to the value that the query has to reach."""
    forbidden: list[str]
    """What must not be found."""
    judgments: list[Judgment]


class RunResponse(ResponseBody):
    """A stored run, without its answers."""

    id: int
    name: str
    digest: str
    source: StoredSource
    format: str
    n_queries: int
    created_at: int
    account: str


class JobProblemResponse(ResponseBody):
    """Why a job failed."""

    message: str
    where: str
    hint: str
    code: str


class BenefitOutcome(BaseModel):
    """Result of the experiment of a schedule; it is stored in a file. A later server may add keys."""

    model_config = ConfigDict(extra="ignore")

    file: str
    """File of the result, in the folder of results of the schedule."""
    made_at: str
    """Time of the result, in ISO 8601."""
    unchanged: bool
    """Nothing is other than it was for this result: no cell was run, and all of this is of the earlier run."""
    sentence: str
    void: list[str]
    """Why the comparison is invalid; empty where it is not."""
    caveats: list[str]
    verdicts: dict[str, str]
    """Stratum, `task_type=locate, difficulty=easy`, to its verdict."""
    failed_rules: list[str]
    """Broken rules, of the default rules of `cranfield benefit gate`, each with what breaks it."""


class AnyJob(ResponseBody):
    """A job, with whatever request."""

    id: int
    kind: JobKind
    state: JobState
    trigger: Trigger
    request: Any
    account: str
    created_at: int
    started_at: int | None
    finished_at: int | None
    changed_at: int
    """Time of the last change of state or progress."""
    attempts: int
    cancel: bool
    """It was asked to stop."""
    n_done: int
    n_all: int
    """Answers that it needs; 0 while that is not known."""
    progress: str
    """What it does now, for people."""
    problems: tuple[JobProblemResponse, ...]
    """Problems of a failed job."""
    results: tuple[int, ...]
    """Ids of its evaluations in the order of the request, or of its comparison, once it is done."""
    ahead: int
    """Jobs that are queued before it."""
    outcome: BenefitOutcome | None = None
    """Outcome of an experiment that is done."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen: done, failed or cancelled."""
        return self.state in ENDED


class JobResponse(AnyJob):
    """A job."""

    request: dict[str, Any]
    """As it was sent."""

    @field_validator("request", mode="before")
    @classmethod
    def _as_json(cls, request: Any) -> Any:
        return request.model_dump(mode="json") if isinstance(request, BaseModel) else request


class RecordSchema:
    """The schema of a record that is passed on as it is stored; the record is imported when a schema is requested."""

    def __init__(self, name: str, module: str = "result") -> None:
        self._name, self._module = name, module

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """That of the adapter of the record."""
        from importlib import import_module

        from cranfield.model.results import adapter_of

        module = import_module(f"cranfield.evaluation.{self._module}")
        return handler(adapter_of(getattr(module, self._name)).core_schema)


class EvaluationResponse(ResponseBody):
    """One system on one test set: its result, and what the server knows of it. Reasons for being void come first."""

    void: list[str]
    """Why the figures do not count; empty where they do."""
    metrics: dict[str, Number]
    """Key of each measure, `recall_at_10`, to its mean; null where no query has a value."""
    per_query_type: dict[str, dict[str, Number]]
    """The same for each type of query: the values of the stratum `query_type`, `task_type` or `class`, the first there is."""
    state: EvaluationState
    n_waiting: int
    """Results of its book that still wait for a grade; 0 outside a book."""
    id: int
    job_id: int | None
    testset: str
    """`NAME@ID`."""
    run_id: int
    system: str
    variant: str
    components: list[str]
    """Empty: all."""
    trigger: Trigger
    at: int
    account: str
    primary: str | None
    """Spelling of the measure that decides."""
    k: int | None
    """Results requested for each query; null for an uploaded run."""
    failures: dict[str, int]
    """Kind of failure to the number of queries; a query that expects nothing does not fail where its run does not have it."""
    latency_ms: dict[str, Any] | None
    """Percentiles, number, sum and a cumulative histogram of the calls; null where none was timed."""
    gate: dict[str, bool | None] | None
    """Rule of the config's gate to whether it holds; null: not decided, and a warning of the result says why."""
    book_id: int | None
    tags: list[str]
    note: str
    pinned: bool
    """The baseline of its test set."""
    result: Annotated[dict[str, Any], RecordSchema("EvaluationResult")]
    """The record of `results.json`, as `cranfield evaluate --format json` prints it: the system is `systems[0]`. A request for one evaluation
    gives all of it, with every query and its answers. Lists and summaries leave out the parts that list queries: `queries`, `unscored`,
    `failures`, `classes` and `confusion` of the system, and `query_ids` of the evidence."""


class EvaluationChange(BaseModel):
    """Fields of an evaluation that can be changed; omitted fields are kept."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tags: Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=50)] | None = None
    note: Annotated[str, Field(max_length=10_000)] | None = None
    pinned: bool | None = None
    """Pinning one makes it the baseline of its test set, in place of another."""


class QuerySide(ResponseBody):
    """Results of a system for a query."""

    values: dict[str, Number]
    """Spelling to value; null with a reason in `unscored`."""
    unscored: dict[str, str]
    outcome: str | None
    """`answered`, `empty`, `timeout`, …; null where the run does not have the query."""
    reason: str | None
    hits: list[dict[str, Any]]
    """The first results: rank, id, title, grade, expected item."""


class QueryRow(QuerySide):
    """A query of an evaluation."""

    id: str
    text: str
    strata: dict[str, str]


class ComparedRow(ResponseBody):
    """A query of a comparison."""

    id: str
    text: str
    strata: dict[str, str]
    difference: dict[str, Number]
    """Spelling to candidate minus baseline; null where one of them has no value."""
    baseline: QuerySide
    candidate: QuerySide


class ComparisonResponse(ResponseBody):
    """Two evaluations compared: the result, and what the server knows of it."""

    void: list[str]
    """Why one of the two evaluations does not count; empty where both do. The verdict is `invalid` then."""
    id: int
    job_id: int | None
    baseline: int
    """Id of an evaluation."""
    candidate: int
    at: int
    account: str
    result: Annotated[dict[str, Any], RecordSchema("ComparisonResult")]
    """The record of `results.json`, as `cranfield compare --format json` prints it: `verdict`, `verdict_sentence`, and `comparisons[primary]`
    with the difference, its interval and tests. Lists leave out the same parts as of an evaluation, and `differences` of the measures,
    `buckets`, `moves`, `unpaired` and the verdict by class."""


class DifferenceResponse(ResponseBody):
    """Two evaluations, or runs, beside each other, without judgments."""

    baseline: int
    candidate: int
    of: Literal["evaluations", "runs"]
    """What the ids are of."""
    result: Annotated[dict[str, Any], RecordSchema("RunDifference", "difference")]
    """The JSON that `cranfield diff --format json` prints."""


class IntakeResponse(ResponseBody):
    """Result of an intake of production queries: each record is kept or dropped."""

    n_read: int
    n_kept: int
    n_queries: int
    """Sum of the counts of those that are kept."""
    dropped: dict[str, int]
    """Reason to the number of records."""
    redacted: dict[str, int]
    """Kind (`email`, `card`, …) to the number of places that were redacted."""
    n_known: int
    """Records that are not counted again: of a batch whose key is known, of a file that was read before."""
    unfinished: bool
    """The last line of the file has no end yet."""


class TraceIntake(ResponseBody):
    """Spans of applications that came since the server was started."""

    source: str
    """Name of the source of their queries."""
    book: str
    """Name of the book that gets the documents; empty: none."""
    sample: float
    """Share of traces that are taken."""
    requests: int
    spans: dict[str, int]
    """What became of them (`taken`, `other`, `not_sampled`, `repeated`, `no_query`, `dropped`) to the number of spans."""
    documents_added: int
    """Documents that were new in the book."""
    documents_dropped: dict[str, int]
    """Why (`book_full`, `book_closed`, `no_id`) to the number of documents."""


class QuerySourceInfo(ResponseBody):
    """Stored data of one source of production queries."""

    source: str
    n_texts: int
    """Different queries."""
    n: int
    first_day: str
    last_day: str


class QuerySources(ResponseBody):
    """All sources, by name."""

    sources: list[QuerySourceInfo]


class SystemResponse(ResponseBody):
    """A system that the operator's config allows."""

    name: str
    components: list[str]
    """Names for `components`; empty: it has none."""
    variants: list[str]


class SystemList(ResponseBody):
    """The systems of the config."""

    systems: list[SystemResponse]


class ParameterInfo(ResponseBody):
    """A parameter of a measure."""

    name: str
    default: Any
    sentence: str
    choices: list[str] = Field(default_factory=list)
    minimum: Number = None


class MeasureInfo(ResponseBody):
    """A row of the catalogue of measures."""

    name: str
    key: str
    """How `metrics` of an evaluation begins it: `recall` of `recall_at_10`."""
    title: str
    sentence: str
    """What it says, for people."""
    formula: str
    family: str
    cutoff: Literal["required", "optional", "none"]
    """Whether `@k` must, may or may not follow the name."""
    parameters: list[ParameterInfo]
    aliases: list[str]
    """Other names that are understood."""
    range: tuple[Number, Number]
    """Null: no bound."""
    higher_is_better: bool
    defined_for: str
    source: str


class MeasureList(ResponseBody):
    """The catalogue."""

    default: list[str]
    """What is computed where a request and the config name none."""
    measures: list[MeasureInfo]


class BookResponse(ResponseBody):
    """A book of judgments."""

    name: str
    state: str
    mode: str
    n_queries: int
    n_items: int
    guideline_version: int
    created_at: int


class QueryCoverageResponse(ResponseBody):
    """A query of a book, with the progress of its items."""

    query: str
    text: str
    n_items: int
    n_judged: int
    n_done: int
    n_adjudicate: int


class BookCoverage(ResponseBody):
    """Progress of a book, and agreement of its raters."""

    n_items: int
    states: dict[str, int]
    judged_lowest: int
    """Items whose grades are all the lowest of the scale: judged 0."""
    judged_higher: int
    unjudged: int
    """In the pool, and without any grade. Never counted as 0."""
    by_persons: dict[str, int]
    """0, 1, 2, … grades by persons to items."""
    n_twice: int
    """Items that two persons judged."""
    alpha: Number
    """Krippendorff's alpha, ordinal; null where too few items were judged twice."""
    alpha_low: Number
    alpha_high: Number
    null_queries: list[str]
    """Queries without a grade: their measures are null."""
    queries: list[QueryCoverageResponse]


class LiveMeasureResponse(ResponseBody):
    """A measure with the current grades."""

    measure: str
    scale: str
    mean: Number
    """Null: no query has a value, which is not 0."""
    n: int
    n_null: int
    n_shown: int
    n_judged: int
    n_rated: int
    n_ties: int


class BookMeasures(ResponseBody):
    """Measures of an evaluation whose results are judged in a book, with the current grades."""

    void: list[str]
    """Why the figures do not count; empty where they do."""
    evaluation: int
    system: str
    failures: dict[str, int]
    """Kind of failure to the number of queries."""
    measures: list[LiveMeasureResponse]


class GradeRow(ResponseBody):
    """Judgment of an item by a rater."""

    rater: str
    kind: str
    grade: Number
    skip_reason: str | None
    reason: str
    at: int


class ItemResponse(ResponseBody):
    """An item of a book, with every judgment of it."""

    id: int
    query: str
    doc: str
    state: str
    origin: str
    final: Number
    """The adjudicated grade."""
    ratings: list[GradeRow]


class GradeEntry(BaseModel):
    """A grade by this account."""

    model_config = ConfigDict(extra="forbid", strict=True)

    query: Annotated[str, Field(min_length=1, max_length=2000)]
    doc: Annotated[str, Field(min_length=1, max_length=2000)]
    grade: Annotated[float, Field(allow_inf_nan=False)]
    reason: Annotated[str, Field(max_length=10_000)] = ""
    key: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    """The same key is saved once; default: made of query, document, grade and reason."""


class Grades(BaseModel):
    """Grades by this account, saved all or none."""

    model_config = ConfigDict(extra="forbid", strict=True)

    grades: Annotated[list[GradeEntry], Field(min_length=1, max_length=1000)]


class SavedGrades(ResponseBody):
    """Result of each judgment."""

    n_saved: int
    n_known: int
    """Saved before, by their key."""
