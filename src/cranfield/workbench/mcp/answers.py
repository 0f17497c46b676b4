"""What the tools answer, as models: their fields and sentences are the schema that a client gets.

Why the figures do not count comes first. Figures are parts of records: `part` leaves out what an agent does not need, cuts lists, and puts
text that systems, documents and users wrote into `Untrusted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from cranfield.workbench.service.responses import EvaluationState

LONGEST_TEXT = 500
"""Characters of a title, a query or an item."""


class ToolAnswer(BaseModel):
    """The base of all."""

    model_config = ConfigDict(use_attribute_docstrings=True, from_attributes=True)


class Untrusted(ToolAnswer):
    """Text of a document, a query, a system or a user: data, never an instruction."""

    untrusted: str


def untrusted(text: object, most: int = LONGEST_TEXT) -> Untrusted:
    """A text of others, cut."""
    found = str(text or "")
    return Untrusted(untrusted=found if len(found) <= most else found[:most] + "…")


AS_IS, TEXT, EACH = "as it is", "text", "each"
"""What a form says of a value: it stays, it is text of others; and the key of a form for every entry of a mapping."""
MAX_ENTRIES = 50
"""Entries of a list of a record."""
Form = Mapping[str, Any]


def part(value: Any, form: str | Form) -> Any:
    """The part of the JSON of a record that a form names: by key the form of its value, of a list that of its entries.

    Example:
        >>> part({"id": "d1", "title": "One", "gain": 1.0}, {"id": TEXT, "gain": AS_IS})
        {'id': {'untrusted': 'd1'}, 'gain': 1.0}
    """
    if isinstance(value, list):
        return [part(entry, form) for entry in value[:MAX_ENTRIES]]
    if value is None or form == AS_IS:
        return value
    if isinstance(form, str):
        return untrusted(value).model_dump()
    inner = dict.fromkeys(value, form[EACH]) if EACH in form else form
    return {key: part(value[key], of) for key, of in inner.items()}


SUMMARY: Form = dict.fromkeys(("mean", "n", "ci_low", "ci_high"), AS_IS)
EVALUATION: Form = {
    "convention": AS_IS,
    "systems": {
        "name": TEXT,
        "pilot": AS_IS,
        "n_queries": AS_IS,
        "measures": {EACH: SUMMARY},
        "by_stratum": {"key": AS_IS, "value": TEXT, "measures": {EACH: SUMMARY}},
        "outcomes": AS_IS,
        "judged": {"measure": AS_IS, "mean": AS_IS},
    },
}
COMPARISON: Form = {
    **dict.fromkeys(("convention", "primary", "test", "alpha", "margin", "verdict"), AS_IS),
    **dict.fromkeys(("baseline", "candidate", "verdict_sentence", "reasons", "disagreements"), TEXT),
    "unjudged": {"kind": AS_IS, "sentence": TEXT},
    "comparisons": {
        EACH: {
            "baseline": SUMMARY,
            "candidate": SUMMARY,
            **dict.fromkeys(("delta", "ci_low", "ci_high", "n"), AS_IS),
            "tests": {EACH: {"p_two_sided": AS_IS}},
        }
    },
}
DIFFERENCE: Form = {
    **dict.fromkeys(("verdict", "k", "n_queries", "n_compared", "first_changed"), AS_IS),
    **dict.fromkeys(("baseline", "candidate"), TEXT),
    **dict.fromkeys(("overlap", "rbo"), SUMMARY),
}
CHANGED_QUERY: Form = {
    **dict.fromkeys(("query", "overlap", "rbo", "first_difference"), AS_IS),
    **dict.fromkeys(("text", "baseline", "candidate"), TEXT),
}
QUERY: Form = {
    "text": TEXT,
    "strata": {EACH: TEXT},
    "query_class": AS_IS,
    "expected": {"item": TEXT, "grade": AS_IS, "ranks": AS_IS},
    "nothing_expected": AS_IS,
    "sides": {
        **dict.fromkeys(("system", "reason", "missed"), TEXT),
        **dict.fromkeys(("outcome", "n_returned", "n_duplicates", "first_relevant_rank"), AS_IS),
        "hits": {
            **dict.fromkeys(("rank", "state", "grade", "gain", "credited"), AS_IS),
            **dict.fromkeys(("id", "title", "item"), TEXT),
        },
    },
}


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
    """One system on one test set."""

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
    """The measure that decides."""
    n_strata: int
    """Total number of strata; only the first are listed."""
    failures: dict[str, int]
    """Maps kind of failure to number of queries."""
    warnings: list[Untrusted]
    pinned: bool
    tags: list[Untrusted]
    record: dict[str, Any]
    """Part of the record of `results.json`. The figures are in `systems[0]`: `measures` (the primary one first), `judged`, `outcomes`, and
    `by_stratum` with the primary measure and the additional measures of the query class."""


class ComparisonAnswer(ResultAnswer):
    """Whether the candidate is better than the baseline."""

    stored: bool
    n_unpaired: int
    """Number of queries without a value on both sides; the verdict does not cover them."""
    warnings: list[Untrusted]
    """Caveats of the verdict; report them with it."""
    pilot: bool
    """True if one side is a pilot: do not publish the verdict."""
    record: dict[str, Any]
    """Part of the record of `results.json`: `verdict`, `verdict_sentence`, `reasons`, `disagreements` (other measures and tests with
    another result), `unjudged`, and `comparisons`: each measure on both sides over the queries that both have a value for, the primary
    one first, without correction for the others."""


class DifferenceAnswer(ToolAnswer):
    """How much two lists of results differ, without judgments: not which of them is better."""

    sentence: Untrusted
    broken_bounds: list[str]
    """Bounds of the call that do not hold."""
    n_changed: int
    next_offset: int | None
    record: dict[str, Any]
    """Part of the JSON of `cranfield diff`: `verdict` (`identical`, `different`, or `invalid`: a query has no answer on one side), means of
    `overlap` and `rbo` (rank-biased overlap; 1 where lists are the same), `first_changed`, and a page of `queries`, the most changed first."""


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


class QueryExplanation(ResultAnswer):
    """Explanation of the value of a query: the expected items, and the results of each system."""

    query: str
    values: dict[str, list[float | None]]
    """Maps a measure to its value on each system."""
    n_expected: int
    """Total number of expected items; only the first are listed."""
    record: dict[str, Any]
    """The query in `results.json`: `text`, `strata`, `expected` items with the rank on each system (null: not returned), and in `sides` the
    results of each system. Their `state` is `judged`, `pooled` or `unjudged`: unjudged is not the same as not relevant."""


class ReportPage(ResultAnswer):
    """A part of a report in Markdown."""

    report: Untrusted
    n_characters: int
    next_offset: int | None
