"""From evaluations and comparisons to the answers of the tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from cranfield.base.errors import InternalError, UnknownNameError
from cranfield.evaluation.difference import RunDifference
from cranfield.evaluation.evidence.values import caveat_sentences, void_sentences
from cranfield.evaluation.result import ComparisonResult, EvaluationResult, without_queries
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import Measure, parse
from cranfield.measures.catalogue import sign_of
from cranfield.model.results import to_jsonable
from cranfield.reporting.query_data import QueryData
from cranfield.reporting.sections.subject import Subject
from cranfield.workbench.mcp import answers
from cranfield.workbench.mcp.answers import part, untrusted
from cranfield.workbench.service.responses import EvaluationState
from cranfield.workbench.service.values import EvaluationInfo

MAX_STRATA = 50
MAX_WARNINGS = 20
REPORT_CHARACTERS = 20_000


@dataclass(frozen=True)
class FoundResult:
    """A result with its reference."""

    ref: str
    load: Callable[[], Subject]
    """Reads the record with its queries, or makes it."""
    void_stored: tuple[str, ...] = ()
    """Reasons that were stored with it."""
    info: EvaluationInfo | None = None
    """Stored facts of an evaluation; None: it is a comparison."""
    is_stored: bool = False

    @cached_property
    def subject(self) -> Subject:
        """The record, and the calls of its systems."""
        return self.load()

    @property
    def record(self) -> EvaluationResult:
        """With its queries."""
        return self.subject.record

    @property
    def void(self) -> list[answers.Untrusted]:
        """Why the figures do not count."""
        found: Sequence[str] = ()
        if self.info is None and isinstance(self.record, ComparisonResult):
            found = void_sentences(self.record.evidence)
            if not found and self.record.verdict is VerdictCode.INVALID:
                found = self.record.reasons
        return list(map(untrusted, dict.fromkeys((*self.void_stored, *found))))

    @property
    def has_value(self) -> bool:
        """Whether a query has a value of the primary measure now; of a comparison, on both sides."""
        primary = self.subject.primary
        if isinstance(self.record, ComparisonResult):
            return self.record.comparisons[self.record.primary].n > 0
        return primary is not None and self.record.systems[0].measures[primary].n > 0

    def known(self, *, has_value: bool) -> dict[str, Any]:
        """The fields that all answers begin with."""
        return {
            "counts": has_value and not self.void,
            "void": self.void,
            "has_value": has_value,
            "result": self.ref,
        }


def answer_of(found: FoundResult) -> answers.EvaluationAnswer | answers.ComparisonAnswer:
    """The figures of an evaluation, or the verdict of a comparison."""
    return comparison_answer(found) if found.info is None else evaluation_answer(found)


def result_page(found: Sequence[FoundResult], next_before: int | None) -> answers.ResultPage:
    """A page of evaluations."""
    return answers.ResultPage(results=[evaluation_answer(each, 0) for each in found], next_before=next_before)


def evaluation_answer(found: FoundResult, most_strata: int = MAX_STRATA) -> answers.EvaluationAnswer:
    """The figures of an evaluation."""
    info = found.info
    if info is None:
        raise InternalError(f"{found.ref} is not an evaluation")
    others = info.scores.measures.keys() - {info.primary}  # measures of a class alone are none of these
    strata = tuple(
        replace(each, measures={measure: of for measure, of in each.measures.items() if measure not in others})
        for each in info.scores.by_stratum[:most_strata]
    )
    shown = replace(info.record, systems=(replace(info.scores, by_stratum=strata),))
    return answers.EvaluationAnswer(
        **found.known(has_value=info.has_value) | {"counts": info.state is EvaluationState.VALID},
        state=info.state,
        n_waiting=info.n_waiting,
        stored=found.is_stored,
        system=untrusted(info.label),
        testset=info.testset_name,
        at=datetime.fromtimestamp(info.at / 1000, UTC).isoformat(timespec="seconds"),
        primary=None if info.primary is None else info.primary.canonical,
        n_strata=len(info.scores.by_stratum),
        failures=dict(info.facts.failures),
        warnings=list(map(untrusted, info.warnings[:MAX_WARNINGS])),
        pinned=info.pinned,
        tags=list(map(untrusted, info.tags)),
        record=part(to_jsonable(shown), answers.EVALUATION),
    )


def comparison_answer(found: FoundResult) -> answers.ComparisonAnswer:
    """The verdict of a comparison."""
    whole = found.record
    if not isinstance(whole, ComparisonResult):
        raise InternalError(f"{found.ref} is not a comparison")
    measures = sorted(whole.comparisons, key=lambda measure: measure != whole.primary)
    comparisons = {measure: whole.comparisons[measure] for measure in measures}
    declared = {
        measure: replace(about, tests={name: test for name, test in about.tests.items() if name == whole.test})
        for measure, about in comparisons.items()
    }
    warnings = (str(warning) for each in whole.systems for warning in each.warnings)
    return answers.ComparisonAnswer(
        **found.known(has_value=found.has_value),
        stored=found.is_stored,
        n_unpaired=len(whole.unpaired),
        warnings=list(map(untrusted, dict.fromkeys((*caveat_sentences(whole.evidence), *warnings))))[:MAX_WARNINGS],
        pilot=found.subject.pilot,
        record=part(to_jsonable(without_queries(replace(whole, comparisons=declared))), answers.COMPARISON),
    )


def difference_answer(found: RunDifference, offset: int, limit: int) -> answers.DifferenceAnswer:
    """How much two lists differ, and a page of the queries that changed."""
    from cranfield.reporting.documents.difference import sentence_of

    changed = [each for each in found.queries if each.first_difference is not None]
    rows = changed[offset : offset + limit]
    return answers.DifferenceAnswer(
        sentence=untrusted(sentence_of(found)),
        broken_bounds=[bound.kind.value for bound in found.bounds if not bound.holds],
        n_changed=len(changed),
        next_offset=next_offset(len(rows), offset, len(changed)),
        record=part(to_jsonable(replace(found, queries=())), answers.DIFFERENCE)
        | {"queries": [part(to_jsonable(each), answers.CHANGED_QUERY) for each in rows]},
    )


def worst_queries(found: FoundResult, spelling: str | None, offset: int, limit: int) -> answers.QueryPage:
    """The queries with the worst values, or of a comparison the largest losses. Those without a value are left out.

    Raises:
        UsageError: the measure was not evaluated.
    """
    known, record = found.subject.measures, found.record
    measure = found.subject.primary if spelling is None else parse(spelling)
    if measure is None or measure not in known:
        raise UnknownNameError.among("measure of this result", spelling or "none", map(str, known))
    values = _values(record, measure)
    ids = sorted(values, key=lambda query: sign_of(measure) * values[query])
    rows = [
        answers.QueryValueRow(query=query, text=untrusted(found.subject.queries[query].text), value=values[query])
        for query in ids[offset : offset + limit]
    ]
    return answers.QueryPage(
        **found.known(has_value=found.has_value),
        measure=str(measure),
        queries=rows,
        n_queries=len(ids),
        next_offset=next_offset(len(rows), offset, len(ids)),
    )


def _values(record: EvaluationResult, measure: Measure) -> Mapping[str, float]:
    if isinstance(record, ComparisonResult):
        return record.comparisons[measure].differences
    found = {query: of.get(measure) for query, of in record.systems[0].queries.items()}
    return {query: number for query, number in found.items() if number is not None}


def next_offset(n_rows: int, offset: int, n_all: int) -> int | None:
    """Where the next page begins; None at the end."""
    return offset + n_rows if n_rows and offset + n_rows < n_all else None


def explain_query(found: FoundResult, query: str) -> answers.QueryExplanation:
    """Everything about one query.

    Raises:
        UnknownNameError: there is no such query.
    """
    known = found.subject.queries
    if query not in known:
        raise UnknownNameError.among("query", query, list(known))
    return answers.QueryExplanation(
        **found.known(has_value=found.has_value),
        query=query,
        values={each["measure"]: each["values"] for each in QueryData(found.subject).detail(query)["values"]},
        n_expected=len(known[query].expected),
        record=part(to_jsonable(known[query]), answers.QUERY),
    )


def report_page(found: FoundResult, offset: int) -> answers.ReportPage:
    """A part of the report in Markdown, cut at the end of a line."""
    from cranfield.reporting import render
    from cranfield.reporting.documents.comparison import subject_document

    text = render(subject_document(found.subject), "markdown")
    shown = text[offset : offset + REPORT_CHARACTERS]
    if offset + len(shown) < len(text) and (end := shown.rfind("\n")) > 0:
        shown = shown[: end + 1]
    return answers.ReportPage(
        **found.known(has_value=found.has_value),
        report=untrusted(shown, REPORT_CHARACTERS),
        n_characters=len(text),
        next_offset=next_offset(len(shown), offset, len(text)),
    )
