"""From evaluations and comparisons to the answers of the tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cranfield.errors import UnknownNameError, UsageError
from cranfield.evaluation.evidence.values import caveat_sentences, void_sentences
from cranfield.evaluation.judged import judged_share
from cranfield.evaluation.strata import summaries_by_stratum
from cranfield.evaluation.values import Comparison, Evaluation, MeasureComparison, Summary
from cranfield.evaluation.verdict import CompareOptions, sign_of
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.mcp_server import answers
from cranfield.mcp_server.answers import untrusted
from cranfield.measures import Measure

MOST_STRATA = 50
MOST_ITEMS = 50
"""Expected items, and results of a system, of one query."""
MOST_WARNINGS = 20
REPORT_CHARACTERS = 20_000


@dataclass(frozen=True)
class Found:
    """A result with its reference."""

    ref: str
    value: Evaluation | Comparison
    options: CompareOptions
    """That were declared for comparisons."""
    stored: bool = False
    void_stored: tuple[str, ...] = ()
    """Reasons that were stored with it."""

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """One, or the two that are compared."""
        return (self.value,) if isinstance(self.value, Evaluation) else (self.value.baseline, self.value.candidate)

    @property
    def primary(self) -> Measure | None:
        """The measure that decides."""
        if isinstance(self.value, Comparison):
            return self.value.primary
        declared = self.options.primary
        return declared if declared in self.value.measures else next(iter(self.value.measures), None)

    @cached_property
    def void(self) -> list[str]:
        """Why the figures do not count."""
        if isinstance(self.value, Comparison):
            found = void_sentences(self.value.evidence)
            if not found and self.value.verdict.code is VerdictCode.INVALID:
                found = self.value.verdict.reasons
        else:
            found = void_sentences(self.value.limits.inspect((self.value,), self.primary))
        return list(dict.fromkeys((*self.void_stored, *found)))

    @property
    def evaluation(self) -> Evaluation:
        """Of one system.

        Raises:
            UsageError: it is a comparison.
        """
        if isinstance(self.value, Evaluation):
            return self.value
        raise UsageError(f"{self.ref} is a comparison", expected="an evaluation")

    @cached_property
    def report(self) -> str:
        """In Markdown."""
        from cranfield.reporting import comparison_document, evaluation_document, render

        value = self.value
        document = evaluation_document([value]) if isinstance(value, Evaluation) else comparison_document(value)
        return render(document, "markdown")

    def known(self) -> dict[str, Any]:
        """The fields that all answers begin with."""
        return {"counts": not self.void, "void": self.void, "result": self.ref}


def evaluation_answer(found: Found) -> answers.EvaluationAnswer:
    """The figures of an evaluation."""
    evaluation, primary = found.evaluation, found.primary
    measures = sorted(evaluation.measures, key=lambda measure: measure != primary)
    strata = list(summaries_by_stratum(evaluation, primary)) if primary else []
    findings = evaluation.limits.inspect((evaluation,), primary)
    warnings = [*caveat_sentences(findings), *map(str, evaluation.warnings)]
    return answers.EvaluationAnswer(
        **found.known(),
        stored=found.stored,
        system=evaluation.name,
        testset=evaluation.testset.name,
        primary=None if primary is None else str(primary),
        figures=[_figure(measure, evaluation.summaries[measure]) for measure in measures],
        strata=[
            answers.StratumFigure(stratum=f"{each.key}={each.value}", figure=_figure(primary, each.summary))
            for each in strata[:MOST_STRATA]
            if primary
        ],
        n_strata=len(strata),
        n_queries=len(evaluation.query_ids),
        failures=dict(Counter(outcome for _, outcome, _ in evaluation.failures)),
        judged_share=judged_share(evaluation.ranking, primary.depth if primary else None).mean,
        warnings=warnings[:MOST_WARNINGS],
        pilot=evaluation.pilot,
    )


def _figure(measure: Measure, summary: Summary) -> answers.Figure:
    return answers.Figure(
        measure=str(measure), mean=summary.mean, ci_low=summary.ci_low, ci_high=summary.ci_high, n=summary.n
    )


def comparison_answer(found: Found) -> answers.ComparisonAnswer:
    """The verdict of a comparison."""
    compared = found.value
    if not isinstance(compared, Comparison):
        raise UsageError(f"{found.ref} is an evaluation", expected="a comparison")
    measures = sorted(compared.measures, key=lambda measure: measure != compared.primary)
    warnings = (str(warning) for each in found.evaluations for warning in each.warnings)
    return answers.ComparisonAnswer(
        **found.known(),
        stored=found.stored,
        verdict=compared.verdict.name,
        sentence=compared.verdict.sentence,
        reasons=list(compared.verdict.reasons),
        disagreements=list(compared.verdict.disagreements),
        baseline=compared.baseline.name,
        candidate=compared.candidate.name,
        primary=str(compared.primary),
        test=compared.test,
        alpha=compared.alpha,
        differences=[_difference(compared.measures[measure], compared.test) for measure in measures],
        n_unpaired=len(compared.dropped),
        warnings=list(dict.fromkeys((*caveat_sentences(compared.evidence), *warnings)))[:MOST_WARNINGS],
        pilot=compared.pilot,
    )


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


def worst_queries(found: Found, spelling: str | None, offset: int, limit: int) -> answers.QueryPage:
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
        answers.QueryRow(query=query, text=untrusted(texts[query].text), value=values[query])
        for query in ids[offset : offset + limit]
    ]
    return answers.QueryPage(
        **found.known(),
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


def explain_query(found: Found, query: str) -> answers.QueryExplanation:
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
        **found.known(),
        query=query,
        text=untrusted(detail["text"]),
        strata=detail["strata"],
        values=[answers.MeasureValues(measure=each["measure"], values=each["values"]) for each in detail["values"]],
        expected=[
            answers.Expected(item=untrusted(each["item"]), grade=each["grade"], ranks=each["ranks"])
            for each in detail["expected"][:MOST_ITEMS]
        ],
        n_expected=len(detail["expected"]),
        sides=[_side(each) for each in detail["sides"]],
    )


def _side(side: dict[str, Any]) -> answers.Side:
    found: Sequence[dict[str, Any]] = side["hits"]
    return answers.Side(
        system=str(side["name"]),
        outcome=str(side["outcome"]),
        note=untrusted(side["note"]),
        first_relevant_rank=side["first_relevant_rank"],
        hits=[
            answers.Hit(
                rank=hit["rank"],
                id=untrusted(hit["id"]),
                title=untrusted(hit["title"]),
                state=hit["state"],
                note=untrusted(hit["note"]),
            )
            for hit in found[:MOST_ITEMS]
        ],
        n_hits=len(found),
    )


def report_page(found: Found, offset: int) -> answers.ReportPage:
    """A part of the report, cut at the end of a line."""
    text = found.report
    part = text[offset : offset + REPORT_CHARACTERS]
    if offset + len(part) < len(text) and (end := part.rfind("\n")) > 0:
        part = part[: end + 1]
    return answers.ReportPage(
        **found.known(),
        report=untrusted(part, REPORT_CHARACTERS),
        n_characters=len(text),
        next_offset=next_offset(len(part), offset, len(text)),
    )
