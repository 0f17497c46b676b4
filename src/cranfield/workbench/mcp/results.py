"""From evaluations and comparisons to the answers of the tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from cranfield.base.errors import InternalError, UnknownNameError, UsageError
from cranfield.evaluation.difference import RunDifference
from cranfield.evaluation.evidence.values import caveat_sentences, void_sentences
from cranfield.evaluation.values import Comparison, Evaluation, MeasureComparison
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import Measure
from cranfield.measures.catalogue import sign_of
from cranfield.workbench.mcp import answers
from cranfield.workbench.mcp.answers import untrusted
from cranfield.workbench.service.responses import EvaluationState
from cranfield.workbench.service.values import EvaluationInfo

MAX_STRATA = 50
MAX_ITEMS = 50
"""Expected items, and results of a system, of one query."""
MAX_WARNINGS = 20
REPORT_CHARACTERS = 20_000


@dataclass(frozen=True)
class FoundResult:
    """A result with its reference."""

    ref: str
    load: Callable[[], Evaluation | Comparison]
    """Scores or compares again."""
    void_stored: tuple[str, ...] = ()
    """Reasons that were stored with it."""
    info: EvaluationInfo | None = None
    """Stored facts of an evaluation."""
    is_stored: bool = False

    @cached_property
    def value(self) -> Evaluation | Comparison:
        """With its queries."""
        return self.load()

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """One, or the two that are compared."""
        return (self.value,) if isinstance(self.value, Evaluation) else (self.value.baseline, self.value.candidate)

    @property
    def primary(self) -> Measure | None:
        """The measure that decides."""
        if isinstance(self.value, Comparison):
            return self.value.primary
        return next(iter(self.value.measures), None)

    @property
    def void(self) -> list[answers.Untrusted]:
        """Why the figures do not count."""
        found: Sequence[str] = ()
        if self.info is None and isinstance(self.value, Comparison):
            found = void_sentences(self.value.evidence)
            if not found and self.value.verdict.code is VerdictCode.INVALID:
                found = self.value.verdict.reasons
        return list(map(untrusted, dict.fromkeys((*self.void_stored, *found))))

    @property
    def has_value(self) -> bool:
        """Whether a query has a value of the primary measure now; of a comparison, on both sides."""
        if isinstance(self.value, Comparison):
            return self.value.measures[self.value.primary].n > 0
        return self.primary is not None and self.value.summaries[self.primary].n > 0

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation of one system.

        Raises:
            UsageError: it is a comparison.
        """
        if self.info is None or not isinstance(self.value, Evaluation):
            raise UsageError(f"{self.ref} is a comparison", expected="an evaluation")
        return self.value

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
    scores = info.scores
    others = scores.measures.keys() - {info.primary}  # measures of a class alone are none of these
    strata = [
        (key, value, {str(measure): figure for measure, figure in measured.items() if measure not in others})
        for key, values in info.strata.items()
        for value, measured in values.items()
    ]
    by_key: dict[str, dict[str, Any]] = {}
    for key, value, measured in strata[:most_strata]:
        by_key.setdefault(key, {})[value] = measured
    return answers.EvaluationAnswer.model_validate(
        found.known(has_value=info.has_value)
        | {
            "primary": None if info.primary is None else str(info.primary),
            "measures": {str(measure): summary for measure, summary in scores.measures.items()},
            "n_queries": scores.n_queries,
            "failures": info.facts.failures,
            "judged": scores.judged,
            "pilot": info.pilot,
            "counts": info.state is EvaluationState.VALID,
            "state": info.state,
            "n_waiting": info.n_waiting,
            "stored": found.is_stored,
            "system": untrusted(info.label),
            "testset": info.testset_name,
            "at": datetime.fromtimestamp(info.at / 1000, UTC).isoformat(timespec="seconds"),
            "strata": by_key,
            "n_strata": len(strata),
            "warnings": list(map(untrusted, info.warnings[:MAX_WARNINGS])),
            "pinned": info.pinned,
            "tags": list(map(untrusted, info.tags)),
        }
    )


def comparison_answer(found: FoundResult) -> answers.ComparisonAnswer:
    """The verdict of a comparison."""
    compared = found.value
    if not isinstance(compared, Comparison):
        raise InternalError(f"{found.ref} is not a comparison")
    measures = sorted(compared.measures, key=lambda measure: measure != compared.primary)
    warnings = (str(warning) for each in found.evaluations for warning in each.warnings)
    return answers.ComparisonAnswer(
        **found.known(has_value=found.has_value),
        stored=found.is_stored,
        verdict=compared.verdict.name,
        sentence=untrusted(compared.verdict.sentence),
        reasons=list(map(untrusted, (*compared.verdict.reasons, *_unjudged(compared)))),
        disagreements=list(compared.verdict.disagreements),
        baseline=untrusted(compared.baseline.name),
        candidate=untrusted(compared.candidate.name),
        primary=str(compared.primary),
        test=compared.options.test,
        alpha=compared.options.alpha,
        differences=[_difference(compared.measures[measure], compared.options.test) for measure in measures],
        n_unpaired=len(compared.dropped),
        warnings=list(map(untrusted, dict.fromkeys((*caveat_sentences(compared.evidence), *warnings))))[:MAX_WARNINGS],
        pilot=compared.pilot,
    )


def difference_answer(found: RunDifference, offset: int, limit: int) -> answers.DifferenceAnswer:
    """How much two lists differ, and a page of the queries that changed."""
    from cranfield.reporting.documents.difference import sentence_of

    changed = [each for each in found.queries if each.first_difference is not None]
    rows = [
        answers.ChangedRow(
            query=each.query,
            text=untrusted(each.text),
            overlap=each.overlap,
            rbo=each.rbo,
            first_difference=each.first_difference or 0,
            baseline=list(map(untrusted, each.baseline[:MAX_ITEMS])),
            candidate=list(map(untrusted, each.candidate[:MAX_ITEMS])),
        )
        for each in changed[offset : offset + limit]
    ]
    return answers.DifferenceAnswer(
        verdict=found.verdict.value,
        sentence=untrusted(sentence_of(found)),
        baseline=untrusted(found.baseline),
        candidate=untrusted(found.candidate),
        k=found.k,
        n_compared=found.n_compared,
        n_not_compared=found.n_queries - found.n_compared,
        overlap=found.overlap.mean,
        rbo=found.rbo.mean,
        first_changed=found.first_changed.share,
        broken_bounds=[bound.kind.value for bound in found.bounds if not bound.holds],
        queries=rows,
        n_changed=len(changed),
        next_offset=next_offset(len(rows), offset, len(changed)),
    )


def _unjudged(compared: Comparison) -> tuple[str, ...]:
    """What judgments of the unjudged results can make of the verdict."""
    found = compared.unjudged
    return () if found is None or not found.sentence else (found.sentence,)


def _difference(about: MeasureComparison, test: str) -> answers.Difference:
    tested = about.tests.get(test)
    return answers.Difference(
        measure=str(about.measure),
        baseline=about.baseline.mean,
        candidate=about.candidate.mean,
        delta=about.delta,
        ci_low=about.ci_low,
        ci_high=about.ci_high,
        p_value=None if tested is None else tested.p_two_sided,
        n=about.n,
    )


def worst_queries(found: FoundResult, spelling: str | None, offset: int, limit: int) -> answers.QueryPage:
    """The queries with the worst values, or of a comparison the largest losses. Those without a value are left out.

    Raises:
        UsageError: the measure was not evaluated.
    """
    known = list(found.value.measures)
    measure = found.primary if spelling is None else next((each for each in known if str(each) == spelling), None)
    if measure is None:
        raise UnknownNameError.among("measure of this result", spelling or "none", map(str, known))
    values = _values(found.value, measure)
    ids = sorted(values, key=lambda query: sign_of(measure) * values[query])
    texts = found.evaluations[0].testset.by_id
    rows = [
        answers.QueryValueRow(query=query, text=untrusted(texts[query].text), value=values[query])
        for query in ids[offset : offset + limit]
    ]
    return answers.QueryPage(
        **found.known(has_value=found.has_value),
        measure=str(measure),
        queries=rows,
        n_queries=len(ids),
        next_offset=next_offset(len(rows), offset, len(ids)),
    )


def _values(value: Evaluation | Comparison, measure: Measure) -> dict[str, float]:
    if isinstance(value, Comparison):
        return dict(value.measures[measure].differences)
    found = {query: value.value(measure, query) for query in value.query_ids}
    return {query: number for query, number in found.items() if number is not None}


def next_offset(n_rows: int, offset: int, n_all: int) -> int | None:
    """Where the next page begins; None at the end."""
    return offset + n_rows if n_rows and offset + n_rows < n_all else None


def explain_query(found: FoundResult, query: str) -> answers.QueryExplanation:
    """Everything about one query.

    Raises:
        UnknownNameError: there is no such query.
    """
    from cranfield.reporting.query_data import query_detail

    known = found.evaluations[0].testset.by_id
    if query not in known:
        raise UnknownNameError.among("query", query, list(known))
    detail = query_detail(found.value, query)
    return answers.QueryExplanation(
        **found.known(has_value=found.has_value),
        query=query,
        text=untrusted(detail["text"]),
        strata=detail["strata"],
        values=[answers.MeasureValues(measure=each["measure"], values=each["values"]) for each in detail["values"]],
        expected=[
            answers.Expected(item=untrusted(each["item"]), grade=each["grade"], ranks=each["ranks"])
            for each in detail["expected"][:MAX_ITEMS]
        ],
        n_expected=len(detail["expected"]),
        sides=[_side(each) for each in detail["sides"]],
    )


def _side(side: dict[str, Any]) -> answers.Side:
    found: Sequence[dict[str, Any]] = side["hits"]
    return answers.Side(
        system=untrusted(side["name"]),
        outcome=str(side["outcome"]),
        note=untrusted(side["note"]),
        first_relevant_rank=side["first_relevant_rank"],
        hits=[
            answers.HitRow(
                rank=hit["rank"],
                id=untrusted(hit["id"]),
                title=untrusted(hit["title"]),
                state=hit["state"],
                note=untrusted(hit["note"]),
            )
            for hit in found[:MAX_ITEMS]
        ],
        n_hits=len(found),
    )


def report_page(found: FoundResult, offset: int) -> answers.ReportPage:
    """A part of the report in Markdown, cut at the end of a line."""
    from cranfield.reporting import comparison_document, evaluation_document, render

    value = found.value
    document = evaluation_document([value]) if isinstance(value, Evaluation) else comparison_document(value)
    text = render(document, "markdown")
    part = text[offset : offset + REPORT_CHARACTERS]
    if offset + len(part) < len(text) and (end := part.rfind("\n")) > 0:
        part = part[: end + 1]
    return answers.ReportPage(
        **found.known(has_value=found.has_value),
        report=untrusted(part, REPORT_CHARACTERS),
        n_characters=len(text),
        next_offset=next_offset(len(part), offset, len(text)),
    )
