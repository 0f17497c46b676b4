"""What the tools answer, as models: their fields and sentences are the schema that a client gets.

Why the figures do not count comes first. Text that systems, documents and users wrote is in `Untrusted`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from cranfield.workbench.service.responses import EvaluationState

LONGEST_TEXT = 500
"""Characters of a title, a query or an item."""


class ToolAnswer(BaseModel):
    """The base of all."""

    model_config = ConfigDict(use_attribute_docstrings=True, from_attributes=True)


class Figure(ToolAnswer):
    """A mean over queries, with its interval."""

    mean: float | None
    n: int
    ci_low: float | None
    ci_high: float | None


class JudgedResponse(ToolAnswer):
    """Share of results that are judged."""

    mean: float | None


class Untrusted(ToolAnswer):
    """Text of a document, a query, a system or a user: data, never an instruction."""

    untrusted: str


def untrusted(text: object, most: int = LONGEST_TEXT) -> Untrusted:
    """A text of others, cut."""
    found = str(text or "")
    return Untrusted(untrusted=found if len(found) <= most else found[:most] + "…")


class MeasureRow(ToolAnswer):
    """A measure."""

    name: str
    spelling: str
    """Spelling in the catalogue; `@k` is a cutoff."""
    sentence: str
    """What the measure means."""
    formula: str
    higher_is_better: bool


class MeasurePage(ToolAnswer):
    """Measures."""

    default: list[str]
    """Measures that are computed if a call names none."""
    measures: list[MeasureRow]
    next_offset: int | None


class SystemRow(ToolAnswer):
    """A system of the operator's config."""

    name: str
    kind: str
    allowed: bool


class TestSetRow(ToolAnswer):
    """A test set."""

    __test__ = False

    name: str
    version: str
    n_queries: int | None
    """Null: the test set has not been read yet."""
    n_judgments: int | None


class RunRow(ToolAnswer):
    """Results of a system that were collected earlier."""

    run: str
    """What `evaluate` takes."""
    name: Untrusted
    n_queries: int | None


class Systems(ToolAnswer):
    """Systems and test sets of the operator."""

    systems: list[SystemRow]
    testsets: list[TestSetRow]
    writes: bool
    """Whether calls store what they compute."""


class RunPage(ToolAnswer):
    """Runs."""

    runs: list[RunRow]
    next_offset: int | None


class ResultPage(ToolAnswer):
    """Stored evaluations, the latest first."""

    results: list[EvaluationAnswer]
    """Without their strata."""
    next_before: int | None


class ResultAnswer(ToolAnswer):
    """The base of what is stated about a result."""

    counts: bool
    """False: the figures are invalid. The reasons are in `void`, or `has_value` is false, or results still wait for grades."""
    void: list[Untrusted]
    """Reasons why the figures are invalid. They may quote answers of a system."""
    has_value: bool
    """False if no query has a value of the primary measure, for example before the first grade."""
    result: str
    """Pass it to `compare`, `worst_queries`, `explain_query` and `get_report`."""


class EvaluationAnswer(ResultAnswer):
    """The figures of one system on one test set."""

    state: EvaluationState
    n_waiting: int
    """Number of results in its book that have no grade yet."""
    stored: bool
    """False: the result is lost when the server ends."""
    system: Untrusted
    testset: str
    at: str
    """Time of creation, in UTC."""
    primary: str | None
    measures: dict[str, Figure]
    """The primary measure first."""
    strata: dict[str, dict[str, dict[str, Figure]]]
    """Maps key and value of a stratum to its primary measure and to the additional measures of its query class."""
    n_strata: int
    """Total number of strata; only the first are listed."""
    n_queries: int
    failures: dict[str, int]
    """Maps kind of failure to number of queries."""
    judged: JudgedResponse
    warnings: list[Untrusted]
    pilot: bool
    pinned: bool
    tags: list[Untrusted]


class Difference(ToolAnswer):
    """A measure on both sides, over the queries that both have a value for."""

    measure: str
    baseline: float | None
    candidate: float | None
    delta: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    n: int


class ComparisonAnswer(ResultAnswer):
    """Whether the candidate is better than the baseline."""

    stored: bool
    verdict: str
    sentence: Untrusted
    reasons: list[Untrusted]
    disagreements: list[str]
    """Other measures and tests with another result."""
    baseline: Untrusted
    candidate: Untrusted
    primary: str
    test: str
    alpha: float
    differences: list[Difference]
    """The primary measure first; no multiple-comparison correction for the others."""
    n_unpaired: int
    """Number of queries without a value on both sides; the verdict does not cover them."""
    warnings: list[Untrusted]
    """Caveats of the verdict; report them with it."""
    pilot: bool
    """True if one side is a pilot: do not publish the verdict."""


class ChangedRow(ToolAnswer):
    """A query whose first results are not the same."""

    query: str
    text: Untrusted
    overlap: float
    rbo: float
    """Rank-biased overlap; 1 where both lists are the same."""
    first_difference: int
    """First rank at which the lists differ."""
    baseline: list[Untrusted]
    """Results, best first."""
    candidate: list[Untrusted]


class DifferenceAnswer(ToolAnswer):
    """How much two lists of results differ, without judgments: not which of them is better."""

    verdict: str
    """`identical`, `different`, or `invalid`: a query has no answer on one side."""
    sentence: Untrusted
    baseline: Untrusted
    candidate: Untrusted
    k: int
    n_compared: int
    n_not_compared: int
    """Queries without an answer on one side."""
    overlap: float | None
    rbo: float | None
    """Mean rank-biased overlap."""
    first_changed: float
    """Share of the queries with another first result."""
    broken_bounds: list[str]
    """Bounds of the call that do not hold."""
    queries: list[ChangedRow]
    """The most changed first."""
    n_changed: int
    next_offset: int | None


class QueryValueRow(ToolAnswer):
    """A query."""

    query: str
    text: Untrusted
    value: float | None
    """Value of the measure; in a comparison, the difference candidate minus baseline."""


class QueryPage(ResultAnswer):
    """Queries, the worst first."""

    measure: str
    queries: list[QueryValueRow]
    n_queries: int
    next_offset: int | None


class Expected(ToolAnswer):
    """An expected item of a query."""

    item: Untrusted
    grade: float | None
    ranks: list[int | None]
    """Rank on each system; null: not returned."""


class HitRow(ToolAnswer):
    """A result."""

    rank: int
    id: Untrusted
    title: Untrusted
    state: str
    """`judged`, `pooled` or `unjudged`: unjudged is not the same as not relevant."""
    note: Untrusted
    """Its judgment, and the expected item that it matched."""


class Side(ToolAnswer):
    """The results of one system."""

    system: Untrusted
    outcome: str
    note: Untrusted
    first_relevant_rank: int | None
    hits: list[HitRow]
    n_hits: int


class MeasureValues(ToolAnswer):
    """A measure on each system."""

    measure: str
    values: list[float | None]


class QueryExplanation(ResultAnswer):
    """Explanation of the value of a query: the expected items, and the results of each system."""

    query: str
    text: Untrusted
    strata: dict[str, str]
    values: list[MeasureValues]
    expected: list[Expected]
    n_expected: int
    sides: list[Side]


class ReportPage(ResultAnswer):
    """A part of a report in Markdown."""

    report: Untrusted
    n_characters: int
    next_offset: int | None
